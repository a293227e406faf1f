//! Writes streamlines in batches.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

use serde_json::Value;
use zvf::{NumericColumn, QueryResult, numeric::Kind};

use super::header::{TRACKS, end_line};
use crate::{
    FileError, FileFault, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    values::{AxisOrder, fits_f32, narrow, narrow_coordinate, to_f32_bytes, to_f64},
    writer::{ObjectNumbers, OutputSink, groups_left_out, left_out, paths},
};
use zvf_model::base64;

/// A TCK file that is written in batches.
#[derive(Debug)]
pub struct TckWriter {
    sink: OutputSink,
    header: HeaderText,
    coordinates: Option<AxisOrder>,
    streamlines: u64,
    objects: ObjectNumbers,
    left_out: Vec<String>,
}

/// The header to write.
#[derive(Debug)]
struct HeaderText {
    bytes: Vec<u8>,
    kind: Kind,
    is_big_endian: bool,
    nan: Vec<u8>,
    end: Vec<u8>,
}

/// Returns the little-endian bytes of a row of equal values.
pub(super) fn row_of(value: f64, kind: Kind, width: usize) -> Vec<u8> {
    let bytes = match kind {
        Kind::Float64 => value.to_le_bytes().to_vec(),
        _ => narrow(value).to_le_bytes().to_vec(),
    };
    bytes.repeat(width)
}

impl HeaderText {
    /// Takes the kept header, or makes a new one.
    fn of(description: &StoreDescription) -> Result<Self, FileFault> {
        let kept = description.headers.get("tck");
        let text = |key: &str| kept.and_then(|kept| kept.get(key)).and_then(Value::as_str);
        let bytes = match (text("header"), text("header_base64")) {
            (Some(text), _) => Some(text.as_bytes().to_vec()),
            (None, Some(text)) => Some(base64::decode(text.as_bytes()).map_err(FileFault::base64)?),
            (None, None) => None,
        };
        let kept_kind = bytes.as_deref().and_then(datatype);
        let is_valid =
            |bytes: &Vec<u8>| bytes.starts_with(TRACKS.as_bytes()) && end_line(bytes).is_some();
        let (Some((kind, is_big_endian)), Some(bytes)) = (kept_kind, bytes.filter(is_valid)) else {
            return Ok(Self {
                bytes: new_header(0),
                kind: Kind::Float32,
                is_big_endian: false,
                nan: row_of(f64::NAN, Kind::Float32, 3),
                end: row_of(f64::INFINITY, Kind::Float32, 3),
            });
        };
        let row = |key: &str, usual: f64| -> Result<Vec<u8>, FileFault> {
            let usual = row_of(usual, kind, 3);
            let Some(kept) = text(key) else {
                return Ok(usual);
            };
            let row = base64::decode(kept.as_bytes()).map_err(FileFault::base64)?;
            Ok(if row.len() == usual.len() { row } else { usual })
        };
        Ok(Self {
            kind,
            is_big_endian,
            nan: row("nan", f64::NAN)?,
            end: row("end", f64::INFINITY)?,
            bytes,
        })
    }

    /// Returns the header for a number of streamlines.
    fn for_count(&self, count: u64) -> Vec<u8> {
        let stored: Option<u64> = value_of(&self.bytes, b"count")
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        if stored == Some(count) {
            return self.bytes.clone();
        }
        let end = end_line(&self.bytes).map_or(0, |line| line.start);
        let fields = self.bytes.get(..end).unwrap_or_default();
        let fields = fields.strip_suffix(b"\n").unwrap_or(fields);
        let mut lines = Vec::new();
        let mut has_count = false;
        for line in fields.split(|byte| *byte == b'\n') {
            match field_of(line) {
                Some((b"count", _)) => {
                    has_count = true;
                    lines.extend_from_slice(count_line(count).as_bytes());
                }
                Some((b"file", _)) => {}
                _ => {
                    lines.extend_from_slice(line);
                    lines.push(b'\n');
                }
            }
        }
        if !has_count {
            lines.extend_from_slice(count_line(count).as_bytes());
        }
        with_offset(lines)
    }

    /// Reverses numbers of a big-endian file.
    fn order(&self, bytes: &mut [u8]) {
        if self.is_big_endian {
            bytes
                .chunks_exact_mut(self.kind.size())
                .for_each(<[u8]>::reverse);
        }
    }
}

/// Divides a line into key and value; `None` if it continues the line before it.
fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (key, value) = line.split_at_checked(colon)?;
    Some((key.trim_ascii(), value.get(1..)?.trim_ascii()))
}

/// Returns the value of the first line with a key.
fn value_of<'a>(header: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut fields = header.split(|byte| *byte == b'\n').filter_map(field_of);
    fields.find_map(|(other, value)| (other == key).then_some(value))
}

/// Returns the line of the count. Its length does not depend on the count.
fn count_line(count: u64) -> String {
    format!("count: {count:010}\n")
}

fn new_header(count: u64) -> Vec<u8> {
    let lines = format!("{TRACKS}\ndatatype: Float32LE\n{}", count_line(count));
    with_offset(lines.into_bytes())
}

/// Adds the offset of the data and the line END.
fn with_offset(mut lines: Vec<u8>) -> Vec<u8> {
    // The offset has a fixed width, so that it does not change the length of the header.
    let length = lines
        .len()
        .saturating_add("file: . 0000000000\nEND\n".len());
    lines.extend_from_slice(format!("file: . {length:010}\nEND\n").as_bytes());
    lines
}

/// Returns the type and byte order that a header names.
fn datatype(bytes: &[u8]) -> Option<(Kind, bool)> {
    match value_of(bytes, b"datatype")? {
        b"Float32LE" => Some((Kind::Float32, false)),
        b"Float32BE" => Some((Kind::Float32, true)),
        b"Float64LE" => Some((Kind::Float64, false)),
        b"Float64BE" => Some((Kind::Float64, true)),
        _ => None,
    }
}

impl TckWriter {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file cannot be created, or the kept header is damaged.
    pub fn create(path: &Path, description: &StoreDescription) -> Result<Self, FileError> {
        let header = HeaderText::of(description).map_err(|fault| fault.of(path))?;
        let mut sink = OutputSink::create(path)?;
        sink.write(&header.bytes)?;
        Ok(Self {
            sink,
            header,
            coordinates: None,
            streamlines: 0,
            objects: ObjectNumbers::default(),
            left_out: Vec::new(),
        })
    }

    /// Notes what the format cannot hold, in the first batch.
    fn plan(&mut self, batch: &QueryResult) -> Result<AxisOrder, FileFault> {
        if let Some(coordinates) = &self.coordinates {
            return Ok(coordinates.clone());
        }
        let coordinates = AxisOrder::of(batch, "tck")?;
        let kind = batch.positions.kind;
        if self.header.kind == Kind::Float32 && !fits_f32(kind) {
            let line = format!("positions: {} is rounded to float32 in tck", kind.name());
            self.left_out.push(line);
        }
        self.left_out.extend(left_out(batch, "tck", |_, _| false));
        self.coordinates = Some(coordinates.clone());
        Ok(coordinates)
    }

    fn put(&mut self, batch: &QueryResult) -> Result<Vec<u8>, FileFault> {
        let coordinates = self.plan(batch)?;
        let positions = &batch.positions;
        let is_whole = positions.row_len() == 3 && coordinates.are_in_order();
        let column = if is_whole {
            None
        } else {
            let rows = coordinates.rows(positions)?;
            Some(NumericColumn::float64(3, rows.into_iter().flatten()))
        };
        let column = column.as_ref().unwrap_or(positions);
        let values: Cow<'_, [u8]> = if self.header.kind == column.kind {
            Cow::Borrowed(&column.bytes)
        } else if self.header.kind == Kind::Float64 {
            let values = to_f64(column).ok_or(FileFault::Coordinates(positions.kind))?;
            values.into_iter().flat_map(f64::to_le_bytes).collect()
        } else {
            to_f32_coordinates(column)?.into()
        };
        let size = self.header.nan.len();
        let paths = paths(batch, "tck")?;
        let delimiters = paths.len().saturating_mul(size);
        let mut bytes = Vec::with_capacity(values.len().saturating_add(delimiters));
        for path in paths {
            let range = path.start.saturating_mul(size)..path.end.saturating_mul(size);
            bytes.extend_from_slice(values.get(range).unwrap_or_default());
            bytes.extend_from_slice(&self.header.nan);
            self.streamlines = self.streamlines.saturating_add(1);
            self.objects.push(path.object);
        }
        self.header.order(&mut bytes);
        Ok(bytes)
    }
}

/// Converts coordinates to 32-bit floats. An infinite one would end the file for its readers.
fn to_f32_coordinates(column: &NumericColumn) -> Result<Vec<u8>, FileFault> {
    let unknown = || FileFault::Coordinates(column.kind);
    if fits_f32(column.kind) {
        return to_f32_bytes(column).ok_or_else(unknown);
    }
    let mut bytes = Vec::new();
    for value in to_f64(column).ok_or_else(unknown)? {
        bytes.extend(narrow_coordinate(value, "tck")?.to_le_bytes());
    }
    Ok(bytes)
}

impl ResultWriter for TckWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let bytes = self
            .put(batch)
            .map_err(|fault| fault.of(self.sink.path()))?;
        self.sink.write(&bytes)
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        self.left_out.extend(self.objects.left_out("tck"));
        self.left_out.extend(groups_left_out(tables, "tck"));
        let mut end = self.header.end.clone();
        self.header.order(&mut end);
        self.sink.write(&end)?;
        let header = self.header.for_count(self.streamlines);
        let before = u64::try_from(self.header.bytes.len()).unwrap_or(u64::MAX);
        let path = self
            .sink
            .publish(|file| replace_start(file, before, &header))?;
        Ok(WrittenResult {
            files: vec![path],
            left_out: self.left_out,
            notes: Vec::from_iter(self.coordinates.and_then(|axes| axes.note())),
        })
    }
}

/// Replaces the first `before` bytes of a file. Data that have to move are copied through a
/// temporary file.
fn replace_start(file: &mut File, before: u64, header: &[u8]) -> io::Result<()> {
    let length = u64::try_from(header.len()).unwrap_or(u64::MAX);
    if length == before {
        file.seek(SeekFrom::Start(0))?;
        return file.write_all(header);
    }
    // Only a changed number of streamlines changes the length of a kept header.
    let mut moved = tempfile::tempfile()?;
    file.seek(SeekFrom::Start(before))?;
    io::copy(file, &mut moved)?;
    moved.rewind()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(header)?;
    let data = io::copy(&mut moved, file)?;
    file.set_len(length.saturating_add(data))
}
