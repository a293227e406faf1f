//! Typed rows in the data of a file.

use serde_json::Value;
use zvf::numeric::Kind;

use super::{BYTE, FLOAT, SHORT, UNSIGNED_BYTE, UNSIGNED_INT, UNSIGNED_SHORT, scene::number};
use crate::FileFault;

/// Rows of numbers in the data of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accessor<'a> {
    /// The data from the first row on.
    bytes: &'a [u8],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes from a row to the next; at least the size of a row.
    stride: usize,
    /// Type code of the numbers.
    code: u64,
    is_normalized: bool,
}

impl<'a> Accessor<'a> {
    /// Returns an accessor of a scene, whose rows are checked to lie in the data.
    pub(super) fn parse(scene: &Value, data: &'a [u8], place: u64) -> Result<Self, FileFault> {
        let item = |list: &str, place: u64, field: &'static str| {
            let found = scene.get(list).and_then(|list| list.get(index(place)));
            found.ok_or_else(|| {
                FileFault::field(
                    field,
                    place,
                    "the scene has no such item; the file is damaged",
                )
            })
        };
        let accessor = item("accessors", place, "an accessor")?;
        if accessor.get("sparse").is_some() {
            let why = "an accessor is sparse; write the file with all values";
            return Err(FileFault::Unsupported(why));
        }
        let view = number(accessor, "bufferView")?.ok_or(FileFault::Unsupported(
            "an accessor has no data; write the file without compression",
        ))?;
        let view = item("bufferViews", view, "the view of an accessor")?;
        let buffer = number(view, "buffer")?.unwrap_or(0);
        if buffer != 0 || item("buffers", 0, "a buffer")?.get("uri").is_some() {
            let why = "data is in another file; write a .glb file with all data";
            return Err(FileFault::Unsupported(why));
        }
        let code = number(accessor, "componentType")?.unwrap_or(0);
        let size = size_of(code).ok_or_else(|| {
            FileFault::field("componentType", code, "use 5120 to 5123, 5125 or 5126")
        })?;
        let word = accessor.get("type").and_then(Value::as_str).unwrap_or("");
        let columns = match word {
            "SCALAR" => 1,
            "VEC2" => 2,
            "VEC3" => 3,
            "VEC4" => 4,
            other => {
                let other: String = other.chars().take(24).collect();
                let expected = "use SCALAR, VEC2, VEC3 or VEC4";
                return Err(FileFault::field("the type of an accessor", other, expected));
            }
        };
        let row = size.saturating_mul(columns);
        let stride = number(view, "byteStride")?.map_or(row, index);
        if stride < row {
            let expected = "rows overlap; the file is damaged";
            return Err(FileFault::field("byteStride", stride, expected));
        }
        let within = |bytes: &'a [u8], start: u64| bytes.get(index(start)..).unwrap_or_default();
        let start = number(view, "byteOffset")?.unwrap_or(0);
        let length = number(view, "byteLength")?.unwrap_or(0);
        let bytes = within(data, start);
        let bytes = bytes
            .get(..index(length))
            .ok_or_else(|| FileFault::Truncated {
                what: "the view of an accessor",
                needed: length,
                left: crate::input::length_of(bytes),
            })?;
        let bytes = within(bytes, number(accessor, "byteOffset")?.unwrap_or(0));
        let rows = number(accessor, "count")?.unwrap_or(0);
        let needed = match rows.checked_sub(1) {
            None => 0,
            Some(last) => index(last).saturating_mul(stride).saturating_add(row),
        };
        if bytes.len() < needed {
            return Err(FileFault::Truncated {
                what: "an accessor",
                needed: u64::try_from(needed).unwrap_or(u64::MAX),
                left: crate::input::length_of(bytes),
            });
        }
        Ok(Self {
            bytes,
            rows: index(rows),
            columns,
            stride,
            code,
            is_normalized: accessor.get("normalized").and_then(Value::as_bool) == Some(true),
        })
    }

    /// Returns the type of the numbers.
    pub(super) fn kind(&self) -> Kind {
        match self.code {
            BYTE => Kind::Int8,
            UNSIGNED_BYTE => Kind::UInt8,
            SHORT => Kind::Int16,
            UNSIGNED_SHORT => Kind::UInt16,
            UNSIGNED_INT => Kind::UInt32,
            _ => Kind::Float32,
        }
    }

    /// Returns the bytes of each row.
    pub(super) fn row_bytes(self) -> impl Iterator<Item = &'a [u8]> {
        let row = size_of(self.code).unwrap_or(0).saturating_mul(self.columns);
        let rows = self.bytes.chunks(self.stride.max(1)).take(self.rows);
        rows.map(move |bytes| bytes.get(..row).unwrap_or_default())
    }

    /// Returns the numbers of each row as positions. Normalized integers stand for -1 to 1.
    pub(super) fn positions(self) -> impl Iterator<Item = [f64; 3]> {
        let size = size_of(self.code).unwrap_or(1);
        self.row_bytes().map(move |bytes| {
            let mut numbers = bytes.chunks_exact(size).map(|bytes| self.value(bytes));
            std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
        })
    }

    fn value(&self, bytes: &[u8]) -> f64 {
        let (value, largest) = match (self.code, bytes) {
            (BYTE, [byte]) => (f64::from(i8::from_le_bytes([*byte])), f64::from(i8::MAX)),
            (UNSIGNED_BYTE, [byte]) => (f64::from(*byte), f64::from(u8::MAX)),
            (SHORT, [a, b]) => {
                let value = i16::from_le_bytes([*a, *b]);
                (f64::from(value), f64::from(i16::MAX))
            }
            (UNSIGNED_SHORT, [a, b]) => {
                let value = u16::from_le_bytes([*a, *b]);
                (f64::from(value), f64::from(u16::MAX))
            }
            (UNSIGNED_INT, [a, b, c, d]) => {
                let value = u32::from_le_bytes([*a, *b, *c, *d]);
                (f64::from(value), f64::from(u32::MAX))
            }
            (_, [a, b, c, d]) => return f32::from_le_bytes([*a, *b, *c, *d]).into(),
            _ => return 0.0,
        };
        if self.is_normalized {
            (value / largest).max(-1.0)
        } else {
            value
        }
    }

    /// Returns the first number of each row as the number of a vertex.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] if the numbers have a type that indices do not have.
    pub(super) fn indices(self) -> Result<impl Iterator<Item = u32>, FileFault> {
        if !matches!(self.code, UNSIGNED_BYTE | UNSIGNED_SHORT | UNSIGNED_INT) {
            let expected = "indices are of type 5121, 5123 or 5125";
            return Err(FileFault::field("componentType", self.code, expected));
        }
        Ok(self.row_bytes().map(|bytes| {
            let mut word = [0; 4];
            let size = bytes.len().min(4);
            if let (Some(target), Some(bytes)) = (word.get_mut(..size), bytes.get(..size)) {
                target.copy_from_slice(bytes);
            }
            u32::from_le_bytes(word)
        }))
    }
}

/// Returns the size of a number of a type code.
fn size_of(code: u64) -> Option<usize> {
    match code {
        BYTE | UNSIGNED_BYTE => Some(1),
        SHORT | UNSIGNED_SHORT => Some(2),
        UNSIGNED_INT | FLOAT => Some(4),
        _ => None,
    }
}

/// Returns a number of a file as an index. No memory is as large as the largest.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
