//! Fill values of elements that were never written.

use half::f16;
use serde_json::Value;
use zvf_format::numeric::Kind;

/// Encodes a fill value as one little-endian element; `None` if it is not a value of this kind.
pub(super) fn number(value: &Value, kind: Kind) -> Option<Vec<u8>> {
    match kind {
        Kind::Complex64 | Kind::Complex128 => {
            let part = match kind {
                Kind::Complex64 => Kind::Float32,
                _ => Kind::Float64,
            };
            let parts = value
                .as_array()
                .filter(|parts| parts.len() == 2)?
                .iter()
                .map(|value| number(value, part));
            Some(parts.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => one(value, kind),
    }
}

/// Encodes a text fill value as padded UTF-32; `None` if it is not text or too long.
pub(super) fn text(value: &Value, bytes: u64) -> Option<Vec<u8>> {
    let mut all: Vec<u8> = Vec::new();
    for letter in value.as_str()?.chars() {
        all.extend(u32::from(letter).to_le_bytes());
    }
    let bytes = usize::try_from(bytes).ok()?;
    all.resize(all.len().max(bytes), 0);
    (all.len() == bytes).then_some(all)
}

fn one(value: &Value, kind: Kind) -> Option<Vec<u8>> {
    let signed = value.as_i64();
    let unsigned = value.as_u64();
    Some(match kind {
        Kind::Bool => vec![u8::from(value.as_bool()?)],
        Kind::Int8 => i8::try_from(signed?).ok()?.to_le_bytes().to_vec(),
        Kind::Int16 => i16::try_from(signed?).ok()?.to_le_bytes().to_vec(),
        Kind::Int32 => i32::try_from(signed?).ok()?.to_le_bytes().to_vec(),
        Kind::Int64 => signed?.to_le_bytes().to_vec(),
        Kind::UInt8 => u8::try_from(unsigned?).ok()?.to_le_bytes().to_vec(),
        Kind::UInt16 => u16::try_from(unsigned?).ok()?.to_le_bytes().to_vec(),
        Kind::UInt32 => u32::try_from(unsigned?).ok()?.to_le_bytes().to_vec(),
        Kind::UInt64 => unsigned?.to_le_bytes().to_vec(),
        _ => match value.as_str().and_then(|text| text.strip_prefix("0x")) {
            Some(digits) => bits(digits, kind.size())?,
            None => float(decimal(value)?, kind),
        },
    })
}

/// Parses a float; JSON writes values that are not finite as strings.
fn decimal(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a decimal is rounded to its element type"
)]
fn float(number: f64, kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Float16 => f16::from_f64(number).to_le_bytes().to_vec(),
        Kind::Float32 => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    }
}

/// Parses a float written as its bits, as Zarr writes NaN with a payload.
fn bits(digits: &str, size: usize) -> Option<Vec<u8>> {
    let all = u64::from_str_radix(digits, 16).ok()?;
    let digits_fit = digits.len() == size.saturating_mul(2);
    let bytes = all.to_le_bytes();
    bytes.get(..size).filter(|_| digits_fit).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_are_encoded_by_kind() {
        let check = |json: &str, kind, expected: Option<&[u8]>| {
            let value: Value = serde_json::from_str(json).unwrap_or_default();
            assert_eq!(
                number(&value, kind).as_deref(),
                expected,
                "{json} as {kind:?}"
            );
        };
        check("-128", Kind::Int8, Some(&[0x80]));
        check("128", Kind::Int8, None);
        check("18446744073709551615", Kind::UInt64, Some(&[0xff; 8]));
        check("-1", Kind::UInt64, None);
        check("true", Kind::Bool, Some(&[1]));
        check("1", Kind::Bool, None);
        check("\"NaN\"", Kind::Float32, Some(&[0, 0, 0xc0, 0x7f]));
        check("\"0x7fc00001\"", Kind::Float32, Some(&[1, 0, 0xc0, 0x7f]));
        check("\"0x7fc1\"", Kind::Float32, None);
        check("\"0x7e00\"", Kind::Float16, Some(&[0, 0x7e]));
        check("0", Kind::Float64, Some(&[0; 8]));
        check("\"0\"", Kind::Float64, None);
        check(
            "[0.0, \"NaN\"]",
            Kind::Complex64,
            Some(&[0, 0, 0, 0, 0, 0, 0xc0, 0x7f]),
        );
        check("null", Kind::Float64, None);
    }
}
