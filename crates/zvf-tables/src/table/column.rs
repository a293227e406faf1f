//! Columns of input files and their conversions.

use std::{path::Path, sync::Arc};

use zvf::{
    Column, ColumnValues, NumericColumn,
    numeric::{Kind, Value},
};
use zvf_format::numeric::{ByteOrder, Dtype, NumericRows};

use super::ColumnError;
use crate::{FileError, FileFault, FilePlace};

/// Treatment of missing numbers. Missing text needs none: text columns hold nulls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissingPolicy {
    /// Reject the file.
    #[default]
    Reject,
    /// Replace them by NaN; integers become floats.
    Nan,
}

/// Treatment of rows without a number in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullPolicy {
    /// Reject the file.
    Reject,
    /// Replace them by NaN; integers become floats.
    Nan,
    /// Keep them as nulls.
    Keep,
}

impl NullPolicy {
    /// Returns the treatment in columns that need a number in each row.
    pub(crate) fn of_rows(missing: MissingPolicy) -> Self {
        match missing {
            MissingPolicy::Reject => Self::Reject,
            MissingPolicy::Nan => Self::Nan,
        }
    }

    /// Returns the treatment in tables of objects. A store keeps objects without a value as nulls.
    pub(crate) fn of_tables(missing: MissingPolicy) -> Self {
        match missing {
            MissingPolicy::Reject => Self::Keep,
            MissingPolicy::Nan => Self::Nan,
        }
    }
}

/// A column and its file.
#[derive(Clone, Debug)]
pub(crate) struct FileColumn {
    pub(crate) file: Arc<Path>,
    /// Name in the file.
    pub(crate) label: String,
    pub(crate) values: ColumnValues,
    /// For numbers, `true` for each row without one; `None` if every row has one.
    pub(crate) nulls: Option<Vec<bool>>,
    /// The first field that made a column of a text file text.
    pub(crate) first_text: Option<FirstText>,
}

/// A field that is not a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstText {
    /// Line of the file, counted from 1.
    pub(crate) line: u64,
    pub(crate) text: String,
    /// True if the fields above it are numbers.
    pub(crate) follows_numbers: bool,
}

/// An attribute: its name without scope, and its column.
pub(crate) type NamedColumn = (String, FileColumn);

impl FileColumn {
    pub(crate) fn error(&self, source: ColumnError) -> FileError {
        FileFault::Column(source).at(&self.file, FilePlace::Column(self.label.clone()))
    }

    /// Converts the column to ids, one per row.
    pub(crate) fn ids(&self) -> Result<Vec<i64>, FileError> {
        let numbers = self.numbers()?;
        if numbers.row_len() != 1 {
            return Err(self.error(ColumnError::Columns {
                expected: 1,
                found: numbers.row_len(),
            }));
        }
        self.integers()
    }

    /// Checks that each of the ids of this column occurs once.
    pub(crate) fn check_distinct(&self, ids: &[i64]) -> Result<(), FileError> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
        match pairs.find(|(one, next)| one == next) {
            Some((id, _)) => Err(self.error(ColumnError::Repeated(*id))),
            None => Ok(()),
        }
    }

    /// Converts the column to integers, row by row.
    pub(crate) fn integers(&self) -> Result<Vec<i64>, FileError> {
        let numbers = self.numbers()?;
        integers(numbers).map_err(|error| self.error(error))
    }

    /// Converts the column to integers that are not negative, one per row.
    pub(crate) fn offsets(&self) -> Result<Vec<u64>, FileError> {
        let values = self.ids()?.into_iter().enumerate().map(|(row, value)| {
            let value = u64::try_from(value);
            value.map_err(|_| self.error(ColumnError::Negative(row)))
        });
        values.collect()
    }

    /// Checks that no row lacks a number.
    pub(crate) fn check_complete(&self) -> Result<(), FileError> {
        let nulls = self.nulls.as_deref().unwrap_or_default();
        match nulls.iter().position(|is_null| *is_null) {
            Some(row) => Err(self.error(ColumnError::Missing(row))),
            None => Ok(()),
        }
    }

    /// Returns the numbers, one or more in each row.
    pub(crate) fn numbers(&self) -> Result<&NumericColumn, FileError> {
        self.check_complete()?;
        match &self.values {
            ColumnValues::Numeric(numbers) => Ok(numbers),
            ColumnValues::Dictionary { .. } => Err(self.error(match self.first_text.clone() {
                None => ColumnError::Text,
                Some(FirstText { line, text, .. }) => ColumnError::TextAt { line, text },
            })),
        }
    }
}

/// Converts a column to an attribute.
pub(crate) fn attribute((name, column): NamedColumn) -> Column {
    let nulls = column.nulls;
    let mut attribute = Column::new(name, column.values);
    attribute.nulls = nulls.or(attribute.nulls);
    attribute
}

fn integers(numbers: &NumericColumn) -> Result<Vec<i64>, ColumnError> {
    let view = view(numbers)
        .filter(|_| numbers.kind != Kind::Bool)
        .ok_or(ColumnError::NotIntegers(numbers.kind.name()))?;
    if let Some(values) = view.elements::<i64>() {
        return Ok(values.iter().collect());
    }
    let values = values(view).map(|(row, value)| match value {
        Value::Int(value) => Ok(value),
        Value::UInt(value) => {
            i64::try_from(value).map_err(|_| ColumnError::TooLarge { row, value })
        }
        _ => Err(ColumnError::NotIntegers(numbers.kind.name())),
    });
    values.collect()
}

fn view(numbers: &NumericColumn) -> Option<NumericRows<'_>> {
    let dtype = Dtype::new(numbers.kind, ByteOrder::Little);
    let columns = u32::try_from(numbers.row_len()).ok()?.try_into().ok()?;
    NumericRows::parse(&numbers.bytes, dtype, columns).ok()
}

/// Returns all numbers with their rows.
fn values(view: NumericRows<'_>) -> impl Iterator<Item = (usize, Value)> + '_ {
    let rows = 0..view.rows();
    rows.flat_map(move |row| {
        let columns = 0..view.columns().get();
        columns.filter_map(move |column| Some((row, view.value(row, column)?)))
    })
}

/// Joins columns of one channel to one column. Different types become float64.
pub(crate) fn join_channels(parts: &[&NumericColumn]) -> Result<NumericColumn, ColumnError> {
    let Some(first) = parts.first() else {
        return Ok(NumericColumn::new(Kind::Float64, 1));
    };
    if let Some(part) = parts.iter().find(|part| part.row_len() != 1) {
        return Err(ColumnError::Columns {
            expected: 1,
            found: part.row_len(),
        });
    }
    if parts.iter().any(|part| part.kind != first.kind) {
        let floats: Result<Vec<_>, _> = parts.iter().map(|part| floats(part, None)).collect();
        let floats = floats?;
        return join_channels(&floats.iter().collect::<Vec<_>>());
    }
    if let Some(part) = parts.iter().find(|part| part.len() != first.len()) {
        return Err(ColumnError::Rows {
            expected: first.len(),
            found: part.len(),
        });
    }
    // One part is one column of an input file or one axis of a table.
    let width = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let mut joined = NumericColumn::new(first.kind, width);
    for row in 0..first.len() {
        for channel in parts.iter().filter_map(|part| part.row(row)) {
            joined.bytes.extend_from_slice(channel);
        }
    }
    Ok(joined)
}

/// Applies the policy to missing rows; an empty `missing` means that every row has a value. Returns
/// the rows that stay null as well.
pub(crate) fn fill_missing(
    numbers: NumericColumn,
    missing: &[bool],
    policy: NullPolicy,
) -> Result<(NumericColumn, Option<Vec<bool>>), ColumnError> {
    let Some(row) = missing.iter().position(|missing| *missing) else {
        return Ok((numbers, None));
    };
    if missing.len() != numbers.len() {
        return Err(ColumnError::Rows {
            expected: numbers.len(),
            found: missing.len(),
        });
    }
    match policy {
        NullPolicy::Reject => return Err(ColumnError::Missing(row)),
        NullPolicy::Keep => return Ok((numbers, Some(missing.to_vec()))),
        NullPolicy::Nan => {}
    }
    let Some(nan) = numbers.kind.nan() else {
        return Ok((floats(&numbers, Some(missing))?, None));
    };
    let mut numbers = numbers;
    let size = numbers.row_size();
    for (bytes, missing) in numbers.bytes.chunks_exact_mut(size).zip(missing) {
        if *missing {
            for (byte, of_nan) in bytes.iter_mut().zip(nan.iter().cycle()) {
                *byte = *of_nan;
            }
        }
    }
    Ok((numbers, None))
}

/// Converts numbers to float64, with NaN for missing rows.
fn floats(numbers: &NumericColumn, missing: Option<&[bool]>) -> Result<NumericColumn, ColumnError> {
    let view = view(numbers).ok_or(ColumnError::Inexact(0))?;
    let mut bytes = Vec::new();
    for (row, value) in values(view) {
        let is_missing = missing.and_then(|missing| missing.get(row)).copied();
        let value = match value {
            _ if is_missing == Some(true) => Some(f64::NAN),
            Value::Bool(value) => Some(f64::from(value)),
            Value::Int(value) => exact(value),
            Value::UInt(value) => i64::try_from(value).ok().and_then(exact),
            Value::Float(value) => Some(value),
            Value::Complex { .. } => None,
        };
        let value = value.ok_or(ColumnError::Inexact(row))?;
        bytes.extend(value.to_le_bytes());
    }
    Ok(NumericColumn {
        bytes,
        ..NumericColumn::new(Kind::Float64, numbers.width)
    })
}

/// Converts an integer to a float; `None` if the conversion is not exact.
fn exact(value: i64) -> Option<f64> {
    if value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS {
        return None;
    }
    let high = i32::try_from(value >> 32).ok()?;
    let low = u32::try_from(value & 0xffff_ffff).ok()?;
    Some(f64::from(high) * 4_294_967_296.0 + f64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_of_different_lengths_are_refused() {
        let long: NumericColumn = [1_i32, 2].into_iter().collect();
        let short: NumericColumn = [3_i32].into_iter().collect();
        let floats: NumericColumn = [3.0_f64].into_iter().collect();
        for (one, other) in [(&long, &short), (&short, &long), (&long, &floats)] {
            let (expected, found) = (one.len(), other.len());
            let error = ColumnError::Rows { expected, found };
            assert_eq!(join_channels(&[one, other]), Err(error));
        }
        let joined = join_channels(&[&long, &long]).unwrap();
        assert_eq!(joined.to_vec::<i32>(), Some(vec![1, 1, 2, 2]));
    }
}
