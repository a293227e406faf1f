//! NumPy's `.npy`: one array, versions 1 to 3, of any dtype except objects.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | magic | 6 | `\x93NUMPY` |
//! | version | 2 | 1, 2 or 3, and 0 |
//! | length of the header | 2, from version 2 on 4 | little-endian |
//! | header | length | a Python dictionary with `descr`, `fortran_order` and `shape` |
//! | data | | row by row, or column by column in Fortran order |

mod header;
mod sink;

pub use crate::error::NpyError;
pub use header::NpyHeader;
pub use sink::NpySink;

use std::{io, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    ByteSource, ChunkGrid, DenseArray, DenseError, Hyperslab, NumpyDtype, ReadCost,
    array::checked_len,
    hyperslab::{AxisRange, product},
    scatter::{ScatterPiece, scatter},
};

/// Bytes read at a time; at least one row.
const BATCH: u64 = 16 << 20;
/// Default memory budget of a read.
const BUDGET: u64 = 1 << 30;

/// A `.npy` file as a dense array. The format has no chunks; several rows are read at a time.
#[derive(Debug)]
pub struct NpyArray {
    source: Arc<dyn ByteSource>,
    dtype: NumpyDtype,
    grid: ChunkGrid,
    is_fortran: bool,
    /// Offset of the data.
    start: u64,
    budget: u64,
    attributes: Map<String, Value>,
}

/// The position and form of the data of an array in its file.
#[derive(Debug)]
pub(crate) struct NpyLayout {
    pub(crate) dtype: NumpyDtype,
    pub(crate) is_fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Offset of the data.
    pub(crate) start: u64,
}

impl NpyArray {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    ///
    /// [`DenseError::Npy`] if it is not a `.npy` file, or has the wrong size.
    pub fn open(source: Arc<dyn ByteSource>, budget: Option<u64>) -> Result<Self, DenseError> {
        let in_file = |error| DenseError::npy(source.name(), error);
        let (header, start) = NpyHeader::read(&*source)?;
        let len = product(header.shape.iter().copied().chain([header.dtype.size()]));
        let found = source.len().saturating_sub(start);
        if len != Some(found) {
            return Err(in_file(NpyError::Size {
                needed: len.unwrap_or(u64::MAX),
                found,
            }));
        }
        let layout = NpyLayout {
            dtype: header.dtype,
            is_fortran: header.is_fortran,
            shape: header.shape,
            start,
        };
        Self::with_layout(source, layout, budget)
    }

    /// Creates an array of data that another header describes. The caller has checked that the
    /// source holds them.
    pub(crate) fn with_layout(
        source: Arc<dyn ByteSource>,
        layout: NpyLayout,
        budget: Option<u64>,
    ) -> Result<Self, DenseError> {
        let len = product(layout.shape.iter().copied().chain([layout.dtype.size()]));
        // Slabs along the slowest axis of the file.
        let mut chunk = layout.shape.clone();
        let slowest = if layout.is_fortran {
            chunk.last_mut()
        } else {
            chunk.first_mut()
        };
        if let Some(extent) = slowest {
            let row = len.unwrap_or(0).checked_div(*extent).unwrap_or(0).max(1);
            *extent = (BATCH / row).clamp(1, (*extent).max(1));
        }
        let grid = ChunkGrid::new(layout.shape, chunk, None).map_err(|fault| DenseError::Grid {
            name: source.name().to_owned(),
            source: fault,
        })?;
        Ok(Self {
            dtype: layout.dtype,
            grid,
            is_fortran: layout.is_fortran,
            start: layout.start,
            budget: budget.unwrap_or(BUDGET),
            attributes: Map::new(),
            source,
        })
    }

    /// Reads the selected part of one chunk. Narrowing the leading axes to the selection makes it one
    /// range of the file.
    fn read_part(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<(), DenseError> {
        let size = self.dtype.size();
        let is_one = |axis: &AxisRange| axis.count() <= 1;
        // Slowest axis first; in Fortran order this is the last axis.
        let mut axes: Vec<(u64, AxisRange)> = self
            .shape()
            .iter()
            .copied()
            .zip(selection.axes().iter().copied())
            .collect();
        if self.is_fortran {
            axes.reverse();
        }
        let ends = || DenseError::io(self.source.name(), io::ErrorKind::UnexpectedEof.into());
        let leading = axes.iter().take_while(|(_, axis)| is_one(axis)).count();
        let (mut first, mut rows) = (0_u64, 1_u64);
        let mut extents = Vec::with_capacity(axes.len());
        for (at, (extent, axis)) in axes.iter().enumerate() {
            first = first.checked_mul(*extent).ok_or_else(ends)?;
            let span = match at.cmp(&leading) {
                core::cmp::Ordering::Greater => 0..*extent,
                _ => {
                    axis.start()
                        ..axis
                            .last()
                            .map_or(axis.start(), |last| last.saturating_add(1))
                }
            };
            first = first.checked_add(span.start).ok_or_else(ends)?;
            let count = span.end.saturating_sub(span.start);
            rows = rows.checked_mul(count).ok_or_else(ends)?;
            extents.push((span.start, count));
        }
        let start = first
            .checked_mul(size)
            .and_then(|at| at.checked_add(self.start));
        let len = rows.checked_mul(size);
        let end = start
            .zip(len)
            .and_then(|(start, len)| start.checked_add(len));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(ends());
        };
        let budget = self.scratch();
        let needed = end.saturating_sub(start);
        if self.source.bytes().is_none() && needed > budget {
            return Err(DenseError::Budget { needed, budget });
        }
        let bytes = self.source.read(start..end)?;
        if self.is_fortran {
            extents.reverse();
        }
        let parts: Vec<_> = selection
            .axes()
            .iter()
            .zip(&extents)
            .map(|(axis, (skipped, _))| crate::CellPart {
                cell: 0,
                offset: axis.start().saturating_sub(*skipped),
                at: 0,
                count: axis.count(),
            })
            .collect();
        let extents: Vec<u64> = extents.into_iter().map(|(_, count)| count).collect();
        let size = usize::try_from(size).map_err(|_| ends())?;
        let piece = ScatterPiece {
            bytes: &bytes,
            extents: &extents,
            parts: &parts,
        };
        let done = if self.is_fortran {
            transposed(piece, selection, size, into)
        } else {
            scatter(&[piece], selection, size, into)
        };
        done.ok_or_else(ends)
    }
}

/// Copies from bytes in Fortran order.
fn transposed(
    piece: ScatterPiece<'_>,
    selection: &Hyperslab,
    size: usize,
    into: &mut [u8],
) -> Option<()> {
    let reversed: Vec<u64> = piece.extents.iter().rev().copied().collect();
    let mut from_strides = crate::strided::strides(&reversed, size)?;
    from_strides.reverse();
    let to_strides = crate::strided::strides(&selection.shape(), size)?;
    let mut from = 0_usize;
    let mut axes = Vec::with_capacity(to_strides.len());
    let places = piece.parts.iter().zip(selection.axes());
    for ((part, axis), (stride, to)) in places.zip(from_strides.into_iter().zip(to_strides)) {
        let offset = usize::try_from(part.offset).ok()?.checked_mul(stride)?;
        from = from.checked_add(offset)?;
        let count = usize::try_from(part.count).ok()?;
        let step = if count > 1 { axis.step() } else { 1 };
        let stride = stride.checked_mul(usize::try_from(step).ok()?);
        axes.push((count, stride?, to));
    }
    crate::strided::BoxCopy::new(size, axes.into_iter(), from, 0)?.run(piece.bytes, into)
}

impl DenseArray for NpyArray {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    fn budget(&self) -> u64 {
        self.budget
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        let bytes = self.byte_len(selection)?;
        let chunks = self.grid.chunks_touched(selection);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Ok(ReadCost {
            chunks,
            blocks: chunks,
            bytes_read: bytes,
            bytes,
        })
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        let needed = checked_len(self, selection, into)?;
        let plan = self.read_plan(selection)?;
        if needed == 0 {
            return Ok(plan);
        }
        if self.is_fortran || self.source.bytes().is_some() {
            self.read_part(selection, into)?;
            return Ok(plan);
        }
        // One slab of rows at a time.
        let Some((first, rest)) = selection.axes().split_first() else {
            self.read_part(selection, into)?;
            return Ok(plan);
        };
        let row = needed
            .checked_div(usize::try_from(first.count()).unwrap_or(usize::MAX))
            .unwrap_or(0)
            .max(1);
        let slab = self.grid.chunk_shape().first().copied().unwrap_or(1);
        let mut left = into;
        for part in first.parts(slab) {
            let end = part.at.saturating_add(part.count);
            let rows = usize::try_from(part.count).unwrap_or(usize::MAX);
            let len = rows.saturating_mul(row).min(left.len());
            let (slab, next) = left.split_at_mut(len);
            left = next;
            let axes = core::iter::once(first.portion(part.at..end)).chain(rest.iter().copied());
            self.read_part(&axes.collect(), slab)?;
        }
        Ok(plan)
    }
}
