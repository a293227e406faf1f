//! Numbers of three types, compared without rounding.

use std::{cmp::Ordering, fmt};

/// A number as literals and columns have it. Two are `==` when type and value
/// are the same; [`compare`](Self::compare) goes by value alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of a signed type; every integer literal that fits.
    Int(i64),
    /// Of an unsigned type; integer literals above.
    UInt(u64),
    /// Of a float type.
    Float(f64),
}

impl Number {
    /// Compares by value; `None` when one is NaN.
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
            (Ok(a), Err(b)) => integer_to_float(a, b),
            (Err(a), Ok(b)) => integer_to_float(b, a).map(Ordering::reverse),
            (Err(a), Err(b)) => a.partial_cmp(&b),
        }
    }

    /// The integer, or else the float.
    fn integer(self) -> Result<i128, f64> {
        match self {
            Self::Int(value) => Ok(value.into()),
            Self::UInt(value) => Ok(value.into()),
            Self::Float(value) => Err(value),
        }
    }
}

/// Whole parts as integers first, which is exact; what is left of the float
/// decides when they are equal.
fn integer_to_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "a whole f64 becomes an i128 exactly, or the nearest there is when beyond all 64-bit integers"
    )]
    let whole = float.trunc() as i128;
    let by_fraction = 0.0.partial_cmp(&(float - float.trunc()));
    // An infinity has no fraction, and has been decided by then.
    let by_fraction = by_fraction.unwrap_or(Ordering::Equal);
    Some(integer.cmp(&whole).then(by_fraction))
}

/// As a literal: floats with a point or an exponent, and shortest.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::UInt(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}
