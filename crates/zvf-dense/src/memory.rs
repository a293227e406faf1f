//! Arrays in memory.

use serde_json::{Map, Value};

use crate::{
    Buffer, CellPart, ChunkGrid, DenseArray, DenseError, Hyperslab, NumpyDtype, ReadCost,
    array::{check_elements, checked_len},
    scatter::{ScatterPiece, scatter},
};

/// A row-major array in memory, with one chunk.
#[derive(Debug)]
pub struct MemoryArray {
    name: String,
    dtype: NumpyDtype,
    grid: ChunkGrid,
    bytes: Buffer,
    attributes: Map<String, Value>,
}

impl MemoryArray {
    /// Creates an array.
    ///
    /// # Errors
    ///
    /// [`DenseError::BufferSize`] if `bytes` does not have the size of the shape.
    pub fn new(
        name: impl Into<String>,
        dtype: NumpyDtype,
        shape: Vec<u64>,
        bytes: Vec<u8>,
    ) -> Result<Self, DenseError> {
        Self::of_result(name.into(), dtype, shape, bytes.into())
    }

    /// Creates an array from the result of a read.
    pub(crate) fn of_result(
        name: String,
        dtype: NumpyDtype,
        shape: Vec<u64>,
        bytes: Buffer,
    ) -> Result<Self, DenseError> {
        check_elements(&Hyperslab::whole(&shape), dtype.size(), &bytes)?;
        let chunk = shape.iter().map(|extent| (*extent).max(1)).collect();
        let grid = ChunkGrid::new(shape, chunk, None).map_err(|source| DenseError::Grid {
            name: name.clone(),
            source,
        })?;
        Ok(Self {
            name,
            dtype,
            grid,
            bytes,
            attributes: Map::new(),
        })
    }
}

impl DenseArray for MemoryArray {
    fn name(&self) -> &str {
        &self.name
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
        u64::MAX
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        let bytes = self.byte_len(selection)?;
        Ok(ReadCost {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            ..ReadCost::default()
        })
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        let plan = self.read_plan(selection)?;
        let needed = checked_len(self, selection, into)?;
        if needed == 0 {
            return Ok(plan);
        }
        let parts: Vec<CellPart> = selection
            .axes()
            .iter()
            .map(|axis| CellPart {
                cell: 0,
                offset: axis.start(),
                at: 0,
                count: axis.count(),
            })
            .collect();
        let piece = ScatterPiece {
            bytes: &self.bytes,
            extents: self.grid.shape(),
            parts: &parts,
        };
        let size = usize::try_from(self.dtype.size()).unwrap_or(usize::MAX);
        let done = scatter(&[piece], selection, size, into);
        done.ok_or_else(|| DenseError::buffer_size(needed, self.bytes.len()))?;
        Ok(plan)
    }
}
