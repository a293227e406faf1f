//! Chunks whose stored links could not be read.

use core::ops::Range;
use std::collections::BTreeSet;

use zvf_catalog::LinkRecords;
use zvf_model::grid::ChunkCoord;

use super::row_map::RowMap;

/// Chunks whose stored links could not be read. Their implied links are unknown, because a stored
/// link replaces the implied one.
#[derive(Default)]
pub(super) struct UnreadableChunks {
    chunks: BTreeSet<ChunkCoord>,
    anywhere: bool,
}

impl UnreadableChunks {
    pub(super) fn add(&mut self, records: &LinkRecords) {
        if records.is_unreadable {
            self.anywhere |= records.chunks.is_empty();
            self.chunks.extend(records.chunks.iter().cloned());
        }
    }

    pub(super) fn has(&self, chunk: &ChunkCoord) -> bool {
        self.anywhere || self.chunks.contains(chunk)
    }

    /// Rows of the result that are of these chunks, ascending.
    pub(super) fn rows(&self, map: &RowMap) -> Vec<Range<u64>> {
        if self.anywhere {
            return core::iter::once(0..u64::MAX).collect();
        }
        let chunks = self.chunks.iter();
        let mut rows: Vec<Range<u64>> = chunks.filter_map(|chunk| map.of_chunk(chunk)).collect();
        rows.sort_unstable_by_key(|rows| rows.start);
        rows
    }
}
