//! Scaled extra bytes: values that a record holds as multiples of a scale from an offset on.

use zvf::{
    NumericColumn,
    numeric::{Kind, Value},
};

use crate::{
    FileFault,
    values::{narrow, to_f64},
};

/// Bits of the options of a description: it has a value for missing data, a scale, and an offset.
const HAS_NO_DATA: u8 = 1;
const HAS_SCALE: u8 = 8;
const HAS_OFFSET: u8 = 16;
/// Places of these fields in a description: three numbers of 8 bytes each.
const NO_DATA_AT: usize = 40;
const SCALE_AT: usize = 112;
const OFFSET_AT: usize = 136;

/// The scale of the numbers of a field, for each of up to three numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scaling {
    scale: [f64; 3],
    offset: [f64; 3],
    /// The numbers in the record that stand for missing values, which are NaN in the attribute.
    no_data: Option<[f64; 3]>,
}

/// Returns whether a description has a scale or an offset other than 1 and 0.
pub(super) fn is_scaled(descriptor: &[u8]) -> bool {
    let (scale, offset) = scale_of(descriptor);
    let differs = |numbers: [f64; 3], from: f64| {
        let distances = numbers.iter().map(|number| (number - from).abs());
        distances.fold(0.0, f64::max) > 0.0
    };
    differs(scale, 1.0) || differs(offset, 0.0)
}

fn scale_of(descriptor: &[u8]) -> ([f64; 3], [f64; 3]) {
    let options = descriptor.get(3).copied().unwrap_or(0);
    let numbers = |bit: u8, at: usize, default: f64| {
        let fields = fields(descriptor, at).map(f64::from_le_bytes);
        if options & bit == 0 {
            [default; 3]
        } else {
            fields
        }
    };
    let scale = numbers(HAS_SCALE, SCALE_AT, 1.0);
    // Unused numbers of a description are 0.
    let scale = scale.map(|scale| if scale.abs() <= 0.0 { 1.0 } else { scale });
    (scale, numbers(HAS_OFFSET, OFFSET_AT, 0.0))
}

fn fields(descriptor: &[u8], at: usize) -> [[u8; 8]; 3] {
    let bytes = descriptor.get(at..).unwrap_or_default();
    match bytes.as_chunks::<8>().0 {
        [one, two, three, ..] => [*one, *two, *three],
        _ => [[0; 8]; 3],
    }
}

impl Scaling {
    /// Returns the scaling of a description; `None` if the numbers are the values. Numbers of 64 bits
    /// are not scaled, because they could not be restored from float64.
    pub(super) fn of_descriptor(descriptor: &[u8], kind: Kind) -> Option<Self> {
        let (scale, offset) = scale_of(descriptor);
        let is_finite = scale.iter().chain(&offset).all(|number| number.is_finite());
        let options = descriptor.get(3).copied().unwrap_or(0);
        let no_data = fields(descriptor, NO_DATA_AT).map(|bytes| match kind {
            Kind::Float32 => f64::from_le_bytes(bytes),
            Kind::Int8 | Kind::Int16 | Kind::Int32 => {
                Value::Int(i64::from_le_bytes(bytes)).to_f64()
            }
            _ => Value::UInt(u64::from_le_bytes(bytes)).to_f64(),
        });
        (kind.size() < 8 && is_finite && is_scaled(descriptor)).then_some(Self {
            scale,
            offset,
            no_data: (options & HAS_NO_DATA != 0).then_some(no_data),
        })
    }

    /// Returns the scale, the offset and the number for missing data of values with `width` numbers.
    fn numbers(&self, width: usize) -> impl Iterator<Item = (f64, f64, Option<f64>)> + '_ {
        let no_data = |at: usize| self.no_data.and_then(|no_data| no_data.get(at).copied());
        let each = self.scale.iter().zip(&self.offset).enumerate().take(width);
        each.map(move |(at, (scale, offset))| (*scale, *offset, no_data(at)))
            .cycle()
    }

    /// Appends the values of numbers of a record.
    pub(super) fn apply(&self, stored: &NumericColumn, values: &mut Vec<u8>) {
        let width = usize::try_from(stored.width).unwrap_or(1);
        let numbers = to_f64(stored).unwrap_or_default();
        for (number, (scale, offset, no_data)) in numbers.into_iter().zip(self.numbers(width)) {
            let value = if no_data == Some(number) {
                f64::NAN
            } else {
                number * scale + offset
            };
            values.extend(value.to_le_bytes());
        }
    }
    /// Returns the numbers of a record for values, and the number of values that they do not hold exactly.
    pub(super) fn restore(
        &self,
        name: &str,
        values: &NumericColumn,
        kind: Kind,
    ) -> Result<(Vec<u8>, u64), FileFault> {
        let width = usize::try_from(values.width).unwrap_or(1);
        let all = to_f64(values).ok_or(FileFault::Broken("a column changes its type"))?;
        let (mut stored, mut rounded) = (Vec::new(), 0_u64);
        for (value, (scale, offset, no_data)) in all.into_iter().zip(self.numbers(width)) {
            let scaled = match no_data.filter(|_| value.is_nan()) {
                Some(no_data) => no_data,
                None => (value - offset) / scale,
            };
            let number = match kind {
                Kind::Float32 => {
                    stored.extend(narrow(scaled).to_le_bytes());
                    continue;
                }
                _ => scaled.round(),
            };
            let is_held = bytes_of(number, kind, &mut stored);
            if !is_held {
                let found = format!("{value} in {name}");
                let expected = "the field of las does not hold it at its scale; leave the attribute out with --select, or write ply or geoparquet";
                return Err(FileFault::field("a value", found, expected));
            }
            // The last bits of a product are no rounding.
            let is_rounded = (number - scaled).abs() > 0.001;
            rounded = rounded.saturating_add(u64::from(is_rounded));
        }
        Ok((stored, rounded))
    }
}

/// Appends an integer; returns whether its type holds it.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number is a whole one in the range of an i64"
)]
fn bytes_of(number: f64, kind: Kind, bytes: &mut Vec<u8>) -> bool {
    let bits = kind.size().saturating_mul(8);
    let is_signed = matches!(kind, Kind::Int8 | Kind::Int16 | Kind::Int32);
    let span = 2_f64.powi(i32::try_from(bits).unwrap_or(0));
    let (least, end) = if is_signed {
        (-span / 2.0, span / 2.0)
    } else {
        (0.0, span)
    };
    let is_held = number >= least && number < end;
    if is_held {
        let number = (number as i64).to_le_bytes();
        bytes.extend(number.iter().take(kind.size()));
    }
    is_held
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values were compared in the numbers of the file, which a scale multiplies.
    #[test]
    fn numbers_are_restored_from_values() {
        let mut descriptor = [0; 192];
        let mut put = |at: usize, bytes: &[u8]| {
            descriptor[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(3, &[HAS_NO_DATA | HAS_SCALE | HAS_OFFSET]);
        put(NO_DATA_AT, &7_u64.to_le_bytes());
        put(SCALE_AT, &0.01_f64.to_le_bytes());
        put(OFFSET_AT, &(-3.0_f64).to_le_bytes());
        let scaling = Scaling::of_descriptor(&descriptor, Kind::UInt16).unwrap();
        let stored: NumericColumn = (0..=u16::MAX).collect();
        let mut values = NumericColumn::new(Kind::Float64, 1);
        scaling.apply(&stored, &mut values.bytes);
        let rows = values.to_vec::<f64>().unwrap();
        assert!(rows[7].is_nan() && (rows[650] - 3.5).abs() < 1e-12);
        let restored = scaling.restore("a", &values, Kind::UInt16).unwrap();
        assert_eq!(restored, (stored.bytes, 0));
        let other: NumericColumn = [0.001, 1.0].into_iter().collect();
        assert_eq!(scaling.restore("a", &other, Kind::UInt16).unwrap().1, 1);
        let far: NumericColumn = [1e6].into_iter().collect();
        let fault = scaling.restore("a", &far, Kind::UInt16).unwrap_err();
        assert!(fault.to_string().contains("1000000 in a"), "{fault}");
        // Float64 would round these.
        assert_eq!(Scaling::of_descriptor(&descriptor, Kind::UInt64), None);
        descriptor[3] = 0;
        assert_eq!(Scaling::of_descriptor(&descriptor, Kind::UInt16), None);
    }
}
