//! How many vertices the chunks of a level have, for links that name them.

use zvf_model::{grid::ChunkCoord, level::LevelId};

use crate::consistency::{Counted, LevelCounts};

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// It has so many vertices.
    Rows(u64),
    /// It has vertices that could not be read, which is found.
    Unknown,
    /// It has none.
    Absent,
}

/// The chunks of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places<'a> {
    counts: Option<&'a LevelCounts>,
}

impl<'a> Places<'a> {
    pub(super) fn of(counted: &'a Counted, level: Option<LevelId>) -> Self {
        let counts = level.and_then(|level| counted.levels.get(&level));
        Self { counts }
    }

    /// What is known of a chunk.
    pub(super) fn limit(self, coords: &[i64]) -> Limit {
        let Some(counts) = self.counts else {
            return Limit::Unknown;
        };
        let chunk = ChunkCoord::new(coords);
        match counts.chunks.get(&chunk) {
            Some(counts) => Limit::Rows(counts.rows),
            None if counts.unread || counts.lost.contains(&chunk) => Limit::Unknown,
            None => Limit::Absent,
        }
    }

    /// Chunks with vertices that could be read.
    pub(super) fn chunks(self) -> impl Iterator<Item = ChunkCoord> + use<'a> {
        let chunks = self
            .counts
            .into_iter()
            .flat_map(|counts| counts.chunks.keys());
        chunks.cloned()
    }
}
