//! Three-valued logic.

use std::{cmp, fmt, ops};

/// A truth value of SQL's three-valued logic. `&` is the minimum of two values, `|` the maximum.
///
/// ```
/// use zvf_query::predicate::Truth;
///
/// assert_eq!(Truth::Unknown & Truth::False, Truth::False);
/// assert_eq!(!Truth::Unknown | Truth::False, Truth::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// The condition does not hold.
    False,
    /// A value that decides the condition is missing or NaN.
    Unknown,
    /// The condition holds.
    True,
}

impl Truth {
    /// All values, in ascending order.
    pub const ALL: [Self; 3] = [Self::False, Self::Unknown, Self::True];

    /// Returns whether the condition holds, so that the row is selected.
    pub fn is_true(self) -> bool {
        self == Self::True
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
            Self::True => Self::False,
        }
    }
}

impl ops::BitAnd for Truth {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        cmp::min(self, other)
    }
}

impl ops::BitOr for Truth {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        cmp::max(self, other)
    }
}

/// Formats the value as a literal of the predicate language.
impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::False => "false",
            Self::Unknown => "null",
            Self::True => "true",
        })
    }
}
