//! The fragments of some objects, by chunk.

use zvf_model::grid::ChunkCoord;

use super::{ObjectFragment, ObjectSet};

/// Fragments of selected objects, by chunk.
#[derive(Debug, Default)]
pub struct FragmentsByChunk {
    /// Chunks and their fragments, both ascending.
    chunks: Vec<(ChunkCoord, Vec<u32>)>,
}

impl FragmentsByChunk {
    /// Groups the fragments of objects by chunk.
    pub fn of(objects: &ObjectSet, indices: impl Iterator<Item = usize>) -> Self {
        let mut pieces: Vec<ObjectFragment> = indices
            .flat_map(|index| objects.fragments(index))
            .copied()
            .collect();
        pieces.sort_unstable();
        pieces.dedup();
        let chunks = pieces
            .chunk_by(|a, b| a.chunk == b.chunk)
            .filter_map(|pieces| {
                let chunk = objects.chunk(pieces.first()?.chunk)?.clone();
                Some((chunk, pieces.iter().map(|piece| piece.fragment).collect()))
            });
        chunks.collect()
    }

    /// Returns the fragments in a chunk, ascending.
    pub fn get(&self, chunk: &ChunkCoord) -> Option<&[u32]> {
        let found = self.chunks.binary_search_by(|(other, _)| other.cmp(chunk));
        Some(&self.chunks.get(found.ok()?)?.1)
    }

    /// Returns the chunks, ascending.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkCoord> {
        self.chunks.iter().map(|(chunk, _)| chunk)
    }

    /// Returns whether an object has a fragment in a chunk.
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        self.get(chunk).is_some()
    }
}

impl FromIterator<(ChunkCoord, Vec<u32>)> for FragmentsByChunk {
    fn from_iter<T: IntoIterator<Item = (ChunkCoord, Vec<u32>)>>(chunks: T) -> Self {
        let mut chunks: Vec<(ChunkCoord, Vec<u32>)> = chunks.into_iter().collect();
        chunks.sort_unstable();
        Self { chunks }
    }
}
