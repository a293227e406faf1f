//! The error of reading and writing dense arrays.

use std::io;

use crate::{ChunkGridError, HyperslabError, NumpyDtypeError};

mod affine;
mod b2nd;
mod nifti;
mod npy;
mod tet;

pub use affine::AffineError;
pub use b2nd::B2ndError;
pub use nifti::NiftiError;
pub use npy::NpyError;
pub use tet::TetError;

/// An error of reading or writing a dense array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenseError {
    /// An I/O error.
    #[error("{name}")]
    Io {
        /// The file or address.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The selection does not fit the array.
    #[error(transparent)]
    Selection(#[from] HyperslabError),
    /// The shapes do not form a grid.
    #[error("{name}")]
    Grid {
        /// The array.
        name: String,
        /// The cause.
        #[source]
        source: ChunkGridError,
    },
    /// The element type is not supported.
    #[error("{name}")]
    Dtype {
        /// The array.
        name: String,
        /// The cause.
        #[source]
        source: NumpyDtypeError,
    },
    /// The Blosc2 array is invalid or cannot be written.
    #[error("{name}")]
    B2nd {
        /// File, directory or address.
        name: String,
        /// The cause.
        #[source]
        source: B2ndError,
    },
    /// The `.tet` file is invalid or cannot be written.
    #[error("{name}")]
    Tet {
        /// The file or address.
        name: String,
        /// The cause.
        #[source]
        source: TetError,
    },
    /// The `.npy` file is invalid.
    #[error("{name}")]
    Npy {
        /// The file or address.
        name: String,
        /// The cause.
        #[source]
        source: NpyError,
    },
    /// The NIfTI file is invalid.
    #[error("{name}")]
    Nifti {
        /// The file or address.
        name: String,
        /// The cause.
        #[source]
        source: NiftiError,
    },
    /// A Zarr array cannot be read or written.
    #[error("{name}")]
    Zarr {
        /// The folder.
        name: String,
        /// The error of `zarrs`.
        #[source]
        source: Box<dyn core::error::Error + Send + Sync>,
    },
    /// The reduction is not defined for the values.
    #[error("{name}: {fault}")]
    Reduction {
        /// The array.
        name: String,
        /// The cause.
        fault: &'static str,
    },
    /// The array cannot be sampled with these options.
    #[error("{name}: {fault}")]
    Sampling {
        /// The array.
        name: String,
        /// The cause.
        fault: &'static str,
    },
    /// The bytes of an array are not whole rows of numbers.
    #[error("{name}")]
    Numbers {
        /// The array.
        name: String,
        /// The cause.
        #[source]
        source: zvf_format::numeric::NumericRowsError,
    },
    /// An array is not an affine map.
    #[error("{name}")]
    Affine {
        /// The array.
        name: String,
        /// The cause.
        #[source]
        source: AffineError,
    },
    /// The output buffer has another size than the selection.
    #[error("the selection has {needed} bytes, but the buffer has {given}")]
    BufferSize {
        /// Size of the selection in bytes.
        needed: u64,
        /// Size of the buffer in bytes.
        given: u64,
    },
    /// The result exceeds the memory budget.
    #[error(
        "the result takes {needed} bytes and the memory budget is {budget}; select less or raise the budget"
    )]
    Budget {
        /// Size of the result in bytes.
        needed: u64,
        /// The budget in bytes.
        budget: u64,
    },
}

impl DenseError {
    /// Adds the name of a Blosc2 array.
    pub(crate) fn b2nd(name: &str, source: B2ndError) -> Self {
        Self::B2nd {
            name: name.to_owned(),
            source,
        }
    }

    /// Adds the name of a `.tet` file.
    pub(crate) fn tet(name: &str, source: TetError) -> Self {
        Self::Tet {
            name: name.to_owned(),
            source,
        }
    }

    /// Adds the name of a NIfTI file.
    pub(crate) fn nifti(name: &str, source: NiftiError) -> Self {
        Self::Nifti {
            name: name.to_owned(),
            source,
        }
    }

    /// Adds the name of a `.npy` file.
    pub(crate) fn npy(name: &str, source: NpyError) -> Self {
        Self::Npy {
            name: name.to_owned(),
            source,
        }
    }

    /// Returns the error that the array `name` cannot be sampled.
    pub(crate) fn sampling(name: &str, fault: &'static str) -> Self {
        Self::Sampling {
            name: name.to_owned(),
            fault,
        }
    }

    /// Returns the error of a buffer of `given` bytes for a selection of `needed`.
    pub(crate) fn buffer_size(needed: usize, given: usize) -> Self {
        Self::BufferSize {
            needed: u64::try_from(needed).unwrap_or(u64::MAX),
            given: u64::try_from(given).unwrap_or(u64::MAX),
        }
    }

    /// Adds the name of a file or address.
    pub(crate) fn io(name: &str, source: io::Error) -> Self {
        Self::Io {
            name: name.to_owned(),
            source,
        }
    }
}
