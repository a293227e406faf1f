//! Why a dense array cannot be read or written.

use std::io;

use crate::{DtypeError, GridError, SelectionError};

mod affine;
mod b2nd;
mod npy;
mod tet;

pub use affine::AffineError;
pub use b2nd::B2ndError;
pub use npy::NpyError;
pub use tet::TetError;

/// Why a dense array cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenseError {
    /// The bytes cannot be read or written.
    #[error("{name}")]
    Io {
        /// File or address.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What is selected is not of the array.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The shapes are no grid.
    #[error("{name}")]
    Grid {
        /// The array.
        name: String,
        /// Why.
        #[source]
        source: GridError,
    },
    /// The type of elements is not known.
    #[error("{name}")]
    Dtype {
        /// The array.
        name: String,
        /// Why.
        #[source]
        source: DtypeError,
    },
    /// The Blosc2 array does not hold.
    #[error("{name}")]
    B2nd {
        /// File, directory or address.
        name: String,
        /// Why.
        #[source]
        source: B2ndError,
    },
    /// A `.tet` does not hold, or cannot be written.
    #[error("{name}")]
    Tet {
        /// File or address.
        name: String,
        /// Why.
        #[source]
        source: TetError,
    },
    /// A `.npy` does not hold.
    #[error("{name}")]
    Npy {
        /// File or address.
        name: String,
        /// Why.
        #[source]
        source: NpyError,
    },
    /// A Zarr array cannot be read or written.
    #[error("{name}")]
    Zarr {
        /// The folder.
        name: String,
        /// Why, as `zarrs` has it.
        #[source]
        source: Box<dyn core::error::Error + Send + Sync>,
    },
    /// What is asked of the values cannot be told.
    #[error("{name}: {fault}")]
    Reduction {
        /// The array.
        name: String,
        /// Why.
        fault: &'static str,
    },
    /// The array cannot be sampled as it is asked for.
    #[error("{name}: {fault}")]
    Sampling {
        /// The array.
        name: String,
        /// Why.
        fault: &'static str,
    },
    /// What an array read as is no whole numbers.
    #[error("{name}")]
    Numbers {
        /// The array.
        name: String,
        /// Why.
        #[source]
        source: zvf_format::numeric::NumericRowsError,
    },
    /// An array is no affine map.
    #[error("{name}")]
    Affine {
        /// The array.
        name: String,
        /// Why.
        #[source]
        source: AffineError,
    },
    /// The bytes given to read into are not as many as are selected.
    #[error("{needed} bytes are selected, and there is room for {given}")]
    Room {
        /// Bytes selected.
        needed: u64,
        /// Bytes there are.
        given: u64,
    },
    /// More memory than may be used.
    #[error(
        "{needed} bytes of memory are needed, and {budget} may be used; select less, or allow more"
    )]
    Budget {
        /// Bytes needed.
        needed: u64,
        /// Bytes there may be.
        budget: u64,
    },
}

impl DenseError {
    /// An error of the Blosc2 array called `name`.
    pub(crate) fn b2nd(name: &str, source: B2ndError) -> Self {
        Self::B2nd {
            name: name.to_owned(),
            source,
        }
    }

    /// An error of the `.tet` called `name`.
    pub(crate) fn tet(name: &str, source: TetError) -> Self {
        Self::Tet {
            name: name.to_owned(),
            source,
        }
    }

    /// An error of the `.npy` called `name`.
    pub(crate) fn npy(name: &str, source: NpyError) -> Self {
        Self::Npy {
            name: name.to_owned(),
            source,
        }
    }

    /// The array called `name` cannot be sampled.
    pub(crate) fn sampling(name: &str, fault: &'static str) -> Self {
        Self::Sampling {
            name: name.to_owned(),
            fault,
        }
    }

    /// Room for `given` bytes where `needed` are selected.
    pub(crate) fn room(needed: usize, given: usize) -> Self {
        Self::Room {
            needed: u64::try_from(needed).unwrap_or(u64::MAX),
            given: u64::try_from(given).unwrap_or(u64::MAX),
        }
    }

    /// An error of reading or writing what is called `name`.
    pub(crate) fn io(name: &str, source: io::Error) -> Self {
        Self::Io {
            name: name.to_owned(),
            source,
        }
    }
}
