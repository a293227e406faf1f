//! Attributes of an array: variable-length metalayers that each contain one MessagePack value, as
//! Python's `vlmeta` writes them.

use serde_json::{Map, Number, Value};

use super::layers::{self, Layer};

/// Maximum nesting depth of values.
const DEPTH: usize = 64;
/// Maximum total length of decoded metalayers in bytes. Decoded values take more memory than their
/// bytes.
const MAX_BYTES: usize = 1 << 20;

/// Decodes the attributes among metalayers, up to a total length of [`MAX_BYTES`]. Longer ones are
/// left out, and shorter ones behind them are not.
pub(super) fn of(layers: &[Layer]) -> Map<String, Value> {
    let mut left = MAX_BYTES;
    let mut attributes = Map::new();
    for (name, body) in layers::pairs(layers) {
        let Some(rest) = left.checked_sub(body.len()) else {
            continue;
        };
        left = rest;
        if let Some(value) = decode(body) {
            attributes.insert(name.to_owned(), value);
        }
    }
    attributes
}

/// Decodes the content of a metalayer that is one MessagePack value. Returns `None` for other content,
/// for values that JSON cannot represent, and for more than 1 MiB.
pub fn unpack(body: &[u8]) -> Option<Value> {
    (body.len() <= MAX_BYTES).then(|| decode(body)).flatten()
}

/// Decodes a body that is exactly one value. Returns `None` for other bytes and for values that
/// attributes cannot represent: binary data, extensions, maps with keys other than text, NaN and
/// infinity.
pub(super) fn decode(body: &[u8]) -> Option<Value> {
    let mut rest = body;
    let value = value(&mut rest, DEPTH)?;
    rest.is_empty().then_some(value)
}

fn value(rest: &mut &[u8], depth: usize) -> Option<Value> {
    let marker = *rest.split_off_first()?;
    Some(match marker {
        0x00..=0x7f => marker.into(),
        0x80..=0x8f => map(rest, usize::from(marker & 0xf), depth)?,
        0x90..=0x9f => list(rest, usize::from(marker & 0xf), depth)?,
        0xa0..=0xbf => text(rest, usize::from(marker & 0x1f))?.into(),
        0xc0 => Value::Null,
        0xc2 => false.into(),
        0xc3 => true.into(),
        0xca => float(f32::from_be_bytes(take(rest)?).into())?,
        0xcb => float(f64::from_be_bytes(take(rest)?))?,
        0xcc => u8::from_be_bytes(take(rest)?).into(),
        0xcd => u16::from_be_bytes(take(rest)?).into(),
        0xce => u32::from_be_bytes(take(rest)?).into(),
        0xcf => u64::from_be_bytes(take(rest)?).into(),
        0xd0 => i8::from_be_bytes(take(rest)?).into(),
        0xd1 => i16::from_be_bytes(take(rest)?).into(),
        0xd2 => i32::from_be_bytes(take(rest)?).into(),
        0xd3 => i64::from_be_bytes(take(rest)?).into(),
        0xd9 => {
            let len = u8::from_be_bytes(take(rest)?);
            text(rest, len.into())?.into()
        }
        0xda => {
            let len = u16::from_be_bytes(take(rest)?);
            text(rest, len.into())?.into()
        }
        0xdb => {
            let len = long(rest)?;
            text(rest, len)?.into()
        }
        0xdc => {
            let len = u16::from_be_bytes(take(rest)?);
            list(rest, len.into(), depth)?
        }
        0xdd => {
            let len = long(rest)?;
            list(rest, len, depth)?
        }
        0xde => {
            let len = u16::from_be_bytes(take(rest)?);
            map(rest, len.into(), depth)?
        }
        0xdf => {
            let len = long(rest)?;
            map(rest, len, depth)?
        }
        0xe0.. => i8::from_be_bytes([marker]).into(),
        _ => return None,
    })
}

// Lists and maps grow item by item: the declared length is not trusted.

fn list(rest: &mut &[u8], len: usize, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let mut items = Vec::new();
    for _ in 0..len {
        items.push(value(rest, depth)?);
    }
    Some(Value::Array(items))
}

fn map(rest: &mut &[u8], len: usize, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let mut items = Map::new();
    for _ in 0..len {
        let Value::String(key) = value(rest, depth)? else {
            return None;
        };
        items.insert(key, value(rest, depth)?);
    }
    Some(Value::Object(items))
}

fn text(rest: &mut &[u8], len: usize) -> Option<String> {
    let bytes = rest.split_off(..len)?;
    core::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn float(value: f64) -> Option<Value> {
    Number::from_f64(value).map(Value::Number)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

fn long(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(take(rest)?)).ok()
}

/// Encodes the content of a metalayer as MessagePack, like Python's `msgpack`: numbers and lengths in
/// the fewest bytes, floats in eight. Returns `None` if a length exceeds 32 bits.
pub fn pack(value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    put(value, &mut out)?;
    Some(out)
}

fn put(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(value) => out.push(0xc2 + u8::from(*value)),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => put_unsigned(number, out),
            (None, Some(number), _) => put_negative(number, out),
            (None, None, Some(number)) => {
                out.push(0xcb);
                out.extend(number.to_be_bytes());
            }
            (None, None, None) => return None,
        },
        Value::String(text) => {
            put_text(text, out)?;
        }
        Value::Array(items) => {
            put_len(items.len(), 0x90, 0xdc, out)?;
            for item in items {
                put(item, out)?;
            }
        }
        Value::Object(items) => {
            put_len(items.len(), 0x80, 0xde, out)?;
            for (key, item) in items {
                put_text(key, out)?;
                put(item, out)?;
            }
        }
    }
    Some(())
}

fn put_unsigned(number: u64, out: &mut Vec<u8>) {
    if let Ok(number) = u8::try_from(number) {
        if number > 0x7f {
            out.push(0xcc);
        }
        out.push(number);
    } else if let Ok(number) = u16::try_from(number) {
        out.push(0xcd);
        out.extend(number.to_be_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(0xce);
        out.extend(number.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend(number.to_be_bytes());
    }
}

fn put_negative(number: i64, out: &mut Vec<u8>) {
    if let Ok(number) = i8::try_from(number) {
        if number < -32 {
            out.push(0xd0);
        }
        out.extend(number.to_be_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xd1);
        out.extend(number.to_be_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        out.push(0xd2);
        out.extend(number.to_be_bytes());
    } else {
        out.push(0xd3);
        out.extend(number.to_be_bytes());
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    match (u8::try_from(text.len()), u16::try_from(text.len())) {
        (Ok(len @ ..0x20), _) => out.push(0xa0 | len),
        (Ok(len), _) => out.extend([0xd9, len]),
        (_, Ok(len)) => {
            out.push(0xda);
            out.extend(len.to_be_bytes());
        }
        _ => {
            out.push(0xdb);
            out.extend(u32::try_from(text.len()).ok()?.to_be_bytes());
        }
    }
    out.extend(text.bytes());
    Some(())
}

/// Writes a length: in the marker byte if it is below 16, else after a `long` marker.
fn put_len(len: usize, short: u8, long: u8, out: &mut Vec<u8>) -> Option<()> {
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len @ ..0x10), _) => out.push(short | len),
        (_, Ok(len)) => {
            out.push(long);
            out.extend(len.to_be_bytes());
        }
        _ => {
            out.push(long + 1);
            out.extend(u32::try_from(len).ok()?.to_be_bytes());
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value, bytes: &[u8]) {
        assert_eq!(pack(value).unwrap(), bytes);
        assert_eq!(decode(bytes).as_ref(), Some(value));
    }

    #[test]
    fn values_match_python_msgpack() {
        check(&json!(null), b"\xc0");
        check(&json!([true, false]), b"\x92\xc3\xc2");
        check(
            &json!([127, 128, 256, 65536]),
            b"\x94\x7f\xcc\x80\xcd\x01\0\xce\0\x01\0\0",
        );
        check(&json!(u64::MAX), b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
        check(&json!([-32, -33, -129]), b"\x93\xe0\xd0\xdf\xd1\xff\x7f");
        check(&json!(i64::MIN), b"\xd3\x80\0\0\0\0\0\0\0");
        check(&json!(1.5), b"\xcb\x3f\xf8\0\0\0\0\0\0");
        check(&json!({"a": "\u{e9}"}), b"\x81\xa1a\xa2\xc3\xa9");
        let long = "x".repeat(32);
        check(&json!(long), &[&[0xd9, 32], long.as_bytes()].concat());
        let many = vec![0; 16];
        check(&json!(many), &[&[0xdc, 0, 16][..], &many].concat());
    }

    #[test]
    fn invalid_attributes_decode_to_none() {
        let deep = [&[0x91; 100][..], &[0xc0]].concat();
        for bytes in [
            &b""[..],
            b"\xc0\xc0",
            b"\xc4\x01a",
            b"\xc1",
            b"\x81\x01\x02",
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff\xa1a",
            b"\xa2a",
            b"\xa1\xff",
            b"\xcb\x7f\xf8\0\0\0\0\0\0",
            &deep,
        ] {
            assert_eq!(decode(bytes), None, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn decoded_values_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(value) = decode(&bytes) {
                prop_assert_eq!(decode(&pack(&value).unwrap()), Some(value));
            }
        }
    }
}
