//! Attributes of a chunk as the source of predicates.

use std::sync::Arc;

use zvf_catalog::CellRows;
use zvf_format::numeric::{Element, Kind, NumericRows};
use zvf_model::array::CellAttribute;

use super::{cell_of, code_of, words};
use crate::predicate::{ColumnType, Datum, Scope};

/// A column that predicates read.
pub(crate) trait ColumnView {
    fn scope(&self) -> Scope;
    fn name(&self) -> &str;
    /// Returns the number of channels; `None` if it is unknown: older stores do not declare it,
    /// and without a cell there is nothing to count.
    fn channels(&self) -> Option<u32>;
    fn values(&self) -> ColumnType<'_>;
    fn value(&self, row: usize, channel: u32) -> Datum;
    /// See [`ColumnSource::exact_floats`](crate::predicate::ColumnSource::exact_floats).
    fn exact_floats(&self, _channel: u32, _rows: usize) -> Option<Vec<f64>> {
        None
    }
}

/// An attribute of a chunk, by the indices of its rows in memory.
pub(crate) struct CellView<'a> {
    pub(crate) scope: Scope,
    pub(crate) name: &'a str,
    pub(crate) metadata: &'a CellAttribute,
    pub(crate) words: Option<Arc<[String]>>,
    pub(crate) cell: Option<&'a CellRows>,
    pub(crate) indices: RowIndices<'a>,
}

/// The row of a cell for each row of a predicate.
#[derive(Clone, Copy)]
pub(crate) enum RowIndices<'a> {
    /// Consecutive rows.
    Run { first: usize, len: usize },
    /// A row each, or none.
    Each(&'a [Option<usize>]),
}

impl RowIndices<'_> {
    pub(super) fn get(self, row: usize) -> Option<usize> {
        match self {
            Self::Run { first, len } => (row < len).then(|| first.checked_add(row))?,
            Self::Each(indices) => indices.get(row).copied().flatten(),
        }
    }

    /// Returns the indices of the first rows only.
    pub(super) fn first(self, rows: usize) -> Option<Self> {
        match self {
            Self::Run { first, len } => (rows <= len).then_some(Self::Run { first, len: rows }),
            Self::Each(indices) => Some(Self::Each(indices.get(..rows)?)),
        }
    }
}

impl<'a> CellView<'a> {
    pub(crate) fn new(
        scope: Scope,
        name: &'a str,
        metadata: &'a CellAttribute,
        cell: Option<&'a CellRows>,
        indices: RowIndices<'a>,
    ) -> Self {
        let dictionary = metadata.dictionary.as_ref();
        Self {
            scope,
            name,
            metadata,
            words: dictionary.map(|dictionary| words(&dictionary.categories)),
            cell,
            indices,
        }
    }
}

impl ColumnView for CellView<'_> {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn name(&self) -> &str {
        self.name
    }

    fn channels(&self) -> Option<u32> {
        let CellAttribute {
            row_shape,
            channel_names,
            ..
        } = self.metadata;
        let is_declared = row_shape.is_some() || channel_names.is_some();
        let declared = || self.metadata.declared_columns().unwrap_or(1);
        match (self.cell, &self.words) {
            (_, Some(_)) => Some(1),
            (Some(cell), None) => Some(cell.columns),
            (None, None) if is_declared => Some(u32::try_from(declared()).unwrap_or(1)),
            (None, None) => None,
        }
    }

    fn values(&self) -> ColumnType<'_> {
        match (&self.words, self.metadata.dtype.kind()) {
            (Some(words), _) => ColumnType::Categories(words.iter().map(String::as_str).collect()),
            (None, Kind::Bool) => ColumnType::Bool,
            (None, Kind::Float32) => ColumnType::Float32,
            (None, _) => ColumnType::Numbers,
        }
    }

    fn value(&self, row: usize, channel: u32) -> Datum {
        let index = self.indices.get(row);
        let (Some(cell), Some(index)) = (self.cell, index) else {
            return Datum::Missing;
        };
        let Ok(columns) = cell.columns.try_into() else {
            return Datum::Missing;
        };
        let Ok(rows) = NumericRows::parse(&cell.bytes, self.metadata.dtype, columns) else {
            return Datum::Missing;
        };
        let value = rows.value(index, channel);
        let Some(words) = &self.words else {
            return cell_of(value);
        };
        let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let fill = self.metadata.dictionary.as_ref().and_then(|d| d.fill);
        let code = value.and_then(|value| code_of(value, fill, count).ok().flatten());
        code.map_or(Datum::Missing, Datum::Category)
    }

    fn exact_floats(&self, channel: u32, rows: usize) -> Option<Vec<f64>> {
        let cell = self.cell.filter(|_| self.words.is_none())?;
        let channel = (channel < cell.columns).then_some(channel)?;
        let channel = usize::try_from(channel).ok()?;
        let indices = self.indices.first(rows)?;
        let (dtype, columns) = (self.metadata.dtype, cell.columns.try_into().ok()?);
        let rows = NumericRows::parse(&cell.bytes, dtype, columns).ok()?;
        floats_of(rows, channel, indices)
    }
}

/// Returns a channel of rows at `indices` as floats; `None` if a row has no value or the type does
/// not convert exactly.
pub(super) fn floats_of(
    rows: NumericRows<'_>,
    channel: usize,
    indices: RowIndices<'_>,
) -> Option<Vec<f64>> {
    match rows.dtype().kind() {
        Kind::Float32 => floats::<f32>(rows, channel, indices),
        Kind::Float64 => floats::<f64>(rows, channel, indices),
        Kind::Int8 => floats::<i8>(rows, channel, indices),
        Kind::Int16 => floats::<i16>(rows, channel, indices),
        Kind::Int32 => floats::<i32>(rows, channel, indices),
        Kind::UInt8 => floats::<u8>(rows, channel, indices),
        Kind::UInt16 => floats::<u16>(rows, channel, indices),
        Kind::UInt32 => floats::<u32>(rows, channel, indices),
        _ => None,
    }
}

/// Returns a channel of rows at `indices` as floats; `None` if one has no value.
fn floats<T: Element>(
    rows: NumericRows<'_>,
    channel: usize,
    indices: RowIndices<'_>,
) -> Option<Vec<f64>>
where
    f64: From<T>,
{
    let columns = usize::try_from(rows.columns().get()).ok()?;
    match indices {
        RowIndices::Run { first, len } => {
            let rows = rows.slice(first..first.checked_add(len)?)?;
            let channel = rows.elements::<T>()?.iter().skip(channel).step_by(columns);
            Some(channel.map(f64::from).collect())
        }
        RowIndices::Each(indices) => {
            let elements = rows.elements::<T>()?;
            let at = |index: usize| index.checked_mul(columns)?.checked_add(channel);
            let value = |index: &Option<usize>| elements.get(at((*index)?)?).map(f64::from);
            indices.iter().map(value).collect()
        }
    }
}
