//! Decodes tables from Arrow record batches.

use std::{collections::HashSet, path::Path, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::Schema;
use zvf::{ColumnValues, NumericColumn};
use zvf_arrow::{column_of, empty_column_of, numbers_of};

use crate::formats::{
    ColumnError, GeometryReadError, MissingPolicy, StoreDescription,
    column::{FileColumn, fill_missing},
    input_table::InputTable,
    record_batch::encode::METADATA_KEY,
};

/// A table that is being decoded.
pub(in super::super) struct TableBuilder {
    file: Arc<Path>,
    axes: Option<Vec<String>>,
    crs: Option<serde_json::Value>,
    description: Option<StoreDescription>,
    columns: Vec<ColumnBuilder>,
}

/// Rows of a column that is being decoded.
enum DecodedRows {
    Numbers(NumericColumn),
    Text(Vec<Option<String>>),
}

/// A column that is being decoded.
struct ColumnBuilder {
    label: String,
    values: DecodedRows,
    /// For numbers, one flag for each of them.
    missing: Vec<bool>,
}

impl TableBuilder {
    pub(in super::super) fn new(path: &Path, schema: &Schema) -> Result<Self, GeometryReadError> {
        let fail = |column: &str, source| GeometryReadError::Column {
            path: path.to_path_buf(),
            column: column.to_owned(),
            source,
        };
        let mut columns: Vec<ColumnBuilder> = Vec::new();
        let mut seen = HashSet::new();
        for field in schema.fields() {
            let label = field.name().clone();
            if !seen.insert(label.clone()) {
                return Err(fail(&label, ColumnError::Twice));
            }
            let values = match empty_column_of(&label, field.data_type()) {
                Ok(column) => match column.values {
                    ColumnValues::Numeric(numbers) => DecodedRows::Numbers(numbers),
                    ColumnValues::Dictionary { .. } => DecodedRows::Text(Vec::new()),
                },
                Err(_) => {
                    let found = field.data_type().to_string();
                    return Err(fail(&label, ColumnError::Kind(found)));
                }
            };
            columns.push(ColumnBuilder {
                label,
                values,
                missing: Vec::new(),
            });
        }
        let axes = schema.metadata().get("axes");
        let crs = schema.metadata().get("crs");
        let crs = crs.and_then(|crs| serde_json::from_str(crs).ok());
        let description = schema.metadata().get(METADATA_KEY);
        let description = description.map(|text| StoreDescription::parse(text));
        let description = description.transpose();
        let description = description.map_err(|reason| GeometryReadError::Metadata {
            path: path.to_path_buf(),
            reason,
        })?;
        Ok(Self {
            file: path.into(),
            crs: crs.filter(serde_json::Value::is_object),
            axes: axes.and_then(|axes| serde_json::from_str(axes).ok()),
            description,
            columns,
        })
    }

    pub(in super::super) fn push(&mut self, batch: &RecordBatch) -> Result<(), GeometryReadError> {
        for (growing, array) in self.columns.iter_mut().zip(batch.columns()) {
            let pushed = growing.push(array);
            pushed.map_err(|source| GeometryReadError::Column {
                path: self.file.to_path_buf(),
                column: growing.label.clone(),
                source,
            })?;
        }
        Ok(())
    }

    pub(in super::super) fn finish(
        self,
        policy: MissingPolicy,
    ) -> Result<InputTable, GeometryReadError> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for growing in self.columns {
            let values = match growing.values {
                DecodedRows::Numbers(numbers) => {
                    let numbers = fill_items(numbers, &growing.missing, policy);
                    let numbers = numbers.map_err(|source| GeometryReadError::Column {
                        path: self.file.to_path_buf(),
                        column: growing.label.clone(),
                        source,
                    });
                    ColumnValues::Numeric(numbers?)
                }
                DecodedRows::Text(texts) => ColumnValues::text(texts),
            };
            columns.push(FileColumn {
                file: Arc::clone(&self.file),
                label: growing.label,
                values,
                first_text: None,
            });
        }
        Ok(InputTable {
            file: self.file,
            columns,
            axes: self.axes,
            crs: self.crs,
            description: self.description,
        })
    }
}

/// Applies the policy to missing numbers, each with its flag.
fn fill_items(
    numbers: NumericColumn,
    missing: &[bool],
    policy: MissingPolicy,
) -> Result<NumericColumn, ColumnError> {
    let (width, columns) = (numbers.width, numbers.row_len().max(1));
    let items = NumericColumn {
        width: 1,
        ..numbers
    };
    let filled = fill_missing(items, missing, policy).map_err(|error| match error {
        ColumnError::Missing(item) => ColumnError::Missing(item / columns),
        ColumnError::Inexact(item) => ColumnError::Inexact(item / columns),
        other => other,
    })?;
    Ok(NumericColumn { width, ..filled })
}

impl ColumnBuilder {
    /// Adds the rows of a batch.
    fn push(&mut self, array: &ArrayRef) -> Result<(), ColumnError> {
        let foreign = || ColumnError::Kind(array.data_type().to_string());
        match &mut self.values {
            DecodedRows::Text(texts) => {
                let column = column_of(&self.label, array).map_err(|_| foreign())?;
                texts.extend(column.texts().map(|text| text.map(str::to_owned)));
            }
            DecodedRows::Numbers(numbers) => {
                let values = array.as_fixed_size_list_opt().map(|list| {
                    let size = usize::try_from(list.value_length()).unwrap_or(0);
                    let length = list.len().saturating_mul(size);
                    let values = list.values();
                    values.slice(0, length.min(values.len()))
                });
                let flat = values.as_ref().unwrap_or(array);
                let read = numbers_of(&self.label, flat).map_err(|_| foreign())?;
                let rows = array.len();
                let size = rows.saturating_mul(numbers.row_size());
                if read.kind != numbers.kind || read.bytes.len() != size {
                    return Err(foreign());
                }
                numbers.bytes.extend(read.bytes);
                let columns = numbers.row_len();
                let missing = (0..rows).flat_map(|row| {
                    let first = row.saturating_mul(columns);
                    let items = first..first.saturating_add(columns);
                    let is_null = array.is_null(row);
                    // Numbers inside of a list may be null, too.
                    items.map(move |at| is_null || flat.is_null(at))
                });
                self.missing.extend(missing);
            }
        }
        Ok(())
    }
}
