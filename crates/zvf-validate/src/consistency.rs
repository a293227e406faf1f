//! L3: every cell, decoded and compared with other cells.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{draco::VertexOrder, grid::ChunkCoord, key::Key, level::LevelId};

use crate::{context::Context, rules::consistency as rules, store::StoreMetadata};

mod additive;
mod chunks;
mod extras;
mod link_groups;
mod links;
mod manifests;
mod objects;

pub(crate) use manifests::{Ids, each_manifest};

/// Counts of all levels, for the checks of L4.
#[derive(Debug, Default)]
pub(crate) struct StoreCounts {
    pub(crate) levels: BTreeMap<LevelId, LevelCounts>,
}

/// The lower and upper corner of a box.
type Corners = (Vec<f64>, Vec<f64>);

/// Counts of one level.
#[derive(Debug, Default)]
pub(crate) struct LevelCounts {
    /// Chunks with readable vertices.
    pub(crate) chunks: BTreeMap<ChunkCoord, ChunkCounts>,
    /// Chunks with unreadable vertices.
    pub(crate) lost: BTreeSet<ChunkCoord>,
    /// The level has no vertices, or none of them could be read.
    pub(crate) unread: bool,
    /// Number of vertices outside the bounds.
    out_of_bounds: u64,
    /// Corners of the box around the vertices outside the bounds.
    beyond: Option<Corners>,
    /// Fragments of each chunk with at least one row, in levels of objects.
    filled: BTreeMap<ChunkCoord, chunks::Bits>,
    /// A fragment belongs to several objects.
    shares: bool,
    /// Rows of the object index, or `None` if it is missing or unreadable.
    pub(crate) objects: Option<u64>,
    /// Ids of objects by row, or `None` as above.
    pub(crate) ids: Option<Ids>,
    /// Links by delta.
    pub(crate) links: BTreeMap<Delta, LinkSum>,
}

impl LevelCounts {
    /// Adds the vertices of a chunk that are outside the bounds, with the corners of their box.
    fn add_out_of_bounds(&mut self, count: u64, corners: Option<Corners>) {
        self.out_of_bounds = self.out_of_bounds.saturating_add(count);
        let Some((lower, upper)) = corners else {
            return;
        };
        let (own_lower, own_upper) = self
            .beyond
            .get_or_insert_with(|| (lower.clone(), upper.clone()));
        for (own, found) in own_lower.iter_mut().zip(&lower) {
            *own = own.min(*found);
        }
        for (own, found) in own_upper.iter_mut().zip(&upper) {
            *own = own.max(*found);
        }
    }
}

/// Counts of the links of one delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkSum {
    /// Ends of a link.
    pub(crate) width: Option<LinkWidth>,
    /// All links could be read.
    pub(crate) is_whole: bool,
    /// Number of rows.
    pub(crate) records: u64,
    /// Order-independent checksum of the links to another level.
    pub(crate) digest: u128,
}

/// Counts of one chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkCounts {
    /// Number of vertices.
    pub(crate) rows: u64,
    /// Number of fragments, or `None` if the index is unreadable.
    pub(crate) fragments: Option<u64>,
    /// `Lost` if links between chunks cannot be assigned to the vertices.
    pub(crate) order: VertexOrder,
}

/// Checks every cell of every level. In a [share](Context::is_share), checks single chunks only.
pub(crate) async fn check(context: &Context<'_>, store: &StoreMetadata) -> StoreCounts {
    let mut counted = StoreCounts::default();
    let Some(root) = &store.root else {
        let message = "the root's metadata cannot be used";
        context.report(&rules::NOT_RUN, &Key::root(), message);
        return counted;
    };
    for level in &store.levels {
        let Some(scope) = store.scope(root, level) else {
            let message = "the level's metadata cannot be used";
            context.report(&rules::NOT_RUN, &level.key, message);
            continue;
        };
        let mut counts = chunks::check(context, scope).await;
        if !context.is_share() {
            objects::check(context, scope, &mut counts).await;
        }
        counted.levels.insert(level.id, counts);
    }
    for level in &store.levels {
        if let Some(scope) = store.scope(root, level) {
            links::check(context, scope, &mut counted).await;
            link_groups::check(context, scope, &counted).await;
        }
    }
    if !context.is_share() {
        links::between_levels(context, store, root, &counted);
        additive::check(context, store, root, &counted).await;
    }
    extras::check(context, store, root, &counted).await;
    counted
}
