//! Objects of levels that complete each other.

use std::collections::BTreeSet;

use zvf_model::{level::Refinement, root::RootMetadata};

use super::{StoreCounts, each_manifest};
use crate::{context::Context, rules::consistency as rules, store::StoreMetadata};

/// Memory of an id in a set, with the overhead of its nodes.
const BYTES_PER_ID: u64 = 24;

/// Checks that no object of an additive level is in a level that completes it.
pub(super) async fn check(
    context: &Context<'_>,
    store: &StoreMetadata,
    root: &RootMetadata,
    counted: &StoreCounts,
) {
    // Ids of the objects of the coarser levels of a chain.
    let mut coarser: BTreeSet<i64> = BTreeSet::new();
    for level in store.levels.iter().rev() {
        let Some(scope) = store.scope(root, level) else {
            coarser.clear();
            continue;
        };
        let is_rest = scope.metadata.refinement == Refinement::Replace;
        if is_rest {
            coarser.clear();
        }
        let needed = level.id.number().checked_sub(1).and_then(|finer| {
            let finer = store.levels.iter().find(|level| level.id.number() == finer);
            Some(finer?.metadata.as_ref()?.refinement)
        });
        if is_rest && needed != Some(Refinement::Add) {
            continue;
        }
        let objects = counted.levels.get(&level.id);
        let objects = objects.and_then(|counts| counts.objects).unwrap_or(0);
        let known = u64::try_from(coarser.len()).unwrap_or(u64::MAX);
        let bytes = objects.saturating_add(known).saturating_mul(BYTES_PER_ID);
        let budget = context.fetch.budget();
        if bytes > budget {
            let message = format!(
                "comparing objects with those of other levels needs {bytes} bytes, but the memory \
                 budget is {budget}"
            );
            context.report(&rules::PART_NOT_CHECKED, &level.key, message);
            return;
        }
        let (mut twice, mut first) = (0_u64, None);
        each_manifest(context, scope, |_, id, manifest| {
            let has_any = manifest.iter().any(|block| !block.fragments.is_empty());
            if has_any && !coarser.insert(id) {
                twice = twice.saturating_add(1);
                first.get_or_insert(id);
            }
        })
        .await;
        if let Some(id) = first {
            let message = format!(
                "{twice} objects have fragments in a coarser level that completes this one, the \
                 first is {id}"
            );
            context.report(&rules::OBJECT_TWICE, &level.key, message);
        }
    }
}
