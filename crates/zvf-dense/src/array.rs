//! The trait that all dense arrays implement.

use core::fmt;

use serde_json::{Map, Value};

use crate::{Buffer, ChunkGrid, DenseError, Hyperslab, NumpyDtype, ReadCost};

/// Memory for one chunk at a time, independent of the budget. The budget limits whole results, and
/// a caller may set a budget of a few bytes.
const SCRATCH: u64 = 64 << 20;

/// A chunked dense array from which boxes are read.
///
/// Values are returned as bytes in row-major order, each encoded as [`dtype`](Self::dtype).
pub trait DenseArray: Send + Sync + fmt::Debug {
    /// Returns the name of the array at its location, for messages.
    fn name(&self) -> &str;

    /// Returns the type of an element.
    fn dtype(&self) -> &NumpyDtype;

    /// Returns the shape and the chunk grid.
    fn grid(&self) -> &ChunkGrid;

    /// Returns the attributes.
    fn attributes(&self) -> &Map<String, Value>;

    /// Returns the names of the axes, if the array has them.
    fn dimension_names(&self) -> Option<&[String]> {
        None
    }

    /// Returns the memory limit, in bytes, for the result of one read.
    fn budget(&self) -> u64;

    /// Computes what a read of `selection` would touch, without reading anything that grows with the
    /// array.
    ///
    /// # Errors
    ///
    /// If the selection does not fit the array, or the index is damaged.
    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError>;

    /// Reads `selection` into `into`, which must have exactly its length, and returns what was read.
    /// After an error the contents of `into` are unspecified.
    ///
    /// # Errors
    ///
    /// If the selection does not fit the array, `into` has another length, or stored data cannot be
    /// read or decoded.
    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError>;

    /// Returns the number of elements along each axis.
    fn shape(&self) -> &[u64] {
        self.grid().shape()
    }

    /// Checks that `selection` fits the array and returns its size in bytes.
    ///
    /// # Errors
    ///
    /// If it does not fit, or is larger than the address space.
    fn byte_len(&self, selection: &Hyperslab) -> Result<usize, DenseError> {
        selection.check(self.shape())?;
        let needed = selection.byte_len(self.dtype().size());
        let budget = self.budget();
        let needed = needed.ok_or(DenseError::Budget {
            needed: u64::MAX,
            budget,
        })?;
        usize::try_from(needed).map_err(|_| DenseError::Budget { needed, budget })
    }

    /// Reads `selection` into a new buffer.
    ///
    /// # Errors
    ///
    /// The errors of [`slice_into`](Self::slice_into), and [`DenseError::Budget`].
    fn slice(&self, selection: &Hyperslab) -> Result<Buffer, DenseError> {
        self.slice_within(selection, self.budget())
    }

    /// Reads `selection` into a new buffer of at most `budget` bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`slice_into`](Self::slice_into), and [`DenseError::Budget`].
    fn slice_within(&self, selection: &Hyperslab, budget: u64) -> Result<Buffer, DenseError> {
        let len = self.byte_len(selection)?;
        let needed = u64::try_from(len).unwrap_or(u64::MAX);
        let capacity = Some(len).filter(|_| needed <= budget);
        let mut bytes = capacity
            .and_then(Buffer::zeros)
            .ok_or(DenseError::Budget { needed, budget })?;
        self.slice_into(selection, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the memory limit for buffers other than the result, and for one chunk of a pass over all
    /// chunks: the budget, but at least 64 MiB.
    fn scratch(&self) -> u64 {
        self.budget().max(SCRATCH)
    }

    /// Calls `visit` with each chunk in row-major order, as a selection of the array and its bytes. One
    /// chunk is in memory at a time.
    ///
    /// # Errors
    ///
    /// The errors of [`slice`](Self::slice), and the first error of `visit`.
    fn visit_chunks(&self, visit: &mut ChunkVisitor<'_>) -> Result<(), DenseError> {
        let grid = self.grid();
        let mut cells = grid.chunks(&Hyperslab::whole(grid.shape()));
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

/// Checks that `buffer` has the size of `selection`, and returns it in bytes.
///
/// # Errors
///
/// The errors of [`DenseArray::byte_len`], and [`DenseError::BufferSize`].
pub(crate) fn checked_len(
    array: &impl DenseArray,
    selection: &Hyperslab,
    buffer: &[u8],
) -> Result<usize, DenseError> {
    let needed = array.byte_len(selection)?;
    if needed != buffer.len() {
        return Err(DenseError::buffer_size(needed, buffer.len()));
    }
    Ok(needed)
}

/// Checks that `bytes` has the size of a selection of elements of `size` bytes, and returns it.
///
/// # Errors
///
/// [`DenseError::BufferSize`].
pub(crate) fn check_elements(
    selection: &Hyperslab,
    size: u64,
    bytes: &[u8],
) -> Result<usize, DenseError> {
    let needed = selection.byte_len(size);
    let needed = needed
        .and_then(|needed| usize::try_from(needed).ok())
        .unwrap_or(usize::MAX);
    if needed != bytes.len() {
        return Err(DenseError::buffer_size(needed, bytes.len()));
    }
    Ok(needed)
}

/// A callback for one chunk, with its elements as a selection of the array and their bytes.
pub type ChunkVisitor<'a> = dyn FnMut(&Hyperslab, &[u8]) -> Result<(), DenseError> + 'a;
