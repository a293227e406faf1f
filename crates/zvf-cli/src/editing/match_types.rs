//! Conversion of numbers from csv, which has no types, to the types of a store.

use half::f16;
use zvf::{Column, ColumnValues, GeometryBuilder, NumericColumn, QueryResult, numeric::Kind};

/// Converts attributes to the types of the attributes of `like` with equal names. Values that do
/// not fit leave their column unchanged; a later check rejects it.
pub(super) fn to(like: &QueryResult, geometry: &mut GeometryBuilder) {
    columns(&like.vertex, &mut geometry.vertex);
    columns(&like.fragment, &mut geometry.fragment);
    columns(&like.fragment, &mut geometry.fragment_rows);
    columns(&like.link, &mut geometry.link);
    columns(&like.object, &mut geometry.object);
}

/// Converts columns to the types of those in `like` with equal names.
pub(crate) fn columns(like: &[Column], attributes: &mut [Column]) {
    for attribute in attributes {
        let own = like.iter().find(|column| column.name == attribute.name);
        if let (Some(ColumnValues::Numeric(rows)), ColumnValues::Numeric(numbers)) =
            (own.map(|column| &column.values), &mut attribute.values)
            && let Some(fitted) = fitted(numbers, rows.kind)
        {
            *numbers = fitted;
        }
    }
}

/// A number read from csv.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

/// Converts numbers to another type: integers exactly, floats to the nearest value, and bools to 0 and
/// 1, which a store has where some objects have no value. Returns `None` if a number does not fit, such
/// as a float outside the range of the type.
fn fitted(numbers: &NumericColumn, kind: Kind) -> Option<NumericColumn> {
    if (numbers.kind, kind) == (Kind::Bool, Kind::UInt8) {
        return Some(NumericColumn {
            kind,
            ..numbers.clone()
        });
    }
    if !matches!(numbers.kind, Kind::Int64 | Kind::UInt64 | Kind::Float64) {
        return None;
    }
    let mut bytes = Vec::with_capacity(numbers.len().saturating_mul(kind.size()));
    let (values, _) = numbers.bytes.as_chunks::<8>();
    for value in values {
        let number = match numbers.kind {
            Kind::Int64 => Number::Whole(i64::from_le_bytes(*value).into()),
            Kind::UInt64 => Number::Whole(u64::from_le_bytes(*value).into()),
            Kind::Float64 => Number::Float(f64::from_le_bytes(*value)),
            _ => return None,
        };
        put(number, kind, &mut bytes)?;
    }
    Some(NumericColumn {
        bytes,
        ..NumericColumn::new(kind, numbers.width)
    })
}

fn put(number: Number, kind: Kind, bytes: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Float16 => bytes.extend(half(number.float())?.to_le_bytes()),
        Kind::Float32 => bytes.extend(single(number.float())?.to_le_bytes()),
        Kind::Float64 => bytes.extend(number.float().to_le_bytes()),
        Kind::Int8 => bytes.extend(number.whole::<i8>()?.to_le_bytes()),
        Kind::Int16 => bytes.extend(number.whole::<i16>()?.to_le_bytes()),
        Kind::Int32 => bytes.extend(number.whole::<i32>()?.to_le_bytes()),
        Kind::Int64 => bytes.extend(number.whole::<i64>()?.to_le_bytes()),
        Kind::UInt8 => bytes.extend(number.whole::<u8>()?.to_le_bytes()),
        Kind::UInt16 => bytes.extend(number.whole::<u16>()?.to_le_bytes()),
        Kind::UInt32 => bytes.extend(number.whole::<u32>()?.to_le_bytes()),
        Kind::UInt64 => bytes.extend(number.whole::<u64>()?.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "as near as it goes")]
    fn float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Converts the number to an integer; `None` if the type cannot represent it.
    #[expect(clippy::cast_possible_truncation, reason = "only of whole numbers")]
    fn whole<T: TryFrom<i128>>(self) -> Option<T> {
        let number = match self {
            Self::Whole(number) => number,
            // From 2^53 on, a float may stand for several integers.
            Self::Float(number)
                if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 =>
            {
                number as i128
            }
            Self::Float(_) => return None,
        };
        T::try_from(number).ok()
    }
}

fn half(number: f64) -> Option<f16> {
    let nearest = f16::from_f64(number);
    (nearest.is_infinite() == number.is_infinite()).then_some(nearest)
}

#[expect(clippy::cast_possible_truncation, reason = "as near as it goes")]
fn single(number: f64) -> Option<f32> {
    let nearest = number as f32;
    (nearest.is_infinite() == number.is_infinite()).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_what_the_store_has() {
        let numbers = NumericColumn::float64(1, [0.1, 3.0]);
        let expected = NumericColumn::float32(1, [0.1, 3.0]);
        assert_eq!(fitted(&numbers, Kind::Float32), Some(expected));
        let half = fitted(&numbers, Kind::Float16).unwrap();
        assert_eq!(half.bytes, [0x66, 0x2e, 0x00, 0x42]);
        assert_eq!(fitted(&numbers, Kind::Int16), None);
        let whole = fitted(&NumericColumn::float64(1, [-2.0, 3.0]), Kind::Int16);
        assert_eq!(whole.unwrap().bytes, [254, 255, 3, 0]);
        assert_eq!(
            fitted(&NumericColumn::float64(1, [-2.0]), Kind::UInt8),
            None
        );
        assert_eq!(
            fitted(&NumericColumn::float64(1, [f64::NAN]), Kind::Int8),
            None
        );
    }

    /// Regression test: fewer than 8 bools have no 8 bytes, and became a column without rows.
    #[test]
    fn bools_stay_as_they_are() {
        for count in [1, 8] {
            let bools = NumericColumn {
                bytes: vec![1; count],
                ..NumericColumn::new(Kind::Bool, 1)
            };
            assert_eq!(fitted(&bools, Kind::Bool), None);
            let integers = fitted(&bools, Kind::UInt8).unwrap();
            assert_eq!((integers.kind, integers.len()), (Kind::UInt8, count));
        }
    }

    /// They were stored as infinity.
    #[test]
    fn floats_above_the_range_of_a_type_do_not_fit() {
        let fits = |number: f64, kind| fitted(&NumericColumn::float64(1, [number]), kind);
        for large in [1e39, -1e39] {
            assert_eq!(fits(large, Kind::Float32), None);
            assert_eq!(fits(large, Kind::Float16), None);
        }
        assert!(fits(65_504.0, Kind::Float16).is_some());
        assert_eq!(fits(70_000.0, Kind::Float16), None);
        let whole = NumericColumn {
            bytes: 70_000_i64.to_le_bytes().to_vec(),
            ..NumericColumn::new(Kind::Int64, 1)
        };
        assert_eq!(fitted(&whole, Kind::Float16), None);
        for kind in [Kind::Float32, Kind::Float16] {
            for special in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                assert!(fits(special, kind).is_some());
            }
        }
    }
}
