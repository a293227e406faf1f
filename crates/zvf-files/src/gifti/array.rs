//! The numbers of a data array.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::read::ZlibDecoder;
use zvf::{NumericColumn, numeric::Kind};

use crate::{FileFault, input::open_regular};
use zvf_model::base64;

/// Types of arrays. GIFTI 1.0 has the first three, and programs write the others as well.
const KINDS: [(&str, Kind); 10] = [
    ("NIFTI_TYPE_UINT8", Kind::UInt8),
    ("NIFTI_TYPE_INT32", Kind::Int32),
    ("NIFTI_TYPE_FLOAT32", Kind::Float32),
    ("NIFTI_TYPE_INT8", Kind::Int8),
    ("NIFTI_TYPE_INT16", Kind::Int16),
    ("NIFTI_TYPE_UINT16", Kind::UInt16),
    ("NIFTI_TYPE_UINT32", Kind::UInt32),
    ("NIFTI_TYPE_INT64", Kind::Int64),
    ("NIFTI_TYPE_UINT64", Kind::UInt64),
    ("NIFTI_TYPE_FLOAT64", Kind::Float64),
];

/// Decodes the text of an element `Data` by the attributes of its array, to at most `limit` bytes.
pub(super) fn decode(
    attributes: &BTreeMap<String, String>,
    text: &[u8],
    path: &Path,
    limit: u64,
) -> Result<NumericColumn, FileFault> {
    let attribute = |name: &str| attributes.get(name).map_or("", |value| value.trim());
    let name = attribute("DataType");
    let kind = KINDS.iter().find(|(other, _)| *other == name);
    let kind = kind.map(|(_, kind)| *kind).ok_or_else(|| {
        let expected =
            "integers of 8 to 64 bits, NIFTI_TYPE_FLOAT32 and NIFTI_TYPE_FLOAT64 are read";
        FileFault::field("DataType", name, expected)
    })?;
    let shape = shape(attributes)?;
    let width = shape.iter().skip(1).copied().fold(1, u64::saturating_mul);
    let rows = shape.first().copied().unwrap_or(0);
    let count = rows.saturating_mul(width);
    let size = count.saturating_mul(u64::try_from(kind.size()).unwrap_or(8));
    if size > limit {
        return Err(FileFault::Unpacked { limit });
    }
    let encoding = attribute("Encoding");
    let mut bytes = match encoding {
        "ASCII" | "GIFTI_ENCODING_ASCII" => numbers(text, kind)?,
        "Base64Binary" | "GIFTI_ENCODING_B64BIN" => {
            base64::decode(text).map_err(FileFault::base64)?
        }
        "GZipBase64Binary" | "GIFTI_ENCODING_B64GZ" => {
            let packed = base64::decode(text).map_err(FileFault::base64)?;
            let mut bytes = Vec::new();
            // One byte more tells that the stream is too long.
            let mut stream = ZlibDecoder::new(&*packed).take(size.saturating_add(1));
            stream.read_to_end(&mut bytes)?;
            bytes
        }
        "ExternalFileBinary" | "GIFTI_ENCODING_EXTBIN" => external(attributes, path, size)?,
        other => {
            let expected = "ASCII, Base64Binary, GZipBase64Binary or ExternalFileBinary";
            return Err(FileFault::field("Encoding", other, expected));
        }
    };
    let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if found != size {
        return Err(FileFault::Count {
            what: "bytes of a data array",
            found,
            expected: size,
        });
    }
    let is_text = encoding.ends_with("ASCII");
    let is_big = match attribute("Endian") {
        "BigEndian" | "GIFTI_ENDIAN_BIG" => true,
        "LittleEndian" | "GIFTI_ENDIAN_LITTLE" => false,
        _ if is_text => false,
        other => {
            let expected = "LittleEndian or BigEndian";
            return Err(FileFault::field("Endian", other, expected));
        }
    };
    if is_big && !is_text {
        for number in bytes.chunks_exact_mut(kind.size().max(1)) {
            number.reverse();
        }
    }
    let order = attribute("ArrayIndexingOrder");
    if matches!(order, "ColumnMajorOrder" | "GIFTI_IND_ORD_COL_MAJOR") && shape.len() > 1 {
        if shape.len() > 2 {
            let reason = "arrays in column-major order have one or two dimensions";
            return Err(FileFault::Unsupported(reason));
        }
        bytes = transposed(&bytes, rows, width, kind.size());
    }
    let width = u32::try_from(width.max(1)).unwrap_or(u32::MAX);
    let mut column = NumericColumn::new(kind, width);
    column.bytes = bytes;
    Ok(column)
}

/// Returns the number of rows that the attributes of an array state.
pub(super) fn rows(attributes: &BTreeMap<String, String>) -> Result<u64, FileFault> {
    Ok(shape(attributes)?.first().copied().unwrap_or(0))
}

fn shape(attributes: &BTreeMap<String, String>) -> Result<Vec<u64>, FileFault> {
    let number = |name: &str| -> Result<u64, FileFault> {
        let text = attributes.get(name).map_or("", |text| text.trim());
        text.parse().map_err(|_| FileFault::Number {
            what: "a dimension",
            text: text.chars().take(24).collect(),
        })
    };
    let count = number("Dimensionality")?;
    if !(1..=6).contains(&count) {
        let expected = "an array has 1 to 6 dimensions";
        return Err(FileFault::field("Dimensionality", count, expected));
    }
    (0..count).map(|at| number(&format!("Dim{at}"))).collect()
}

fn numbers(text: &[u8], kind: Kind) -> Result<Vec<u8>, FileFault> {
    let mut bytes = Vec::new();
    let words = text.split(u8::is_ascii_whitespace);
    for word in words.filter(|word| !word.is_empty()) {
        let wrong = || FileFault::Number {
            what: "a number of an array",
            text: String::from_utf8_lossy(word).chars().take(24).collect(),
        };
        let word = std::str::from_utf8(word).map_err(|_| wrong())?;
        append(word, kind, &mut bytes).ok_or_else(wrong)?;
    }
    Ok(bytes)
}

/// Appends a number of a type, little-endian; `None` if the text is not such a number.
fn append(word: &str, kind: Kind, bytes: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::UInt8 => bytes.extend(word.parse::<u8>().ok()?.to_le_bytes()),
        Kind::Int8 => bytes.extend(word.parse::<i8>().ok()?.to_le_bytes()),
        Kind::Int16 => bytes.extend(word.parse::<i16>().ok()?.to_le_bytes()),
        Kind::UInt16 => bytes.extend(word.parse::<u16>().ok()?.to_le_bytes()),
        Kind::Int32 => bytes.extend(word.parse::<i32>().ok()?.to_le_bytes()),
        Kind::UInt32 => bytes.extend(word.parse::<u32>().ok()?.to_le_bytes()),
        Kind::Int64 => bytes.extend(word.parse::<i64>().ok()?.to_le_bytes()),
        Kind::UInt64 => bytes.extend(word.parse::<u64>().ok()?.to_le_bytes()),
        Kind::Float64 => bytes.extend(word.parse::<f64>().ok()?.to_le_bytes()),
        _ => bytes.extend(word.parse::<f32>().ok()?.to_le_bytes()),
    }
    Some(())
}

/// Reads a file in the folder of the GIFTI file.
fn external(
    attributes: &BTreeMap<String, String>,
    path: &Path,
    size: u64,
) -> Result<Vec<u8>, FileFault> {
    let name = attributes
        .get("ExternalFileName")
        .map_or("", String::as_str);
    let is_plain = !name.is_empty() && Path::new(name).file_name() == Some(name.as_ref());
    if !is_plain || name.contains(['/', '\\']) {
        let expected = "files in the same folder are read; move it there";
        return Err(FileFault::field("ExternalFileName", name, expected));
    }
    let offset = attributes.get("ExternalFileOffset");
    let offset = offset
        .and_then(|offset| offset.trim().parse().ok())
        .unwrap_or(0);
    let mut file =
        open_regular(&path.with_file_name(name)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let expected = "the file does not exist; copy it into the folder of the GIFTI file";
                FileFault::field("ExternalFileName", name, expected)
            }
            _ => FileFault::Io(error),
        })?;
    let left = file.metadata()?.len().saturating_sub(offset);
    if size > left {
        return Err(FileFault::Truncated {
            what: "an array in another file",
            needed: size,
            left,
        });
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Brings columns one after the other into rows.
fn transposed(bytes: &[u8], rows: u64, width: u64, size: usize) -> Vec<u8> {
    let rows = usize::try_from(rows).unwrap_or(0);
    let width = usize::try_from(width).unwrap_or(0);
    let mut turned = Vec::with_capacity(bytes.len());
    for row in 0..rows {
        for column in 0..width {
            let at = column
                .saturating_mul(rows)
                .saturating_add(row)
                .saturating_mul(size);
            let number = bytes.get(at..at.saturating_add(size));
            turned.extend_from_slice(number.unwrap_or_default());
        }
    }
    turned
}
