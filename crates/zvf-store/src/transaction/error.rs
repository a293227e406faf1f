//! Why transactions fail.

use zvf_model::key::{Key, KeyError};

use crate::{list::ListError, read::ReadError, write::WriteError};

/// Why a transaction cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// There is nothing to change: a store has a root, this has none.
    #[error("there is no store: zarr.json is absent")]
    NoStore,
    /// The root's `zarr.json`, which a commit is given, or below `.zvf`.
    #[error("{key}: is not for a transaction to put or delete")]
    Reserved {
        /// The key.
        key: Key,
    },
    /// The transaction was committed, or may have been.
    #[error("the transaction is over")]
    Finished,
    /// The root, a journal or a log does not say what it has to.
    #[error("{key}: {fault}")]
    Record {
        /// The object.
        key: Key,
        /// What is wrong with it.
        fault: RecordError,
    },
    /// A key that a record asks for cannot be one.
    #[error("a record names what is no key")]
    Key(#[from] KeyError),
    /// The folder cannot be locked.
    #[error("{path}: cannot be locked")]
    Lock {
        /// The lock's file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Something that keeps to no transaction changed an object that one is
    /// about to replace. It is not overwritten; once what is staged for it, as
    /// the journal in `.zvf` says, is put there by hand, the next
    /// [`begin`](crate::Store::begin) goes on.
    #[error("{key}: was changed from outside while a transaction was being applied")]
    ModifiedExternally {
        /// The object.
        key: Key,
    },
    /// What was staged is gone, and not where it belongs either.
    #[error("{key}: what was staged for it is gone")]
    StagedObjectMissing {
        /// The object.
        key: Key,
    },
    /// Others commit faster than this can look.
    #[error("the store does not come to rest")]
    Contended,
    /// An object cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An object cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What is there cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
}

/// What is wrong with a record of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No JSON, or no object.
    #[error("is no JSON object")]
    Json,
    /// A member is missing or says what it cannot.
    #[error("the member {0:?} does not say what it has to")]
    Member(&'static str),
    /// Written by something newer.
    #[error("is of format {0}, which is not known")]
    Format(u64),
}

/// Why a commit did not go through, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another transaction that was committed meanwhile touched the same. All
    /// names, where it is no longer known what was touched since: then the
    /// transaction took longer than 256 others. Nothing was changed; begin
    /// again.
    #[error("another transaction changed the same meanwhile: {}", names.join(", "))]
    Conflict {
        /// Names touched by both.
        names: Vec<String>,
    },
    /// Others committed meanwhile and touched none of the same. Nothing was
    /// changed; [`rebase`](crate::Transaction::rebase) and commit again.
    #[error("the store moved from transaction {base} to {current}")]
    Outdated {
        /// What this transaction builds on.
        base: u64,
        /// What is there now.
        current: u64,
    },
    /// Objects that others changed before the transaction was rebased, and that
    /// would now be overwritten with what was made of their former state.
    #[error("{} objects have to be put again: others changed them", keys.len())]
    Stale {
        /// Where they are.
        keys: Vec<Key>,
    },
    /// Whether this transaction was committed cannot be told: the store does not
    /// answer, and may still do what it was asked. The transaction is over.
    #[error("whether transaction {transaction} was committed is not known")]
    Uncertain {
        /// Its number, if it was.
        transaction: u64,
        /// What happened.
        source: WriteError,
    },
    /// The transaction is committed, and readers see it; but not all of it is at
    /// its place yet. Whoever begins the next one sees to that.
    #[error("transaction {transaction} is committed, but not finished")]
    Unfinished {
        /// Its number.
        transaction: u64,
        /// What happened.
        source: TransactionError,
    },
    /// Nothing was changed.
    #[error(transparent)]
    Failed(#[from] TransactionError),
}

/// Why a store cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// There is a store.
    #[error("there is a store already")]
    AlreadyExists,
    /// There are objects that belong to no store.
    #[error("there is something already, such as {0}, and it is no store")]
    NotEmpty(String),
    /// Somebody is creating the store.
    #[error("the store is being created by somebody else")]
    InProgress,
    /// Somebody began to create the store. Whether they still are cannot be
    /// told in a bucket; when they are not,
    /// [`begin_create_replacing_leftovers`](crate::Store::begin_create_replacing_leftovers)
    /// deletes what they left.
    #[error(
        "somebody began to create the store and has not finished; what is there can be deleted by force"
    )]
    Leftovers,
    /// Somebody else took over, by force.
    #[error("somebody else took over creating the store")]
    TakenOver,
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] TransactionError),
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
