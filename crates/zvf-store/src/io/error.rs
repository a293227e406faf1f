//! Errors of reading, writing and listing.

use core::error::Error;
use std::sync::Arc;

use zvf_model::{error_kind::ErrorKind, key::Key};

use super::{
    range::{ByteRange, Read},
    seal_error::SealError,
};

/// An error of reading an object. An absent object is not an error.
///
/// Cloning is cheap, because a request that fails may have been for several reads.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The object ends before the requested range does.
    #[error("{key}: the object ends before {wanted}")]
    Truncated {
        /// The object.
        key: Key,
        /// The requested range.
        wanted: ByteRange,
        /// The size of the object, if the store reported it.
        size: Option<u64>,
    },
    /// The read exceeds the memory budget. Nothing was allocated for it.
    #[error("{key}: reading {size} more bytes exceeds the memory budget of {budget} bytes")]
    OverBudget {
        /// The object that did not fit.
        key: Key,
        /// The bytes to be read of it.
        size: u64,
        /// The budget of one call.
        budget: u64,
    },
    /// The store requires credentials.
    #[error("{key}: not authenticated")]
    Unauthenticated {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The credentials do not permit reading the object. Some buckets also return this for absent
    /// objects.
    #[error("{key}: not permitted")]
    Forbidden {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store still throttled requests after the last retry.
    #[error("{key}: the store throttles requests")]
    Throttled {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store could not be reached or failed, after the last retry.
    #[error("{key}: the store is not available")]
    Unavailable {
        /// The object.
        key: Key,
        /// The cause.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The object differs from the inventory of a sealed store: it is damaged, or another program
    /// changed it.
    #[error(
        "{key}: the store is sealed, and this object was damaged or changed by another program"
    )]
    Sealed {
        /// The object.
        key: Key,
        /// The difference.
        source: SealError,
    },
    /// Any other failure.
    #[error("{key}: cannot be read")]
    Io {
        /// The object.
        key: Key,
        /// The cause.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl ReadError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            Self::Truncated { .. } | Self::Sealed { .. } => ErrorKind::Damaged,
            Self::Io { .. } if self.is_damage() => ErrorKind::Damaged,
            Self::Unauthenticated { .. }
            | Self::Forbidden { .. }
            | Self::Throttled { .. }
            | Self::Unavailable { .. }
            | Self::Io { .. } => ErrorKind::Unavailable,
        }
    }

    /// The error of an object that ends before `read` does.
    pub(crate) fn truncated(read: &Read, size: Option<u64>) -> Self {
        Self::Truncated {
            key: read.key.clone(),
            wanted: read.range.clone(),
            size,
        }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> &Key {
        match self {
            Self::Truncated { key, .. }
            | Self::OverBudget { key, .. }
            | Self::Unauthenticated { key, .. }
            | Self::Forbidden { key, .. }
            | Self::Throttled { key, .. }
            | Self::Unavailable { key, .. }
            | Self::Sealed { key, .. }
            | Self::Io { key, .. } => key,
        }
    }

    /// Returns whether the object is damaged, so that a retry fails again.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Truncated { .. } | Self::Sealed { .. } => true,
            // A zip entry that does not inflate.
            Self::Io { source, .. } => source
                .downcast_ref::<std::io::Error>()
                .is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData),
            _ => false,
        }
    }

    /// Returns this error of a request as the error of one read that the request served.
    pub(crate) fn for_read(&self, read: &Read) -> Self {
        match self {
            Self::Truncated { size, .. } => Self::Truncated {
                key: read.key.clone(),
                wanted: read.range.clone(),
                size: *size,
            },
            other => other.clone(),
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}

/// An error of putting or deleting an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The store is a web server or a zip file, which are read-only.
    #[error("{key}: the store is read-only")]
    ReadOnly {
        /// The object.
        key: Key,
    },
    /// The store ignores preconditions of puts, so that two concurrent writers would overwrite
    /// each other.
    #[error("{key}: the store does not support conditional puts, which transactions require")]
    Unconditional {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store requires credentials.
    #[error("{key}: not authenticated")]
    Unauthenticated {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The credentials do not permit writing the object.
    #[error("{key}: not permitted")]
    Forbidden {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store still throttled requests after the last retry.
    #[error("{key}: the store throttles requests")]
    Throttled {
        /// The object.
        key: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store could not be reached or failed, after the last retry.
    #[error("{key}: the store is not available")]
    Unavailable {
        /// The object.
        key: Key,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Any other failure.
    #[error("{key}: cannot be written")]
    Io {
        /// The object.
        key: Key,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl WriteError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::ReadOnly { .. } | Self::Unconditional { .. } => ErrorKind::Unsupported,
            Self::Unauthenticated { .. }
            | Self::Forbidden { .. }
            | Self::Throttled { .. }
            | Self::Unavailable { .. }
            | Self::Io { .. } => ErrorKind::Unavailable,
        }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> &Key {
        match self {
            Self::ReadOnly { key }
            | Self::Unconditional { key, .. }
            | Self::Unauthenticated { key, .. }
            | Self::Forbidden { key, .. }
            | Self::Throttled { key, .. }
            | Self::Unavailable { key, .. }
            | Self::Io { key, .. } => key,
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}

/// An error of listing a prefix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The prefix has more children than allowed.
    #[error("{prefix}: more than {limit} children")]
    TooMany {
        /// The listed prefix.
        prefix: Key,
        /// The limit.
        limit: usize,
    },
    /// The store cannot list, as most web servers, or denies it.
    #[error("{prefix}: the store does not list objects")]
    Unlistable {
        /// The listed prefix.
        prefix: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The bucket or the container does not exist.
    #[error("the bucket does not exist; check its name, its region and the endpoint")]
    NoBucket {
        /// The listed prefix.
        prefix: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store requires credentials.
    #[error("{prefix}: not authenticated")]
    Unauthenticated {
        /// The listed prefix.
        prefix: Key,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store still throttled requests after the last retry.
    #[error("{prefix}: the store throttles requests")]
    Throttled {
        /// The listed prefix.
        prefix: Key,
        /// The response of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store could not be reached or failed, after the last retry.
    #[error("{prefix}: the store is not available")]
    Unavailable {
        /// The listed prefix.
        prefix: Key,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store is sealed, and the inventory lists something else below the prefix.
    #[error("{prefix}: the listing differs from the inventory of the store")]
    Sealed {
        /// The listed prefix or an object below it.
        prefix: Key,
        /// The difference.
        source: ReadError,
    },
    /// Any other failure.
    #[error("{prefix}: cannot be listed")]
    Io {
        /// The listed prefix.
        prefix: Key,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ListError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooMany { .. } => ErrorKind::OverBudget,
            Self::Unlistable { .. } => ErrorKind::Unsupported,
            Self::NoBucket { .. } => ErrorKind::NotFound,
            Self::Sealed { source, .. } => source.kind(),
            Self::Unauthenticated { .. }
            | Self::Throttled { .. }
            | Self::Unavailable { .. }
            | Self::Io { .. } => ErrorKind::Unavailable,
        }
    }

    /// Returns the listed prefix.
    pub fn prefix(&self) -> &Key {
        match self {
            Self::TooMany { prefix, .. }
            | Self::NoBucket { prefix, .. }
            | Self::Unauthenticated { prefix, .. }
            | Self::Unlistable { prefix, .. }
            | Self::Throttled { prefix, .. }
            | Self::Unavailable { prefix, .. }
            | Self::Sealed { prefix, .. }
            | Self::Io { prefix, .. } => prefix,
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}
