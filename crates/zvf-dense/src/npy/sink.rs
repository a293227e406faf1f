//! The chunk-by-chunk writer of `.npy`.

use std::{
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::NpyHeader;
use crate::{
    ChunkGrid, DenseError, DenseSink, Hyperslab, NumpyDtype, array::check_elements, staged,
    strided::strides,
};

/// Size in bytes up to which chunks are combined into whole rows, unless one row is longer.
const MAX_COMBINED_BYTES: u64 = 16 << 20;

/// A `.npy` file under construction, written beside its path and renamed by `finish`.
#[derive(Debug)]
pub struct NpySink {
    target: PathBuf,
    file: NamedTempFile,
    grid: ChunkGrid,
    size: u64,
    start: u64,
}

impl NpySink {
    /// Starts a row-major file. `chunk` is the chunk shape of the source: slabs have as many rows, so that
    /// no chunk of the source is read twice, unless slabs would become large.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub fn create(
        path: &Path,
        dtype: &NumpyDtype,
        shape: &[u64],
        chunk: &[u64],
    ) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let in_file = |error| DenseError::io(&name, error);
        let mut file = staged::create(path).map_err(in_file)?;
        let header = NpyHeader::encode(dtype, shape);
        file.write_all(&header).map_err(in_file)?;
        let size = dtype.size();
        let grid =
            ChunkGrid::new(shape.to_vec(), slab(shape, chunk, size), None).map_err(|source| {
                DenseError::Grid {
                    name: name.clone(),
                    source,
                }
            })?;
        Ok(Self {
            target: path.to_path_buf(),
            file,
            grid,
            size,
            start: u64::try_from(header.len()).unwrap_or(u64::MAX),
        })
    }
}

/// Returns the shape of a slab: chunks of the source, widened to whole rows from the last axis as long
/// as the slab stays small.
fn slab(shape: &[u64], chunk: &[u64], size: u64) -> Vec<u64> {
    let mut slab: Vec<u64> = shape
        .iter()
        .zip(chunk)
        .map(|(s, c)| (*c).min(*s).max(1))
        .collect();
    let mut bytes = slab
        .iter()
        .fold(size, |bytes, extent| bytes.saturating_mul(*extent));
    for (of_slab, extent) in slab.iter_mut().zip(shape).rev() {
        let wider = (bytes / (*of_slab).max(1)).saturating_mul(*extent);
        if wider > MAX_COMBINED_BYTES {
            break;
        }
        *of_slab = (*extent).max(1);
        bytes = wider;
    }
    slab
}

impl DenseSink for NpySink {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn put_chunk(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        let name = self.target.display().to_string();
        let in_file = |error| DenseError::io(&name, error);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        check_elements(selection, self.size, bytes)?;
        // Contiguous: whole from some axis on, and one range along the axis before it.
        let shape = self.grid.shape();
        let axes = selection.axes().iter().zip(shape);
        let whole = axes
            .rev()
            .take_while(|(axis, extent)| axis.count() == **extent)
            .count();
        let outer = shape.len().saturating_sub(whole).saturating_sub(1);
        let run = selection.axes().iter().skip(outer).map(|axis| axis.count());
        let run = run.fold(size, |run, count| {
            run.saturating_mul(usize::try_from(count).unwrap_or(usize::MAX))
        });
        let strides = strides(shape, size).unwrap_or_default();
        let mut cells = crate::GridCells::new(
            selection.axes().get(..outer).unwrap_or_default(),
            &vec![1; outer],
        );
        let inner = selection.axes().iter().zip(&strides).skip(outer).fold(
            self.start,
            |at, (axis, stride)| {
                let stride = u64::try_from(*stride).unwrap_or(u64::MAX);
                at.saturating_add(axis.start().saturating_mul(stride))
            },
        );
        let mut runs = bytes.chunks(run.max(1));
        while let (Some(parts), Some(run)) = (cells.next(), runs.next()) {
            let at = parts
                .iter()
                .zip(&strides)
                .fold(inner, |at, (part, stride)| {
                    let stride = u64::try_from(*stride).unwrap_or(u64::MAX);
                    at.saturating_add(part.cell.saturating_mul(stride))
                });
            self.file.seek(SeekFrom::Start(at)).map_err(in_file)?;
            self.file.write_all(run).map_err(in_file)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), DenseError> {
        let name = self.target.display().to_string();
        staged::publish(self.file, &self.target).map_err(|error| DenseError::io(&name, error))
    }
}
