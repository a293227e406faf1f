//! Encodes tables as Arrow record batches.

use std::{collections::HashMap, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use zvf::{Column, ColumnValues, ErrorKind, NumericColumn, QueryResult};
use zvf_arrow::{ConversionError, array_of, text_of, words_of};
use zvf_format::numeric::NumericRows;

use crate::StoreDescription;
use crate::table::{
    OutputTable, level_names,
    output_table::{OutputCells, OutputColumn},
    staged::{Sink, Staged},
};
use crate::{FileError, FileFault};

/// Key of the schema metadata under which the description of the store is written.
pub(super) const METADATA_KEY: &str = "zvf";
/// Number of rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// A table with its schema, divided into batches.
pub(crate) struct RecordBatches<'a> {
    table: &'a OutputTable<'a>,
    schema: SchemaRef,
    columns: Vec<EncodedColumn<'a>>,
}

/// A column with, for text, the dictionary that all batches share.
struct EncodedColumn<'a> {
    column: &'a OutputColumn<'a>,
    dictionary: Option<ArrayRef>,
}

impl<'a> RecordBatches<'a> {
    fn of(
        table: &'a OutputTable<'a>,
        metadata: HashMap<String, String>,
    ) -> Result<Self, FileFault> {
        let columns = table
            .columns
            .iter()
            .map(EncodedColumn::of)
            .collect::<Result<Vec<_>, _>>()?;
        let fields = columns
            .iter()
            .map(EncodedColumn::field)
            .collect::<Result<Vec<Field>, _>>()?;
        Ok(Self {
            table,
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
            columns,
        })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes the batches one by one; none for an empty table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<RecordBatch, FileFault>> + '_ {
        let starts = (0..self.table.rows).step_by(BATCH_ROWS);
        starts.map(|start| {
            let end = start.saturating_add(BATCH_ROWS).min(self.table.rows);
            let arrays = self
                .columns
                .iter()
                .map(|column| column.array(start..end))
                .collect::<Result<Vec<_>, _>>()?;
            let rows = RecordBatchOptions::new().with_row_count(Some(end.saturating_sub(start)));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &rows);
            batch.map_err(fault)
        })
    }
}

/// Writes the vertices and the tables beside them; `fill` encodes one table.
pub(crate) fn write_batches(
    result: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
    fill: fn(&RecordBatches<'_>, &mut Sink<'_>) -> Result<(), FileFault>,
) -> Result<Vec<String>, FileError> {
    let about = metadata(result, description);
    let vertices = OutputTable::vertices(result).map_err(FileFault::of_result)?;
    let batches = RecordBatches::of(&vertices, about.clone()).map_err(FileFault::of_result)?;
    staged.write(|sink| fill(&batches, sink))?;
    for (part, table) in OutputTable::sidecars(result, description).map_err(FileFault::of_result)? {
        let Some(table) = table else {
            staged.omit_sidecar(part);
            continue;
        };
        let batches = RecordBatches::of(&table, about.clone()).map_err(FileFault::of_result)?;
        staged.write_sidecar(part, |sink| fill(&batches, sink))?;
    }
    Ok(Vec::new())
}

/// Returns the metadata of the schema.
fn metadata(result: &QueryResult, description: &StoreDescription) -> HashMap<String, String> {
    let axes = serde_json::Value::from(result.axes.clone());
    let level = level_names(result);
    let text = description.text(&level);
    let entries = [
        ("level", level),
        ("axes", axes.to_string()),
        ("geometry", description.geometry.clone()),
    ];
    // Programs that know only Parquet or Arrow find the reference system under its own key.
    let crs = description.crs.as_ref().map(|crs| ("crs", crs.to_string()));
    let entries = entries
        .into_iter()
        .chain(crs)
        .chain(text.map(|text| (METADATA_KEY, text)));
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
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
        Ok(Field::new(name, data_type, self.column.may_miss()))
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
