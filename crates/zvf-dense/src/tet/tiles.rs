//! The locations of tile payloads, by dataset and coordinate.

use core::ops::Range;

use zvf_format::tetration::{ChunkIndex, TetCodec};

use super::TetError;
use crate::ChunkGrid;

/// The location of the payload of one tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) offset: u64,
    pub(super) stored_len: u64,
    pub(super) is_zstd: bool,
}

impl Tile {
    pub(super) fn span(self) -> Range<u64> {
        // Cannot overflow: the index checks the sum.
        self.offset..self.offset.saturating_add(self.stored_len)
    }
}

/// The tiles of all datasets in row-major order of their grids. A lookup takes constant time for
/// any order of rows in the file.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    tiles: Vec<Tile>,
    /// Position of the first tile of each dataset.
    starts: Vec<usize>,
}

impl Tiles {
    /// Sorts rows that passed [`ChunkIndex::check`], in one pass. Returns an error if a tile has
    /// two rows, or payloads overlap.
    pub(super) fn new(index: &ChunkIndex<'_>, grids: &[ChunkGrid]) -> Result<Self, TetError> {
        let mut starts = Vec::with_capacity(grids.len());
        let mut start = 0_usize;
        for grid in grids {
            starts.push(start);
            let count = grid.chunk_count().and_then(|count| count.try_into().ok());
            start = start.saturating_add(count.unwrap_or(usize::MAX));
        }
        // `check` ensures that the number of rows is the number of tiles.
        let rows = usize::try_from(index.len()).unwrap_or(usize::MAX);
        let mut tiles: Vec<Option<Tile>> = vec![None; rows];
        let mut spans_ascend = true;
        let mut end = 0;
        for (number, row) in (0..).zip(index) {
            let duplicate = |coordinate: &[u64]| TetError::DuplicateTile {
                row: number,
                dataset: row.dataset(),
                coordinate: coordinate.to_vec(),
            };
            let coordinate = row.coordinate();
            let dataset = usize::try_from(row.dataset()).unwrap_or(usize::MAX);
            let grid = grids.get(dataset);
            let rank = grid.map_or(0, |grid| grid.shape().len());
            let coordinate = coordinate.get(..rank).unwrap_or_default();
            let at = grid.and_then(|grid| grid.chunk_number(coordinate));
            let at = at.and_then(|at| usize::try_from(at).ok());
            let at = at.and_then(|at| starts.get(dataset)?.checked_add(at));
            let place = at
                .and_then(|at| tiles.get_mut(at))
                .filter(|tile| tile.is_none());
            *place.ok_or_else(|| duplicate(coordinate))? = Some(Tile {
                offset: row.payload_offset(),
                stored_len: row.stored_len(),
                is_zstd: row.codec() == TetCodec::Zstd,
            });
            spans_ascend &= row.payload_offset() >= end;
            end = row.payload_span().end;
        }
        // Rows and tiles are equal in number and no tile has two rows, so each tile has one.
        let tiles: Vec<Tile> = tiles.into_iter().flatten().collect();
        if !spans_ascend {
            disjoint(&tiles)?;
        }
        Ok(Self { tiles, starts })
    }

    /// Returns a tile by its row-major number in the grid of a dataset.
    pub(super) fn get(&self, dataset: usize, number: u64) -> Option<Tile> {
        let number = usize::try_from(number).ok()?;
        let at = self.starts.get(dataset)?.checked_add(number)?;
        self.tiles.get(at).copied()
    }
}

fn disjoint(tiles: &[Tile]) -> Result<(), TetError> {
    let spans = tiles.iter().map(|tile| (tile.offset, tile.span().end));
    // Empty payloads cannot overlap.
    let mut spans: Vec<_> = spans.filter(|(start, end)| start < end).collect();
    spans.sort_unstable();
    let mut last = 0;
    for (start, end) in spans {
        if start < last {
            return Err(TetError::Overlap(start));
        }
        last = end;
    }
    Ok(())
}
