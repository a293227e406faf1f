//! Arithmetic of all value types.

use core::cmp::Ordering;

use half::f16;
use zvf_format::numeric::Element;

/// Value that can be aggregated.
pub(super) trait Number: Element + Send + Sync {
    /// Sum of values.
    type Sum: Copy + Default;
    /// Null value: NaN, or zero for integers.
    const NULL: Self;

    /// Adds the value to a sum.
    fn add_to(self, sum: &mut Self::Sum);
    /// Returns the value nearest to a sum.
    fn total(sum: Self::Sum) -> Self;
    /// Returns the value nearest to a mean.
    fn mean(sum: Self::Sum, members: u32) -> Self;
    /// Compares two values in total order; -0 sorts before 0.
    fn order(self, other: Self) -> Ordering;
    /// Returns whether the value is NaN.
    fn is_nan(self) -> bool {
        false
    }
    /// Returns a dictionary code as a value; `None` for types that are not integers.
    fn of_code(_code: i64) -> Option<Self> {
        None
    }
    /// Returns whether the value sorts before another.
    fn is_below(self, other: Self) -> bool {
        self.order(other).is_lt()
    }
    /// Returns whether two values are equal.
    fn is_same(self, other: Self) -> bool {
        self.order(other).is_eq()
    }
}

/// Divides and rounds half away from zero.
fn rounded(sum: i128, members: u32) -> i128 {
    let members = i128::from(members);
    // A sum of fewer than 2^32 64-bit numbers fits in 128 bits.
    let half = (2 * sum.abs() + members) / (2 * members);
    half * sum.signum()
}

macro_rules! whole {
    ($sum:ty: $($number:ty)*) => {$(
        impl Number for $number {
            type Sum = $sum;
            const NULL: Self = 0;

            fn add_to(self, sum: &mut $sum) {
                *sum += <$sum>::from(self);
            }

            fn total(sum: $sum) -> Self {
                let nearest = sum.clamp(Self::MIN.into(), Self::MAX.into());
                Self::try_from(nearest).unwrap_or_default()
            }

            fn mean(sum: $sum, members: u32) -> Self {
                Self::try_from(rounded(sum.into(), members)).unwrap_or_default()
            }

            fn order(self, other: Self) -> Ordering {
                self.cmp(&other)
            }

            fn of_code(code: i64) -> Option<Self> {
                Self::try_from(code).ok()
            }
        }
    )*};
}

// Fewer than 2^32 values are summed.
whole!(i64: i8 i16 u8 u16);
whole!(i128: i32 i64 u32 u64);

impl Number for bool {
    type Sum = u64;
    const NULL: Self = false;

    fn add_to(self, sum: &mut u64) {
        *sum += u64::from(self);
    }

    fn total(sum: u64) -> Self {
        sum > 0
    }

    fn mean(sum: u64, members: u32) -> Self {
        2 * sum >= u64::from(members)
    }

    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

macro_rules! float {
    ($number:ident, $widen:expr, $narrow:expr) => {
        impl Number for $number {
            type Sum = f64;
            const NULL: Self = Self::NAN;

            fn add_to(self, sum: &mut f64) {
                *sum += $widen(self);
            }

            fn total(sum: f64) -> Self {
                $narrow(sum)
            }

            fn mean(sum: f64, members: u32) -> Self {
                $narrow(sum / f64::from(members))
            }

            fn order(self, other: Self) -> Ordering {
                self.total_cmp(&other)
            }

            fn is_nan(self) -> bool {
                $number::is_nan(self)
            }
        }
    };
}

float!(f16, f16::to_f64, f16::from_f64);
float!(f32, f64::from, |number: f64| number as f32);
float!(f64, |number: f64| number, |number: f64| number);

macro_rules! complex {
    ($part:ident) => {
        impl Number for [$part; 2] {
            type Sum = [f64; 2];
            const NULL: Self = [$part::NAN; 2];

            fn add_to(self, sum: &mut [f64; 2]) {
                self[0].add_to(&mut sum[0]);
                self[1].add_to(&mut sum[1]);
            }

            fn total(sum: [f64; 2]) -> Self {
                sum.map($part::total)
            }

            fn mean(sum: [f64; 2], members: u32) -> Self {
                sum.map(|sum| $part::mean(sum, members))
            }

            fn order(self, other: Self) -> Ordering {
                self[0].order(other[0]).then(self[1].order(other[1]))
            }

            fn is_nan(self) -> bool {
                self[0].is_nan() || self[1].is_nan()
            }
        }
    };
}

complex!(f32);
complex!(f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_half_away_from_zero() {
        for sum in -50_i32..50 {
            for members in 1..9_u32 {
                let exact = f64::from(sum) / f64::from(members);
                let found = rounded(sum.into(), members);
                let expected = format!("{}", exact.round());
                assert_eq!(
                    found.to_string(),
                    expected.replace("-0", "0"),
                    "{sum}/{members}"
                );
            }
        }
    }
}
