//! Counts and results of a level.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zvf_build::{Output, coarsen::FragmentReference};
use zvf_dataset::Failure;
use zvf_model::{grid::ChunkCoord, key::Key, metadata::Attributes};

use super::job::{Outcome, Shared, WrittenCell};

/// Counts and results of a level, summed over its chunks.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    pub(super) names: u64,
    /// True if `names` does not count references in chunks that were not rebuilt.
    pub(super) is_partly_named: bool,
    pub(super) chunks: u64,
    pub(super) links: u64,
    /// Number of these links between chunks.
    pub(super) crossing: u64,
    /// Number of stored rows of links, including copies.
    pub(super) physical: u64,
    pub(super) between_levels: u64,
    /// Number of these links between chunks of different coordinates.
    pub(super) between_chunks: u64,
    pub(super) is_untiled: bool,
    pub(super) error: Option<f64>,
    /// Number of dropped pieces of meshes.
    pub(super) dropped: u64,
    pub(super) named: Vec<(FragmentReference, u32)>,
    /// Chunks of the level, indexed by the numbers in `named`.
    pub(super) chunk_of: Vec<ChunkCoord>,
    pub(super) parents: HashMap<ChunkCoord, Vec<u32>>,
    pub(super) put: BTreeMap<Key, Part>,
    /// Paths of families with cells, whose nodes are written.
    pub(super) families: BTreeSet<Key>,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// Number of objects with vertices.
    pub(super) present: u64,
}

/// An array and its chunks.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) chunks: Vec<Vec<i64>>,
    pub(super) attributes: Option<Attributes>,
}

impl Tally {
    pub(super) fn count_puts(&mut self, puts: Vec<WrittenCell>) {
        for put in puts {
            let part = self.put.entry(put.node).or_default();
            part.chunks.push(put.chunk);
            part.attributes = part.attributes.take().or(put.attributes);
        }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        self.rows += outcome.rows;
        self.names += outcome.names;
        self.links += outcome.links;
        self.physical += outcome.links;
        self.between_levels += outcome.linked;
        self.between_chunks += outcome.crossed;
        self.is_untiled |= !outcome.tiles;
        self.error = max_error(self.error, outcome.error);
        self.dropped += outcome.dropped;
        if outcome.rows > 0 {
            self.chunks += 1;
        }
        if !outcome.named.is_empty() {
            let number = u32::try_from(self.chunk_of.len()).unwrap_or(u32::MAX);
            self.named
                .extend(outcome.named.into_iter().map(|named| (named, number)));
            self.chunk_of.push(outcome.chunk);
        }
        self.parents.extend(outcome.parents);
        self.count_puts(outcome.put);
    }
}

/// Returns the larger error, if there is one.
pub(super) fn max_error(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

impl Part {
    /// Returns the node of the array at `key`.
    pub(super) fn node(
        &self,
        shared: &Shared,
        key: &Key,
        old: &Attributes,
    ) -> Result<Output, Failure> {
        let chunks: Vec<&[i64]> = self.chunks.iter().map(Vec::as_slice).collect();
        let attributes = self.attributes.clone().unwrap_or_default();
        shared.node(key, &chunks, old, attributes)
    }
}
