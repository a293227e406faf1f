//! Errors of transactions.

use zvf_model::{
    error_kind::ErrorKind,
    key::{Key, KeyError},
};

use crate::io::{ListError, ReadError, WriteError};

/// An error of a transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// There is no store, because there is no root.
    #[error("no store exists: zarr.json is missing")]
    NoStore,
    /// The key is the root's `zarr.json`, which the commit puts, or lies below `.zvf`.
    #[error("{key} is reserved; a transaction cannot put or delete it")]
    Reserved {
        /// The key.
        key: Key,
    },
    /// The transaction was committed, or may have been.
    #[error("the transaction is finished; begin another one")]
    Finished,
    /// The root, a journal or a log is invalid.
    #[error("{key}: {fault}")]
    Record {
        /// The object.
        key: Key,
        /// The problem.
        fault: RecordError,
    },
    /// A record contains an invalid key.
    #[error("a transaction record contains an invalid key")]
    Key(#[from] KeyError),
    /// The folder cannot be locked.
    #[error("{path}: cannot be locked")]
    Lock {
        /// The path of the lock file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A program without transactions changed an object while a transaction that replaces it was
    /// being applied. The object is not overwritten. To continue, copy its staged object, which
    /// the journal in `.zvf` names, to the key; the next [`begin`](crate::Store::begin) then
    /// applies the rest.
    #[error(
        "{key}: was changed by another program while a transaction was being applied; copy its staged object there to continue"
    )]
    ModifiedExternally {
        /// The object.
        key: Key,
    },
    /// A staged object is missing, and it is not at its key either.
    #[error("{key}: its staged object is missing")]
    StagedObjectMissing {
        /// The object.
        key: Key,
    },
    /// Other transactions kept changing the head until the last attempt.
    #[error("other transactions keep changing the store; try again later")]
    Contended,
    /// An object cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An object cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Objects cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
}

impl TransactionError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoStore => ErrorKind::NotFound,
            Self::Contended => ErrorKind::Conflict,
            Self::Write(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::List(error) => error.kind(),
            Self::Reserved { .. }
            | Self::Finished
            | Self::Record { .. }
            | Self::Key(_)
            | Self::Lock { .. }
            | Self::ModifiedExternally { .. }
            | Self::StagedObjectMissing { .. } => ErrorKind::Damaged,
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Contended => true,
            Self::Read(error) => error.is_transient(),
            Self::Write(error) => error.is_transient(),
            Self::List(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// A problem of a transaction record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record is not a JSON object.
    #[error("is not a JSON object; restore it from a backup")]
    Json,
    /// A member is missing or has an invalid value.
    #[error("the member {0:?} is missing or invalid; restore the file from a backup")]
    Member(&'static str),
    /// The record has an unknown format version.
    #[error("has the unknown format version {0}; a newer program wrote it")]
    Format(u64),
}

/// An error of a commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// A transaction that was committed meanwhile touched the same names. Nothing was changed; begin
    /// again.
    ///
    /// If more than 256 transactions were committed meanwhile, their logs are gone and all names
    /// of this transaction are reported.
    #[error("conflicts with a transaction that was committed meanwhile: {}", names.join(", "))]
    Conflict {
        /// The names that both touched.
        names: Vec<String>,
    },
    /// Other transactions were committed meanwhile and touched no common name. Nothing was changed;
    /// [`rebase`](crate::Transaction::rebase) and commit again.
    #[error("based on transaction {base}, but the store is at {current}")]
    Outdated {
        /// The transaction that this one is based on.
        base: u64,
        /// The last transaction of the store.
        current: u64,
    },
    /// Objects that other transactions changed before this one was rebased have not been put again.
    /// Committing would overwrite those changes.
    #[error("{} objects have to be put again, because other transactions changed them", keys.len())]
    Stale {
        /// The keys of these objects.
        keys: Vec<Key>,
    },
    /// The outcome is unknown: the store does not respond, and a request may still be in flight. The
    /// transaction is finished.
    #[error("it is unknown whether transaction {transaction} was committed")]
    Uncertain {
        /// The number of the transaction, if it was committed.
        transaction: u64,
        /// The cause.
        source: WriteError,
    },
    /// The commit failed and nothing was changed.
    #[error(transparent)]
    Failed(#[from] TransactionError),
}

impl CommitError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Failed(error) => error.kind(),
            Self::Outdated { .. } | Self::Stale { .. } | Self::Uncertain { .. } => {
                ErrorKind::Unavailable
            }
        }
    }
}

/// An error of creating a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A store exists already.
    #[error("a store already exists")]
    AlreadyExists,
    /// The place holds objects that do not belong to a store.
    #[error("the location is not empty and is not a store: it contains {0}")]
    NotEmpty(String),
    /// The place is in the folder of another store.
    #[error("it is in the folder of the store {0}")]
    InStore(String),
    /// Another process is creating the store.
    #[error("another process is creating the store")]
    InProgress,
    /// Another process began to create the store and may still be running. If it is not,
    /// [`begin_create_replacing_leftovers`](crate::Store::begin_create_replacing_leftovers) deletes
    /// its objects.
    #[error(
        "another process began to create the store and has not finished; its objects can be replaced"
    )]
    Leftovers,
    /// Another process took over the creation.
    #[error("another process took over the creation of the store")]
    TakenOver,
    /// Any other failure.
    #[error(transparent)]
    Failed(#[from] TransactionError),
}

impl CreateError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InStore(_) => ErrorKind::InvalidInput,
            Self::Failed(error) => error.kind(),
            Self::AlreadyExists
            | Self::NotEmpty(_)
            | Self::InProgress
            | Self::Leftovers
            | Self::TakenOver => ErrorKind::Conflict,
        }
    }
}

impl From<ReadError> for CreateError {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<WriteError> for CreateError {
    fn from(error: WriteError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ListError> for CreateError {
    fn from(error: ListError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<KeyError> for CreateError {
    fn from(error: KeyError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<KeyError> for CommitError {
    fn from(error: KeyError) -> Self {
        Self::Failed(error.into())
    }
}
