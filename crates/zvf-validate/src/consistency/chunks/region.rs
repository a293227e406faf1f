//! The box that contains the vertices of a chunk or bin.
//!
//! Nearly all vertices are in their box, so a vectorised test in the type of the coordinates runs
//! first. Only if it fails, each vertex is tested with the arithmetic that the format prescribes.

/// A coordinate type that is compared without conversion.
pub(super) trait Coordinate: Copy + PartialOrd {
    /// Returns the nearest value of this type.
    fn nearest(number: f64) -> Self;
    /// Returns the value as `f64`, exactly.
    fn number(self) -> f64;
    /// Returns the next greater value.
    fn up(self) -> Self;
    /// Returns the next smaller value.
    fn down(self) -> Self;
    /// Returns whether all rows of little-endian `bytes` are between two corners. NaN is not.
    fn between(bytes: &[u8], lower: &[Self], upper: &[Self]) -> bool;
}

macro_rules! coordinate {
    ($type:ident, $bytes:literal, $nearest:expr, $number:expr) => {
        impl Coordinate for $type {
            fn nearest(number: f64) -> Self {
                $nearest(number)
            }

            fn number(self) -> f64 {
                $number(self)
            }

            fn up(self) -> Self {
                self.next_up()
            }

            fn down(self) -> Self {
                self.next_down()
            }

            fn between(bytes: &[u8], lower: &[Self], upper: &[Self]) -> bool {
                fn rows<const D: usize>(
                    bytes: &[u8],
                    lower: &[$type],
                    upper: &[$type],
                ) -> Option<bool> {
                    let lower: &[$type; D] = lower.try_into().ok()?;
                    let upper: &[$type; D] = upper.try_into().ok()?;
                    let (values, _) = bytes.as_chunks::<$bytes>();
                    let (rows, _) = values.as_chunks::<D>();
                    // Branch-free per vertex, so that it vectorises. Comparisons with NaN are
                    // false.
                    Some(rows.iter().fold(true, |all, row| {
                        let axes = row.iter().zip(lower.iter().zip(upper));
                        axes.fold(all, |all, (value, (lower, upper))| {
                            let value = $type::from_le_bytes(*value);
                            all & (*lower <= value) & (value <= *upper)
                        })
                    }))
                }
                let known = match lower.len() {
                    1 => rows::<1>(bytes, lower, upper),
                    2 => rows::<2>(bytes, lower, upper),
                    3 => rows::<3>(bytes, lower, upper),
                    4 => rows::<4>(bytes, lower, upper),
                    _ => None,
                };
                known.unwrap_or_else(|| {
                    let (values, _) = bytes.as_chunks::<$bytes>();
                    let corners = lower.iter().zip(upper).cycle();
                    let mut pairs = values.iter().zip(corners);
                    pairs.all(|(value, (lower, upper))| {
                        let value = $type::from_le_bytes(*value);
                        *lower <= value && value <= *upper
                    })
                })
            }
        }
    };
}

coordinate!(f32, 4, nearest, f64::from);
coordinate!(f64, 8, core::convert::identity, core::convert::identity);

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "rounds to the nearest float on purpose"
)]
fn nearest(number: f64) -> f32 {
    number as f32
}

/// Returns the start of cell `number` along an axis with cells of `extent`: never below its first
/// coordinate, and rarely above. Returns `None` far from zero, where coordinates are coarser than
/// cells.
pub(super) fn first_of<T: Coordinate>(extent: f64, number: i64) -> Option<T> {
    let number = exact(number)?;
    let reached = |at: T| (at.number() / extent).floor() >= number;
    let mut at = T::nearest(number * extent);
    for _ in 0..4 {
        if reached(at) {
            return Some(at);
        }
        at = at.up();
    }
    None
}

/// Returns the end of cell `number`: never above its last coordinate, and rarely below.
pub(super) fn last_of<T: Coordinate>(extent: f64, number: i64) -> Option<T> {
    let next = exact(number.checked_add(1)?)?;
    let within = |at: T| (at.number() / extent).floor() < next;
    let mut at = T::nearest(next * extent);
    for _ in 0..4 {
        if within(at) {
            return Some(at);
        }
        at = at.down();
    }
    None
}

/// Returns a lower bound in this type, rounded down: writers take bounds from coordinates before
/// they round them.
pub(super) fn lower_bound<T: Coordinate>(bound: f64) -> T {
    let at = T::nearest(bound);
    if at.number() > bound { at.down() } else { at }
}

/// Returns an upper bound in this type, rounded up.
pub(super) fn upper_bound<T: Coordinate>(bound: f64) -> T {
    let at = T::nearest(bound);
    if at.number() < bound { at.up() } else { at }
}

/// Converts a chunk coordinate to a float, if the conversion is exact.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "exact in the checked range"
)]
pub(super) fn exact(number: i64) -> Option<f64> {
    (number.unsigned_abs() <= 1 << 53).then_some(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_those_of_the_division() {
        for extent in [0.1, 0.3, 1.0, 20.0 / 9.0, 7.7, 10.0, 64.0, 1e-3] {
            for number in [-1000, -3, -2, 0, 1, 2, 28, 33, 4096] {
                let cell = |at: f64| (at / extent).floor();
                let expected = exact(number);
                let first: Option<f32> = first_of(extent, number);
                let last: Option<f32> = last_of(extent, number);
                for at in [first, last] {
                    assert_eq!(at.map(|at| cell(at.into())), expected, "{extent} {number}");
                }
                // No quotient of f32 coordinates underflows, so the bounds are exact.
                if number != 0 {
                    let before = first.map(|at| cell(at.next_down().into()));
                    let after = last.map(|at| cell(at.next_up().into()));
                    assert!(before < expected && expected < after, "{extent} {number}");
                }
            }
        }
        assert_eq!(first_of::<f32>(10.0, 1), Some(10.0));
        assert_eq!(first_of::<f32>(10.0, i64::MAX), None);
    }

    #[test]
    fn nothing_but_what_is_between_is_between() {
        for axes in 1..=6 {
            let (lower, upper) = (vec![0.0_f32; axes], vec![1.0_f32; axes]);
            for bad in [-1.0_f32, 1.5, f32::NAN, f32::INFINITY] {
                for at in 0..axes * 5 {
                    let mut values = vec![0.5_f32; axes * 5];
                    let bytes = |values: &[f32]| -> Vec<u8> {
                        values
                            .iter()
                            .flat_map(|value| value.to_le_bytes())
                            .collect()
                    };
                    assert!(f32::between(&bytes(&values), &lower, &upper));
                    if let Some(value) = values.get_mut(at) {
                        *value = bad;
                    }
                    assert!(!f32::between(&bytes(&values), &lower, &upper));
                }
            }
        }
    }

    #[test]
    fn bounds_are_rounded_outwards() {
        assert!(f64::from(lower_bound::<f32>(0.1)) <= 0.1);
        assert!(f64::from(upper_bound::<f32>(0.1)) >= 0.1);
        assert_eq!(upper_bound::<f32>(2.0).to_bits(), 2.0_f32.to_bits());
    }
}
