//! Decodes tables from Arrow record batches.

use std::{
    collections::{HashMap, HashSet},
    mem,
    path::Path,
    ptr,
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, cast::AsArray};
use arrow_schema::{DataType, Schema};
use zvf::{ColumnValues, NumericColumn};
use zvf_arrow::{column_of, empty_column_of, numbers_of};
use zvf_model::column::NULL_CODE;

use super::encode::METADATA_KEY;
use crate::{FileError, FileFault, FilePlace};
use crate::{
    StoreDescription,
    display::len_u64,
    table::{
        ColumnError, TableReadOptions,
        column::{FileColumn, NullPolicy, fill_missing},
        input_table::InputTable,
    },
};

/// Length of a text from which on comparing its address is cheaper than hashing it.
const MAX_HASHED: usize = 64;

/// Size of the code of a text in bytes.
const CODE_BYTES: usize = size_of::<u32>();

/// A table that is being decoded.
pub(crate) struct TableBuilder {
    file: Arc<Path>,
    options: TableReadOptions,
    axes: Option<Vec<String>>,
    crs: Option<serde_json::Value>,
    description: Option<StoreDescription>,
    columns: Vec<ColumnBuilder>,
}

/// Rows of a column that is being decoded.
enum DecodedRows {
    Numbers(NumericColumn),
    Text(DecodedText),
}

/// Text whose words are held once. A small file may repeat a long word in each of many rows.
#[derive(Default)]
pub(crate) struct DecodedText {
    codes: Vec<u32>,
    words: HashMap<String, u32>,
    /// Size of all words in bytes.
    bytes: usize,
}

/// A column that is being decoded.
struct ColumnBuilder {
    label: String,
    values: DecodedRows,
    /// For numbers, one flag for each of them; empty as long as none is missing.
    missing: Vec<bool>,
}

/// Parses the description of the store in the metadata of a schema.
pub(crate) fn description(
    path: &Path,
    schema: &Schema,
) -> Result<Option<StoreDescription>, FileError> {
    let text = schema.metadata().get(METADATA_KEY);
    text.map(|text| StoreDescription::parse(text))
        .transpose()
        .map_err(|reason| FileFault::Description(reason).of(path))
}

impl TableBuilder {
    pub(crate) fn new(
        path: &Path,
        schema: &Schema,
        options: TableReadOptions,
    ) -> Result<Self, FileError> {
        let fail = |column: &str, source| {
            FileFault::Column(source).at(path, FilePlace::Column(column.to_owned()))
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
                    ColumnValues::Dictionary { .. } => DecodedRows::Text(DecodedText::default()),
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
        let description = description(path, schema)?;
        Ok(Self {
            file: path.into(),
            options,
            crs: crs.filter(serde_json::Value::is_object),
            axes: axes.and_then(|axes| serde_json::from_str(axes).ok()),
            description,
            columns,
        })
    }

    /// Checks that a table of this many rows fits into the memory limit, without the words of text.
    pub(crate) fn check_rows(&self, rows: u64) -> Result<(), FileError> {
        self.check_size(rows.saturating_mul(self.row_size()))
    }

    /// Returns the size of a row in memory in bytes, without the words of text.
    pub(crate) fn row_size(&self) -> u64 {
        let sizes = self.columns.iter().map(|column| match &column.values {
            DecodedRows::Numbers(numbers) => numbers.row_size(),
            DecodedRows::Text(_) => CODE_BYTES,
        });
        len_u64(sizes.fold(0, usize::saturating_add))
    }

    fn check_size(&self, found: u64) -> Result<(), FileError> {
        match self.options.memory {
            Some(max) if found > max => Err(FileFault::Memory { found, max }.of(&self.file)),
            _ => Ok(()),
        }
    }

    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<(), FileError> {
        for (growing, array) in self.columns.iter_mut().zip(batch.columns()) {
            let pushed = growing.push(array);
            pushed.map_err(|source| {
                FileFault::Column(source).at(&self.file, FilePlace::Column(growing.label.clone()))
            })?;
        }
        let sizes = self.columns.iter().map(ColumnBuilder::bytes);
        self.check_size(len_u64(sizes.fold(0, usize::saturating_add)))
    }

    pub(crate) fn finish(self) -> Result<InputTable, FileError> {
        let policy = self.options.nulls;
        let mut columns = Vec::with_capacity(self.columns.len());
        for growing in self.columns {
            let (values, nulls) = match growing.values {
                DecodedRows::Numbers(numbers) => {
                    let numbers = fill_items(numbers, &growing.missing, policy).map_err(|source| {
                        FileFault::Column(source)
                            .at(&self.file, FilePlace::Column(growing.label.clone()))
                    });
                    let (numbers, nulls) = numbers?;
                    (ColumnValues::Numeric(numbers), nulls)
                }
                DecodedRows::Text(text) => (text.finish(), None),
            };
            columns.push(FileColumn {
                file: Arc::clone(&self.file),
                label: growing.label,
                values,
                nulls,
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

/// Applies the policy to missing numbers, each with its flag. Returns the rows that stay null as
/// well; a row with some of its numbers is rejected then.
fn fill_items(
    numbers: NumericColumn,
    missing: &[bool],
    policy: NullPolicy,
) -> Result<(NumericColumn, Option<Vec<bool>>), ColumnError> {
    let (width, columns) = (numbers.width, numbers.row_len().max(1));
    let items = NumericColumn {
        width: 1,
        ..numbers
    };
    let filled = fill_missing(items, missing, policy);
    let (filled, nulls) = filled.map_err(|error| match error {
        ColumnError::Missing(item) => ColumnError::Missing(item / columns),
        ColumnError::Inexact(item) => ColumnError::Inexact(item / columns),
        other => other,
    })?;
    let filled = NumericColumn { width, ..filled };
    let Some(nulls) = nulls else {
        return Ok((filled, None));
    };
    let rows = nulls
        .chunks(columns)
        .enumerate()
        .map(|(row, items)| match items.contains(&true) {
            true if items.contains(&false) => Err(ColumnError::Missing(row)),
            is_null => Ok(is_null),
        });
    Ok((filled, Some(rows.collect::<Result<_, _>>()?)))
}

impl DecodedText {
    /// Adds the rows of a batch.
    fn push(&mut self, label: &str, array: &ArrayRef) -> Result<(), ColumnError> {
        match array.data_type() {
            DataType::Utf8 => self.push_rows(array.as_string::<i32>()),
            DataType::LargeUtf8 => self.push_rows(array.as_string::<i64>()),
            DataType::Utf8View => self.push_rows(array.as_string_view()),
            found => {
                let column =
                    column_of(label, array).map_err(|_| ColumnError::Kind(found.to_string()))?;
                let ColumnValues::Dictionary { codes, words } = column.values else {
                    return Err(ColumnError::Kind(found.to_string()));
                };
                let mut merged: Vec<Option<u32>> = vec![None; words.len()];
                for code in codes {
                    let at = usize::try_from(code).unwrap_or(usize::MAX);
                    let code = match words.get(at).zip(merged.get_mut(at)) {
                        Some((word, merged)) => *merged.get_or_insert_with(|| self.code(word)),
                        None => NULL_CODE,
                    };
                    self.codes.push(code);
                }
            }
        }
        Ok(())
    }

    fn push_rows<'a>(&mut self, rows: impl IntoIterator<Item = Option<&'a str>>) {
        // Rows of a view may share one long text, which is then hashed once.
        let mut seen: HashMap<*const str, u32> = HashMap::new();
        for text in rows {
            let code = match text {
                None => NULL_CODE,
                Some(text) if text.len() > MAX_HASHED => *seen
                    .entry(ptr::from_ref(text))
                    .or_insert_with(|| self.code(text)),
                Some(text) => self.code(text),
            };
            self.codes.push(code);
        }
    }

    /// Returns the code of a word, which is added if it is new.
    fn code(&mut self, word: &str) -> u32 {
        if let Some(code) = self.words.get(word) {
            return *code;
        }
        let code = u32::try_from(self.words.len()).unwrap_or(NULL_CODE);
        self.bytes = self.bytes.saturating_add(word.len());
        self.words.insert(word.to_owned(), code);
        code
    }

    /// Returns the codes of rows of text, which are null where the text is, and adds its words.
    pub(crate) fn codes_of(&mut self, array: &ArrayRef) -> Result<ArrayRef, FileFault> {
        let pushed = self.push("", array);
        pushed.map_err(FileFault::Column)?;
        let codes: UInt32Array = mem::take(&mut self.codes)
            .into_iter()
            .map(|code| (code != NULL_CODE).then_some(code))
            .collect();
        Ok(Arc::new(codes))
    }

    /// Returns the words in order of appearance.
    pub(crate) fn into_words(self) -> Vec<String> {
        let mut words: Vec<(String, u32)> = self.words.into_iter().collect();
        words.sort_unstable_by_key(|(_, code)| *code);
        words.into_iter().map(|(word, _)| word).collect()
    }

    /// Returns the column. Its dictionary lists words in order of appearance.
    fn finish(mut self) -> ColumnValues {
        ColumnValues::Dictionary {
            codes: mem::take(&mut self.codes),
            words: self.into_words().into(),
        }
    }
}

impl ColumnBuilder {
    /// Returns the size of the rows in bytes.
    fn bytes(&self) -> usize {
        let values = match &self.values {
            DecodedRows::Numbers(numbers) => numbers.bytes.len(),
            DecodedRows::Text(text) => {
                let codes = text.codes.len().saturating_mul(CODE_BYTES);
                codes.saturating_add(text.bytes)
            }
        };
        values.saturating_add(self.missing.len())
    }

    /// Adds the rows of a batch.
    fn push(&mut self, array: &ArrayRef) -> Result<(), ColumnError> {
        let foreign = || ColumnError::Kind(array.data_type().to_string());
        match &mut self.values {
            DecodedRows::Text(text) => text.push(&self.label, array)?,
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
                let columns = numbers.row_len();
                let before = numbers.len().saturating_mul(columns);
                numbers.bytes.extend(read.bytes);
                let has_nulls = array.null_count() > 0 || flat.null_count() > 0;
                if !has_nulls && self.missing.is_empty() {
                    return Ok(());
                }
                self.missing.resize(before, false);
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
