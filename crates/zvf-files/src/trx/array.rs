//! Arrays that grow in temporary files, and types of arrays.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    ops::Range,
};

use zvf::{
    Column, ColumnValues, NumericColumn,
    numeric::{Kind, Value},
};
use zvf_model::attribute_name::stored_name;

use super::archive::kind_of;
use crate::{FileFault, values::narrow};

/// Rows that are converted at once.
const BLOCK: u64 = 1 << 14;

/// Type of an array: the kind of its numbers, and its name in the path of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayType {
    pub(super) kind: Kind,
    name: &'static str,
}

impl ArrayType {
    /// Returns the type of an attribute.
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self {
                kind: Kind::UInt8,
                name: "bit",
            },
            kind => Self {
                kind,
                name: kind.name(),
            },
        }
    }

    /// Returns the type that a path names.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "bit" => Some(Self::of(Kind::Bool)),
            name => kind_of(name).map(Self::of),
        }
    }

    /// Returns the path of an array. A name that is no file name is written as a store has it.
    pub(super) fn path(self, folder: &str, name: &str, width: u32) -> String {
        let name = if is_file_name(name) {
            name.into()
        } else {
            stored_name(name)
        };
        match width {
            1 => format!("{folder}{name}.{}", self.name),
            width => format!("{folder}{name}.{width}.{}", self.name),
        }
    }
}

/// Returns whether a name of a group or of an attribute can be part of the name of a member.
pub(super) fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\' | '.');
    !name.is_empty() && name.len() <= 200 && name.chars().all(is_plain)
}

/// An array that grows in a temporary file.
///
/// Its type depends on all rows: integers among which values are missing become float64, and others
/// get the type of the source file if it holds them.
#[derive(Debug)]
pub(super) struct SpilledArray {
    /// Name of the attribute in the store.
    pub(super) name: String,
    folder: &'static str,
    /// Name of the attribute in the file.
    original: String,
    /// Type of the rows in the temporary file.
    kind: Kind,
    width: u32,
    /// Type that the array had in the source file.
    kept: Option<ArrayType>,
    /// False if a row is not a value of the type in the source file.
    fits: bool,
    rows: u64,
    /// Rows without a value, if the type cannot express them.
    nulls: Vec<Range<u64>>,
    file: BufWriter<File>,
}

/// Rows in the type of the temporary file.
pub(super) struct ArrayRows<'a> {
    bytes: Cow<'a, [u8]>,
    /// Rows without a value, if the type cannot express them.
    nulls: Option<&'a [bool]>,
    size: usize,
}

/// A row in the type of the temporary file.
#[derive(Clone, Debug)]
pub(super) struct ArrayRow {
    bytes: Vec<u8>,
    is_null: bool,
}

impl ArrayRows<'_> {
    pub(super) fn row(&self, row: usize) -> ArrayRow {
        let start = row.saturating_mul(self.size);
        let bytes = self.bytes.get(start..start.saturating_add(self.size));
        let nulls = self.nulls.and_then(|nulls| nulls.get(row));
        ArrayRow {
            bytes: bytes.unwrap_or_default().to_vec(),
            is_null: nulls.copied().unwrap_or(false),
        }
    }
}

impl SpilledArray {
    /// Creates an array for values like these.
    pub(super) fn new(
        name: &str,
        folder: &'static str,
        original: &str,
        values: &NumericColumn,
        kept: Option<ArrayType>,
    ) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            folder,
            original: original.to_owned(),
            kind: values.kind,
            width: values.width,
            kept: kept.filter(|kept| *kept != ArrayType::of(values.kind)),
            fits: true,
            rows: 0,
            nulls: Vec::new(),
            file: BufWriter::with_capacity(1 << 16, tempfile::tempfile()?),
        })
    }

    /// Returns the rows of the attribute among the columns of a batch.
    ///
    /// # Errors
    ///
    /// [`FileFault::Broken`] if the batch has no such column.
    pub(super) fn rows_of<'a>(
        &mut self,
        columns: &'a [Column],
    ) -> Result<ArrayRows<'a>, FileFault> {
        let column = columns.iter().find(|column| column.name == self.name);
        let values = column.and_then(|column| match &column.values {
            ColumnValues::Numeric(values) => Some((values, column.nulls.as_deref())),
            ColumnValues::Dictionary { .. } => None,
        });
        let (values, nulls) = values.ok_or(FileFault::Broken("a column is missing in a batch"))?;
        self.check(values, nulls.filter(|nulls| nulls.contains(&true)))
    }

    /// Returns numbers as rows.
    ///
    /// # Errors
    ///
    /// [`FileFault::Broken`] if they have another type than those before.
    pub(super) fn check<'a>(
        &mut self,
        values: &'a NumericColumn,
        nulls: Option<&'a [bool]>,
    ) -> Result<ArrayRows<'a>, FileFault> {
        if (values.kind, values.width) != (self.kind, self.width) {
            return Err(FileFault::Broken(
                "a column changes its type between batches",
            ));
        }
        if let Some(kept) = self.kept.filter(|_| self.fits) {
            self.fits = converted(values, kept.kind).is_some();
        }
        let size = values.row_size();
        let mut bytes = Cow::Borrowed(values.bytes.as_slice());
        let nulls = match (self.kind.nan(), nulls) {
            (Some(nan), Some(nulls)) => {
                let rows = bytes.to_mut().chunks_exact_mut(size.max(1)).zip(nulls);
                for (row, _) in rows.filter(|(_, is_null)| **is_null) {
                    for value in row.chunks_exact_mut(nan.len()) {
                        value.copy_from_slice(nan);
                    }
                }
                None
            }
            (_, nulls) => nulls,
        };
        Ok(ArrayRows { bytes, nulls, size })
    }

    /// Appends rows.
    pub(super) fn push(&mut self, rows: &ArrayRows<'_>) -> io::Result<()> {
        self.file.write_all(&rows.bytes)?;
        for (row, _) in (self.rows..)
            .zip(rows.nulls.into_iter().flatten())
            .filter(|(_, is_null)| **is_null)
        {
            self.push_null(row);
        }
        let count = rows.bytes.len().checked_div(rows.size).unwrap_or(0);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.rows = self.rows.saturating_add(count);
        Ok(())
    }

    /// Appends a row.
    pub(super) fn push_row(&mut self, row: &ArrayRow) -> io::Result<()> {
        self.file.write_all(&row.bytes)?;
        if row.is_null {
            self.push_null(self.rows);
        }
        self.rows = self.rows.saturating_add(1);
        Ok(())
    }

    fn push_null(&mut self, row: u64) {
        match self.nulls.last_mut() {
            Some(last) if last.end == row => last.end = row.saturating_add(1),
            _ => self.nulls.push(row..row.saturating_add(1)),
        }
    }

    /// Returns the type of the whole array.
    fn array_type(&self) -> ArrayType {
        match self.kept {
            _ if !self.nulls.is_empty() => ArrayType::of(Kind::Float64),
            Some(kept) if self.fits => kept,
            _ => ArrayType::of(self.kind),
        }
    }

    /// Returns the path of the whole array.
    pub(super) fn path(&self) -> String {
        self.array_type()
            .path(self.folder, &self.original, self.width)
    }

    /// Writes the whole array, and returns how many of its values are rounded.
    pub(super) fn copy_to(&mut self, target: &mut impl Write) -> Result<u64, FileFault> {
        self.file.flush()?;
        let kind = self.array_type().kind;
        let file = self.file.get_mut();
        file.rewind()?;
        if kind == ArrayType::of(self.kind).kind {
            io::copy(file, target)?;
            return Ok(0);
        }
        let (mut values, mut nulls) = (NumericColumn::new(self.kind, self.width), &*self.nulls);
        let size = u64::try_from(values.row_size()).unwrap_or(u64::MAX);
        let (mut start, mut rounded) = (0_u64, 0_u64);
        while start < self.rows {
            let end = start.saturating_add(BLOCK).min(self.rows);
            values.bytes.clear();
            let length = end.saturating_sub(start).saturating_mul(size);
            Read::take(&mut *file, length).read_to_end(&mut values.bytes)?;
            let bytes = if self.nulls.is_empty() {
                let bytes = converted(&values, kind);
                bytes.ok_or(FileFault::Broken("a type does not hold its values"))?
            } else {
                floats(&values, start, &mut nulls, &mut rounded)
            };
            target.write_all(&bytes)?;
            start = end;
        }
        Ok(rounded)
    }

    /// Returns the line about values that are rounded.
    pub(super) fn rounded(&self, count: u64) -> Option<String> {
        let scope = if self.folder == "dpv/" {
            "vertex"
        } else {
            "object"
        };
        (count > 0).then(|| {
            let name = &self.name;
            format!(
                "{scope}.{name}: {count} integers are rounded to float64, because trx has no missing \
                 integers"
            )
        })
    }
}

/// Converts integers to 64-bit floats, with NaN in the rows without a value. `nulls` are those from
/// the row `start` on.
fn floats(
    values: &NumericColumn,
    start: u64,
    nulls: &mut &[Range<u64>],
    rounded: &mut u64,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(view) = values.view() else {
        return bytes;
    };
    for (number, row) in (start..).zip(0..view.rows()) {
        while let Some((_, later)) = nulls.split_first().filter(|(null, _)| null.end <= number) {
            *nulls = later;
        }
        let is_null = nulls.first().is_some_and(|null| null.contains(&number));
        for at in 0..values.width {
            let value = view
                .value(row, at)
                .filter(|_| !is_null)
                .unwrap_or(Value::Float(f64::NAN));
            *rounded = rounded.saturating_add(u64::from(float(value).is_none()));
            bytes.extend(value.to_f64().to_le_bytes());
        }
    }
    bytes
}

/// Converts numbers to another type; `None` if it does not hold all of them exactly.
pub(super) fn converted(column: &NumericColumn, kind: Kind) -> Option<Vec<u8>> {
    if ArrayType::of(column.kind).kind == kind {
        return Some(column.bytes.clone());
    }
    let view = column.view()?;
    let mut bytes = Vec::with_capacity(view.rows().saturating_mul(kind.size()));
    for row in 0..view.rows() {
        for at in 0..column.width {
            put(view.value(row, at)?, kind, &mut bytes)?;
        }
    }
    Some(bytes)
}

/// Appends a number in a type that holds it exactly.
fn put(value: Value, kind: Kind, bytes: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Float64 => bytes.extend(float(value)?.to_le_bytes()),
        Kind::Float32 => {
            let float = float(value)?;
            let near = narrow(float);
            let is_exact = near.is_nan() || f64::from(near).total_cmp(&float).is_eq();
            bytes.extend(Some(near).filter(|_| is_exact)?.to_le_bytes());
        }
        Kind::Int8 => bytes.extend(i8::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::Int16 => bytes.extend(i16::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::Int32 => bytes.extend(i32::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::Int64 => bytes.extend(i64::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::UInt8 => bytes.extend(u8::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::UInt16 => bytes.extend(u16::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::UInt32 => bytes.extend(u32::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::UInt64 => bytes.extend(u64::try_from(integer(value)?).ok()?.to_le_bytes()),
        Kind::Bool | Kind::Float16 | Kind::Complex64 | Kind::Complex128 => return None,
    }
    Some(())
}

/// Returns the 64-bit float with the value of a number.
fn float(value: Value) -> Option<f64> {
    let float = value.to_f64();
    let is_exact = match value {
        Value::Float(_) => true,
        Value::Complex { .. } => false,
        _ => integer(value) == integer(Value::Float(float)),
    };
    is_exact.then_some(float)
}

/// Returns the integer with the value of a number.
fn integer(value: Value) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(value.into()),
        Value::Int(value) => Some(value.into()),
        Value::UInt(value) => Some(value.into()),
        // Larger floats are no values of the types of arrays.
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "the float is an integer in the range of an i128"
        )]
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e20 => Some(value as i128),
        Value::Float(_) | Value::Complex { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_exactly_or_not_at_all() {
        let large = NumericColumn::from_values(1, [u64::MAX, 1 << 60, 3]);
        assert_eq!(converted(&large, Kind::Float64), None);
        assert_eq!(converted(&large, Kind::Int64), None);
        let floats = NumericColumn::float64(1, [255.0, -0.0, 7.0]);
        assert_eq!(converted(&floats, Kind::UInt8), Some(vec![255, 0, 7]));
        for wrong in [256.0, 0.5, f64::NAN, f64::INFINITY, -1.0, 1e30] {
            let column = NumericColumn::float64(1, [wrong]);
            assert_eq!(converted(&column, Kind::UInt8), None, "{wrong}");
        }
        let nan = NumericColumn::float64(1, [f64::NAN]);
        let expected = f32::NAN.to_le_bytes().to_vec();
        assert_eq!(converted(&nan, Kind::Float32), Some(expected));
        let tenth = NumericColumn::float64(1, [0.1]);
        assert_eq!(converted(&tenth, Kind::Float32), None);
    }
}
