//! A place in space, held without allocating.

use std::{fmt, ops::Deref};

/// The most axes a position can have.
pub const MAX_AXES: usize = 8;

/// One value an axis, 1 to [`MAX_AXES`] of them; a slice of f64 to whoever
/// reads it.
#[derive(Clone, Copy)]
pub struct Position {
    values: [f64; MAX_AXES],
    axes: usize,
}

impl Position {
    /// Copies a position.
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
    /// [`AxesError`] when there are no or too many values.
    pub fn new(values: &[f64]) -> Result<Self, AxesError> {
        if values.is_empty() || values.len() > MAX_AXES {
            return Err(AxesError(values.len()));
        }
        Ok(Self::collect(values.iter().copied()))
    }

    /// What goes past the last axis is left out.
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

    /// The axes as places to write to.
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

/// This many values are no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a position has 1 to {MAX_AXES} axes, not {0}")]
pub struct AxesError(pub usize);
