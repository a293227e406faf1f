//! Views: a box of an array as an array of its own.

use core::fmt;

use serde_json::{Map, Value};
use zvf_format::numeric::{self, ByteOrder, Kind};

use crate::{
    ChunkGrid, DenseArray, DenseError, Hyperslab, HyperslabError, NumpyDtype, ReadCost,
    hyperslab::AxisRange,
};

/// A box of an array as an array of its own, with numbers in little-endian byte order. Used to convert
/// a part, and for formats with a fixed byte order.
pub struct ArrayView<'a> {
    array: &'a dyn DenseArray,
    selection: Hyperslab,
    grid: ChunkGrid,
    dtype: NumpyDtype,
    /// Size of the numbers whose bytes are reversed; 0 for none.
    swapped: usize,
}

impl fmt::Debug for ArrayView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.selection, self.array)
    }
}

impl<'a> ArrayView<'a> {
    /// Creates the view of a box of `array`.
    ///
    /// # Errors
    ///
    /// If the selection does not fit the array.
    pub fn new(array: &'a dyn DenseArray, selection: Hyperslab) -> Result<Self, DenseError> {
        Self::with_order(array, selection, ByteOrder::Little)
    }

    /// Creates the view of a box of `array`, with numbers in a byte order.
    pub(crate) fn with_order(
        array: &'a dyn DenseArray,
        selection: Hyperslab,
        order: ByteOrder,
    ) -> Result<Self, DenseError> {
        selection.check(array.shape())?;
        // About as many elements of the box as in a chunk.
        let chunk = selection.axes().iter().zip(array.grid().chunk_shape());
        let chunk = chunk.map(|(axis, chunk)| chunk.div_ceil(axis.step()).max(1));
        let grid = ChunkGrid::new(selection.shape(), chunk.collect(), None).map_err(|source| {
            DenseError::Grid {
                name: array.name().to_owned(),
                source,
            }
        })?;
        let other = array
            .dtype()
            .number()
            .filter(|number| number.order() != order);
        let (dtype, swapped) = match other {
            Some(number) => {
                let turned = numeric::Dtype::new(number.kind(), order);
                (turned.into(), part_size(number.kind()))
            }
            None => (array.dtype().clone(), 0),
        };
        Ok(Self {
            array,
            selection,
            grid,
            dtype,
            swapped,
        })
    }

    /// Translates a selection of the box into one of the array.
    fn inner(&self, selection: &Hyperslab) -> Result<Hyperslab, DenseError> {
        selection.check(self.grid.shape())?;
        let axes: Result<Hyperslab, HyperslabError> = self
            .selection
            .axes()
            .iter()
            .zip(selection.axes())
            .map(|(outer, inner)| {
                let start = outer.position(inner.start());
                // The last element is inside the array, so nothing wraps.
                let step = outer.step().saturating_mul(inner.step()).max(1);
                let last = inner.last().map(|last| outer.position(last));
                let stop = last.map_or(start, |last| last.saturating_add(1));
                AxisRange::new(start, stop, step)
            })
            .collect();
        Ok(axes?)
    }
}

/// Returns the size of each number in a value.
fn part_size(kind: Kind) -> usize {
    match kind {
        Kind::Complex64 | Kind::Complex128 => kind.size() / 2,
        _ => kind.size(),
    }
}

impl DenseArray for ArrayView<'_> {
    fn name(&self) -> &str {
        self.array.name()
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        self.array.attributes()
    }

    fn dimension_names(&self) -> Option<&[String]> {
        self.array.dimension_names()
    }

    fn budget(&self) -> u64 {
        self.array.budget()
    }

    fn scratch(&self) -> u64 {
        self.array.scratch()
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        self.array.read_plan(&self.inner(selection)?)
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        let plan = self.array.slice_into(&self.inner(selection)?, into)?;
        if self.swapped > 1 {
            into.chunks_exact_mut(self.swapped)
                .for_each(<[u8]>::reverse);
        }
        Ok(plan)
    }
}
