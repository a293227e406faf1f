//! The cells of links at each chunk.

use zvf_model::grid::ChunkCoord;

use super::LinkCellSource;

/// The cells of a set by the chunks of their ends, so that a query on a few chunks need not look at
/// all cells.
#[derive(Debug, Default)]
pub(super) struct CellsByChunk {
    /// Pairs of a chunk and a cell with an end in it, ascending.
    ends: Vec<(ChunkCoord, usize)>,
    /// Cells whose records contain their chunks.
    anywhere: Vec<usize>,
}

impl CellsByChunk {
    pub(super) fn of(cells: &[LinkCellSource]) -> Self {
        let mut by_chunk = Self::default();
        for (at, cell) in cells.iter().enumerate() {
            match &cell.chunks {
                Some(chunks) => by_chunk
                    .ends
                    .extend(chunks.iter().map(|chunk| (chunk.clone(), at))),
                None => by_chunk.anywhere.push(at),
            }
        }
        by_chunk.ends.sort_unstable();
        by_chunk.ends.dedup();
        by_chunk
    }

    /// Returns the cells that may have an end in one of these chunks, ascending.
    pub(super) fn at<'c>(&self, chunks: impl IntoIterator<Item = &'c ChunkCoord>) -> Vec<usize> {
        let mut cells = self.anywhere.clone();
        for chunk in chunks {
            let first = self.ends.partition_point(|(other, _)| other < chunk);
            let ends = self.ends.get(first..).unwrap_or_default().iter();
            let own = ends.take_while(|(other, _)| other == chunk);
            cells.extend(own.map(|(_, cell)| *cell));
        }
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}
