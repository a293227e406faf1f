//! How an array is cut into chunks, and chunks into blocks.

mod cells;

pub use cells::{Cells, Part, Parts};

use crate::selection::{AxisRange, Selection, product};

/// The shape of an array and of the chunks, and blocks in chunks, it is cut into.
///
/// Chunks are counted from the origin; those at the edge reach beyond the
/// shape, or are cut off: that is up to the format. Blocks are counted from the
/// origin of their chunk. Without blocks a chunk is one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    block: Option<Vec<u64>>,
}

impl Grid {
    /// The grid of an array of chunks, which may be of blocks.
    ///
    /// # Errors
    ///
    /// [`GridError`] when these have different ranks, or a chunk or block has
    /// no elements on an axis that has some.
    pub fn new(
        shape: Vec<u64>,
        chunk: Vec<u64>,
        block: Option<Vec<u64>>,
    ) -> Result<Self, GridError> {
        let block_shape = block.as_ref().unwrap_or(&chunk);
        for cut in [&chunk, block_shape] {
            if cut.len() != shape.len() {
                return Err(GridError::Rank {
                    array: shape.len(),
                    cut: cut.len(),
                });
            }
            let mut axes = shape.iter().zip(cut);
            if let Some(axis) = axes.position(|(&extent, &cut)| extent > 0 && cut == 0) {
                return Err(GridError::Extent { axis });
            }
        }
        Ok(Self {
            shape,
            chunk,
            block,
        })
    }

    /// Elements along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements of a chunk along each axis, those beyond the edge counted.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Elements of a block along each axis, when chunks are of blocks.
    pub fn block_shape(&self) -> Option<&[u64]> {
        self.block.as_deref()
    }

    /// Chunks along each axis.
    pub fn chunk_counts(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone {
        let axes = self.shape.iter().zip(&self.chunk);
        axes.map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)))
    }

    /// Chunks of the whole array; `None` past 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        product(self.chunk_counts())
    }

    /// The number of a chunk in row-major order; `None` when there is none at
    /// this coordinate.
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

    /// Where the chunk of this number in row-major order is; `None` past the
    /// last.
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

    /// The elements of the array that the chunk at this coordinate has, those
    /// beyond the edge left out; empty outside the grid.
    pub fn chunk_selection(&self, coordinate: &[u64]) -> Selection {
        let axes = self.shape.iter().zip(&self.chunk).zip(coordinate);
        let axes = axes.map(|((&extent, &chunk), &at)| {
            let start = at.saturating_mul(chunk).min(extent);
            let end = start.saturating_add(chunk).min(extent);
            AxisRange::whole(extent).portion(start..end)
        });
        axes.collect()
    }

    /// The chunks that a selection touches, in row-major order, and what it has
    /// of each. It is not checked against the shape.
    pub fn chunks(&self, selection: &Selection) -> Cells {
        Cells::new(selection.axes(), &self.chunk)
    }

    /// Number of chunks a selection touches, counted without walking them.
    pub fn chunks_touched(&self, selection: &Selection) -> u64 {
        let axes = selection.axes().iter().zip(&self.chunk);
        let counts = axes.map(|(axis, &chunk)| cells::touched(*axis, chunk));
        product(counts).unwrap_or(u64::MAX)
    }
}

/// Why shapes are no grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// Chunk or block shape has another number of axes.
    #[error("chunks or blocks have {cut} axes, and the array {array}")]
    Rank {
        /// Axes of the array.
        array: usize,
        /// Axes of chunks or blocks.
        cut: usize,
    },
    /// Chunks or blocks without elements.
    #[error("chunks or blocks have no extent on axis {axis}")]
    Extent {
        /// The first such axis.
        axis: usize,
    },
}
