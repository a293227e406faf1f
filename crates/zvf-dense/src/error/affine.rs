//! Errors of affine maps.

/// An error in an affine map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AffineError {
    /// The text is not a matrix of numbers.
    #[error("an affine map must be a matrix of numbers, row by row")]
    Number,
    /// The matrix is not square.
    #[error("{0} numbers do not form a square matrix for 1 to 8 axes")]
    Square(usize),
    /// The last row makes it a projection.
    #[error("the last row of an affine map must be zeros followed by a 1")]
    LastRow,
}
