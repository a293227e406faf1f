//! Number of endpoints of a link.

use core::fmt;

/// Maximum number of endpoints of a link. A permutation then fits nine bytes, and no known writer
/// makes wider faces.
pub const MAX_WIDTH: usize = 8;

/// Number of endpoints of every link of a family, L: 1 for references to a
/// parent, 2 for edges, 3 and more for faces, at most [`MAX_WIDTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkWidth(u8);

impl LinkWidth {
    /// An edge's two endpoints.
    pub const EDGE: Self = Self(2);
    /// A triangle's three corners.
    pub const TRIANGLE: Self = Self(3);

    /// Checks a width that metadata declare.
    ///
    /// # Errors
    ///
    /// [`LinkWidthError`] if the width is not 1 to 8.
    pub fn new(width: u64) -> Result<Self, LinkWidthError> {
        match u8::try_from(width) {
            Ok(width @ 1..=8) => Ok(Self(width)),
            _ => Err(LinkWidthError(width)),
        }
    }

    /// Returns the width as a number, 1 to 8.
    #[inline]
    pub fn get(self) -> usize {
        // The clamp repeats the check of `new` for the optimiser.
        usize::from(self.0).clamp(1, MAX_WIDTH)
    }

    /// Returns the number of orders of L endpoints, L!.
    pub fn permutations(self) -> i64 {
        (1..=i64::from(self.0)).fold(1, i64::wrapping_mul)
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A link width that is not 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link width is {0}, not 1 to 8")]
pub struct LinkWidthError(pub u64);
