//! Vertex counts of chunks, for the links that lead to them.

use zvf_model::{draco::VertexOrder, grid::ChunkCoord, level::LevelId};

use crate::consistency::{LevelCounts, StoreCounts};

/// The vertices of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkVertices {
    /// The number of vertices.
    Rows(u64),
    /// Vertices without the order to which links refer.
    OrderLost,
    /// Unreadable vertices, which are reported.
    Unknown,
    /// No vertices.
    Absent,
}

/// The chunks of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkLookup<'a> {
    counts: Option<&'a LevelCounts>,
}

impl<'a> ChunkLookup<'a> {
    pub(super) fn of(counted: &'a StoreCounts, level: Option<LevelId>) -> Self {
        let counts = level.and_then(|level| counted.levels.get(&level));
        Self { counts }
    }

    /// Returns the vertices of a chunk.
    pub(super) fn limit(self, coords: &[i64]) -> ChunkVertices {
        let Some(counts) = self.counts else {
            return ChunkVertices::Unknown;
        };
        let chunk = ChunkCoord::new(coords);
        match counts.chunks.get(&chunk) {
            Some(counts) if counts.order == VertexOrder::Lost => ChunkVertices::OrderLost,
            Some(counts) => ChunkVertices::Rows(counts.rows),
            None if counts.unread || counts.lost.contains(&chunk) => ChunkVertices::Unknown,
            None => ChunkVertices::Absent,
        }
    }

    /// Returns the chunks with readable vertices.
    pub(super) fn chunks(self) -> impl Iterator<Item = ChunkCoord> + use<'a> {
        let chunks = self
            .counts
            .into_iter()
            .flat_map(|counts| counts.chunks.keys());
        chunks.cloned()
    }
}
