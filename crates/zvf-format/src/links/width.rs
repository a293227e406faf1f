//! How many endpoints a link has.

use core::fmt;

/// The most endpoints a link may have: 8. A permutation then fits nine bytes,
/// and no writer known makes wider faces.
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
    /// [`LinkWidthError`] when it is not 1 to 8.
    pub fn new(width: u64) -> Result<Self, LinkWidthError> {
        match u8::try_from(width) {
            Ok(width @ 1..=8) => Ok(Self(width)),
            _ => Err(LinkWidthError(width)),
        }
    }

    /// The width as a number, 1 to 8.
    pub fn get(self) -> usize {
        // The clamp repeats what `new` proved, so that the optimiser knows it too.
        usize::from(self.0).clamp(1, MAX_WIDTH)
    }

    /// How many orders L endpoints have, L!.
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
