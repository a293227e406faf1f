//! Coordinates and attributes as the numbers of a point record.

use std::borrow::Cow;

use zvf::{NumericColumn, numeric::Kind};

use crate::{
    FileFault,
    values::{narrow, to_f64, whole},
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
            let digits = extent.log10() + (1000.0 / f64::from(i32::MAX)).log10();
            // Powers beyond these are 0 or infinite.
            *scale = 10_f64.powf(digits.ceil().clamp(-300.0, 300.0));
        }
        let reach = *scale * f64::from(i32::MAX);
        // In a small extent, the distance to an integer is too far.
        *offset = match least.floor() {
            floor if !floor.is_finite() => 0.0,
            floor if least - floor + extent * 1000.0 <= reach => floor,
            _ => least,
        };
    }
    (scale, offset)
}

/// Returns colours of 16 bits for colours of 8 bits: 257 times their value.
pub(super) fn wide_colours(colours: &[u8]) -> Vec<u8> {
    colours.iter().flat_map(|value| [*value, *value]).collect()
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
        let expected = "the field of las has a smaller type; leave the attribute out with --select, or write ply or geoparquet";
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
                let number = whole(value)
                    .filter(|_| is_whole)
                    .ok_or_else(|| wrong(value))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Coordinates come back from a frame, also those of a plane with noise far from an integer.
    #[test]
    fn frames_hold_small_extents() {
        for (rows, tolerance) in [
            (vec![0.7, 0.700_001, 0.700_000_4], 1e-12),
            (vec![0.3, 0.1 + 0.2], 0.0),
            (vec![400_000.7, 400_000.700_000_1], 0.0),
            (vec![-5.25, 1995.5], 5e-4),
            (vec![7.3, 7.3], 5e-4),
            (vec![1e-310, 0.0], 1e-300),
            (vec![-8e307, 8e307], 1e300),
        ] {
            let points: Vec<[f64; 3]> = rows.iter().map(|value| [*value; 3]).collect();
            let ([scale, ..], [offset, ..]) = frame(&points);
            for value in rows {
                let number = whole((value - offset) / scale);
                let written = f64::from(number.unwrap()) * scale + offset;
                assert!((written - value).abs() <= tolerance, "{value}: {written}");
            }
        }
        let far = frame(&[[10.5; 3], [12.75; 3]]);
        assert_eq!(far, ([1e-5; 3], [10.0; 3]));
    }
}
