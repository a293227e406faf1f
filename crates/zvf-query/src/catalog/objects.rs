//! Objects of a level: their ids, and which fragments they are made of.

use std::sync::{Arc, Mutex, OnceLock};

use zvf_model::grid::ChunkCoord;

use crate::catalog::level::CachedLookup;

mod builder;
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

pub(crate) use ids::ObjectIds;
pub use lookup::ObjectLookup;
pub use owners::ChunkOwners;
pub(crate) use owners::Owners;
pub use stored::StoredManifests;
pub(crate) use table::ObjectTable;

use transitions::ChunkTransitions;

/// The object index of a level, as far as it is open or read.
#[derive(Debug, Default)]
struct ObjectCache {
    /// The open index; `Some(None)` for a level without one.
    table: Mutex<CachedLookup<ObjectTable>>,
    /// Ids of all objects.
    ids: Mutex<Option<Arc<ObjectIds>>>,
    /// All objects.
    objects: Mutex<Option<Arc<Objects>>>,
}

/// Objects of a level, all or some, in the order of the object index. A place
/// counts those that are here; a row counts those of the object index, which is
/// what their attributes go by.
#[derive(Debug, Default)]
pub struct Objects {
    /// Chunks that manifests name, by number.
    chunks: Vec<ChunkCoord>,
    /// Their numbers in the order of the chunks.
    in_order: Vec<u32>,
    ids: ObjectIds,
    /// The row of each place, ascending; `None` when places are rows.
    rows: Option<Vec<u64>>,
    /// Where the pieces of each place start; one more than there are places.
    starts: Vec<usize>,
    pieces: Vec<ObjectFragment>,
    /// Rows whose pieces could not be read, or all ids.
    incomplete: bool,
    owners: OnceLock<Owners>,
    steps: OnceLock<ChunkTransitions>,
}

/// A fragment of a chunk: a piece of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectFragment {
    /// A number of [`Objects::chunk`].
    pub chunk: u32,
    /// Which of its fragments.
    pub fragment: u32,
}

impl Objects {
    /// The chunk of a number that a piece has.
    pub fn chunk(&self, number: u32) -> Option<&ChunkCoord> {
        self.chunks.get(usize::try_from(number).ok()?)
    }

    /// The chunks that pieces are in, ascending.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkCoord> {
        self.in_order
            .iter()
            .filter_map(|number| self.chunk(*number))
    }

    /// The number of a chunk; `None` when no piece is in it. O(log n).
    pub fn number_of(&self, chunk: &ChunkCoord) -> Option<u32> {
        let by_chunk = |number: &u32| self.chunk(*number).cmp(&Some(chunk));
        let at = self.in_order.binary_search_by(by_chunk).ok()?;
        self.in_order.get(at).copied()
    }

    /// Number of objects here.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of each place, where these are not all rows.
    pub(crate) fn rows(&self) -> Option<&[u64]> {
        self.rows.as_deref()
    }

    /// The row of a place in the object index.
    pub fn row(&self, place: usize) -> Option<u64> {
        match &self.rows {
            Some(rows) => rows.get(place).copied(),
            None => u64::try_from(place).ok().filter(|_| place < self.len()),
        }
    }

    /// The id of a place.
    pub fn id(&self, place: usize) -> Option<i64> {
        self.ids.id(place)
    }

    /// The place of an id; `None` when no object here has it. O(log n).
    pub fn find(&self, id: i64) -> Option<usize> {
        self.ids.find(id)
    }

    /// The pieces of a place, in the order of its manifest.
    pub fn fragments(&self, place: usize) -> &[ObjectFragment] {
        let range = self
            .starts
            .get(place)
            .zip(self.starts.get(place.saturating_add(1)));
        range
            .and_then(|(start, end)| self.pieces.get(*start..*end))
            .unwrap_or_default()
    }

    /// Whether something could not be read and was written down: an object that
    /// is not here, or has no piece, may be there.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Which object has each fragment. O(n log n) when asked for first, with as
    /// much memory again as the pieces take.
    pub(crate) fn owners(&self) -> &Owners {
        self.owners.get_or_init(|| Owners::of(self))
    }

    /// Places of the objects with a piece in one of `near`, by number, or with pieces
    /// that follow each other in two chunks for which `may_meet` holds; ascending. The
    /// first time takes as long as going through all pieces. Where what is known then
    /// would take more than so many bytes, all places.
    pub(crate) fn near(
        &self,
        near: &[u32],
        most: u64,
        may_meet: impl Fn(&ChunkCoord, &ChunkCoord) -> bool,
    ) -> Vec<usize> {
        let between = |[from, to]: [u32; 2]| {
            let is_near = near.contains(&from) || near.contains(&to);
            let chunks = self.chunk(from).zip(self.chunk(to));
            !is_near && chunks.is_some_and(|(from, to)| may_meet(from, to))
        };
        let bytes = self.pieces.len().saturating_mul(ChunkTransitions::PIECE);
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > most) {
            return (0..self.len()).collect();
        }
        let steps = self.steps.get_or_init(|| ChunkTransitions::of(self));
        let mut places: Vec<usize> = steps.places(between).collect();
        for chunk in near.iter().filter_map(|number| self.chunk(*number)) {
            places.extend(self.owners_of(chunk).iter().map(|(_, place)| place));
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Owners of the fragments of a chunk.
    pub fn owners_of(&self, chunk: &ChunkCoord) -> ChunkOwners<'_> {
        self.owners().of_chunk(self, chunk)
    }
}
