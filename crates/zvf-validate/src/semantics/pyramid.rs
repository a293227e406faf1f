//! Levels of a pyramid: coarser levels have fewer vertices, larger bins, and parents for all finer
//! vertices.

mod coverage;

use zvf_model::{
    key::Key,
    level::{LevelId, Refinement},
    root::{CrossLevel, CrossLevelDepth, RootMetadata},
    word::Word,
};

use super::{LevelView, numbers::Flags};
use crate::{
    consistency::{LevelCounts, StoreCounts, each_manifest},
    context::Context,
    rules::semantics as rules,
    store::{LevelScope, StoreMetadata},
};

/// Minimum number of objects that writers keep in a coarser level.
const PER_OBJECT: &str = "per_object";

pub(super) async fn check(
    context: &Context<'_>,
    store: &StoreMetadata,
    root: &RootMetadata,
    counted: &StoreCounts,
) {
    let stale = stale(context, store, root);
    let mut before: Option<Step<'_>> = None;
    for level in &store.levels {
        let counts = counted.levels.get(&level.id);
        let Some((scope, counts)) = store.scope(root, level).zip(counts) else {
            before = None;
            continue;
        };
        let step = Step {
            scope,
            counts,
            present: present(context, scope, counts).await,
            is_stale: stale.contains(&level.id),
        };
        if let Some(finer) = &before {
            bins(context, finer, &step);
            // The levels that complete an additive level have other objects and vertices.
            let is_rest = finer.scope.metadata.refinement == Refinement::Add;
            if !finer.is_stale && !step.is_stale && !is_rest {
                vertices(context, finer, &step, counted);
                objects(context, finer, &step);
                let view = LevelView {
                    context,
                    aside: context.silent(),
                    scope: finer.scope,
                    counts: finer.counts,
                };
                if step.scope.metadata.refinement == Refinement::Replace {
                    coverage::check(&view, finer, &step).await;
                }
            }
        }
        before = Some(step);
    }
}

/// Looks for parents of the chunks of a [share](Context::is_share) in coarser levels.
pub(super) async fn check_share(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    let stale = stale(context, store, root);
    for (level, coarser) in store.levels.iter().zip(store.levels.iter().skip(1)) {
        let (Some(scope), Some(above)) = (store.scope(root, level), &coarser.metadata) else {
            continue;
        };
        let metadata = scope.metadata;
        let is_stale = stale.contains(&level.id) || stale.contains(&coarser.id);
        let is_next = level.id.offset(1) == Some(coarser.id);
        let is_replaced = [metadata.refinement, above.refinement] == [Refinement::Replace; 2];
        let is_countable = metadata
            .vertex_count
            .is_none_or(|count| count < u64::from(u32::MAX));
        if is_stale || !is_next || !is_replaced || !is_countable {
            continue;
        }
        coverage::check_share(context, scope).await;
    }
}

/// A level of the pyramid.
struct Step<'a> {
    scope: LevelScope<'a>,
    counts: &'a LevelCounts,
    /// Objects with vertices, by row, or `None` if unknown.
    present: Option<Flags>,
    is_stale: bool,
}

/// Reports the levels that the root marks as stale.
fn stale(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) -> Vec<LevelId> {
    let ids: Vec<LevelId> = root.stale_levels().collect();
    for id in &ids {
        if let Some(level) = store.level(*id) {
            let message =
                "finer levels changed since it was built, so it was not compared with them";
            context.report(&rules::STALE_LEVEL, &level.key, message);
        }
    }
    ids
}

/// Returns the objects of a level with fragments.
async fn present(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    counts: &LevelCounts,
) -> Option<Flags> {
    let objects = u32::try_from(counts.objects?).ok()?;
    // A single level has no neighbour for comparison.
    if scope.store.levels.len() < 2 || u64::from(objects) / 8 > context.fetch.budget() {
        return None;
    }
    let mut present = Flags::new(objects);
    each_manifest(context, scope, |row, _, manifest| {
        let has_any = manifest.iter().any(|block| !block.fragments.is_empty());
        if let (true, Ok(row)) = (has_any, u32::try_from(row)) {
            present.set(row);
        }
    })
    .await;
    Some(present)
}

/// Compares the vertices of a level with those of the next coarser one, each with the levels that
/// complete it.
fn vertices(context: &Context<'_>, finer: &Step<'_>, step: &Step<'_>, counted: &StoreCounts) {
    let sum = |counts: &LevelCounts| {
        let rows = counts.chunks.values().map(|chunk| chunk.rows);
        rows.fold(0, u64::saturating_add)
    };
    let is_read = |counts: &LevelCounts| !counts.unread && counts.lost.is_empty();
    let with_rest = |of: &Step<'_>| {
        let chain = of.scope.store.chain(of.scope.level.id);
        chain
            .filter_map(|level| counted.levels.get(&level.id))
            .collect::<Vec<_>>()
    };
    let (fine, coarse) = (with_rest(finer), with_rest(step));
    let is_complete = fine.iter().all(|counts| is_read(counts));
    let [fine, coarse] =
        [fine, coarse].map(|levels| levels.into_iter().map(sum).fold(0, u64::saturating_add));
    if is_complete && coarse > fine {
        let message = format!(
            "{coarse} vertices, but level {} has {fine}",
            finer.scope.level.id
        );
        context.report(&rules::MORE_VERTICES, &step.scope.level.key, message);
    }
}

fn bins(context: &Context<'_>, finer: &Step<'_>, step: &Step<'_>) {
    let volume = |step: &Step<'_>| -> f64 {
        let shape = step.scope.metadata.effective_bin_shape(step.scope.root);
        shape.extents().iter().product()
    };
    let (fine, coarse) = (volume(finer), volume(step));
    if coarse < fine {
        let message = format!(
            "bins of {coarse}, but level {} has bins of {fine}",
            finer.scope.level.id
        );
        context.report(&rules::FINER_BINS, &step.scope.level.key, message);
    }
}

/// Checks that the objects of a level are among those of its parent.
fn objects(context: &Context<'_>, finer: &Step<'_>, step: &Step<'_>) {
    let metadata = step.scope.metadata;
    let key = &step.scope.level.key;
    let parent = metadata.parent_level.unwrap_or(finer.scope.level.id);
    if parent != finer.scope.level.id {
        return;
    }
    let rows = finer.counts.objects.unwrap_or(0);
    let (Some(fine), Some(coarse)) = (&finer.present, &step.present) else {
        return;
    };
    let objects = u32::try_from(step.counts.objects.unwrap_or(0)).unwrap_or(0);
    if metadata.preserves_object_ids {
        let new = (0..objects)
            .filter(|row| coarse.is_set(*row) && !fine.is_set(*row))
            .count();
        if new > 0 {
            let message = format!("{new} objects have no vertices in level {parent}");
            context.report(&rules::NEW_OBJECTS, key, message);
        }
    }
    // The share of an additive level includes the objects of the levels that complete it.
    let is_made = metadata.coarsening_method.as_deref() == Some(PER_OBJECT)
        && metadata.refinement == Refinement::Replace;
    if let Some(share) = metadata.object_sparsity.filter(|_| is_made) {
        sparsity(context, key, share, (rows, fine.count()), coarse.count());
    }
}

/// Writers compute the share from all objects, including objects without vertices.
fn sparsity(context: &Context<'_>, key: &Key, share: f64, (rows, present): (u64, u64), kept: u64) {
    let number = |count: u64| u32::try_from(count).map(f64::from);
    let (Ok(all), Ok(some)) = (number(rows), number(kept)) else {
        return;
    };
    let expected = (all * share).max(1.0);
    let is_more = some > expected + 1.0;
    let is_less = rows == present && some < expected - 1.0;
    if is_more || is_less {
        let message = format!("{share}, but {kept} of {rows} objects are kept");
        let place = "attributes.zarr_vectors_level.object_sparsity";
        context.report_at(&rules::SPARSITY, key, place, message);
    }
}

/// Returns whether the root declares links to coarser levels.
fn is_linked(root: &RootMetadata) -> bool {
    let storage = root.cross_level_storage.as_ref().and_then(Word::known);
    let is_stored = matches!(storage, Some(CrossLevel::Implicit | CrossLevel::Explicit));
    is_stored
        && root
            .cross_level_depth
            .is_some_and(|depth| depth != CrossLevelDepth::Levels(0))
}
