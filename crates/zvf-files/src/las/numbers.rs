//! Coordinates and attributes as the numbers of a point record.

use std::borrow::Cow;

use zvf::{NumericColumn, numeric::Kind};

use crate::{
    FileFault,
    values::{narrow, to_f64},
};

/// Returns a scale and an offset for coordinates that may extend a thousand times as far as those
/// of the first batch.
pub(super) fn frame(rows: &[[f64; 3]]) -> ([f64; 3], [f64; 3]) {
    let (mut scale, mut offset) = ([0.001; 3], [0.0; 3]);
    for (axis, (scale, offset)) in scale.iter_mut().zip(&mut offset).enumerate() {
        let values = || rows.iter().filter_map(|row| row.get(axis)).copied();
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(f64::NEG_INFINITY, f64::max);
        let extent = most - least;
        if extent.is_finite() && extent > 0.0 {
            let digits = (extent * 1000.0 / f64::from(i32::MAX)).log10().ceil();
            *scale = 10_f64.powf(digits);
        }
        *offset = if least.is_finite() {
            least.floor()
        } else {
            0.0
        };
    }
    (scale, offset)
}

/// Rounds to the nearest 32-bit number; `None` outside their range.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number is in the range of an i32"
)]
pub(super) fn whole(value: f64) -> Option<i32> {
    let value = value.round();
    let is_inside = value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
    is_inside.then_some(value as i32)
}

/// Returns numbers in the type of a field, which has to hold them.
pub(super) fn exact<'a>(
    name: &str,
    values: &'a NumericColumn,
    kind: Kind,
) -> Result<Cow<'a, [u8]>, FileFault> {
    if values.kind == kind {
        return Ok(Cow::Borrowed(&values.bytes));
    }
    let wrong = |value: f64| {
        let found = format!("{value} in {name}");
        let expected = "the field of las has a smaller type; rename the attribute";
        FileFault::field("a value", found, expected)
    };
    let numbers = to_f64(values).ok_or(FileFault::Broken("a column changes its type"))?;
    let mut bytes = Vec::new();
    for value in numbers {
        match kind {
            Kind::Float64 => bytes.extend(value.to_le_bytes()),
            Kind::Float32 => bytes.extend(narrow(value).to_le_bytes()),
            _ => {
                let is_whole = value.fract() == 0.0;
                let number = whole(value).filter(|_| is_whole);
                let number = number.ok_or_else(|| wrong(value))?;
                match kind {
                    Kind::UInt8 => bytes.extend(
                        u8::try_from(number)
                            .map(u8::to_le_bytes)
                            .map_err(|_| wrong(value))?,
                    ),
                    Kind::Int8 => bytes.extend(
                        i8::try_from(number)
                            .map(i8::to_le_bytes)
                            .map_err(|_| wrong(value))?,
                    ),
                    Kind::UInt16 => bytes.extend(
                        u16::try_from(number)
                            .map(u16::to_le_bytes)
                            .map_err(|_| wrong(value))?,
                    ),
                    Kind::Int16 => bytes.extend(
                        i16::try_from(number)
                            .map(i16::to_le_bytes)
                            .map_err(|_| wrong(value))?,
                    ),
                    _ => return Err(FileFault::Broken("a column changes its type")),
                }
            }
        }
    }
    Ok(Cow::Owned(bytes))
}
