//! Single columns as Arrow arrays, and arrays as columns.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, PrimitiveArray,
    StringArray,
    cast::AsArray,
    make_array,
    types::{
        ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
        UInt32Type, UInt64Type,
    },
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use serde_json::{Value, json};
use zvf::{Column, ColumnValues, NumericColumn, numeric::Kind};
use zvf_model::column::NULL_CODE;

use crate::error::ConversionError;

/// Maximum size of the words of a text: offsets of UTF-8 arrays have 31 bits.
const MAX_WORD_BYTES: usize = (1 << 31) - 1;

/// Converts a column to an Arrow array. Numbers and codes of text are not copied.
///
/// # Errors
///
/// [`ConversionError::Words`] for text with more than 2 GiB of distinct words, and
/// [`ConversionError::Incomplete`] if the bytes end inside a row.
pub fn array_of(column: Column) -> Result<ArrayRef, ConversionError> {
    let nulls = column.nulls.map(valid);
    match column.values {
        ColumnValues::Numeric(numbers) => numeric(&column.name, numbers, nulls),
        ColumnValues::Dictionary { codes, words } => {
            text(codes, nulls, words_of(&column.name, &words)?)
        }
    }
}

/// Converts words to the values of a dictionary, for [`text_of`].
///
/// # Errors
///
/// [`ConversionError::Words`] for more than 2 GiB of words.
pub fn words_of(name: &str, words: &[String]) -> Result<ArrayRef, ConversionError> {
    let bytes: usize = words.iter().map(String::len).sum();
    if bytes > MAX_WORD_BYTES {
        return Err(ConversionError::Words(name.to_owned()));
    }
    Ok(Arc::new(StringArray::from_iter_values(words.iter())))
}

/// Converts rows of text to an Arrow array. Several arrays can share the `words`. A row is null if
/// its code is beyond the words, or if `nulls` has it.
///
/// # Errors
///
/// [`ConversionError::Arrow`] if there is not one null flag for each code.
pub fn text_of(
    codes: Vec<u32>,
    nulls: Option<Vec<bool>>,
    words: &ArrayRef,
) -> Result<ArrayRef, ConversionError> {
    text(codes, nulls.map(valid), Arc::clone(words))
}

fn text(
    mut codes: Vec<u32>,
    nulls: Option<NullBuffer>,
    words: ArrayRef,
) -> Result<ArrayRef, ConversionError> {
    let len = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let has_nulls = codes.iter().any(|code| *code >= len);
    let nulls = nulls.or_else(|| has_nulls.then(|| codes.iter().map(|code| *code < len).collect()));
    // Readers may look up the code of a null row.
    for code in codes.iter_mut().filter(|code| **code >= len) {
        *code = 0;
    }
    let keys = PrimitiveArray::<UInt32Type>::try_new(codes.into(), nulls)?;
    Ok(Arc::new(DictionaryArray::try_new(keys, words)?))
}

fn valid(nulls: Vec<bool>) -> NullBuffer {
    nulls.into_iter().map(|is_null| !is_null).collect()
}

pub(crate) fn numeric(
    name: &str,
    numbers: NumericColumn,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ConversionError> {
    let (rows, width) = (numbers.len(), numbers.width);
    let is_complete = rows.checked_mul(numbers.row_size()) == Some(numbers.bytes.len());
    let width = i32::try_from(width).ok().filter(|_| is_complete);
    let Some(width) = width else {
        return Err(ConversionError::Incomplete(name.to_owned()));
    };
    let values = rows.saturating_mul(numbers.row_len());
    let (kind, bytes) = (numbers.kind, numbers.bytes);
    // With several numbers to a row, the row is null and not its numbers.
    let (own, outer) = if width == 1 {
        (nulls, None)
    } else {
        (None, nulls)
    };
    let values: ArrayRef = match kind {
        Kind::Bool => {
            let bits: BooleanBuffer = bytes.iter().map(|byte| *byte != 0).collect();
            Arc::new(BooleanArray::new(bits, own))
        }
        Kind::Complex64 | Kind::Complex128 => {
            let parts = primitive(part(kind), values.saturating_mul(2), bytes, None)?;
            list(parts, 2, own)?
        }
        kind => primitive(data_type(kind), values, bytes, own)?,
    };
    if width == 1 {
        Ok(values)
    } else {
        list(values, width, outer)
    }
}

fn primitive(
    of: DataType,
    len: usize,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ConversionError> {
    let data = ArrayData::builder(of)
        .len(len)
        .add_buffer(Buffer::from_vec(bytes))
        .nulls(nulls)
        .align_buffers(true);
    Ok(make_array(data.build()?))
}

fn list(
    values: ArrayRef,
    width: i32,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ConversionError> {
    let item = item(values.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(
        item, width, values, nulls,
    )?))
}

/// Returns the item field of a list.
fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, false))
}

/// Returns the type of the parts of a complex number.
fn part(kind: Kind) -> DataType {
    if kind == Kind::Complex64 {
        DataType::Float32
    } else {
        DataType::Float64
    }
}

/// Returns Arrow's type of a number.
fn data_type(kind: Kind) -> DataType {
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
        Kind::Float32 => DataType::Float32,
        Kind::Float64 => DataType::Float64,
        Kind::Complex64 | Kind::Complex128 => DataType::FixedSizeList(item(part(kind)), 2),
    }
}

/// Returns Arrow's type of rows of numbers.
pub(crate) fn numeric_type(kind: Kind, width: i32) -> DataType {
    if width == 1 {
        data_type(kind)
    } else {
        DataType::FixedSizeList(item(data_type(kind)), width)
    }
}

/// Returns Arrow's type of text.
pub(crate) fn text_type() -> DataType {
    DataType::Dictionary(DataType::UInt32.into(), DataType::Utf8.into())
}

/// Returns the column without rows of a type, as [`column_of`] converts it.
///
/// # Errors
///
/// [`ConversionError::Type`] for a type that [`column_of`] does not convert.
pub fn empty_column_of(name: &str, of: &DataType) -> Result<Column, ConversionError> {
    let is_text = |of: &DataType| {
        matches!(
            of,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    let values = match of {
        DataType::Dictionary(_, words) if is_text(words.as_ref()) => None,
        DataType::FixedSizeList(item, width) => {
            let width = u32::try_from(*width).ok().filter(|width| *width > 0);
            Some(kind_of(item.data_type()).zip(width))
        }
        of if is_text(of) => None,
        of => Some(kind_of(of).map(|kind| (kind, 1))),
    };
    let values = match values {
        None => ColumnValues::text([None::<&str>; 0]),
        Some(Some((kind, width))) => NumericColumn::new(kind, width).into(),
        Some(None) => return Err(unsupported(name, of)),
    };
    Ok(Column::new(name, values))
}

/// Converts an Arrow array to a column: numbers, lists of equally many numbers, and text, plain or
/// with a dictionary.
///
/// # Errors
///
/// [`ConversionError::Type`] for other types, and [`ConversionError::Nulls`] for lists with null
/// values inside.
pub fn column_of(name: &str, array: &ArrayRef) -> Result<Column, ConversionError> {
    let nulls = array
        .logical_nulls()
        .filter(|nulls| nulls.null_count() > 0)
        .map(|valid| valid.iter().map(|is_valid| !is_valid).collect());
    let values = match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ColumnValues::text(texts(name, array, |_| true)?)
        }
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => words::<Int8Type>(name, array)?,
            DataType::Int16 => words::<Int16Type>(name, array)?,
            DataType::Int32 => words::<Int32Type>(name, array)?,
            DataType::Int64 => words::<Int64Type>(name, array)?,
            DataType::UInt8 => words::<UInt8Type>(name, array)?,
            DataType::UInt16 => words::<UInt16Type>(name, array)?,
            DataType::UInt32 => words::<UInt32Type>(name, array)?,
            DataType::UInt64 => words::<UInt64Type>(name, array)?,
            _ => return Err(unsupported(name, array.data_type())),
        },
        _ => ColumnValues::Numeric(numbers_of(name, array)?),
    };
    Ok(Column {
        name: name.to_owned(),
        values,
        nulls,
    })
}

/// Converts an Arrow array to rows of numbers. Rows that are null have any value.
///
/// # Errors
///
/// [`ConversionError::Type`] for other types than numbers and lists of equally many numbers, and
/// [`ConversionError::Nulls`] for lists with null values inside.
pub fn numbers_of(name: &str, array: &ArrayRef) -> Result<NumericColumn, ConversionError> {
    let DataType::FixedSizeList(_, width) = array.data_type() else {
        return plain(name, array, 1);
    };
    let width = u32::try_from(*width)
        .ok()
        .filter(|width| *width > 0)
        .ok_or_else(|| unsupported(name, array.data_type()))?;
    let values = array.as_fixed_size_list().values();
    if values.null_count() > 0 {
        return Err(ConversionError::Nulls(name.to_owned()));
    }
    plain(name, values, width)
}

fn plain(name: &str, array: &ArrayRef, width: u32) -> Result<NumericColumn, ConversionError> {
    let kind = kind_of(array.data_type()).ok_or_else(|| unsupported(name, array.data_type()))?;
    if kind == Kind::Bool {
        let bytes = array.as_boolean().values().iter().map(u8::from).collect();
        return Ok(NumericColumn::new(kind, width).with_bytes(bytes));
    }
    let data = array.to_data();
    let (start, len) = (data.offset(), data.len());
    let (start, len) = (
        start.saturating_mul(kind.size()),
        len.saturating_mul(kind.size()),
    );
    let buffer = data
        .buffers()
        .first()
        .cloned()
        .unwrap_or_default()
        .slice_with_length(start, len);
    drop(data);
    // A buffer that nothing else uses gives its memory away.
    let bytes = buffer
        .into_vec::<u8>()
        .unwrap_or_else(|shared| shared.as_slice().to_vec());
    Ok(NumericColumn::new(kind, width).with_bytes(bytes))
}

/// Returns the type of numbers; `None` for other types.
fn kind_of(of: &DataType) -> Option<Kind> {
    Some(match of {
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

fn words<K: ArrowDictionaryKeyType>(
    name: &str,
    array: &ArrayRef,
) -> Result<ColumnValues, ConversionError> {
    let dictionary = array.as_dictionary::<K>();
    let values = dictionary.values();
    // A dictionary that batches share may be longer than a batch, which needs some words only.
    let is_used = (values.len() > array.len()).then(|| {
        let mut is_used = vec![false; values.len()];
        for key in (0..array.len()).filter_map(|row| dictionary.key(row)) {
            if let Some(is_used) = is_used.get_mut(key) {
                *is_used = true;
            }
        }
        is_used
    });
    let is_used = |at: usize| {
        is_used
            .as_ref()
            .is_none_or(|used| used.get(at) == Some(&true))
    };
    let texts = texts(name, values, is_used)?;
    let mut words = Vec::with_capacity(texts.len());
    let mut codes_of_words = Vec::with_capacity(texts.len());
    for text in texts {
        codes_of_words.push(match text {
            None => NULL_CODE,
            Some(text) => {
                words.push(text);
                // Arrow's lengths fit, and a dictionary of 2^32 words does not fit into memory.
                u32::try_from(words.len().saturating_sub(1)).unwrap_or(NULL_CODE)
            }
        });
    }
    let code = |row| {
        let key = dictionary.key(row)?;
        codes_of_words.get(key).copied()
    };
    let codes = (0..array.len()).map(|row| code(row).unwrap_or(NULL_CODE));
    Ok(ColumnValues::Dictionary {
        codes: codes.collect(),
        words: words.into(),
    })
}

/// Returns the text of each row for which `is_wanted` holds, and `None` for others.
fn texts(
    name: &str,
    array: &ArrayRef,
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Option<String>>, ConversionError> {
    let text =
        |(at, text): (usize, Option<&str>)| text.filter(|_| is_wanted(at)).map(str::to_owned);
    Ok(match array.data_type() {
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .enumerate()
            .map(text)
            .collect(),
        DataType::LargeUtf8 => array
            .as_string::<i64>()
            .iter()
            .enumerate()
            .map(text)
            .collect(),
        DataType::Utf8View => array
            .as_string_view()
            .iter()
            .enumerate()
            .map(text)
            .collect(),
        _ => return Err(unsupported(name, array.data_type())),
    })
}

fn unsupported(name: &str, found: &DataType) -> ConversionError {
    ConversionError::Type {
        column: name.to_owned(),
        found: found.clone(),
        expected: "numbers, lists of equally many numbers, or text",
    }
}

/// Returns the values of a column of 64-bit integers without nulls.
pub(crate) fn integers<T: arrow_array::types::ArrowPrimitiveType>(
    name: &str,
    array: &ArrayRef,
    expected: &'static str,
) -> Result<ScalarBuffer<T::Native>, ConversionError> {
    if array.null_count() > 0 {
        return Err(ConversionError::Nulls(name.to_owned()));
    }
    let found = || ConversionError::Type {
        column: name.to_owned(),
        found: array.data_type().clone(),
        expected,
    };
    let values = array.as_primitive_opt::<T>().ok_or_else(found)?;
    Ok(values.values().clone())
}

/// Returns the dimensions of positions as `GeoArrow` names them in the field of the list's items; `None`
/// for positions that are no points of `GeoArrow`, which have 64-bit floats and these axes in this order.
pub(crate) fn point_dimensions(kind: Kind, axes: &[String]) -> Option<&'static str> {
    let joined = axes.concat();
    let mut known = ["xy", "xyz", "xym", "xyzm"].into_iter();
    known
        .find(|known| *known == joined && known.len() == axes.len())
        .filter(|_| kind == Kind::Float64)
}

/// Returns the metadata of the field of positions.
pub(crate) fn position_metadata(
    kind: Kind,
    axes: &[String],
    crs: Option<&Value>,
) -> HashMap<String, String> {
    if point_dimensions(kind, axes).is_none() {
        return HashMap::new();
    }
    let name = ("ARROW:extension:name", "geoarrow.point".to_owned());
    let crs = crs.map(|crs| {
        (
            "ARROW:extension:metadata",
            json!({ "crs": crs }).to_string(),
        )
    });
    let entries = [name].into_iter().chain(crs);
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
