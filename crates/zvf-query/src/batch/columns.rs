//! Builders of columns from cells.

mod axis;
mod copy;
mod finished;
mod view;
mod views;

use core::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;
use zvf_catalog::{CellRows, Fault, RowSelection};
use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows, Value};
use zvf_model::array::CellAttribute;

use crate::predicate::{Datum, Number};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

pub(crate) use axis::AxisView;
pub(crate) use copy::{Capacity, Copying};
pub(crate) use finished::FinishedView;
pub(crate) use view::{CellView, ColumnView, RowIndices};
pub(crate) use views::ColumnViews;

/// Appends selected rows of `bytes`, in little-endian order.
pub(crate) fn push_runs(
    out: &mut Vec<u8>,
    bytes: &[u8],
    dtype: Dtype,
    columns: u32,
    vertices: &RowSelection,
) {
    let row = row_size(dtype, columns);
    let start = out.len();
    out.reserve(vertices.len().saturating_mul(row));
    for span in vertices.spans() {
        out.extend_from_slice(rows_at(bytes, row, span));
    }
    to_little(out, start, dtype);
}

/// Copies selected rows of `bytes` into `to`, in little-endian order.
pub(crate) fn copy_runs(
    to: &mut [u8],
    vertices: &RowSelection,
    dtype: Dtype,
    columns: u32,
    bytes: &[u8],
) {
    let row = row_size(dtype, columns);
    let mut rest = &mut *to;
    for span in vertices.spans() {
        let size = span.len().saturating_mul(row);
        let from = rows_at(bytes, row, span);
        let (own, after) = rest.split_at_mut(size.min(rest.len()));
        if own.len() == from.len() {
            own.copy_from_slice(from);
        }
        rest = after;
    }
    to_little(to, 0, dtype);
}

/// Returns the size of a row in bytes.
pub(crate) fn row_size(dtype: Dtype, columns: u32) -> usize {
    let columns = usize::try_from(columns).unwrap_or(usize::MAX);
    dtype.size().saturating_mul(columns)
}

/// Returns the bytes of rows.
pub(crate) fn rows_at(bytes: &[u8], row: usize, indices: Range<usize>) -> &[u8] {
    let range = indices.start.saturating_mul(row)..indices.end.saturating_mul(row);
    bytes.get(range).unwrap_or_default()
}

/// Returns zeroed memory for rows. The system provides it when it is first written, so each core
/// causes the page faults of the rows that it writes.
pub(crate) fn zeroed(rows: usize, row: usize) -> Vec<u8> {
    let mut bytes = vec![0; rows.saturating_mul(row)];
    zvf_pages::prefer_large(&mut bytes);
    bytes
}

/// Reverses the bytes of big-endian numbers from `start` on.
pub(crate) fn to_little(out: &mut [u8], start: usize, dtype: Dtype) {
    if dtype.order() == ByteOrder::Big {
        let part = match dtype.kind() {
            Kind::Complex64 | Kind::Complex128 => dtype.size() / 2,
            _ => dtype.size(),
        };
        let new = out.get_mut(start..).unwrap_or_default();
        new.chunks_exact_mut(part.max(1)).for_each(<[u8]>::reverse);
    }
}

/// The column of an attribute under construction.
#[derive(Clone, Debug)]
pub(crate) struct ColumnBuilder {
    name: String,
    metadata: Arc<CellAttribute>,
    words: Option<Arc<[String]>>,
    columns: Option<u32>,
    bytes: Vec<u8>,
    codes: Vec<u32>,
    rows: usize,
    /// Flags of rows without a value; empty as long as all have one.
    missing: Vec<bool>,
    any_missing: bool,
}

impl ColumnBuilder {
    pub(crate) fn new(name: &str, metadata: &Arc<CellAttribute>) -> Self {
        let dictionary = metadata.dictionary.as_ref();
        Self {
            name: name.to_owned(),
            metadata: Arc::clone(metadata),
            words: dictionary.map(|dictionary| words(&dictionary.categories)),
            columns: None,
            bytes: Vec::new(),
            codes: Vec::new(),
            rows: 0,
            missing: Vec::new(),
            any_missing: false,
        }
    }

    /// Returns the size of the values in bytes.
    pub(crate) fn size(&self) -> usize {
        let codes = self.codes.len().saturating_mul(size_of::<u32>());
        let values = self.rows.saturating_mul(self.row_size());
        self.bytes.len().min(values).saturating_add(codes)
    }

    /// Returns the declared size of a row in bytes.
    pub(crate) fn declared_size(&self) -> usize {
        let columns = self.metadata.declared_columns().unwrap_or(1);
        let columns = usize::try_from(columns).unwrap_or(1);
        self.metadata.dtype.size().saturating_mul(columns)
    }

    /// Reserves memory for values.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.words.is_none() {
            self.bytes.reserve(bytes);
            zvf_pages::prefer_large(&mut self.bytes);
        }
    }

    /// Appends the rows of vertices of a cell, or as many nulls without a cell.
    ///
    /// # Errors
    ///
    /// [`Fault`] if the cell has another width than earlier ones, or an invalid code.
    pub(crate) fn push_runs(
        &mut self,
        cell: Option<&CellRows>,
        vertices: &RowSelection,
    ) -> Result<(), Fault> {
        let Some(cell) = cell else {
            self.skip(vertices.len());
            return Ok(());
        };
        if self.words.is_some() {
            let indices = vertices.runs().iter().flat_map(|run| run.indices());
            return self.push_codes(cell, indices.map(Some));
        }
        let columns = self.check_width(cell)?;
        let (bytes, dtype) = (&mut self.bytes, self.metadata.dtype);
        push_runs(bytes, &cell.bytes, dtype, columns, vertices);
        self.count_values(vertices.len());
        Ok(())
    }

    /// Returns the number of columns that all cells have. `None` if a cell is missing or has
    /// another number of columns, or if the column holds text.
    pub(crate) fn width_of<'c>(
        &self,
        mut cells: impl Iterator<Item = Option<&'c CellRows>>,
    ) -> Option<u32> {
        let width = match (&self.words, cells.next()) {
            (Some(_), _) | (None, None) => return None,
            (None, Some(first)) => first?.columns,
        };
        let is_same = |cell: Option<&CellRows>| cell.is_some_and(|cell| cell.columns == width);
        (width > 0 && cells.all(is_same)).then_some(width)
    }

    /// Returns the number of columns of all cells, as [`width_of`](Self::width_of), if the cells can
    /// be appended in bulk.
    pub(crate) fn width_with<'c>(
        &self,
        cells: impl Iterator<Item = Option<&'c CellRows>>,
    ) -> Option<u32> {
        let width = self.width_of(cells)?;
        let is_same = self.columns.is_none_or(|columns| columns == width);
        (is_same && !self.any_missing).then_some(width)
    }

    /// Returns the copies that append rows of cells.
    pub(crate) fn push_all<'a>(
        &'a mut self,
        columns: u32,
        capacity: Capacity,
        parts: impl Iterator<Item = (&'a [u8], &'a RowSelection)>,
    ) -> Vec<Copying<'a>> {
        self.columns = Some(columns);
        let dtype = self.metadata.dtype;
        capacity.make(&mut self.bytes, row_size(dtype, columns));
        self.count_values(capacity.rows.saturating_sub(capacity.before));
        Copying::of(&mut self.bytes, capacity.before, (dtype, columns), parts)
    }

    /// Releases memory that was reserved and not used.
    pub(crate) fn release_unused(&mut self) {
        if self.words.is_none() {
            let bytes = self.rows.saturating_mul(self.row_size());
            self.bytes.truncate(bytes);
        }
    }

    /// Sets an empty column to rows of zeros, and returns their bytes to be overwritten.
    pub(crate) fn zeroed(&mut self, columns: u32, rows: usize) -> &mut [u8] {
        self.columns = Some(columns);
        self.bytes = zeroed(rows, row_size(self.metadata.dtype, columns));
        self.count_values(rows);
        &mut self.bytes
    }

    /// Returns the type of the stored numbers.
    pub(crate) fn dtype(&self) -> Dtype {
        self.metadata.dtype
    }

    /// Appends rows of a cell by their indices; `None` is a null.
    pub(crate) fn push_indices(
        &mut self,
        cell: Option<&CellRows>,
        indices: &[Option<usize>],
    ) -> Result<(), Fault> {
        let Some(cell) = cell else {
            self.skip(indices.len());
            return Ok(());
        };
        if self.words.is_some() {
            return self.push_codes(cell, indices.iter().copied());
        }
        self.check_width(cell)?;
        let (row, dtype) = (self.row_size(), self.metadata.dtype);
        self.bytes.reserve(indices.len().saturating_mul(row));
        let start = self.bytes.len();
        for index in indices {
            if let Some(index) = *index {
                let value = rows_at(&cell.bytes, row, index..index.saturating_add(1));
                self.bytes.extend_from_slice(value);
                self.count_values(1);
            } else {
                self.bytes.resize(self.bytes.len().saturating_add(row), 0);
                self.count_nulls(1);
            }
        }
        to_little(&mut self.bytes, start, dtype);
        Ok(())
    }

    fn push_codes(
        &mut self,
        cell: &CellRows,
        indices: impl Iterator<Item = Option<usize>>,
    ) -> Result<(), Fault> {
        let dtype = self.metadata.dtype;
        let words = self.words.as_ref().map_or(0, |words| words.len());
        let count = u32::try_from(words).unwrap_or(u32::MAX);
        let fill = self.metadata.dictionary.as_ref().and_then(|d| d.fill);
        let before = self.codes.len();
        let mut any_null = false;
        for index in indices {
            let value = index.and_then(|index| value_at(cell, dtype, index));
            let code = match value {
                Some(value) => code_of(value, fill, count)?,
                None => None,
            };
            any_null |= code.is_none();
            self.codes.push(code.unwrap_or(u32::MAX));
        }
        let new = self.codes.get(before..).unwrap_or_default();
        if any_null {
            self.missing.resize(self.rows, false);
            self.missing
                .extend(new.iter().map(|code| *code == u32::MAX));
            self.any_missing = true;
            self.rows = self.rows.saturating_add(new.len());
        } else {
            let new = new.len();
            self.count_values(new);
        }
        Ok(())
    }

    /// Checks that a cell has the width of earlier ones, and fills nulls before the first with zeros.
    fn check_width(&mut self, cell: &CellRows) -> Result<u32, Fault> {
        let columns = *self.columns.get_or_insert(cell.columns);
        if columns != cell.columns {
            return Err(Fault::Count {
                found: cell.columns.into(),
                expected: columns.into(),
            });
        }
        self.fill_with_zeros();
        Ok(columns)
    }

    /// Counts rows with a value.
    fn count_values(&mut self, rows: usize) {
        self.rows = self.rows.saturating_add(rows);
        if self.any_missing {
            self.missing.resize(self.rows, false);
        }
    }

    /// Counts nulls.
    fn count_nulls(&mut self, rows: usize) {
        if rows > 0 {
            self.missing.resize(self.rows, false);
            self.any_missing = true;
        }
        self.rows = self.rows.saturating_add(rows);
        if self.any_missing {
            self.missing.resize(self.rows, true);
        }
    }

    /// Appends nulls.
    pub(crate) fn skip(&mut self, rows: usize) {
        self.count_nulls(rows);
        if self.words.is_some() {
            self.codes.resize(self.rows, u32::MAX);
        } else if self.columns.is_some() {
            self.fill_with_zeros();
        }
    }

    /// Appends nulls up to `rows` rows, instead of a cell that could not be read.
    pub(crate) fn skip_to(&mut self, rows: usize) {
        if self.words.is_some() {
            self.codes.truncate(self.rows);
        }
        self.missing.truncate(self.rows);
        self.skip(rows.saturating_sub(self.rows));
    }

    /// Appends a row blended from others: the weighted sum of floats, or a copy of the row with the
    /// largest weight.
    pub(crate) fn blend(&mut self, rows: &[(usize, f64)]) {
        let Some(nearest) = heaviest(rows) else {
            self.skip(1);
            return;
        };
        let removed = self.is_null(nearest);
        let code = self.codes.get(nearest).copied();
        if removed {
            self.count_nulls(1);
        } else {
            self.count_values(1);
        }
        if self.words.is_some() {
            self.codes.push(code.unwrap_or(u32::MAX));
            return;
        }
        if self.columns.is_none() {
            return;
        }
        let size = self.row_size();
        let row = |at: usize| {
            let from = at.saturating_mul(size);
            from..from.saturating_add(size)
        };
        let all_present = rows.iter().all(|(at, _)| !self.is_null(*at));
        let blended = match self.metadata.dtype.kind() {
            kind @ (Kind::Float32 | Kind::Float64) if all_present && !removed => {
                let width = kind.size();
                let values = (0..size / width.max(1)).flat_map(|at| {
                    let value = |from: usize| {
                        let from = row(from).start.saturating_add(at.saturating_mul(width));
                        float(self.bytes.get(from..from.saturating_add(width)), kind)
                    };
                    let sum = rows.iter().map(|(at, weight)| weight * value(*at)).sum();
                    bytes_of(sum, kind)
                });
                values.collect()
            }
            _ => self.bytes.get(row(nearest)).unwrap_or_default().to_vec(),
        };
        self.bytes.extend_from_slice(&blended);
    }

    /// Keeps these rows, in this order.
    pub(crate) fn gather(&mut self, rows: &[usize]) {
        let size = self.row_size();
        if self.words.is_some() {
            let codes = rows.iter().filter_map(|row| self.codes.get(*row).copied());
            self.codes = codes.collect();
        } else if self.columns.is_some() {
            let mut bytes = Vec::with_capacity(rows.len().saturating_mul(size));
            for row in rows {
                let from = row.saturating_mul(size);
                let row = self.bytes.get(from..from.saturating_add(size));
                bytes.extend_from_slice(row.unwrap_or_default());
            }
            self.bytes = bytes;
        }
        let missing = rows.iter();
        let missing = missing.filter_map(|row| self.missing.get(*row).copied());
        self.missing = missing.collect();
        self.any_missing = self.missing.contains(&true);
        self.rows = rows.len();
    }

    /// Returns whether a row is null or does not exist.
    fn is_null(&self, row: usize) -> bool {
        let missing = self.missing.get(row).copied();
        row >= self.rows || missing.unwrap_or(false)
    }

    fn row_size(&self) -> usize {
        let columns = usize::try_from(self.columns.unwrap_or(1)).unwrap_or(1);
        self.metadata.dtype.size().saturating_mul(columns)
    }

    /// Fills rows whose width was not known with zeros.
    fn fill_with_zeros(&mut self) {
        self.bytes
            .resize(self.rows.saturating_mul(self.row_size()), 0);
    }

    pub(crate) fn finish(mut self) -> Column {
        let missing = self
            .any_missing
            .then_some(core::mem::take(&mut self.missing));
        let values = match self.words {
            Some(words) => ColumnValues::Dictionary {
                codes: self.codes,
                words,
            },
            None => {
                if self.columns.is_none() {
                    let declared = self.metadata.declared_columns().unwrap_or(1);
                    self.columns = Some(u32::try_from(declared).unwrap_or(1).max(1));
                    self.fill_with_zeros();
                }
                ColumnValues::Numeric(NumericColumn {
                    kind: self.metadata.dtype.kind(),
                    width: self.columns.unwrap_or(1),
                    bytes: self.bytes,
                })
            }
        };
        Column {
            name: self.name,
            values,
            nulls: missing,
        }
    }
}

fn float(bytes: Option<&[u8]>, kind: Kind) -> f64 {
    let bytes = bytes.unwrap_or_default();
    match kind {
        Kind::Float32 => bytes
            .try_into()
            .map_or(f64::NAN, |bytes| f64::from(f32::from_le_bytes(bytes))),
        _ => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
    }
}

/// Returns the row with the largest weight, or the first of several.
pub(crate) fn heaviest(rows: &[(usize, f64)]) -> Option<usize> {
    let rows = rows.iter().copied();
    let heaviest = rows.reduce(|best, row| if row.1 > best.1 { row } else { best });
    heaviest.map(|(row, _)| row)
}

/// Encodes a float.
pub(crate) fn bytes_of(value: f64, kind: Kind) -> Vec<u8> {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "std rounds an f64 to an f32 in no other way"
    )]
    match kind {
        Kind::Float32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// Returns categories as text; other values as JSON.
pub(crate) fn words(categories: &[Json]) -> Arc<[String]> {
    let word = |category: &Json| match category {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    categories.iter().map(word).collect()
}

/// Converts a number to the type that predicates compare.
pub(crate) fn cell_of(value: Option<Value>) -> Datum {
    match value {
        Some(Value::Bool(value)) => Datum::Bool(value),
        Some(Value::Int(value)) => Datum::Number(Number::Int(value)),
        Some(Value::UInt(value)) => Datum::Number(Number::UInt(value)),
        Some(Value::Float(value)) => Datum::Number(Number::Float(value)),
        Some(Value::Complex { .. }) | None => Datum::Missing,
    }
}

/// Returns the first value of a row.
fn value_at(cell: &CellRows, dtype: Dtype, index: usize) -> Option<Value> {
    let rows = NumericRows::parse(&cell.bytes, dtype, cell.columns.try_into().ok()?);
    rows.ok()?.value(index, 0)
}

/// Returns the category of a stored code; `None` for a null.
///
/// # Errors
///
/// [`Fault::Range`] if no category has the code.
fn code_of(value: Value, fill: Option<i64>, categories: u32) -> Result<Option<u32>, Fault> {
    let code = match value {
        Value::Int(code) if Some(code) == fill => return Ok(None),
        Value::Int(code) => u32::try_from(code).ok(),
        Value::UInt(code) => u32::try_from(code).ok(),
        _ => None,
    };
    let code = code.filter(|code| *code < categories);
    code.map(Some).ok_or(Fault::Range)
}
