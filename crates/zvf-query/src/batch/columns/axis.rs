//! Coordinates of a chunk's vertices as predicates see them.

use zvf_format::numeric::{Dtype, NumericRows};

use super::{
    cell_of,
    view::{ColumnView, RowIndices, floats_of},
};
use crate::predicate::{ColumnType, Datum, Scope};

/// One axis of the positions of a chunk, by the indices of its rows.
pub(crate) struct AxisView<'a> {
    pub(crate) name: &'a str,
    pub(crate) axis: u32,
    pub(crate) positions: &'a [u8],
    pub(crate) dtype: Dtype,
    /// Number of axes.
    pub(crate) axes: u32,
    pub(crate) indices: RowIndices<'a>,
}

impl AxisView<'_> {
    fn rows(&self) -> Option<NumericRows<'_>> {
        NumericRows::parse(self.positions, self.dtype, self.axes.try_into().ok()?).ok()
    }
}

impl ColumnView for AxisView<'_> {
    fn scope(&self) -> Scope {
        Scope::Vertex
    }

    fn name(&self) -> &str {
        self.name
    }

    fn channels(&self) -> Option<u32> {
        Some(1)
    }

    fn values(&self) -> ColumnType<'_> {
        ColumnType::Numbers
    }

    fn value(&self, row: usize, _: u32) -> Datum {
        let index = self.indices.get(row);
        cell_of(index.and_then(|index| self.rows()?.value(index, self.axis)))
    }

    fn exact_floats(&self, _: u32, rows: usize) -> Option<Vec<f64>> {
        let axis = usize::try_from(self.axis).ok()?;
        floats_of(self.rows()?, axis, self.indices.first(rows)?)
    }
}
