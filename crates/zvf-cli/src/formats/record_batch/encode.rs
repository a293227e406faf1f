//! Encodes tables as Arrow record batches.

use std::{collections::HashMap, ops::Range, sync::Arc};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, FixedSizeListArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
    types::{
        Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use zvf::{QueryResult, numeric::Kind};
use zvf_format::numeric::{Element, NumericRows};

use crate::formats::{
    OutputTable, ResultWriteError, StoreDescription,
    error::FillError,
    level_names,
    output_table::{OutputCells, OutputColumn},
    staged::{Sink, Staged},
};

/// Key of the schema metadata under which the description of the store is written.
pub(super) const METADATA_KEY: &str = "zvf";
/// Number of rows of a batch.
const BATCH_ROWS: usize = 1 << 16;
/// Maximum size of a dictionary in bytes: offsets of UTF-8 arrays have 31 bits.
const MAX_TEXT_BYTES: usize = (1 << 31) - 1;

/// A table with its schema, divided into batches.
pub(in super::super) struct RecordBatches<'a> {
    table: &'a OutputTable<'a>,
    schema: SchemaRef,
    columns: Vec<EncodedColumn<'a>>,
}

/// A column with its type and, for text, the dictionary that all batches share.
struct EncodedColumn<'a> {
    column: &'a OutputColumn<'a>,
    dictionary: Option<ArrayRef>,
    channels: i32,
}

impl<'a> RecordBatches<'a> {
    fn of(
        table: &'a OutputTable<'a>,
        metadata: HashMap<String, String>,
    ) -> Result<Self, ResultWriteError> {
        let columns = table.columns.iter().map(EncodedColumn::of);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = columns.iter().map(EncodedColumn::field).collect();
        Ok(Self {
            table,
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
            columns,
        })
    }

    pub(in super::super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes the batches one by one; none for an empty table.
    pub(in super::super) fn iter(
        &self,
    ) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + '_ {
        let starts = (0..self.table.rows).step_by(BATCH_ROWS);
        starts.map(|start| {
            let end = start.saturating_add(BATCH_ROWS).min(self.table.rows);
            let arrays = self.columns.iter().map(|column| column.array(start..end));
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            let rows = RecordBatchOptions::new().with_row_count(Some(end.saturating_sub(start)));
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &rows)
        })
    }
}

/// Writes the vertices and the tables beside them; `fill` encodes one table.
pub(in super::super) fn write_batches(
    answer: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
    fill: fn(&RecordBatches<'_>, &mut Sink<'_>) -> Result<(), FillError>,
) -> Result<Vec<String>, ResultWriteError> {
    let about = metadata(answer, description);
    let vertices = OutputTable::vertices(answer)?;
    let vertices = RecordBatches::of(&vertices, about.clone())?;
    staged.write(|sink| fill(&vertices, sink))?;
    for (part, table) in OutputTable::sidecars(answer, description)? {
        let batches = RecordBatches::of(&table, about.clone())?;
        staged.write_sidecar(part, |sink| fill(&batches, sink))?;
    }
    Ok(Vec::new())
}

/// Returns the metadata of the schema.
fn metadata(answer: &QueryResult, description: &StoreDescription) -> HashMap<String, String> {
    let axes = serde_json::Value::from(answer.axes.clone());
    let level = level_names(answer);
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
    fn of(column: &'a OutputColumn<'a>) -> Result<Self, ResultWriteError> {
        let mut dictionary: Option<ArrayRef> = None;
        if let OutputCells::Words { words, .. } = &column.cells {
            let bytes = words.iter().map(String::len).sum::<usize>();
            if bytes > MAX_TEXT_BYTES {
                return Err(ResultWriteError::Words(column.name.clone()));
            }
            dictionary = Some(Arc::new(StringArray::from_iter_values(words.iter())));
        }
        let channels = i32::try_from(column.channels());
        let channels = channels.map_err(|_| ResultWriteError::Channels(column.name.clone()))?;
        Ok(Self {
            column,
            dictionary,
            channels,
        })
    }

    fn field(&self) -> Field {
        let name = self.column.name.as_str();
        let one = match self.column.kind() {
            None => DataType::Dictionary(DataType::UInt32.into(), DataType::Utf8.into()),
            Some(Kind::Complex64) => DataType::FixedSizeList(item(DataType::Float32), 2),
            Some(Kind::Complex128) => DataType::FixedSizeList(item(DataType::Float64), 2),
            Some(kind) => plain(kind),
        };
        let all = match self.channels {
            1 => one,
            channels => DataType::FixedSizeList(item(one), channels),
        };
        Field::new(name, all, self.column.may_miss())
    }

    fn array(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let nulls = self.column.may_miss().then(|| {
            let valid = rows.clone().map(|row| !self.column.is_null(row));
            NullBuffer::from(valid.collect::<Vec<bool>>())
        });
        // With several channels, the row is null and not its numbers.
        let (outer, inner) = match self.channels {
            1 => (None, nulls),
            _ => (nulls, None),
        };
        let channels = self.column.channels();
        let one: ArrayRef = match &self.column.cells {
            OutputCells::Integers { values, channels } => {
                let at = rows.start.saturating_mul(*channels)..rows.end.saturating_mul(*channels);
                let values = values.get(at).unwrap_or_default().to_vec();
                Arc::new(PrimitiveArray::<Int64Type>::try_new(values.into(), inner)?)
            }
            OutputCells::Words { codes, .. } => {
                // The code of a null row may be beyond the dictionary.
                let codes = rows.clone().map(|row| {
                    let code = codes.get(row).filter(|_| !self.column.is_null(row));
                    code.copied().unwrap_or(0)
                });
                let codes = ScalarBuffer::from(codes.collect::<Vec<u32>>());
                let keys = PrimitiveArray::<UInt32Type>::try_new(codes, inner)?;
                let words = self.dictionary.clone();
                let words = words.unwrap_or_else(|| Arc::new(StringArray::new_null(0)));
                Arc::new(DictionaryArray::try_new(keys, words)?)
            }
            OutputCells::Numbers {
                rows: view, first, ..
            } => {
                let picked = ChannelRange {
                    view: *view,
                    first: *first,
                    channels,
                    rows,
                };
                picked.array(inner)?
            }
        };
        match self.channels {
            1 => Ok(one),
            size => listed(one, size, outer),
        }
    }
}

/// A range of channels of a range of rows.
struct ChannelRange<'a> {
    view: NumericRows<'a>,
    first: usize,
    channels: usize,
    rows: Range<usize>,
}

impl ChannelRange<'_> {
    fn array(&self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        match self.view.dtype().kind() {
            Kind::Bool => {
                let values = BooleanBuffer::from(self.values::<bool>());
                Ok(Arc::new(BooleanArray::new(values, nulls)))
            }
            Kind::Int8 => self.primitive::<Int8Type>(nulls),
            Kind::Int16 => self.primitive::<Int16Type>(nulls),
            Kind::Int32 => self.primitive::<Int32Type>(nulls),
            Kind::Int64 => self.primitive::<Int64Type>(nulls),
            Kind::UInt8 => self.primitive::<UInt8Type>(nulls),
            Kind::UInt16 => self.primitive::<UInt16Type>(nulls),
            Kind::UInt32 => self.primitive::<UInt32Type>(nulls),
            Kind::UInt64 => self.primitive::<UInt64Type>(nulls),
            Kind::Float16 => self.primitive::<Float16Type>(nulls),
            Kind::Float32 => self.primitive::<Float32Type>(nulls),
            Kind::Float64 => self.primitive::<Float64Type>(nulls),
            Kind::Complex64 => {
                let parts = self.values::<[f32; 2]>().into_flattened();
                let parts = PrimitiveArray::<Float32Type>::try_new(parts.into(), None)?;
                listed(Arc::new(parts), 2, nulls)
            }
            Kind::Complex128 => {
                let parts = self.values::<[f64; 2]>().into_flattened();
                let parts = PrimitiveArray::<Float64Type>::try_new(parts.into(), None)?;
                listed(Arc::new(parts), 2, nulls)
            }
        }
    }

    fn primitive<T>(&self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError>
    where
        T: ArrowPrimitiveType,
        T::Native: Element,
    {
        let values = self.values::<T::Native>();
        Ok(Arc::new(PrimitiveArray::<T>::try_new(
            values.into(),
            nulls,
        )?))
    }

    fn values<T: Element>(&self) -> Vec<T> {
        let Some(elements) = self.view.elements::<T>() else {
            return Vec::new();
        };
        let width = usize::try_from(self.view.columns().get()).unwrap_or(usize::MAX);
        let rows = self.rows.clone();
        let starts = rows.map(|row| row.saturating_mul(width).saturating_add(self.first));
        let picked = starts.flat_map(|start| start..start.saturating_add(self.channels));
        picked.filter_map(|at| elements.get(at)).collect()
    }
}

fn listed(values: ArrayRef, size: i32, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let of = item(values.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(
        of, size, values, nulls,
    )?))
}

/// Returns the item field of a list. It is nullable, as most readers assume.
fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, true))
}

/// Returns Arrow's type of a real number.
fn plain(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int8 => DataType::Int8,
        Kind::Int16 => DataType::Int16,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::UInt8 => DataType::UInt8,
        Kind::UInt16 => DataType::UInt16,
        Kind::UInt32 => DataType::UInt32,
        Kind::UInt64 => DataType::UInt64,
        Kind::Float16 => DataType::Float16,
        Kind::Float32 | Kind::Complex64 => DataType::Float32,
        Kind::Float64 | Kind::Complex128 => DataType::Float64,
    }
}
