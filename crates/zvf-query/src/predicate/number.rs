//! Numbers of three types with exact comparison.

use std::{cmp::Ordering, fmt};

/// A number of a literal or a column.
///
/// `==` compares type and value; [`compare`](Self::compare) compares values across types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A value of a signed type, or an integer literal within i64.
    Int(i64),
    /// A value of an unsigned type, or an integer literal above i64.
    UInt(u64),
    /// A value of a float type.
    Float(f64),
}

impl Number {
    /// Compares by value, without rounding. Returns `None` if a number is NaN.
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use zvf_query::predicate::Number;
    ///
    /// // The float nearest to u64::MAX is 2^64.
    /// let order = Number::UInt(u64::MAX).compare(Number::Float(u64::MAX as f64));
    /// assert_eq!(order, Some(Ordering::Less));
    /// ```
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self.integer(), other.integer()) {
            (Ok(a), Ok(b)) => Some(a.cmp(&b)),
            (Ok(a), Err(b)) => compare_integer_with_float(a, b),
            (Err(a), Ok(b)) => compare_integer_with_float(b, a).map(Ordering::reverse),
            (Err(a), Err(b)) => a.partial_cmp(&b),
        }
    }

    /// Returns `true` if the number is NaN.
    pub(super) fn is_nan(self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// Returns the integer, or the float as `Err`.
    fn integer(self) -> Result<i128, f64> {
        match self {
            Self::Int(value) => Ok(value.into()),
            Self::UInt(value) => Ok(value.into()),
            Self::Float(value) => Err(value),
        }
    }
}

/// Compares whole parts as integers, which is exact; the fraction of the float decides ties.
fn compare_integer_with_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "the cast is exact for whole floats within i128 and saturates beyond, far outside 64-bit integers"
    )]
    let whole = float.trunc() as i128;
    let by_fraction = 0.0.partial_cmp(&(float - float.trunc()));
    // The fraction of an infinity is NaN, but the whole parts have decided by then.
    let by_fraction = by_fraction.unwrap_or(Ordering::Equal);
    Some(integer.cmp(&whole).then(by_fraction))
}

/// Formats the number as a literal. Floats have a point or an exponent and the fewest digits that
/// identify them.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::UInt(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}
