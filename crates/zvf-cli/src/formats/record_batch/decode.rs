//! Decodes tables from Arrow record batches.

use std::{collections::HashSet, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrowPrimitiveType, BooleanArray, RecordBatch,
    cast::AsArray,
    types::{
        ArrowDictionaryKeyType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
        Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, Schema};
use zvf::{ColumnValues, NumericColumn, numeric::Kind};
use zvf_format::numeric::{ByteOrder, Element, encode};

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
    /// For numbers, one flag per row.
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
            let values = match ColumnShape::of(field.data_type()) {
                Some(ColumnShape::Text) => DecodedRows::Text(Vec::new()),
                Some(ColumnShape::Numbers(kind, columns)) => {
                    DecodedRows::Numbers(NumericColumn::new(kind, columns))
                }
                None => {
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
            let pushed = growing.push(array.as_ref());
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
                    let numbers = fill_missing(numbers, &growing.missing, policy);
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

/// Type of a column.
enum ColumnShape {
    Text,
    /// Numbers of a type, and their number per row.
    Numbers(Kind, u32),
}

impl ColumnShape {
    /// Returns the type of a column; `None` for unsupported types.
    fn of(found: &DataType) -> Option<Self> {
        if let DataType::FixedSizeList(item, size) = found {
            let size = u32::try_from(*size).ok().filter(|size| *size > 0)?;
            return Some(Self::Numbers(kind(item.data_type())?, size));
        }
        match found {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Dictionary(_, values) => matches!(
                **values,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            )
            .then_some(Self::Text),
            found => Some(Self::Numbers(kind(found)?, 1)),
        }
    }
}

fn kind(found: &DataType) -> Option<Kind> {
    Some(match found {
        DataType::Boolean => Kind::Bool,
        DataType::Int8 => Kind::Int8,
        DataType::Int16 => Kind::Int16,
        DataType::Int32 => Kind::Int32,
        DataType::Int64 => Kind::Int64,
        DataType::UInt8 => Kind::UInt8,
        DataType::UInt16 => Kind::UInt16,
        DataType::UInt32 => Kind::UInt32,
        DataType::UInt64 => Kind::UInt64,
        DataType::Float16 => Kind::Float16,
        DataType::Float32 => Kind::Float32,
        DataType::Float64 => Kind::Float64,
        _ => return None,
    })
}

impl ColumnBuilder {
    /// Adds the rows of a batch.
    fn push(&mut self, array: &dyn Array) -> Result<(), ColumnError> {
        let foreign = || ColumnError::Kind(array.data_type().to_string());
        match &mut self.values {
            DecodedRows::Text(texts) => texts.extend(text(array).ok_or_else(foreign)?),
            DecodedRows::Numbers(numbers) => {
                let (rows, values) = match array.as_fixed_size_list_opt() {
                    None => (array.len(), None),
                    Some(list) => {
                        let size = usize::try_from(list.value_length()).unwrap_or(0);
                        let length = list.len().saturating_mul(size);
                        let values = list.values();
                        let values = values.slice(0, length.min(values.len()));
                        (list.len(), Some(values))
                    }
                };
                let flat = values.as_deref().unwrap_or(array);
                let bytes = bytes(flat, numbers.kind).ok_or_else(foreign)?;
                if bytes.len() != rows.saturating_mul(numbers.row_size()) {
                    return Err(foreign());
                }
                numbers.bytes.extend(bytes);
                let columns = numbers.row_len();
                let missing = (0..rows).map(|row| {
                    let first = row.saturating_mul(columns);
                    let mut items = first..first.saturating_add(columns);
                    array.is_null(row) || values.is_some() && items.any(|at| flat.is_null(at))
                });
                self.missing.extend(missing);
            }
        }
        Ok(())
    }
}

/// The numbers of an array, the least significant byte first; anything where they
/// are missing.
fn bytes(array: &dyn Array, kind: Kind) -> Option<Vec<u8>> {
    match kind {
        Kind::Bool => {
            let array: &BooleanArray = array.as_boolean_opt()?;
            Some(array.values().iter().map(u8::from).collect())
        }
        Kind::Int8 => of::<Int8Type>(array),
        Kind::Int16 => of::<Int16Type>(array),
        Kind::Int32 => of::<Int32Type>(array),
        Kind::Int64 => of::<Int64Type>(array),
        Kind::UInt8 => of::<UInt8Type>(array),
        Kind::UInt16 => of::<UInt16Type>(array),
        Kind::UInt32 => of::<UInt32Type>(array),
        Kind::UInt64 => of::<UInt64Type>(array),
        Kind::Float16 => of::<Float16Type>(array),
        Kind::Float32 => of::<Float32Type>(array),
        Kind::Float64 => of::<Float64Type>(array),
        Kind::Complex64 | Kind::Complex128 => None,
    }
}

fn of<T>(array: &dyn Array) -> Option<Vec<u8>>
where
    T: ArrowPrimitiveType,
    T::Native: Element,
{
    let values = array.as_primitive_opt::<T>()?.values();
    Some(encode(values, ByteOrder::Little))
}

/// The texts of an array; `None` when it holds something else.
fn text(array: &dyn Array) -> Option<Vec<Option<String>>> {
    match array.data_type() {
        DataType::Dictionary(key, _) => match &**key {
            DataType::Int8 => words::<Int8Type>(array),
            DataType::Int16 => words::<Int16Type>(array),
            DataType::Int32 => words::<Int32Type>(array),
            DataType::Int64 => words::<Int64Type>(array),
            DataType::UInt8 => words::<UInt8Type>(array),
            DataType::UInt16 => words::<UInt16Type>(array),
            DataType::UInt32 => words::<UInt32Type>(array),
            DataType::UInt64 => words::<UInt64Type>(array),
            _ => None,
        },
        DataType::LargeUtf8 => Some(owned(array.as_string_opt::<i64>()?.iter())),
        DataType::Utf8View => Some(owned(array.as_string_view_opt()?.iter())),
        _ => Some(owned(array.as_string_opt::<i32>()?.iter())),
    }
}

fn words<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Option<Vec<Option<String>>> {
    let array = array.as_dictionary_opt::<K>()?;
    let words = array.values().as_ref();
    // Not all words: a dictionary may be longer than a batch.
    let word: Box<dyn Fn(usize) -> String> = match words.data_type() {
        DataType::LargeUtf8 => {
            let words = words.as_string_opt::<i64>()?;
            Box::new(|at| words.value(at).to_owned())
        }
        DataType::Utf8View => {
            let words = words.as_string_view_opt()?;
            Box::new(|at| words.value(at).to_owned())
        }
        _ => {
            let words = words.as_string_opt::<i32>()?;
            Box::new(|at| words.value(at).to_owned())
        }
    };
    let rows = (0..array.len()).map(|row| {
        let at = array.key(row);
        let at = at.filter(|at| *at < words.len() && words.is_valid(*at))?;
        Some(word(at))
    });
    Some(rows.collect())
}

fn owned<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<Option<String>> {
    texts.map(|text| text.map(str::to_owned)).collect()
}
