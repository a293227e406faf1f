//! Level difference of a link family.

use core::fmt;

use super::{
    NumberFault,
    number::{self, Sign},
};

/// Level of a link's endpoints 1 to L − 1 minus the level of endpoint 0.
///
/// 0 is inside one level, positive is towards coarser levels. As a segment it always carries its
/// sign: `0`, `+1`, `-2`; a bare `1` is invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delta(i32);

impl Delta {
    /// Links inside one level.
    pub const INTRA: Self = Self(0);

    /// Creates a span of this many levels.
    pub const fn new(levels: i32) -> Self {
        Self(levels)
    }

    /// Reads a path segment.
    ///
    /// # Errors
    ///
    /// [`NumberFault`] if it is not a signed number or is too large.
    pub fn parse(segment: &str) -> Result<Self, NumberFault> {
        let levels = number::parse(segment.as_bytes(), Sign::Explicit)?;
        let levels = i32::try_from(levels).map_err(|_| NumberFault::Range)?;
        Ok(Self(levels))
    }

    /// Returns the span in levels.
    pub const fn levels(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        number::write(i64::from(self.0), Sign::Explicit, f)
    }
}
