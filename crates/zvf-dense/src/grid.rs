//! The division of an array into chunks, and of chunks into blocks.

mod cells;

pub use cells::{CellPart, CellParts, GridCells};

use crate::hyperslab::{AxisRange, Hyperslab, product};

/// The shape of an array, of its chunks, and of the blocks in chunks.
///
/// Chunks count from the origin of the array. Chunks at the edge are padded or cut off, depending on
/// the format. Blocks count from the origin of their chunk. Without blocks, a chunk is one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    block: Option<Vec<u64>>,
}

impl ChunkGrid {
    /// Creates the grid of an array with chunks and, optionally, blocks.
    ///
    /// # Errors
    ///
    /// [`ChunkGridError`] if the ranks differ, or a chunk or block is empty along a non-empty axis.
    pub fn new(
        shape: Vec<u64>,
        chunk: Vec<u64>,
        block: Option<Vec<u64>>,
    ) -> Result<Self, ChunkGridError> {
        let block_shape = block.as_ref().unwrap_or(&chunk);
        for cut in [&chunk, block_shape] {
            if cut.len() != shape.len() {
                return Err(ChunkGridError::Rank {
                    array: shape.len(),
                    cut: cut.len(),
                });
            }
            let mut axes = shape.iter().zip(cut);
            if let Some(axis) = axes.position(|(&extent, &cut)| extent > 0 && cut == 0) {
                return Err(ChunkGridError::Extent { axis });
            }
        }
        Ok(Self {
            shape,
            chunk,
            block,
        })
    }

    /// Returns the number of elements along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the number of elements of a chunk along each axis, including padding at the edge.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Returns the number of elements of a block along each axis, if chunks have blocks.
    pub fn block_shape(&self) -> Option<&[u64]> {
        self.block.as_deref()
    }

    /// Returns the number of chunks along each axis.
    pub fn chunk_counts(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone {
        let axes = self.shape.iter().zip(&self.chunk);
        axes.map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)))
    }

    /// Returns the number of chunks; `None` if it exceeds 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        product(self.chunk_counts())
    }

    /// Returns the row-major number of a chunk; `None` outside the grid.
    pub fn chunk_number(&self, coordinate: &[u64]) -> Option<u64> {
        if coordinate.len() != self.shape.len() {
            return None;
        }
        let mut axes = coordinate.iter().zip(self.chunk_counts());
        axes.try_fold(0_u64, |number, (&at, count)| {
            let is_there = at < count;
            let number = number.checked_mul(count)?.checked_add(at);
            number.filter(|_| is_there)
        })
    }

    /// Returns the coordinate of a chunk by its row-major number; `None` past the end.
    pub fn chunk_coordinate(&self, number: u64) -> Option<Vec<u64>> {
        let mut left = number;
        let mut coordinate: Vec<u64> = self
            .chunk_counts()
            .rev()
            .map(|count| {
                let at = left.checked_rem(count).unwrap_or_default();
                left = left.checked_div(count).unwrap_or(u64::MAX);
                at
            })
            .collect();
        coordinate.reverse();
        (left == 0).then_some(coordinate)
    }

    /// Returns the elements of a chunk without padding; empty outside the grid.
    pub fn chunk_selection(&self, coordinate: &[u64]) -> Hyperslab {
        let axes =
            self.shape
                .iter()
                .zip(&self.chunk)
                .zip(coordinate)
                .map(|((&extent, &chunk), &at)| {
                    let start = at.saturating_mul(chunk).min(extent);
                    let end = start.saturating_add(chunk).min(extent);
                    AxisRange::whole(extent).portion(start..end)
                });
        axes.collect()
    }

    /// Iterates over the chunks that a selection touches, in row-major order, with the selected part
    /// of each. The selection is not checked against the shape.
    pub fn chunks(&self, selection: &Hyperslab) -> GridCells {
        GridCells::new(selection.axes(), &self.chunk)
    }

    /// Counts the chunks that a selection touches without iterating over them.
    pub fn chunks_touched(&self, selection: &Hyperslab) -> u64 {
        let axes = selection.axes().iter().zip(&self.chunk);
        let counts = axes.map(|(axis, &chunk)| cells::touched(*axis, chunk));
        product(counts).unwrap_or(u64::MAX)
    }
}

/// An error in the shapes of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkGridError {
    /// The chunk or block shape has another number of axes.
    #[error("chunks or blocks have {cut} axes, but the array has {array}")]
    Rank {
        /// Axes of the array.
        array: usize,
        /// Axes of chunks or blocks.
        cut: usize,
    },
    /// Chunks or blocks are empty.
    #[error("chunks or blocks are empty along axis {axis}")]
    Extent {
        /// The first empty axis.
        axis: usize,
    },
}
