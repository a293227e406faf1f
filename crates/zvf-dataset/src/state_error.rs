//! States of a store in which an operation is not possible.

use zvf_model::{error_kind::ErrorKind, level::LevelId};

/// State of a store, or of its address, in which an operation is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// There is no Zarr store at the address.
    #[error("{address} {}", if *exists { "is not a Zarr store: it has no zarr.json" } else { "does not exist" })]
    NoStore {
        /// The address.
        address: String,
        /// True if something else exists at the address. False if that is not known.
        exists: bool,
    },
    /// A creation began at the address and has not completed.
    #[error("{address} is not complete: its creation is in progress or was interrupted")]
    Unfinished {
        /// The address.
        address: String,
    },
    /// The store was changed while it was read, so that no result of one state is possible. The
    /// operation may be repeated, after [`Dataset::reload`](crate::Dataset::reload) if the dataset
    /// does not follow changes.
    #[error(
        "{address} was changed while it was read; repeat the operation, or reload the dataset first"
    )]
    Changed {
        /// The address.
        address: String,
    },
    /// The store has no level.
    #[error("{address} has no level: no child of its root is named by a number")]
    NoLevel {
        /// The address.
        address: String,
    },
    /// The requested level does not exist.
    #[error("{address} has no level {level}")]
    AbsentLevel {
        /// The address.
        address: String,
        /// The level.
        level: LevelId,
    },
    /// The store is of a generation that cannot be changed in place.
    #[error(
        "{address} is a store of {profile}, and only stores of 0.9 and 0.10 can be changed; migrate it"
    )]
    Unchangeable {
        /// The address.
        address: String,
        /// The generation.
        profile: &'static str,
    },
    /// Rows or objects were queried at another transaction than that of the store.
    #[error(
        "the ids are of transaction {expected}, but the store is at transaction {found}; query them \
         again"
    )]
    OutdatedRows {
        /// The transaction of the query.
        expected: u64,
        /// The transaction of the store.
        found: u64,
    },
    /// The attribute already exists.
    #[error("attribute {name} of {of} already exists")]
    AttributeExists {
        /// Its name.
        name: String,
        /// The scope of the attribute: vertices or objects.
        of: &'static str,
    },
}

impl StateError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoStore { .. } | Self::NoLevel { .. } | Self::AbsentLevel { .. } => {
                ErrorKind::NotFound
            }
            Self::Unfinished { .. }
            | Self::Changed { .. }
            | Self::OutdatedRows { .. }
            | Self::AttributeExists { .. } => ErrorKind::Conflict,
            Self::Unchangeable { .. } => ErrorKind::Unsupported,
        }
    }
}
