//! Errors of `.npy` files.

use crate::NumpyDtypeError;

/// An error in a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not start with the magic bytes.
    #[error("does not start with \\x93NUMPY")]
    Magic,
    /// The version is not supported.
    #[error("has the unsupported version {0}.{1}")]
    Version(u8, u8),
    /// The header is not a dictionary with the three entries.
    #[error("has a header that is not a dictionary with descr, fortran_order and shape")]
    Header,
    /// The file ends inside its header.
    #[error("ends inside its header")]
    Truncated,
    /// The header is longer than any that NumPy writes.
    #[error("has a header of {0} bytes, more than the limit of 65536")]
    HeaderLength(u32),
    /// An extent does not fit 64 bits.
    #[error("has an extent that does not fit 64 bits")]
    Shape,
    /// The element type is not supported.
    #[error("has an unsupported element type")]
    Dtype(#[from] NumpyDtypeError),
    /// The size of the data does not match the shape.
    #[error("has {found} bytes of data, but its shape and dtype require {needed}")]
    Size {
        /// Bytes that the header implies.
        needed: u64,
        /// Bytes in the file.
        found: u64,
    },
}
