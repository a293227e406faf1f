//! Conversion of positions to 64-bit floats, in which chunks are decided, and to stored types.

use core::ops::Range;

use half::f16;
use rayon::prelude::*;
use zvf_format::numeric::Kind;

use zvf_model::column::NumericColumn;

use crate::error::BuildError;

/// Rows converted at a time.
pub(crate) const BLOCK: usize = 4096;

/// Returns whether positions may have this type.
fn is_coordinate(kind: Kind) -> bool {
    !matches!(kind, Kind::Bool | Kind::Complex64 | Kind::Complex128)
}

/// Reads rows as 64-bit floats.
pub(crate) fn block(positions: &NumericColumn, rows: Range<usize>, out: &mut Vec<f64>) {
    out.clear();
    let size = positions.row_size();
    let bytes = positions
        .bytes
        .get(rows.start * size..rows.end * size)
        .unwrap_or_default();
    macro_rules! widen {
        ($number:ty, $widen:expr) => {
            out.extend(bytes.chunks_exact(size_of::<$number>()).map(|bytes| {
                let mut number = [0; size_of::<$number>()];
                number.copy_from_slice(bytes);
                $widen(<$number>::from_le_bytes(number))
            }))
        };
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "readers divide 64-bit integers as floats too"
    )]
    match positions.kind {
        Kind::Float32 => widen!(f32, f64::from),
        Kind::Float64 => widen!(f64, |x| x),
        Kind::Float16 => widen!(f16, f16::to_f64),
        Kind::Int8 => widen!(i8, f64::from),
        Kind::Int16 => widen!(i16, f64::from),
        Kind::Int32 => widen!(i32, f64::from),
        Kind::Int64 => widen!(i64, |x| x as f64),
        Kind::UInt16 => widen!(u16, f64::from),
        Kind::UInt32 => widen!(u32, f64::from),
        Kind::UInt64 => widen!(u64, |x| x as f64),
        _ => widen!(u8, f64::from),
    }
}

/// Returns the largest integer that is not above `value`, limited to the range of `i64`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "casts saturate, and whole numbers remain unchanged"
)]
pub(crate) fn floor(value: f64) -> i64 {
    // Without SSE 4.1, `f64::floor` is a function call.
    let near = value as i64;
    near.saturating_sub(i64::from(near as f64 > value))
}

/// Returns the row ranges of all blocks.
pub(crate) fn blocks(rows: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let count = rows.div_ceil(BLOCK);
    (0..count)
        .into_par_iter()
        .map(move |at| at * BLOCK..((at + 1) * BLOCK).min(rows))
}

/// Returns the minimum and maximum of each axis; fails at the first coordinate that is not finite.
pub(crate) fn extent(positions: &NumericColumn) -> Result<(Vec<f64>, Vec<f64>), BuildError> {
    if !is_coordinate(positions.kind) {
        return Err(BuildError::PositionKind(positions.kind));
    }
    let axes = positions.row_len();
    let of = |rows: Range<usize>| {
        let first = rows.start;
        let mut values = Vec::new();
        block(positions, rows, &mut values);
        let mut lower = vec![f64::INFINITY; axes];
        let mut upper = vec![f64::NEG_INFINITY; axes];
        let mut is_finite = true;
        for values in values.chunks_exact(axes) {
            for ((&value, lower), upper) in values.iter().zip(&mut lower).zip(&mut upper) {
                is_finite &= value.is_finite();
                // Faster than `min` and `max`, which handle NaN.
                *lower = if value < *lower { value } else { *lower };
                *upper = if value > *upper { value } else { *upper };
            }
        }
        if is_finite {
            return Ok((lower, upper));
        }
        let at = values
            .iter()
            .position(|value| !value.is_finite())
            .unwrap_or_default();
        Err(BuildError::NotFinite {
            vertex: first + at / axes,
            axis: at % axes,
            value: values[at],
        })
    };
    // Collected in order, so that the error names the first vertex however threads are scheduled.
    let parts: Vec<_> = blocks(positions.len()).map(of).collect();
    let mut all = (vec![f64::INFINITY; axes], vec![f64::NEG_INFINITY; axes]);
    for part in parts {
        let (lower, upper) = part?;
        for axis in 0..axes {
            all.0[axis] = all.0[axis].min(lower[axis]);
            all.1[axis] = all.1[axis].max(upper[axis]);
        }
    }
    Ok(all)
}

/// Converts positions to another type.
pub(crate) fn converted(
    positions: &NumericColumn,
    kind: Kind,
) -> Result<NumericColumn, BuildError> {
    if !is_coordinate(kind) {
        return Err(BuildError::PositionKind(kind));
    }
    if !is_coordinate(positions.kind) {
        return Err(BuildError::PositionKind(positions.kind));
    }
    let axes = positions.row_len();
    // f64 does not hold all of these. A number that both types hold has the same bytes in both.
    let changes_sign = matches!(
        (positions.kind, kind),
        (Kind::Int64, Kind::UInt64) | (Kind::UInt64, Kind::Int64)
    );
    let of = |rows: Range<usize>| {
        let first = rows.start;
        let (mut values, mut bytes) = (Vec::new(), Vec::new());
        block(positions, rows, &mut values);
        for (at, &value) in values.iter().enumerate() {
            let holds = if changes_sign {
                let start = (first * axes + at) * size_of::<u64>();
                let number = positions.bytes.get(start..start + size_of::<u64>());
                let held = number.filter(|number| number[7] < 0x80);
                held.map(|number| bytes.extend_from_slice(number)).is_some()
            } else {
                push(&mut bytes, value, kind)
            };
            if !holds {
                let (vertex, axis) = (first + at / axes, at % axes);
                return Err(if value.is_finite() {
                    BuildError::OutOfType {
                        vertex,
                        axis,
                        value,
                        kind,
                    }
                } else {
                    BuildError::NotFinite {
                        vertex,
                        axis,
                        value,
                    }
                });
            }
        }
        Ok(bytes)
    };
    let parts: Vec<_> = blocks(positions.len()).map(of).collect();
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(NumericColumn {
        bytes: parts.concat(),
        ..NumericColumn::new(kind, axes as u32)
    })
}

/// Appends a number and returns whether the type can hold it. Floats are rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "what does not come back equal is refused"
)]
fn push(bytes: &mut Vec<u8>, value: f64, kind: Kind) -> bool {
    macro_rules! whole {
        ($number:ty) => {{
            let number = value as $number;
            bytes.extend_from_slice(&number.to_le_bytes());
            // The largest 64-bit integers become floats that are above them.
            let saturates = number == <$number>::MAX && value as i128 > i128::from(number);
            i128::from(number) as f64 == value && !saturates
        }};
    }
    match kind {
        Kind::Float64 => {
            bytes.extend_from_slice(&value.to_le_bytes());
            value.is_finite()
        }
        Kind::Float32 => {
            let number = value as f32;
            bytes.extend_from_slice(&number.to_le_bytes());
            number.is_finite()
        }
        Kind::Float16 => {
            let number = f16::from_f64(value);
            bytes.extend_from_slice(&number.to_le_bytes());
            number.is_finite()
        }
        Kind::Int8 => whole!(i8),
        Kind::Int16 => whole!(i16),
        Kind::Int32 => whole!(i32),
        Kind::Int64 => whole!(i64),
        Kind::UInt16 => whole!(u16),
        Kind::UInt32 => whole!(u32),
        Kind::UInt64 => whole!(u64),
        _ => whole!(u8),
    }
}

/// Extent of a chunk along an axis.
#[cfg(feature = "coarsen")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSpan {
    /// First coordinate of the chunk.
    pub(crate) lower: f64,
    /// First coordinate after the chunk.
    pub(crate) upper: f64,
    /// Least coordinate of the chunk's vertices. The corners are rounded, so it may be outside them.
    pub(crate) least: f64,
    /// Greatest coordinate of the chunk's vertices.
    pub(crate) greatest: f64,
}

/// Converts positions to a type, rounded to the nearest value inside the half-open spans. Integers
/// between coordinates of the chunk's vertices are inside too.
#[cfg(feature = "coarsen")]
pub(crate) fn rounded(places: &[f64], kind: Kind, spans: &[ChunkSpan]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(places.len() * kind.size());
    for place in places.chunks_exact(spans.len().max(1)) {
        for (&value, span) in place.iter().zip(spans) {
            let ChunkSpan { lower, upper, .. } = *span;
            let inside = |value: f64| value.max(lower);
            match kind {
                Kind::Float32 => {
                    let mut number = inside(value) as f32;
                    while f64::from(number) >= upper {
                        number = number.next_down();
                    }
                    if f64::from(number) < lower {
                        number = number.next_up();
                    }
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                Kind::Float64 => {
                    let number = inside(value).min(upper.next_down());
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                Kind::Float16 => {
                    let mut number = f16::from_f64(inside(value));
                    while number.to_f64() >= upper {
                        number = below(number);
                    }
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                _ => {
                    // A span may contain no integer between its corners.
                    let min = lower.ceil().min(span.least);
                    let max = (upper - 1.0).ceil().max(span.greatest);
                    push(&mut bytes, value.round().max(min).min(max), kind);
                }
            }
        }
    }
    bytes
}

/// Returns the next smaller number.
#[cfg(feature = "coarsen")]
fn below(number: f16) -> f16 {
    let bits = number.to_bits();
    f16::from_bits(match (bits, bits >> 15) {
        (0 | 0x8000, _) => 0x8001,
        (bits, 0) => bits - 1,
        (bits, _) => bits + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_rejects_values_out_of_range() {
        let doubles = |values: &[f64]| NumericColumn::float64(1, values.iter().copied());
        let check = |value: f64, kind, holds: bool| {
            assert_eq!(
                converted(&doubles(&[value]), kind).is_ok(),
                holds,
                "{value} as {kind:?}"
            );
        };
        check(1e300, Kind::Float32, false);
        check(0.1, Kind::Float32, true);
        check(70_000.0, Kind::Float16, false);
        check(0.5, Kind::Int32, false);
        check(-1.0, Kind::UInt8, false);
        check(16_777_217.0, Kind::Int32, true);
        check(f64::NAN, Kind::Float64, false);
        check(9.3e18, Kind::Int64, false);
        check(9_223_372_036_854_775_808.0, Kind::Int64, false);
        check(18_446_744_073_709_551_616.0, Kind::UInt64, false);
        check(255.0, Kind::UInt8, true);
        check(1.0, Kind::Bool, false);
    }

    /// Such numbers were converted by way of floats.
    #[test]
    fn large_integers_are_converted_exactly() {
        let column = |kind, number: u64| NumericColumn {
            bytes: number.to_le_bytes().to_vec(),
            ..NumericColumn::new(kind, 1)
        };
        for (from, to) in [(Kind::Int64, Kind::UInt64), (Kind::UInt64, Kind::Int64)] {
            for number in [0, (1 << 53) + 1, u64::MAX >> 1] {
                let found = converted(&column(from, number), to).unwrap();
                assert_eq!(found, column(to, number), "{from:?}");
            }
            for number in [1 << 63, u64::MAX] {
                let error = converted(&column(from, number), to).unwrap_err();
                assert!(matches!(error, BuildError::OutOfType { .. }), "{error:?}");
            }
        }
    }

    #[cfg(feature = "coarsen")]
    fn span(lower: f64, upper: f64) -> [ChunkSpan; 1] {
        [ChunkSpan {
            lower,
            upper,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
        }]
    }

    #[cfg(feature = "coarsen")]
    #[test]
    fn integers_of_the_chunk_keep_their_value() {
        // Chunk 29 of extent 1.1 contains 33, as 33.0 / 1.1 is less than 30, but ends at 33.0.
        let mut span = span(29.0 * 1.1, 30.0 * 1.1);
        (span[0].least, span[0].greatest) = (33.0, 33.0);
        let found = rounded(&[33.0, 32.999_999, 40.0], Kind::Int8, &span);
        assert_eq!(found, [33, 33, 33]);
        // Chunk -360 of extent 0.7 contains -252 and has no integer between its corners.
        let mut span = self::span(-360.0 * 0.7, -359.0 * 0.7);
        assert!(span[0].lower.ceil() > (span[0].upper - 1.0).ceil());
        (span[0].least, span[0].greatest) = (-252.0, -252.0);
        let found = rounded(&[-252.0], Kind::Int16, &span);
        assert_eq!(found, (-252_i16).to_le_bytes());
    }

    #[cfg(feature = "coarsen")]
    #[test]
    fn rounding_stays_inside_the_box() {
        let f32s = |places: &[f64], lower: f64, upper: f64| -> Vec<f32> {
            rounded(places, Kind::Float32, &span(lower, upper))
                .chunks_exact(4)
                .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect()
        };
        let found = f32s(&[16.0 - 1e-9, 3.25, -5.0], 0.0, 16.0);
        assert_eq!(found, [16.0_f32.next_down(), 3.25, 0.0]);
        assert!(f64::from(f32s(&[0.1], 0.1, 0.2)[0]) >= 0.1);
        assert_eq!(
            rounded(&[7.9, -3.0], Kind::Int16, &span(0.0, 8.0)),
            [7, 0, 0, 0]
        );
        let half = rounded(&[7.999_99], Kind::Float16, &span(0.0, 8.0));
        assert!(f16::from_le_bytes([half[0], half[1]]).to_f64() < 8.0);
        let double = rounded(&[8.0], Kind::Float64, &span(0.0, 8.0));
        assert_eq!(double, 8.0_f64.next_down().to_le_bytes());
    }

    #[test]
    fn floor_is_that_of_the_library() {
        let numbers = [
            0.0,
            0.5,
            1.0,
            2.75,
            4e15,
            9.2e18,
            1e19,
            1e300,
            f64::INFINITY,
        ];
        for number in numbers.into_iter().flat_map(|number| [number, -number]) {
            assert_eq!(floor(number), number.floor() as i64, "{number}");
        }
        assert_eq!(floor(f64::NAN), 0);
    }

    #[test]
    fn extent_names_the_first_non_finite_vertex() {
        let mut values = vec![0.0; 3 * BLOCK * 3];
        values[BLOCK * 3 + 7] = f64::NAN;
        values[BLOCK * 6] = f64::INFINITY;
        let found = extent(&NumericColumn::float64(3, values));
        let vertex = BLOCK + 2;
        assert!(
            matches!(&found, Err(BuildError::NotFinite { vertex: at, axis: 1, .. }) if *at == vertex),
            "{found:?}"
        );
    }
}
