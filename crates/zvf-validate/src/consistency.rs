//! L3: every cell, and what cells say of each other.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{
    grid::ChunkCoord,
    key::Key,
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
};

use crate::{
    context::Context,
    rules::consistency as rules,
    store::{Level, Store},
};

mod chunks;
mod extras;
mod links;
mod manifests;
mod objects;

pub(crate) use chunks::open_part;
pub(crate) use manifests::{Ids, each_manifest};

/// A level that can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) store: &'a Store,
    pub(crate) root: &'a RootMetadata,
    pub(crate) level: &'a Level,
    pub(crate) metadata: &'a LevelMetadata,
}

/// What was counted on the way, for what comes after.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) levels: BTreeMap<LevelId, LevelCounts>,
}

/// The lower and the upper corner of a box.
type Corners = (Vec<f64>, Vec<f64>);

/// Of one level.
#[derive(Debug, Default)]
pub(crate) struct LevelCounts {
    /// Of every chunk whose vertices could be read.
    pub(crate) chunks: BTreeMap<ChunkCoord, ChunkCounts>,
    /// Chunks whose vertices could not be read.
    pub(crate) lost: BTreeSet<ChunkCoord>,
    /// Whether there are no vertices, or none of them could be read.
    pub(crate) unread: bool,
    /// How many vertices are out of bounds.
    out_of_bounds: u64,
    /// The corners of the box that those are in.
    beyond: Option<Corners>,
    /// Fragments of each chunk that have a row, in levels of objects.
    filled: BTreeMap<ChunkCoord, chunks::Bits>,
    /// Whether a fragment belongs to several objects.
    shares: bool,
    /// Rows of the object index; `None` when there is none or it cannot be read.
    pub(crate) objects: Option<u64>,
    /// Ids of objects by row; `None` as above.
    pub(crate) ids: Option<Ids>,
    /// Links by delta.
    pub(crate) links: BTreeMap<Delta, LinkSum>,
}

impl LevelCounts {
    /// Counts vertices of a chunk that are out of bounds.
    fn add_out_of_bounds(&mut self, astray: chunks::Astray) {
        let count = astray.out_of_bounds.count;
        self.out_of_bounds = self.out_of_bounds.saturating_add(count);
        let Some((lower, upper)) = astray.corners else {
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

/// Of the links of one delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkSum {
    /// Ends of a link.
    pub(crate) width: Option<LinkWidth>,
    /// Whether all could be read.
    pub(crate) is_whole: bool,
    /// Rows.
    pub(crate) records: u64,
    /// A number for all that lead to another level, whatever their order.
    pub(crate) digest: u128,
}

/// Of one chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkCounts {
    /// Vertices.
    pub(crate) rows: u64,
    /// Fragments; `None` when the index cannot be read.
    pub(crate) fragments: Option<u64>,
}

/// Checks every cell of every level.
pub(crate) async fn check(context: &Context<'_>, store: &Store) -> Counted {
    let mut counted = Counted::default();
    let Some(root) = &store.root else {
        let message = "the root's metadata cannot be used";
        context.find(&rules::NOT_RUN, &Key::root(), message);
        return counted;
    };
    for level in &store.levels {
        let Some(metadata) = &level.metadata else {
            let message = "the level's metadata cannot be used";
            context.find(&rules::NOT_RUN, &level.key, message);
            continue;
        };
        let scope = Scope {
            store,
            root,
            level,
            metadata,
        };
        let mut counts = chunks::check(context, scope).await;
        objects::check(context, scope, &mut counts).await;
        counted.levels.insert(level.id, counts);
    }
    for level in &store.levels {
        if let Some(metadata) = &level.metadata {
            let scope = Scope {
                store,
                root,
                level,
                metadata,
            };
            links::check(context, scope, &mut counted).await;
        }
    }
    links::between_levels(context, store, root, &counted);
    extras::check(context, store, root, &counted).await;
    counted
}
