//! Putting columns together out of cells.

use std::sync::Arc;

use serde_json::Value as Json;
use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows, Value};
use zvf_model::{array::CellAttribute, fetch::CellSource, grid::ChunkCoord};

use crate::{
    answer::{Column, Rows, Values},
    chunk::CellRows,
    error::{Damage, Fault},
    filter::ColumnView,
    predicate::{Cell, Number, Scope, Values as ColumnValues},
    schema::Attribute,
};

/// Appends rows at `places` of `bytes`, little-endian.
pub(crate) fn push_rows(
    out: &mut Vec<u8>,
    bytes: &[u8],
    dtype: Dtype,
    columns: u32,
    places: impl Iterator<Item = usize>,
) {
    let columns = usize::try_from(columns).unwrap_or(usize::MAX);
    let row = dtype.size().saturating_mul(columns);
    let start = out.len();
    for place in places {
        let from = place.saturating_mul(row);
        let row = bytes.get(from..from.saturating_add(row));
        out.extend_from_slice(row.unwrap_or_default());
    }
    if dtype.order() == ByteOrder::Big {
        let part = match dtype.kind() {
            Kind::Complex64 | Kind::Complex128 => dtype.size() / 2,
            _ => dtype.size(),
        };
        let new = out.get_mut(start..).unwrap_or_default();
        new.chunks_exact_mut(part.max(1)).for_each(<[u8]>::reverse);
    }
}

/// An attribute on its way into an answer.
#[derive(Clone, Debug)]
pub(crate) struct ColumnBuilder {
    name: String,
    metadata: Arc<CellAttribute>,
    words: Option<Arc<[String]>>,
    columns: Option<u32>,
    bytes: Vec<u8>,
    codes: Vec<u32>,
    rows: usize,
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

    /// Bytes of its values.
    pub(crate) fn size(&self) -> usize {
        let codes = self.codes.len().saturating_mul(size_of::<u32>());
        self.bytes.len().saturating_add(codes)
    }

    /// Appends rows of a cell, or as many missing ones.
    ///
    /// # Errors
    ///
    /// [`Damage`] of another width than the rows before, and of codes that are
    /// none.
    pub(crate) fn push<A: CellSource>(
        &mut self,
        attribute: &Attribute<A>,
        chunk: &ChunkCoord,
        cell: Option<&CellRows>,
        places: &[Option<usize>],
    ) -> Result<(), Damage> {
        let damage = |fault: Fault| Damage::in_chunk(&attribute.family.node, chunk, fault);
        self.push_places(cell, places).map_err(damage)
    }

    /// The same of whatever cell; `None` is a place without a value.
    pub(crate) fn push_places(
        &mut self,
        cell: Option<&CellRows>,
        places: &[Option<usize>],
    ) -> Result<(), Fault> {
        let Some(cell) = cell else {
            self.skip(places.len());
            return Ok(());
        };
        let dtype = self.metadata.dtype;
        if let Some(words) = &self.words {
            let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
            let fill = self.metadata.dictionary.as_ref().and_then(|d| d.fill);
            for place in places {
                let value = place.and_then(|place| value_at(cell, dtype, place));
                let code = match value {
                    Some(value) => code_of(value, fill, count)?,
                    None => None,
                };
                self.codes.push(code.unwrap_or(u32::MAX));
                self.missing.push(code.is_none());
                self.any_missing |= code.is_none();
            }
            self.rows = self.rows.saturating_add(places.len());
            return Ok(());
        }
        let columns = *self.columns.get_or_insert(cell.columns);
        if columns != cell.columns {
            return Err(Fault::Count {
                found: cell.columns.into(),
                expected: columns.into(),
            });
        }
        self.fill_up();
        let row = self.row_size();
        let whole = places.iter().enumerate();
        let mut whole = whole.skip(1);
        let first = places.first().copied().flatten();
        let is_run = first
            .is_some_and(|first| whole.all(|(at, place)| *place == Some(first.saturating_add(at))));
        match (is_run, first) {
            (true, Some(first)) => {
                let from = first.saturating_mul(row);
                let to = from.saturating_add(places.len().saturating_mul(row));
                let run = cell.bytes.get(from..to).unwrap_or_default();
                push_rows(&mut self.bytes, run, dtype, columns, 0..places.len());
                self.missing
                    .resize(self.rows.saturating_add(places.len()), false);
            }
            _ => {
                for place in places {
                    match place {
                        Some(place) => {
                            let place = core::iter::once(*place);
                            push_rows(&mut self.bytes, &cell.bytes, dtype, columns, place);
                        }
                        None => {
                            let size = self.bytes.len().saturating_add(row);
                            self.bytes.resize(size, 0);
                            self.any_missing = true;
                        }
                    }
                    self.missing.push(place.is_none());
                }
            }
        }
        self.rows = self.rows.saturating_add(places.len());
        Ok(())
    }

    /// Appends missing rows.
    pub(crate) fn skip(&mut self, rows: usize) {
        self.any_missing |= rows > 0;
        self.rows = self.rows.saturating_add(rows);
        self.missing.resize(self.rows, true);
        if self.words.is_some() {
            self.codes.resize(self.rows, u32::MAX);
        } else if self.columns.is_some() {
            self.fill_up();
        }
    }

    /// Appends missing rows until there are so many, in place of some that could
    /// not be read.
    pub(crate) fn skip_to(&mut self, rows: usize) {
        if self.words.is_some() {
            self.codes.truncate(self.rows);
        }
        self.missing.truncate(self.rows);
        self.skip(rows.saturating_sub(self.rows));
    }

    /// Appends a row between others: floats by their weights, anything else as the
    /// one of most weight.
    pub(crate) fn blend(&mut self, rows: &[(usize, f64)]) {
        let heaviest = rows
            .iter()
            .copied()
            .reduce(|best, row| match row.1 > best.1 {
                true => row,
                false => best,
            });
        let Some((nearest, _)) = heaviest else {
            self.skip(1);
            return;
        };
        let gone = self.missing.get(nearest).copied().unwrap_or(true);
        let code = self.codes.get(nearest).copied();
        self.rows = self.rows.saturating_add(1);
        self.missing.push(gone);
        self.any_missing |= gone;
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
        let present = |at: &usize| !self.missing.get(*at).copied().unwrap_or(true);
        let all_there = rows.iter().all(|(at, _)| present(at));
        let blended = match self.metadata.dtype.kind() {
            kind @ (Kind::Float32 | Kind::Float64) if all_there && !gone => {
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

    /// Keeps these rows.
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
        let missing = rows
            .iter()
            .filter_map(|row| self.missing.get(*row).copied());
        self.missing = missing.collect();
        self.any_missing = self.missing.contains(&true);
        self.rows = rows.len();
    }

    fn row_size(&self) -> usize {
        let columns = usize::try_from(self.columns.unwrap_or(1)).unwrap_or(1);
        self.metadata.dtype.size().saturating_mul(columns)
    }

    /// Room for missing rows that came before their width was known.
    fn fill_up(&mut self) {
        self.bytes
            .resize(self.rows.saturating_mul(self.row_size()), 0);
    }

    pub(crate) fn finish(mut self) -> Column {
        let missing = self
            .any_missing
            .then_some(core::mem::take(&mut self.missing));
        let values = match self.words {
            Some(words) => Values::Words {
                codes: self.codes,
                words,
            },
            None => {
                if self.columns.is_none() {
                    let declared = self.metadata.declared_columns().unwrap_or(1);
                    self.columns = Some(u32::try_from(declared).unwrap_or(1).max(1));
                    self.fill_up();
                }
                Values::Numbers(Rows {
                    kind: self.metadata.dtype.kind(),
                    columns: self.columns.unwrap_or(1),
                    bytes: self.bytes,
                })
            }
        };
        Column {
            name: self.name,
            values,
            missing,
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

/// A float as bytes of its kind.
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

/// Categories as words: text as it is, anything else as JSON has it.
pub(crate) fn words(categories: &[Json]) -> Arc<[String]> {
    let word = |category: &Json| match category {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    categories.iter().map(word).collect()
}

/// A number as predicates compare it.
pub(crate) fn cell_of(value: Option<Value>) -> Cell {
    match value {
        Some(Value::Bool(value)) => Cell::Bool(value),
        Some(Value::Int(value)) => Cell::Number(Number::Int(value)),
        Some(Value::UInt(value)) => Cell::Number(Number::UInt(value)),
        Some(Value::Float(value)) => Cell::Number(Number::Float(value)),
        Some(Value::Complex { .. }) | None => Cell::Missing,
    }
}

/// An attribute of a chunk, by the places of its rows.
pub(crate) struct CellView<'a> {
    pub(crate) scope: Scope,
    pub(crate) name: &'a str,
    pub(crate) metadata: &'a CellAttribute,
    pub(crate) words: Option<Arc<[String]>>,
    pub(crate) cell: Option<&'a CellRows>,
    /// For each row of the predicate, the row of the cell.
    pub(crate) places: &'a [Option<usize>],
}

impl<'a> CellView<'a> {
    pub(crate) fn new(
        scope: Scope,
        name: &'a str,
        metadata: &'a CellAttribute,
        cell: Option<&'a CellRows>,
        places: &'a [Option<usize>],
    ) -> Self {
        let dictionary = metadata.dictionary.as_ref();
        Self {
            scope,
            name,
            metadata,
            words: dictionary.map(|dictionary| words(&dictionary.categories)),
            cell,
            places,
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

    fn values(&self) -> ColumnValues<'_> {
        match (&self.words, self.metadata.dtype.kind()) {
            (Some(words), _) => ColumnValues::Words(words.iter().map(String::as_str).collect()),
            (None, Kind::Bool) => ColumnValues::Bool,
            (None, _) => ColumnValues::Numbers,
        }
    }

    fn value(&self, row: usize, channel: u32) -> Cell {
        let place = self.places.get(row).copied().flatten();
        let (Some(cell), Some(place)) = (self.cell, place) else {
            return Cell::Missing;
        };
        let Ok(columns) = cell.columns.try_into() else {
            return Cell::Missing;
        };
        let Ok(rows) = NumericRows::parse(&cell.bytes, self.metadata.dtype, columns) else {
            return Cell::Missing;
        };
        let value = rows.value(place, channel);
        let Some(words) = &self.words else {
            return cell_of(value);
        };
        let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let fill = self.metadata.dictionary.as_ref().and_then(|d| d.fill);
        let code = value.and_then(|value| code_of(value, fill, count).ok().flatten());
        code.map_or(Cell::Missing, Cell::Category)
    }
}

/// The first value of a row.
fn value_at(cell: &CellRows, dtype: Dtype, place: usize) -> Option<Value> {
    let rows = NumericRows::parse(&cell.bytes, dtype, cell.columns.try_into().ok()?);
    rows.ok()?.value(place, 0)
}

/// What a stored code stands for; `None` is missing.
///
/// # Errors
///
/// [`Fault::Range`] of a code that no category has.
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

/// A finished column, row by row or through a list of rows.
pub(crate) struct FinishedView<'a> {
    pub(crate) scope: Scope,
    pub(crate) column: &'a Column,
    /// For each row of the predicate, the row of the column; `None` for all in
    /// order.
    pub(crate) rows: Option<&'a [Option<usize>]>,
}

impl ColumnView for FinishedView<'_> {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn name(&self) -> &str {
        &self.column.name
    }

    fn channels(&self) -> Option<u32> {
        match &self.column.values {
            Values::Numbers(rows) => Some(rows.columns),
            Values::Words { .. } => Some(1),
        }
    }

    fn values(&self) -> ColumnValues<'_> {
        match &self.column.values {
            Values::Numbers(rows) if rows.kind == Kind::Bool => ColumnValues::Bool,
            Values::Numbers(_) => ColumnValues::Numbers,
            Values::Words { words, .. } => {
                ColumnValues::Words(words.iter().map(String::as_str).collect())
            }
        }
    }

    fn value(&self, row: usize, channel: u32) -> Cell {
        let row = match self.rows {
            Some(rows) => rows.get(row).copied().flatten(),
            None => Some(row),
        };
        let Some(row) = row.filter(|row| !self.column.is_missing(*row)) else {
            return Cell::Missing;
        };
        match &self.column.values {
            Values::Numbers(rows) => cell_of(rows.view().and_then(|rows| rows.value(row, channel))),
            Values::Words { codes, .. } => codes
                .get(row)
                .map_or(Cell::Missing, |code| Cell::Category(*code)),
        }
    }
}
