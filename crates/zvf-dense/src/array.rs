//! What all dense arrays have in common.

use core::fmt;

use serde_json::{Map, Value};

use crate::{Buffer, DenseError, Dtype, Grid, ReadPlan, Selection};

/// Memory for a chunk at a time, whatever the budget: it is about results that
/// are in memory whole, and a file may ask for one of a few bytes.
const SCRATCH: u64 = 64 << 20;

/// A dense array in chunks, to read boxes of.
///
/// Values come as bytes, row-major, each as [`dtype`](Self::dtype) says.
pub trait DenseArray: Send + Sync + fmt::Debug {
    /// What it is called where it is kept; for messages.
    fn name(&self) -> &str;

    /// What an element is.
    fn dtype(&self) -> &Dtype;

    /// Its shape, and how it is cut.
    fn grid(&self) -> &Grid;

    /// What is said about it.
    fn attributes(&self) -> &Map<String, Value>;

    /// Names of its axes, where it has them.
    fn dimension_names(&self) -> Option<&[String]> {
        None
    }

    /// The most bytes of memory one read may take for its result.
    fn budget(&self) -> u64;

    /// What reading `selection` touches. Nothing that grows with the array is read.
    ///
    /// # Errors
    ///
    /// When the selection is not of this array, or its index is damaged.
    fn read_plan(&self, selection: &Selection) -> Result<ReadPlan, DenseError>;

    /// Reads `selection` into `into`, which has just its length, and says what
    /// that took. After an error `into` holds anything.
    ///
    /// # Errors
    ///
    /// When the selection is not of this array, `into` is not of its length, or
    /// what is stored cannot be read or decoded.
    fn slice_into(&self, selection: &Selection, into: &mut [u8]) -> Result<ReadPlan, DenseError>;

    /// Elements along each axis.
    fn shape(&self) -> &[u64] {
        self.grid().shape()
    }

    /// Bytes of `selection`, once it is known to be of this array.
    ///
    /// # Errors
    ///
    /// When it is not, or is longer than memory could be.
    fn byte_len(&self, selection: &Selection) -> Result<usize, DenseError> {
        selection.check(self.shape())?;
        let needed = selection.byte_len(self.dtype().size());
        let budget = self.budget();
        let needed = needed.ok_or(DenseError::Budget {
            needed: u64::MAX,
            budget,
        })?;
        usize::try_from(needed).map_err(|_| DenseError::Budget { needed, budget })
    }

    /// Reads `selection` into new memory.
    ///
    /// # Errors
    ///
    /// As [`slice_into`](Self::slice_into), and when it is more than the budget.
    fn slice(&self, selection: &Selection) -> Result<Buffer, DenseError> {
        self.slice_within(selection, self.budget())
    }

    /// Reads `selection` into new memory, at most `budget` bytes.
    ///
    /// # Errors
    ///
    /// As [`slice_into`](Self::slice_into), and when it is more than that.
    fn slice_within(&self, selection: &Selection, budget: u64) -> Result<Buffer, DenseError> {
        let len = self.byte_len(selection)?;
        let needed = u64::try_from(len).unwrap_or(u64::MAX);
        let room = Some(len).filter(|_| needed <= budget);
        let mut bytes = room
            .and_then(Buffer::zeros)
            .ok_or(DenseError::Budget { needed, budget })?;
        self.slice_into(selection, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of memory that a read may take beside its result, and a pass chunk
    /// by chunk for a chunk: the budget, or 64 MiB where that is less.
    fn scratch(&self) -> u64 {
        self.budget().max(SCRATCH)
    }

    /// Calls `visit` with each chunk in row-major order: the elements of the
    /// array it has, and their bytes. One chunk is in memory at a time.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice), and the first that `visit` returns.
    fn visit_chunks(&self, visit: &mut ChunkVisitor<'_>) -> Result<(), DenseError> {
        let grid = self.grid();
        let mut cells = grid.chunks(&Selection::whole(grid.shape()));
        let mut coordinate = Vec::new();
        while let Some(parts) = cells.next() {
            coordinate.clear();
            coordinate.extend(parts.iter().map(|part| part.cell));
            let selection = grid.chunk_selection(&coordinate);
            let bytes = self.slice_within(&selection, self.scratch())?;
            visit(&selection, &bytes)?;
        }
        Ok(())
    }
}

/// What is done with a chunk: the elements of the array it has, and their bytes.
pub type ChunkVisitor<'a> = dyn FnMut(&Selection, &[u8]) -> Result<(), DenseError> + 'a;
