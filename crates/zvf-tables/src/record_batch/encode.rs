//! Encodes tables as Arrow record batches.

use std::{collections::HashMap, fmt, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use zvf::{Column, ColumnValues, ErrorKind, NumericColumn, QueryResult};
use zvf_arrow::{ConversionError, array_of, text_of, words_of};
use zvf_format::numeric::NumericRows;

use crate::FileFault;
use crate::StoreDescription;
use crate::table::{
    OutputTable, level_names,
    output_table::{OutputCells, OutputColumn},
};

/// Key of the schema metadata under which the description of the store is written.
pub(super) const METADATA_KEY: &str = "zvf";
/// Number of rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// Encodes the tables of one file, which have the same columns.
pub(crate) struct TableEncoder {
    schema: SchemaRef,
}

/// A column with, for text, the dictionary that all batches share.
struct EncodedColumn<'a> {
    column: &'a OutputColumn<'a>,
    dictionary: Option<ArrayRef>,
}

impl TableEncoder {
    /// Encodes tables with the columns of this one.
    pub(crate) fn new(
        table: &OutputTable<'_>,
        metadata: HashMap<String, String>,
    ) -> Result<Self, FileFault> {
        let fields = table
            .columns
            .iter()
            .map(|column| EncodedColumn::of(column)?.field())
            .collect::<Result<Vec<Field>, _>>()?;
        Ok(Self {
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
        })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes the batches of a table one by one; none for an empty table.
    pub(crate) fn batches<'a>(
        &self,
        table: &'a OutputTable<'a>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, FileFault>> + 'a, FileFault> {
        let columns = table
            .columns
            .iter()
            .map(EncodedColumn::of)
            .collect::<Result<Vec<_>, _>>()?;
        let (schema, all) = (Arc::clone(&self.schema), table.rows);
        let starts = (0..all).step_by(BATCH_ROWS);
        Ok(starts.map(move |start| {
            let end = start.saturating_add(BATCH_ROWS).min(all);
            let arrays = columns
                .iter()
                .map(|column| column.array(start..end))
                .collect::<Result<Vec<_>, _>>()?;
            let rows = RecordBatchOptions::new().with_row_count(Some(end.saturating_sub(start)));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &rows);
            batch.map_err(fault)
        }))
    }
}

/// The vertices of a result, which comes in batches, as record batches with one schema.
#[derive(Default)]
pub struct VertexBatches {
    encoder: Option<TableEncoder>,
    /// Number of paths in earlier batches.
    parts: i64,
}

impl fmt::Debug for VertexBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VertexBatches")
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl VertexBatches {
    /// Creates an encoder of batches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the schema of all batches, which have the columns of this one.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the batch is inconsistent, or Arrow cannot hold a column.
    pub fn schema(&mut self, batch: &QueryResult) -> Result<SchemaRef, FileFault> {
        let table = OutputTable::vertices(batch)?;
        Ok(Arc::clone(self.encoder(batch, &table)?.schema()))
    }

    /// Returns the schema, if a batch has defined it.
    pub fn known_schema(&self) -> Option<SchemaRef> {
        let encoder = self.encoder.as_ref();
        encoder.map(|encoder| Arc::clone(encoder.schema()))
    }

    /// Encodes the vertices of a batch, at most 65,536 at a time.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the batch is inconsistent, or Arrow cannot hold a column.
    pub fn encode(&mut self, batch: &QueryResult) -> Result<Vec<RecordBatch>, FileFault> {
        let table = OutputTable::vertices_after(batch, self.parts)?;
        let parts = batch.parts.as_ref().map_or(0, |parts| parts.objects.len());
        let parts = i64::try_from(parts).unwrap_or(i64::MAX);
        self.parts = self.parts.saturating_add(parts);
        let batches = self.encoder(batch, &table)?.batches(&table)?;
        batches.collect()
    }

    fn encoder(
        &mut self,
        batch: &QueryResult,
        table: &OutputTable<'_>,
    ) -> Result<&TableEncoder, FileFault> {
        let made = match self.encoder.take() {
            Some(encoder) => encoder,
            None => TableEncoder::new(table, structure(batch, level_names(batch)).into())?,
        };
        Ok(self.encoder.insert(made))
    }
}

/// Returns what a result says of its rows.
fn structure(result: &QueryResult, level: String) -> [(String, String); 2] {
    let axes = serde_json::Value::from(result.axes.clone());
    [
        ("level".to_owned(), level),
        ("axes".to_owned(), axes.to_string()),
    ]
}

/// Returns the metadata of the schema.
pub(crate) fn metadata(
    result: &QueryResult,
    description: &StoreDescription,
) -> HashMap<String, String> {
    let level = level_names(result);
    let geometry = ("geometry".to_owned(), description.geometry.clone());
    // Programs that know only Parquet or Arrow find the reference system under its own key.
    let crs = description.crs.as_ref();
    let crs = crs.map(|crs| ("crs".to_owned(), crs.to_string()));
    let text = description.text(&level);
    let text = text.map(|text| (METADATA_KEY.to_owned(), text));
    let entries = structure(result, level).into_iter().chain([geometry]);
    entries.chain(crs).chain(text).collect()
}

impl<'a> EncodedColumn<'a> {
    fn of(column: &'a OutputColumn<'a>) -> Result<Self, FileFault> {
        let dictionary = match &column.cells {
            OutputCells::Words { words, .. } => Some(words_of(&column.name, words)),
            OutputCells::Numbers { .. } | OutputCells::Integers { .. } => None,
        };
        let dictionary = dictionary.transpose().map_err(write_error)?;
        Ok(Self { column, dictionary })
    }

    fn field(&self) -> Result<Field, FileFault> {
        let data_type = self.array(0..0)?.data_type().clone();
        let name = self.column.name.as_str();
        // The schema does not depend on the rows of the first batch.
        Ok(Field::new(name, data_type, self.column.is_attribute()))
    }

    fn array(&self, rows: Range<usize>) -> Result<ArrayRef, FileFault> {
        let column = self.column;
        let is_null = |row| column.is_null(row);
        let nulls = column
            .may_miss()
            .then(|| rows.clone().map(is_null).collect::<Vec<bool>>());
        let width = u32::try_from(column.channels())
            .map_err(|_| FileFault::Channels(column.name.clone()))?;
        let values: NumericColumn = match &column.cells {
            OutputCells::Words { codes, words } => {
                let codes = codes.get(rows).unwrap_or_default().to_vec();
                let words = match &self.dictionary {
                    Some(words) => Arc::clone(words),
                    None => words_of(&column.name, words).map_err(write_error)?,
                };
                return text_of(codes, nulls, &words).map_err(write_error);
            }
            OutputCells::Integers { values, channels } => {
                let at = rows.start.saturating_mul(*channels)..rows.end.saturating_mul(*channels);
                let values = values.get(at).unwrap_or_default().iter().copied();
                NumericColumn::from_values(width, values)
            }
            OutputCells::Numbers {
                rows: view, first, ..
            } => {
                let bytes = channel_bytes(*view, *first, column.channels(), rows);
                NumericColumn::new(view.dtype().kind(), width).with_bytes(bytes)
            }
        };
        let mut batch = Column::new(column.name.as_str(), ColumnValues::from(values));
        batch.nulls = nulls;
        array_of(batch).map_err(write_error)
    }
}

/// Returns the bytes of a range of channels of a range of rows.
fn channel_bytes(
    view: NumericRows<'_>,
    first: usize,
    channels: usize,
    rows: Range<usize>,
) -> Vec<u8> {
    let size = view.dtype().size();
    let width = usize::try_from(view.columns().get()).unwrap_or(usize::MAX);
    let [row, before, len] = [width, first, channels].map(|count| count.saturating_mul(size));
    let bytes = view.as_bytes();
    if row == len {
        let range = rows.start.saturating_mul(row)..rows.end.saturating_mul(row);
        return bytes.get(range).unwrap_or_default().to_vec();
    }
    let starts = rows.map(|at| at.saturating_mul(row).saturating_add(before));
    let picked = starts.filter_map(|start| bytes.get(start..start.saturating_add(len)));
    picked.flatten().copied().collect()
}

fn write_error(error: ConversionError) -> FileFault {
    match error {
        ConversionError::Words(column) => FileFault::Words(column),
        ConversionError::Arrow(error) => fault(error),
        error => fault(ArrowError::ExternalError(Box::new(error))),
    }
}

/// Returns the fault of a table that the library cannot write.
pub(crate) fn fault(error: ArrowError) -> FileFault {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => FileFault::library(ErrorKind::Unsupported, "arrow cannot be written", error),
    }
}
