//! Errors of affine maps.

/// Why a matrix is no affine map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AffineError {
    /// Text that is no number.
    #[error("an affine map is a matrix of numbers, row by row")]
    Number,
    /// Rows and columns of another number.
    #[error("{0} numbers are no square matrix for 1 to 8 axes")]
    Square(usize),
    /// A last row that makes it a projection.
    #[error("the last row of an affine map is 0 but for a 1 at its end")]
    LastRow,
}
