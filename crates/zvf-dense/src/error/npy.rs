//! Errors of `.npy` files.

use crate::DtypeError;

/// Why a file is no `.npy`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It does not start as these do.
    #[error("does not start with \\x93NUMPY")]
    Magic,
    /// Of a version there is none of.
    #[error("is of version {0}.{1}")]
    Version(u8, u8),
    /// The header is no dictionary of the three entries.
    #[error("has a header that is no dictionary of descr, fortran_order and shape")]
    Header,
    /// The type of elements is not known.
    #[error("cannot be read")]
    Dtype(#[from] DtypeError),
    /// Another number of bytes than the shape says.
    #[error("has {found} bytes of data, and its shape and dtype make {needed}")]
    Size {
        /// What the header makes.
        needed: u64,
        /// What there is.
        found: u64,
    },
}
