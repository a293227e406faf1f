//! The trait of writers that receive an array chunk by chunk.

use core::fmt;

use crate::{ChunkGrid, DenseArray, DenseError, Hyperslab};

/// An array under construction.
///
/// Chunks are put in row-major order of the grid, each once. Nothing appears at the final path before
/// [`finish`](Self::finish).
pub trait DenseSink: fmt::Debug {
    /// Returns the shape and the chunk grid.
    fn grid(&self) -> &ChunkGrid;

    /// Writes the next chunk: its elements in row-major order, without padding.
    ///
    /// # Errors
    ///
    /// If `bytes` has another length, or cannot be encoded or written.
    fn put_chunk(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError>;

    /// Completes the array and moves it to its final path.
    ///
    /// # Errors
    ///
    /// If chunks are missing, or the array cannot be written.
    fn finish(self: Box<Self>) -> Result<(), DenseError>;
}

/// Copies `array` to `sink`, which must have an equal shape and dtype, one chunk of the sink at a time.
/// Calls `progress` with the number of bytes of each chunk.
///
/// ```
/// use std::sync::Arc;
/// use zvf_dense::{
///     DenseArray, NumpyDtype, MappedFile, MemoryArray, Hyperslab, convert,
///     npy::{NpyArray, NpySink},
/// };
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("volume.npy");
/// let volume = MemoryArray::new("volume", NumpyDtype::parse("u1")?, vec![2, 3], (0..6).collect())?;
/// let sink = NpySink::create(&path, volume.dtype(), &[2, 3], &[1, 3])?;
/// let mut bytes = 0;
/// convert(&volume, Box::new(sink), &mut |more| bytes += more)?;
/// assert_eq!(bytes, 6);
///
/// let read = NpyArray::open(Arc::new(MappedFile::open(&path)?), None)?;
/// let column = Hyperslab::new(&[0, 1], &[2, 2], None)?;
/// assert_eq!(&read.slice(&column)?[..], [1, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If reading or writing fails. Nothing appears at the final path of the sink in that case.
pub fn convert(
    array: &dyn DenseArray,
    mut sink: Box<dyn DenseSink + '_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), DenseError> {
    let grid = sink.grid().clone();
    let mut cells = grid.chunks(&Hyperslab::whole(grid.shape()));
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
