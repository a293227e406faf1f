//! Values of the data, from text or bytes.

use std::path::Path;

use zvf::{NumericColumn, numeric::Kind};

use super::header::PlyForm;
use crate::{
    FileError, FileFault, FilePlace, fields::gather, input::ByteReader, polygons::PolygonList,
};

/// Number of rows that are read together.
const BLOCK: u64 = 1 << 14;

/// Reads values one after the other.
#[derive(Debug)]
pub(super) struct PlyValues {
    file: ByteReader,
    form: PlyForm,
    /// A line of a text file, and the offset of the next word.
    line: Vec<u8>,
    at: usize,
    number: u64,
    is_cut: bool,
}

impl PlyValues {
    pub(super) fn new(file: ByteReader, form: PlyForm, lines: u64) -> Self {
        Self {
            file,
            form,
            line: Vec::new(),
            at: 0,
            number: lines,
            is_cut: false,
        }
    }

    /// Checks that at least `bytes` bytes of rows can follow.
    pub(super) fn check(&self, bytes: u64) -> Result<(), FileError> {
        // The last line of a text file may lack its end.
        let slack = u64::from(self.form == PlyForm::Ascii);
        let needed = bytes.saturating_sub(slack);
        self.file.check(needed, "the rows of an element")
    }

    /// Moves to the data again, which start at `at`, after a number of lines.
    pub(super) fn restart(&mut self, at: u64, lines: u64) -> Result<(), FileError> {
        self.file.seek(at)?;
        self.line.clear();
        self.at = 0;
        self.number = lines;
        Ok(())
    }

    /// Skips bytes of a binary file.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        self.file.check(bytes, "the rows of an element")?;
        self.file.seek(self.file.at().saturating_add(bytes))
    }

    /// Appends a value, little-endian.
    pub(super) fn value(&mut self, kind: Kind, target: &mut Vec<u8>) -> Result<(), FileError> {
        if self.form == PlyForm::Ascii {
            let number = self.word(kind)?;
            return encode(number, kind, target).map_err(|fault| self.error(fault));
        }
        let mut bytes = [0; 8];
        let size = kind.size();
        let field = bytes.get_mut(..size).unwrap_or_default();
        self.file.fill(field, "a value")?;
        if self.form == PlyForm::BigEndian {
            field.reverse();
        }
        target.extend_from_slice(field);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns whether the data are text, whose rows have no fixed size.
    pub(super) fn is_text(&self) -> bool {
        self.form == PlyForm::Ascii
    }

    /// Returns whether the last line of a text file has no line end.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads rows of numbers of a binary file into columns, in blocks.
    pub(super) fn columns(
        &mut self,
        rows: u64,
        columns: &mut [(String, NumericColumn)],
    ) -> Result<(), FileError> {
        let record: usize = columns.iter().map(|(_, column)| column.row_size()).sum();
        for (_, column) in &mut *columns {
            let size = usize::try_from(rows).unwrap_or(usize::MAX);
            // `PlyValues::check` has compared the rows with the file.
            column
                .bytes
                .reserve_exact(size.saturating_mul(column.row_size()));
        }
        let mut block = Vec::new();
        let mut left = rows;
        while left > 0 {
            let count = left.min(BLOCK);
            let size = count.saturating_mul(u64::try_from(record).unwrap_or(u64::MAX));
            self.file.take(&mut block, size, "the rows of an element")?;
            let mut at = 0;
            for (_, column) in &mut *columns {
                let size = column.row_size();
                let start = column.bytes.len();
                gather(&block, record, at, size, &mut column.bytes);
                if self.form == PlyForm::BigEndian {
                    let new = column.bytes.get_mut(start..).unwrap_or_default();
                    let numbers = new.chunks_exact_mut(column.kind.size().max(1));
                    numbers.for_each(<[u8]>::reverse);
                }
                at = at.saturating_add(size);
            }
            left = left.saturating_sub(count);
        }
        Ok(())
    }

    /// Reads polygons that have nothing but corners, in blocks of equal numbers of corners. Returns
    /// false if the types are unusual, or the file is text.
    pub(super) fn polygons(
        &mut self,
        rows: u64,
        count: Kind,
        corner: Kind,
        polygons: &mut PolygonList,
    ) -> Result<bool, FileError> {
        let is_usual = count == Kind::UInt8 && matches!(corner, Kind::Int32 | Kind::UInt32);
        if self.form == PlyForm::Ascii || !is_usual {
            return Ok(false);
        }
        let is_big = self.form == PlyForm::BigEndian;
        let mut block = Vec::new();
        let mut left = rows;
        // The file has a corner for each 4 bytes at most, and most files have triangles.
        let most = self.file.left().checked_div(4).unwrap_or(0);
        let corners = rows.saturating_mul(3).min(most);
        polygons.reserve(usize::try_from(corners).unwrap_or(0));
        while left > 0 {
            let start = self.file.at();
            let [corners] = self.file.array("a polygon")?;
            self.file.seek(start)?;
            let row = usize::from(corners).saturating_mul(4).saturating_add(1);
            let size = u64::try_from(row).unwrap_or(u64::MAX);
            // The polygons of the rest of the file may be smaller.
            let count = left.min(BLOCK).min(self.file.left() / size).max(1);
            self.file
                .take(&mut block, count.saturating_mul(size), "a polygon")?;
            let equal = block
                .chunks_exact(row)
                .take_while(|polygon| polygon.first() == Some(&corners));
            let done = equal.count();
            let end = done.saturating_mul(row);
            let records = block.get(..end).unwrap_or_default();
            // A size that is known at compile time saves most of the time.
            let pushed = match row {
                13 => push::<3, 13>(records, is_big, polygons),
                17 => push::<4, 17>(records, is_big, polygons),
                _ => push_any(records, row, is_big, polygons),
            };
            let in_file = |fault: FileFault| fault.at(self.file.path(), FilePlace::Byte(start));
            let last = pushed.map_err(in_file)?;
            if corner == Kind::Int32 && last > i32::MAX.unsigned_abs() {
                let expected = "vertices count from 0; the file is damaged";
                let wrong = last.cast_signed();
                return Err(in_file(FileFault::field(
                    "the corner of a face",
                    wrong,
                    expected,
                )));
            }
            let done = u64::try_from(done).unwrap_or(u64::MAX);
            self.file
                .seek(start.saturating_add(done.saturating_mul(size)))?;
            left = left.saturating_sub(done);
        }
        Ok(true)
    }

    /// Returns a value that has to be an integer.
    pub(super) fn integer(&mut self, kind: Kind) -> Result<i64, FileError> {
        let mut bytes = [0; 8];
        let number = if self.form == PlyForm::Ascii {
            self.word(kind)?
        } else {
            let field = bytes.get_mut(..kind.size()).unwrap_or_default();
            self.file.fill(field, "a value")?;
            if self.form == PlyForm::BigEndian {
                field.reverse();
            }
            decode(&bytes, kind)
        };
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "checked to be a whole number of 32 bits"
        )]
        let whole = number as i64;
        if number.fract() == 0.0 && number.abs() < 9e15 {
            return Ok(whole);
        }
        let expected = "a number of a list or of a vertex is a whole number";
        Err(self.error(FileFault::field("a value", number, expected)))
    }

    /// Returns the next word of a text file as a number.
    fn word(&mut self, kind: Kind) -> Result<f64, FileError> {
        loop {
            let rest = self.line.get(self.at..).unwrap_or_default();
            let start = rest.iter().position(|byte| !byte.is_ascii_whitespace());
            let Some(start) = start else {
                self.file.line(&mut self.line)?;
                self.is_cut = !self.line.ends_with(b"\n");
                self.at = 0;
                self.number = self.number.saturating_add(1);
                if self.line.is_empty() {
                    let what = "a value";
                    return Err(self.file.error(FileFault::Truncated {
                        what,
                        needed: 1,
                        left: 0,
                    }));
                }
                continue;
            };
            let word = rest.get(start..).unwrap_or_default();
            let end = word
                .iter()
                .position(u8::is_ascii_whitespace)
                .unwrap_or(word.len());
            let word = word.get(..end).unwrap_or_default();
            self.at = self.at.saturating_add(start).saturating_add(end);
            let text = std::str::from_utf8(word).unwrap_or_default();
            let number: Option<f64> = text.parse().ok();
            return number.ok_or_else(|| {
                let text = String::from_utf8_lossy(word).chars().take(24).collect();
                self.error(FileFault::Number {
                    what: kind.name(),
                    text,
                })
            });
        }
    }

    /// Checks that nothing follows the data.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        if self.form == PlyForm::Ascii {
            let mut rest = self.line.get(self.at..).unwrap_or_default().to_vec();
            loop {
                if !rest.trim_ascii().is_empty() {
                    let left = u64::try_from(rest.len()).unwrap_or(u64::MAX);
                    let trailing = self.file.left().saturating_add(left);
                    return Err(self.error(FileFault::Trailing(trailing)));
                }
                self.file.line(&mut rest)?;
                if rest.is_empty() {
                    return Ok(());
                }
                self.is_cut = !rest.ends_with(b"\n");
            }
        }
        match self.file.left() {
            0 => Ok(()),
            left => Err(self.file.error(FileFault::Trailing(left))),
        }
    }

    /// Adds the place to a fault.
    pub(super) fn error(&self, fault: FileFault) -> FileError {
        match self.form {
            PlyForm::Ascii => fault.at(self.file.path(), FilePlace::Line(self.number)),
            _ => self.file.error(fault),
        }
    }
}

/// Adds records of polygons of `N` corners each. Returns the greatest corner.
fn push<const N: usize, const RECORD: usize>(
    records: &[u8],
    is_big: bool,
    polygons: &mut PolygonList,
) -> Result<u32, FileFault> {
    let corner = |bytes: &[u8; 4]| {
        if is_big {
            u32::from_be_bytes(*bytes)
        } else {
            u32::from_le_bytes(*bytes)
        }
    };
    let (records, _) = records.as_chunks::<RECORD>();
    let corners = records.iter().map(|record| {
        let (numbers, _) = record.get(1..).unwrap_or_default().as_chunks::<4>();
        let mut corners = [0; N];
        for (target, number) in corners.iter_mut().zip(numbers) {
            *target = corner(number);
        }
        corners
    });
    polygons.push_arrays(corners)
}

/// Adds records of polygons of `row` bytes. Returns the greatest corner.
fn push_any(
    records: &[u8],
    row: usize,
    is_big: bool,
    polygons: &mut PolygonList,
) -> Result<u32, FileFault> {
    let corner = |bytes: &[u8; 4]| {
        if is_big {
            u32::from_be_bytes(*bytes)
        } else {
            u32::from_le_bytes(*bytes)
        }
    };
    let mut last = 0;
    for record in records.chunks_exact(row.max(1)) {
        let (numbers, _) = record.get(1..).unwrap_or_default().as_chunks::<4>();
        let corners = numbers.iter().map(corner);
        last = corners.clone().fold(last, u32::max);
        polygons.push(corners)?;
    }
    Ok(last)
}

/// Encodes a number, which has to be in the range of its type.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number is checked to be in the range of the type"
)]
fn encode(number: f64, kind: Kind, target: &mut Vec<u8>) -> Result<(), FileFault> {
    let (min, max) = match kind {
        Kind::Int8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        Kind::UInt8 => (0.0, f64::from(u8::MAX)),
        Kind::Int16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        Kind::UInt16 => (0.0, f64::from(u16::MAX)),
        Kind::Int32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        Kind::UInt32 => (0.0, f64::from(u32::MAX)),
        Kind::Float32 => {
            target.extend_from_slice(&(number as f32).to_le_bytes());
            return Ok(());
        }
        _ => {
            target.extend_from_slice(&number.to_le_bytes());
            return Ok(());
        }
    };
    if !(min <= number && number <= max && number.fract() == 0.0) {
        let expected = "its type, by the header, does not hold this number";
        return Err(FileFault::field("a value", number, expected));
    }
    let bytes = (number as i64).to_le_bytes();
    target.extend_from_slice(bytes.get(..kind.size()).unwrap_or_default());
    Ok(())
}

/// Decodes a little-endian value of a type of PLY.
fn decode(bytes: &[u8], kind: Kind) -> f64 {
    fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match kind {
        Kind::Int8 => i8::from_le_bytes(first(bytes)).into(),
        Kind::UInt8 => u8::from_le_bytes(first(bytes)).into(),
        Kind::Int16 => i16::from_le_bytes(first(bytes)).into(),
        Kind::UInt16 => u16::from_le_bytes(first(bytes)).into(),
        Kind::Int32 => i32::from_le_bytes(first(bytes)).into(),
        Kind::UInt32 => u32::from_le_bytes(first(bytes)).into(),
        Kind::Float32 => f32::from_le_bytes(first(bytes)).into(),
        _ => f64::from_le_bytes(first(bytes)),
    }
}
