//! L4: the meaning of the geometry.

mod conventions;
mod edges;
mod faces;
mod numbers;
mod parents;
mod paths;
mod pyramid;
mod trees;

use zvf_format::path::Delta;
use zvf_model::{
    geometry_kind::GeometryKind,
    key::Key,
    layout::{ArrayRole, CrossChunkForm},
    level::LevelId,
    root::LinksConvention,
};

use crate::{
    consistency::{LevelCounts, StoreCounts},
    context::Context,
    rules::semantics as rules,
    store::{LevelScope, StoreMetadata},
};

/// Checks the conventions of every kind of geometry.
pub(crate) async fn check(context: &Context<'_>, store: &StoreMetadata, counted: &StoreCounts) {
    let Some(root) = &store.root else {
        let message = "the root's metadata cannot be used";
        return context.report(&rules::NOT_RUN, &Key::root(), message);
    };
    conventions::check(context, store, root, counted);
    let convention = root.links_convention.clone().unwrap_or_default();
    let are_paths = root.kinds().any(GeometryKind::is_paths);
    for level in &store.levels {
        let counts = counted.levels.get(&level.id);
        let Some((scope, counts)) = store.scope(root, level).zip(counts) else {
            context.report(
                &rules::NOT_RUN,
                &level.key,
                "the level could not be read at L3",
            );
            continue;
        };
        let view = LevelView {
            context,
            aside: context.silent(),
            scope,
            counts,
        };
        match convention.known() {
            Some(LinksConvention::ImplicitSequential) if are_paths => {
                paths::check(&view).await;
            }
            Some(LinksConvention::ImplicitWithBranches) => trees::check(&view).await,
            Some(LinksConvention::Explicit) if root.holds(GeometryKind::Skeletons) => {
                trees::check(&view).await;
            }
            Some(LinksConvention::Explicit) if root.holds(GeometryKind::Mesh) => {
                edges::check(&view).await;
                faces::check(&view).await;
            }
            Some(LinksConvention::Explicit) => edges::check(&view).await,
            _ => {}
        }
    }
    pyramid::check(context, store, root, counted).await;
}

/// Checks single chunks in a [share](Context::is_share).
pub(crate) async fn check_share(context: &Context<'_>, store: &StoreMetadata) {
    if let Some(root) = &store.root {
        pyramid::check_share(context, store, root).await;
    }
}

/// A level and its counts.
struct LevelView<'a, 'c> {
    context: &'a Context<'c>,
    /// A context for reading cells again, whose findings are discarded.
    aside: Context<'c>,
    scope: LevelScope<'a>,
    counts: &'a LevelCounts,
}

impl LevelView<'_, '_> {
    /// Returns whether `bytes` fit in the memory budget; reports `what` was not checked otherwise.
    fn fits(&self, what: &str, bytes: u64) -> bool {
        let budget = self.context.fetch.budget();
        if bytes <= budget {
            return true;
        }
        let message = format!("{what} needs {bytes} bytes, but the memory budget is {budget}");
        self.not_run(message);
        false
    }

    /// Reports that a check did not run.
    fn not_run(&self, message: impl ToString) {
        self.context
            .report(&rules::NOT_RUN, &self.scope.level.key, message);
    }

    /// Returns the number of link rows inside the level.
    fn links(&self) -> u64 {
        let sum = self.counts.links.get(&Delta::INTRA);
        sum.map_or(0, |sum| sum.records)
    }

    fn is_full(&self) -> bool {
        self.scope.level.id == LevelId::FULL
    }

    /// Returns the node of links inside the level.
    fn links_key(&self) -> Key {
        self.key(&ArrayRole::LinkFamily(Delta::INTRA))
    }

    /// Returns the node of links between chunks.
    fn between_key(&self) -> Key {
        match self.scope.store.layout().cross_chunk {
            CrossChunkForm::Links => self.links_key(),
            _ => self.key(&ArrayRole::CrossChunkLinks(Delta::INTRA)),
        }
    }

    fn key(&self, part: &ArrayRole<'_>) -> Key {
        let key = self.scope.store.at(self.scope.level, part);
        key.unwrap_or_else(|| self.scope.level.key.clone())
    }
}
