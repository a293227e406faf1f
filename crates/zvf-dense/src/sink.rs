//! Where a dense array is written to, chunk by chunk.

use core::fmt;

use crate::{DenseArray, DenseError, Grid, Selection};

/// An array that is being written.
///
/// Chunks are put in row-major order of the grid, each once. Nothing is at its
/// final place before [`finish`](Self::finish).
pub trait DenseSink: fmt::Debug {
    /// The shape, and how it is cut.
    fn grid(&self) -> &Grid;

    /// Writes the next chunk: the elements of the array it has, those beyond the
    /// edge left out, row-major.
    ///
    /// # Errors
    ///
    /// When `bytes` are not as many, or cannot be encoded or written.
    fn put_chunk(&mut self, selection: &Selection, bytes: &[u8]) -> Result<(), DenseError>;

    /// Puts what was written in its place.
    ///
    /// # Errors
    ///
    /// When chunks are missing, or it cannot be written.
    fn finish(self: Box<Self>) -> Result<(), DenseError>;
}

/// Writes all of `array` to `sink`, which is of the same shape and dtype, a
/// chunk of the sink at a time. `progress` is told the bytes of each.
///
/// ```
/// use std::sync::Arc;
/// use zvf_dense::{
///     DenseArray, Dtype, MappedFile, MemoryArray, Selection, convert,
///     npy::{NpyArray, NpySink},
/// };
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("volume.npy");
/// let volume = MemoryArray::new("volume", Dtype::parse("u1")?, vec![2, 3], (0..6).collect())?;
/// let sink = NpySink::create(&path, volume.dtype(), &[2, 3], &[1, 3])?;
/// let mut bytes = 0;
/// convert(&volume, Box::new(sink), &mut |more| bytes += more)?;
/// assert_eq!(bytes, 6);
///
/// let read = NpyArray::open(Arc::new(MappedFile::open(&path)?), None)?;
/// let column = Selection::new(&[0, 1], &[2, 2], None)?;
/// assert_eq!(&read.slice(&column)?[..], [1, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When either fails; nothing is at the sink's final place then.
pub fn convert(
    array: &dyn DenseArray,
    mut sink: Box<dyn DenseSink + '_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), DenseError> {
    let grid = sink.grid().clone();
    let mut cells = grid.chunks(&Selection::whole(grid.shape()));
    let mut coordinate = Vec::new();
    while let Some(parts) = cells.next() {
        coordinate.clear();
        coordinate.extend(parts.iter().map(|part| part.cell));
        let selection = grid.chunk_selection(&coordinate);
        let bytes = array.slice_within(&selection, array.scratch())?;
        sink.put_chunk(&selection, &bytes)?;
        progress(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
    sink.finish()
}
