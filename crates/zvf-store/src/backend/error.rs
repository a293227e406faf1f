//! Errors of opening a store.

use core::error::Error;

use zvf_model::error_kind::ErrorKind;

/// An error of opening a store.
///
/// Opening makes no request, so failures of the network appear with the first read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is not a valid address.
    #[error("{0:?} is not the address of a store")]
    Address(String),
    /// The scheme is not supported.
    #[error(
        "addresses with {0:?} are not supported; use a path, file, memory, http, https, s3, gs or az"
    )]
    Scheme(String),
    /// This build lacks the Cargo feature for the address.
    #[error("{address} needs the feature {feature:?} of zvf-store")]
    Feature {
        /// The address.
        address: String,
        /// The missing Cargo feature.
        feature: &'static str,
    },
    /// Nothing exists at the path.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The path is a file whose name does not end in `.zip`.
    #[error("{0} is neither a folder nor a zip file")]
    NotAFolder(String),
    /// The path exists but cannot be opened.
    #[error("{path} cannot be opened")]
    Io {
        /// The path.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The directory of a zip file is damaged.
    #[error("{path} is a damaged zip file")]
    Zip {
        /// The path.
        path: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The kind of store is read-only.
    #[error("{0} is read-only; write to a folder, a bucket or memory")]
    ReadOnly(String),
    /// The kind of store has no such option.
    #[error("option {0:?} does not exist for this kind of store")]
    Option(String),
    /// The address, the options and the environment do not form a valid configuration.
    #[error("{address} cannot be configured")]
    Configuration {
        /// The address.
        address: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Feature { .. } | Self::ReadOnly(_) => ErrorKind::Unsupported,
            Self::Io { .. } => ErrorKind::Unavailable,
            Self::Zip { .. } => ErrorKind::Damaged,
            Self::Address(_)
            | Self::Scheme(_)
            | Self::NotAFolder(_)
            | Self::Option(_)
            | Self::Configuration { .. } => ErrorKind::InvalidInput,
        }
    }
}
