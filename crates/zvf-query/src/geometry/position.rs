//! Positions of up to [`MAX_AXES`] axes, stored inline.

use std::{fmt, ops::Deref};

/// Maximum number of axes of a position.
pub const MAX_AXES: usize = 8;

/// A position of 1 to [`MAX_AXES`] axes; dereferences to a slice of f64. Never allocates.
#[derive(Clone, Copy)]
pub struct Position {
    values: [f64; MAX_AXES],
    axes: usize,
}

impl Position {
    /// Creates a position from one value per axis.
    ///
    /// ```
    /// use zvf_query::geometry::Position;
    ///
    /// assert_eq!(Position::new(&[1.0, 2.0])?.iter().sum::<f64>(), 3.0);
    /// assert!(Position::new(&[]).is_err());
    /// # Ok::<(), zvf_query::geometry::AxesError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`AxesError`] if there are no values or too many.
    pub fn new(values: &[f64]) -> Result<Self, AxesError> {
        if values.is_empty() || values.len() > MAX_AXES {
            return Err(AxesError(values.len()));
        }
        Ok(Self::collect(values.iter().copied()))
    }

    /// Collects up to [`MAX_AXES`] values; further values are dropped.
    pub(super) fn collect(values: impl Iterator<Item = f64>) -> Self {
        let mut position = Self {
            values: [0.0; MAX_AXES],
            axes: 0,
        };
        for (slot, value) in position.values.iter_mut().zip(values) {
            *slot = value;
            position.axes += 1;
        }
        position
    }

    /// Returns the values for modification.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.values.iter_mut().take(self.axes)
    }
}

impl Deref for Position {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        self.values.get(..self.axes).unwrap_or_default()
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Error of a position without axes, or with too many. Contains the number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a position has 1 to {MAX_AXES} axes, not {0}")]
pub struct AxesError(pub usize);
