//! Checks across levels and outside of them: bounds, inherited ids, parametric objects and
//! composite geometries.

use serde_json::json;
use zvf_model::{key::Key, level::LevelId, root::RootMetadata};

use super::{Ids, StoreCounts, objects::Members};
use crate::{
    context::Context,
    rules::consistency as rules,
    store::{LevelNode, LevelScope, StoreMetadata},
};

mod composite;
mod parametric;

/// Capability of stores whose objects share fragments.
const SHARED_FRAGMENTS: &str = "shared_fragments";

pub(super) async fn check(
    context: &Context<'_>,
    store: &StoreMetadata,
    root: &RootMetadata,
    counted: &StoreCounts,
) {
    check_bounds(context, root, counted);
    check_capability(context, root, counted);
    for level in &store.levels {
        let Some(scope) = store.scope(root, level) else {
            continue;
        };
        check_parent(context, scope, counted);
        composite::check(context, scope).await;
    }
    if !context.is_share() {
        parametric::check(context, store).await;
    }
}

/// Checks that all vertices are inside the bounds.
fn check_bounds(context: &Context<'_>, root: &RootMetadata, counted: &StoreCounts) {
    let Some(bounds) = &root.bounds else {
        return;
    };
    let (mut lower, mut upper) = (bounds.lower().to_vec(), bounds.upper().to_vec());
    let mut count = 0_u64;
    for level in counted.levels.values() {
        count = count.saturating_add(level.out_of_bounds);
        let Some((low, high)) = &level.beyond else {
            continue;
        };
        for (own, found) in lower.iter_mut().zip(low) {
            *own = own.min(*found);
        }
        for (own, found) in upper.iter_mut().zip(high) {
            *own = own.max(*found);
        }
    }
    if count > 0 {
        let message = format!("{count} vertices");
        let value = Some(json!([lower, upper]));
        let path = ["zarr_vectors", "bounds"];
        context.report_attribute(&rules::OUT_OF_BOUNDS, &Key::root(), &path, message, value);
    }
}

/// Checks that a store with shared fragments declares the capability.
fn check_capability(context: &Context<'_>, root: &RootMetadata, counted: &StoreCounts) {
    let declared = root
        .capabilities
        .iter()
        .any(|token| token == SHARED_FRAGMENTS);
    if declared || !counted.levels.values().any(|level| level.shares) {
        return;
    }
    let mut tokens: Vec<&str> = root.capabilities.iter().map(String::as_str).collect();
    tokens.push(SHARED_FRAGMENTS);
    let message = "objects share fragments, but the capability is missing";
    let path = ["zarr_vectors", "format_capabilities"];
    let value = Some(json!(tokens));
    context.report_attribute(
        &rules::UNDECLARED_SHARING,
        &Key::root(),
        &path,
        message,
        value,
    );
}

/// Checks that a level which keeps the ids of its parent has no others.
fn check_parent(context: &Context<'_>, scope: LevelScope<'_>, counted: &StoreCounts) {
    let LevelNode { id, key, .. } = scope.level;
    if *id == LevelId::FULL || scope.root.is_stale(*id) {
        return;
    }
    let Some(parent) = scope.metadata.parent_level.or_else(|| id.offset(-1)) else {
        return;
    };
    let (Some(own), Some(above)) = (counted.levels.get(id), counted.levels.get(&parent)) else {
        return;
    };
    if !scope.metadata.preserves_object_ids {
        return;
    }
    let (Some(own), Some(above)) = (&own.ids, &above.ids) else {
        return;
    };
    let missing = match own {
        Ids::Rows(rows) => {
            let end = i64::try_from(*rows).unwrap_or(i64::MAX);
            let range = 0..end;
            let count = Members::new(above).missing(&range);
            (count > 0).then(|| format!("{count} of 0 to {end}"))
        }
        Ids::Table(ids) => {
            let members = Members::new(above);
            let mut missing = ids.iter().filter(|id| !members.has(**id));
            missing.next().map(|first| {
                let count = missing.count().saturating_add(1);
                format!("{count} ids, first {first}")
            })
        }
    };
    if let Some(missing) = missing {
        let message = format!("level {parent} lacks {missing}");
        context.report(&rules::PARENT_IDS, key, message);
    }
}
