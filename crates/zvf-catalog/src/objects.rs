//! The object index of a level: ids of objects and the fragments each consists of.
//!
//! `table` opens the index, `read` reads all manifests and `lookup` those of a few ids; `builder`
//! decodes manifests within a memory budget.

use std::sync::{Arc, Mutex, OnceLock};

use zvf_model::grid::ChunkCoord;

use crate::level::CachedLookup;

mod builder;
mod content;
mod dense;
mod fragments_by_chunk;
mod ids;
mod interner;
mod lookup;
mod owners;
mod read;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod transitions;

pub use fragments_by_chunk::FragmentsByChunk;
pub(crate) use ids::ObjectIdTable;
pub use lookup::ObjectLookup;
pub use owners::ChunkOwners;
pub(crate) use owners::FragmentOwners;
pub use stored::StoredManifests;
pub use table::ObjectTable;

use transitions::ChunkTransitions;

/// The object index of a level, with the parts that are open or read.
#[derive(Debug, Default)]
struct ObjectCache {
    /// The open index; `Some(None)` for a level without one.
    table: Mutex<CachedLookup<ObjectTable>>,
    /// Ids of all objects.
    ids: Mutex<Option<Arc<ObjectIdTable>>>,
    /// All objects.
    objects: Mutex<Option<Arc<ObjectSet>>>,
}

/// All or some objects of a level, in the order of the object index.
///
/// A *position* is an index into this list, a *row* an index into the object index. Attributes of
/// objects are indexed by row.
#[derive(Debug, Default)]
pub struct ObjectSet {
    /// Chunks in the manifests. Chunk numbers index this list.
    chunks: Vec<ChunkCoord>,
    /// Chunk numbers, sorted by chunk.
    in_order: Vec<u32>,
    ids: ObjectIdTable,
    /// The row of each position, ascending; `None` if positions are rows.
    rows: Option<Vec<u64>>,
    /// Start of each object in `fragments`, and the end of the last.
    starts: Vec<usize>,
    fragments: Vec<ObjectFragment>,
    /// `true` if ids or the fragments of some objects could not be read.
    incomplete: bool,
    owners: OnceLock<FragmentOwners>,
    transitions: OnceLock<ChunkTransitions>,
}

/// A fragment that an object consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectFragment {
    /// Number of the chunk, for [`ObjectSet::chunk`].
    pub chunk: u32,
    /// Index of the fragment in the chunk.
    pub fragment: u32,
}

impl ObjectSet {
    /// Returns the chunk with this number.
    #[inline]
    pub fn chunk(&self, number: u32) -> Option<&ChunkCoord> {
        self.chunks.get(usize::try_from(number).ok()?)
    }

    /// Returns the chunks that hold fragments of the objects, ascending.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkCoord> {
        self.in_order
            .iter()
            .filter_map(|number| self.chunk(*number))
    }

    /// Returns the numbers of all chunks.
    pub fn chunk_numbers(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.chunks).map(|(number, _)| number)
    }

    /// Returns the number of a chunk; `None` if it holds no fragment of the objects. O(log n).
    pub fn number_of(&self, chunk: &ChunkCoord) -> Option<u32> {
        let by_chunk = |number: &u32| self.chunk(*number).cmp(&Some(chunk));
        let at = self.in_order.binary_search_by(by_chunk).ok()?;
        self.in_order.get(at).copied()
    }

    /// Returns the number of objects in the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the row of each position, or `None` if positions are rows.
    #[inline]
    pub fn rows(&self) -> Option<&[u64]> {
        self.rows.as_deref()
    }

    /// Returns the row of a position in the object index.
    #[inline]
    pub fn row(&self, position: usize) -> Option<u64> {
        match &self.rows {
            Some(rows) => rows.get(position).copied(),
            None => u64::try_from(position)
                .ok()
                .filter(|_| position < self.len()),
        }
    }

    /// Returns the id of the object at a position.
    #[inline]
    pub fn id(&self, position: usize) -> Option<i64> {
        self.ids.id(position)
    }

    /// Returns the position of an id; `None` if no object in the list has it. O(log n).
    pub fn find(&self, id: i64) -> Option<usize> {
        self.ids.find(id)
    }

    /// Returns the fragments of the object at a position, in the order of its manifest.
    #[inline]
    pub fn fragments(&self, position: usize) -> &[ObjectFragment] {
        let range = self
            .starts
            .get(position)
            .zip(self.starts.get(position.saturating_add(1)));
        range
            .and_then(|(start, end)| self.fragments.get(*start..*end))
            .unwrap_or_default()
    }

    /// Returns whether damage was skipped. Objects of the store may then be absent from the list,
    /// or lack fragments.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns the owners of all fragments. The first call takes O(n log n) and as much memory as
    /// the fragments themselves.
    pub(crate) fn owners(&self) -> &FragmentOwners {
        self.owners.get_or_init(|| FragmentOwners::of(self))
    }

    /// Returns the positions of objects that may enter a region, ascending: objects with a fragment
    /// in one of the chunks `near`, or with consecutive fragments in two chunks for which
    /// `may_intersect` holds.
    ///
    /// The first call visits all fragments and builds an index; if it would exceed `max_bytes`, all
    /// positions are returned.
    pub fn near(
        &self,
        near: &[u32],
        max_bytes: u64,
        may_intersect: impl Fn(&ChunkCoord, &ChunkCoord) -> bool,
    ) -> Vec<usize> {
        let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let mut marks = vec![false; self.chunks.len()];
        for number in near {
            if let Some(mark) = marks.get_mut(at(*number)) {
                *mark = true;
            }
        }
        let is_near = |number: u32| marks.get(at(number)).copied().unwrap_or(false);
        let between = |[from, to]: [u32; 2]| {
            let chunks = self.chunk(from).zip(self.chunk(to));
            let is_near = is_near(from) || is_near(to);
            !is_near && chunks.is_some_and(|(from, to)| may_intersect(from, to))
        };
        let bytes = self
            .fragments
            .len()
            .saturating_mul(ChunkTransitions::BYTES_PER_FRAGMENT);
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > max_bytes) {
            return (0..self.len()).collect();
        }
        let transitions = self.transitions.get_or_init(|| ChunkTransitions::of(self));
        let mut positions: Vec<usize> = transitions.positions(between).collect();
        for chunk in near.iter().filter_map(|number| self.chunk(*number)) {
            positions.extend(self.owners_of(chunk).iter().map(|(_, position)| position));
        }
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Returns the owners of the fragments of a chunk.
    pub fn owners_of(&self, chunk: &ChunkCoord) -> ChunkOwners<'_> {
        self.owners().of_chunk(self, chunk)
    }
}
