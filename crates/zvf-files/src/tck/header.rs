//! The header of text.

use core::ops::Range;

use zvf::numeric::Kind;

use crate::{FileError, FileFault, FilePlace, input::ByteReader};

/// Upper bound on the size of a header in bytes.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// First lines of the two formats.
pub(super) const TRACKS: &str = "mrtrix tracks";
pub(super) const SCALARS: &str = "mrtrix track scalars";

/// A valid header.
#[derive(Clone, Debug)]
pub(super) struct TckHeader {
    /// All bytes before the data.
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) is_big_endian: bool,
}

impl TckHeader {
    /// Reads the header, and moves to the data.
    pub(super) fn read(file: &mut ByteReader, magic: &str) -> Result<Self, FileError> {
        let length = file.length().min(MAX_HEADER_BYTES);
        let path = file.path().to_path_buf();
        let mut bytes = Vec::new();
        // Headers are short: the buffer grows until the line END is in it.
        let mut size = 4096.min(length);
        let end = loop {
            file.seek(0)?;
            file.take(&mut bytes, size, "the header")?;
            if let Some(line) = end_line(&bytes) {
                break line.end;
            }
            let first = bytes.get(..magic.len());
            if size == length || first.is_some_and(|first| first != magic.as_bytes()) {
                let found = if first == Some(magic.as_bytes()) {
                    "not there"
                } else {
                    "not reached"
                };
                let expected = "a TCK or TSF file starts with \"mrtrix tracks\" or \"mrtrix track scalars\", and its header ends with a line END; the file is damaged or another format";
                return Err(FileFault::field("the line END", found, expected).of(&path));
            }
            size = size.saturating_mul(4).min(length);
        };
        let text = bytes.get(..end).unwrap_or_default().to_vec();
        let (kind, is_big_endian, start) = fields(&text, magic, file.length())
            .map_err(|(line, fault)| fault.at(&path, FilePlace::Line(line)))?;
        if start < u64::try_from(end).unwrap_or(u64::MAX) {
            let expected = "the data start inside the header; repair the line file";
            return Err(FileFault::field("file", start, expected).of(&path));
        }
        file.seek(0)?;
        if start > MAX_HEADER_BYTES {
            let expected = "the data must start within 16 MiB";
            return Err(FileFault::field("file", start, expected).of(&path));
        }
        file.take(&mut bytes, start, "the header")?;
        Ok(Self {
            bytes,
            kind,
            is_big_endian,
        })
    }
}

/// Returns the place of the line END.
pub(super) fn end_line(bytes: &[u8]) -> Option<Range<usize>> {
    let mut start = 0_usize;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = start.saturating_add(line.len());
        if line.trim_ascii() == b"END" && line.ends_with(b"\n") {
            return Some(start..end);
        }
        start = end;
    }
    None
}

/// Type, byte order and start of the data.
type DataFields = (Kind, bool, u64);

/// Reads the fields; an error has the number of its line.
fn fields(text: &[u8], magic: &str, length: u64) -> Result<DataFields, (u64, FileFault)> {
    let mut datatype = None;
    let mut start = None;
    for (number, line) in (1_u64..).zip(text.split(|byte| *byte == b'\n')) {
        if number == 1 {
            if line.trim_ascii() != magic.as_bytes() {
                let found = format!(
                    "{:?}",
                    String::from_utf8_lossy(line.get(..32.min(line.len())).unwrap_or_default())
                );
                let expected = "a TCK file starts with \"mrtrix tracks\", a TSF file with \"mrtrix track scalars\"";
                return Err((1, FileFault::field("the first line", found, expected)));
            }
            continue;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (key, value) = line.split_at(colon);
        let decoded = String::from_utf8_lossy(value.get(1..).unwrap_or_default());
        let value = decoded.trim();
        let fault = |field, expected| {
            (
                number,
                FileFault::field(field, format!("{value:?}"), expected),
            )
        };
        if key.trim_ascii() == b"datatype" {
            let expected = "it is Float32LE, Float32BE, Float64LE or Float64BE";
            datatype = Some(match value {
                "Float32LE" => (Kind::Float32, false),
                "Float32BE" => (Kind::Float32, true),
                "Float64LE" => (Kind::Float64, false),
                "Float64BE" => (Kind::Float64, true),
                _ => return Err(fault("datatype", expected)),
            });
        } else if key.trim_ascii() == b"file" {
            let expected =
                "it is a point, a blank and the offset of the data; other files are not followed";
            let offset = value.strip_prefix('.').map(str::trim);
            let offset = offset.and_then(|offset| offset.parse().ok());
            let offset = offset.filter(|offset| *offset <= length);
            start = Some(offset.ok_or_else(|| fault("file", expected))?);
        }
    }
    let missing = |field| {
        (
            0,
            FileFault::field(field, "absent", "the header must have this line"),
        )
    };
    let (kind, is_big_endian) = datatype.ok_or_else(|| missing("datatype"))?;
    Ok((kind, is_big_endian, start.ok_or_else(|| missing("file"))?))
}
