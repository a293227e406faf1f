//! Where the payload of each tile is, by dataset and coordinate.

use core::ops::Range;

use zvf_format::tetration::{ChunkIndex, Codec};

use super::TetError;
use crate::ChunkGrid;

/// Where one tile's payload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) offset: u64,
    pub(super) stored_len: u64,
    pub(super) is_zstd: bool,
}

impl Tile {
    pub(super) fn span(self) -> Range<u64> {
        // The index has proven that it fits.
        self.offset..self.offset.saturating_add(self.stored_len)
    }
}

/// Every tile of every dataset, one after another in row-major order of the
/// grids: a lookup is one index, however rows were ordered.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    tiles: Vec<Tile>,
    /// Where the tiles of each dataset start.
    starts: Vec<usize>,
}

impl Tiles {
    /// Sorts rows that [`ChunkIndex::check`] has passed, in one pass; proves
    /// that no tile has two and that no payloads overlap.
    pub(super) fn new(index: &ChunkIndex<'_>, grids: &[ChunkGrid]) -> Result<Self, TetError> {
        let mut starts = Vec::with_capacity(grids.len());
        let mut start = 0_usize;
        for grid in grids {
            starts.push(start);
            let count = grid.chunk_count().and_then(|count| count.try_into().ok());
            start = start.saturating_add(count.unwrap_or(usize::MAX));
        }
        // As many as rows: the check has compared them.
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
            let place = at.and_then(|at| tiles.get_mut(at));
            let place = place.filter(|tile| tile.is_none());
            *place.ok_or_else(|| duplicate(coordinate))? = Some(Tile {
                offset: row.payload_offset(),
                stored_len: row.stored_len(),
                is_zstd: row.codec() == Codec::Zstd,
            });
            spans_ascend &= row.payload_offset() >= end;
            end = row.payload_span().end;
        }
        // There are as many rows as tiles and no tile has two: all have one.
        let tiles: Vec<Tile> = tiles.into_iter().flatten().collect();
        if !spans_ascend {
            disjoint(&tiles)?;
        }
        Ok(Self { tiles, starts })
    }

    /// The tile at this place of a dataset's grid, in row-major order.
    pub(super) fn get(&self, dataset: usize, number: u64) -> Option<Tile> {
        let number = usize::try_from(number).ok()?;
        let at = self.starts.get(dataset)?.checked_add(number)?;
        self.tiles.get(at).copied()
    }
}

fn disjoint(tiles: &[Tile]) -> Result<(), TetError> {
    let spans = tiles.iter().map(|tile| (tile.offset, tile.span().end));
    // An empty payload has no bytes to share.
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
