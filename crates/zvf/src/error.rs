//! The public error: what failed, grouped by what a caller can do about it.

use core::fmt;
use std::io;

#[cfg(feature = "write")]
use zvf_build::{BuildError, edit::EditError};
use zvf_model::{
    detection::GenerationError,
    error_chain::error_chain,
    error_kind::ErrorKind,
    fetch::{BoxFuture, MaybeSend},
    key::Key,
};
use zvf_query::QueryError;
use zvf_store::{
    CellError, CommitError, CreateError, ListError, OpenError, ReadError, TransactionError,
    WriteError,
};

use crate::failure::Failure;
#[cfg(feature = "write")]
use crate::task_plan_error::TaskPlanError;

/// The error of every operation on a store.
///
/// Each variant is a group of failures that a caller handles in one way, and [`kind`](Self::kind)
/// is the class of the group. The text is one line: what failed, the array, file or object, and the
/// causes. [`source`](core::error::Error::source) is the first cause. A variant that
/// contains the error of another crate, as [`Query`](Self::Query) does, can be matched further with
/// the types of that crate.
///
/// ```
/// use zvf::{Dataset, Error, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = Dataset::open("does/not/exist.zv").await.unwrap_err();
/// assert_eq!(error.to_string(), "does/not/exist.zv does not exist");
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.is_not_found() && !error.is_retryable());
/// assert!(matches!(error, Error::NoStore { .. }));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be opened, for example because its scheme or feature is missing.
    Open(#[source] OpenError),
    /// There is no Zarr store at the address.
    NoStore {
        /// The address.
        address: String,
        /// True if something else exists at the address. False if that is not known.
        exists: bool,
    },
    /// A creation began at the address and has not completed.
    Unfinished {
        /// The address.
        address: String,
    },
    /// The store was changed while it was read, so that no result of one state is possible. The
    /// operation may be repeated, after [`Dataset::reload`](crate::Dataset::reload) if the dataset
    /// does not follow changes.
    Changed {
        /// The address.
        address: String,
    },
    /// The store lacks the requested level, or has no level at all.
    NoLevel(#[source] Cause),
    /// The store belongs to no supported generation.
    Generation(#[source] GenerationError),
    /// The operation needs a listing, and the store cannot list its contents.
    Unlistable(#[source] Cause),
    /// The store uses a data type or codec that this build does not decode, or a feature of the
    /// format that this version does not implement.
    Unsupported(#[source] Cause),
    /// The store contradicts itself or the specification.
    Damaged(#[source] Cause),
    /// An object cannot be read.
    Read(#[source] ReadError),
    /// The contents of a folder cannot be listed.
    List(#[source] ListError),
    /// An array or cell exceeds the memory budget the store was opened with.
    OverBudget(#[source] Cause),
    /// A query fails.
    Query(#[source] QueryError),
    /// The geometry or the design is rejected before anything is written.
    #[cfg(feature = "write")]
    Rejected(#[source] BuildError),
    /// A query result holds rows that geometry cannot express.
    NotGeometry(#[source] Cause),
    /// A [`GeometrySource`](crate::GeometrySource) or [`TaskRunner`](crate::TaskRunner) fails.
    Source(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// The check of the expected size stopped the creation.
    Declined(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// Something exists at the address where a store is to be created, or it cannot be written.
    Create {
        /// The address.
        address: String,
        /// The cause.
        source: CreateError,
    },
    /// The store is of a generation that cannot be changed in place.
    Unchangeable {
        /// The address.
        address: String,
        /// The generation.
        profile: &'static str,
    },
    /// The change does not fit the store.
    #[cfg(feature = "write")]
    Edit(#[source] EditError),
    /// The geometry that is to replace objects names none.
    Unnamed,
    /// Replacing the objects would drop links to other objects.
    Severed {
        /// Number of links that would be dropped.
        links: usize,
    },
    /// Rows or objects were queried at another transaction than that of the store.
    OutdatedRows {
        /// The transaction of the query.
        expected: u64,
        /// The transaction of the store.
        found: u64,
    },
    /// The attribute already exists.
    AttributeExists {
        /// Its name.
        name: String,
        /// The scope of the attribute: vertices or objects.
        of: &'static str,
    },
    /// The attribute cannot be written.
    Attribute(#[source] Cause),
    /// Coarser levels cannot be built as requested.
    Pyramid(#[source] Cause),
    /// A plan of tasks cannot be used.
    #[cfg(feature = "write")]
    Tasks {
        /// The address of the plan, or of the store that it is for.
        address: String,
        /// The problem.
        source: TaskPlanError,
    },
    /// Another writer changed the same part of the store first. Nothing was changed.
    Conflict(#[source] CommitError),
    /// The transaction was not committed, or was committed but not yet applied in full.
    Commit(#[source] CommitError),
    /// An object or a temporary file cannot be written.
    Write(#[source] Cause),
    /// The work stopped because the program is ending.
    Interrupted,
    /// The runtime of [`blocking`](crate::blocking) cannot be started.
    Runtime(#[source] io::Error),
}

impl Error {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoStore { .. } | Self::NoLevel(_) => ErrorKind::NotFound,
            Self::Open(error) => open_kind(error),
            Self::Read(error) => read_kind(error),
            Self::List(error) => list_kind(error),
            Self::Query(error) => error.kind(),
            Self::Damaged(_) => ErrorKind::Damaged,
            Self::OverBudget(_) => ErrorKind::OverBudget,
            Self::Generation(_)
            | Self::Unlistable(_)
            | Self::Unsupported(_)
            | Self::Unchangeable { .. } => ErrorKind::Unsupported,
            #[cfg(feature = "write")]
            Self::Rejected(_) | Self::Edit(_) => ErrorKind::InvalidInput,
            #[cfg(feature = "write")]
            Self::Tasks { source, .. } => match source {
                TaskPlanError::Absent => ErrorKind::NotFound,
                TaskPlanError::Outdated | TaskPlanError::Missing { .. } => ErrorKind::Conflict,
                _ => ErrorKind::InvalidInput,
            },
            Self::NotGeometry(_)
            | Self::Unnamed
            | Self::Severed { .. }
            | Self::Attribute(_)
            | Self::Create {
                source: CreateError::InStore(_),
                ..
            }
            | Self::Pyramid(_) => ErrorKind::InvalidInput,
            Self::Create {
                source: CreateError::Failed(error),
                ..
            }
            | Self::Commit(CommitError::Failed(error)) => transaction_kind(error),
            Self::Unfinished { .. }
            | Self::Create { .. }
            | Self::AttributeExists { .. }
            | Self::Changed { .. }
            | Self::Conflict(_)
            | Self::OutdatedRows { .. } => ErrorKind::Conflict,
            Self::Commit(_) | Self::Runtime(_) => ErrorKind::Unavailable,
            Self::Write(Cause(failure)) => match &**failure {
                Failure::Write(error) => write_kind(error),
                Failure::Transaction(error) => transaction_kind(error),
                Failure::Encode { .. } => ErrorKind::Unsupported,
                _ => ErrorKind::Unavailable,
            },
            Self::Source(_) | Self::Declined(_) | Self::Interrupted => ErrorKind::Interrupted,
        }
    }

    /// Returns the array, object or file that the error is about, if it is known.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Read(error) => Some(error.key()),
            Self::Query(QueryError::Damaged(damage)) => Some(&damage.key),
            Self::Query(QueryError::Fetch(error)) => Some(&error.key),
            Self::Unlistable(Cause(failure))
            | Self::Unsupported(Cause(failure))
            | Self::Damaged(Cause(failure))
            | Self::OverBudget(Cause(failure))
            | Self::Write(Cause(failure)) => failure.key(),
            _ => None,
        }
    }

    /// Returns whether the store, or the level, object, group or attribute that was named, does not
    /// exist.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether the same call may succeed later: another writer was first, or changed what
    /// was read, or a server throttled requests or did not respond, after the retries of
    /// [`OpenOptions`](crate::OpenOptions).
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Conflict(_) => true,
            Self::Read(error) => error.is_transient(),
            Self::List(error) => error.is_transient(),
            Self::Query(error) => is_transient_query(error),
            Self::Create {
                source: CreateError::Failed(error),
                ..
            }
            | Self::Commit(CommitError::Failed(error)) => is_transient_transaction(error),
            Self::Write(Cause(failure)) => match &**failure {
                Failure::Write(error) => error.is_transient(),
                Failure::Transaction(error) => is_transient_transaction(error),
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_causes =
            |f: &mut fmt::Formatter<'_>, what: &str, cause: &dyn core::error::Error| {
                write!(f, "{what}: {}", error_chain(cause))
            };
        let cause: &dyn core::error::Error = match self {
            Self::Open(error) => error,
            Self::Generation(error) => error,
            Self::Read(error) => error,
            Self::List(error) => error,
            Self::Query(error) => error,
            #[cfg(feature = "write")]
            Self::Rejected(error) => error,
            Self::Declined(error) => &**error,
            #[cfg(feature = "write")]
            Self::Edit(error) => error,
            Self::Conflict(error) | Self::Commit(error) => error,
            Self::NoLevel(cause)
            | Self::Unlistable(cause)
            | Self::Unsupported(cause)
            | Self::Damaged(cause)
            | Self::OverBudget(cause)
            | Self::NotGeometry(cause)
            | Self::Attribute(cause)
            | Self::Pyramid(cause)
            | Self::Write(cause) => cause,
            Self::NoStore {
                address,
                exists: true,
            } => return write!(f, "{address} is not a Zarr store: it has no zarr.json"),
            Self::NoStore { address, .. } => return write!(f, "{address} does not exist"),
            Self::Unfinished { address } => {
                return write!(
                    f,
                    "{address} is not complete: its creation is in progress or was interrupted"
                );
            }
            Self::Changed { address } => {
                return write!(
                    f,
                    "{address} was changed while it was read; repeat the operation, or reload \
                     the dataset first"
                );
            }
            Self::Runtime(source) => {
                return with_causes(
                    f,
                    "the runtime for blocking operations cannot start",
                    source,
                );
            }
            Self::Source(source) => {
                return with_causes(f, "the geometry cannot be read", &**source);
            }
            Self::Create { address, source } => {
                return with_causes(f, &format!("{address} cannot be created"), source);
            }
            #[cfg(feature = "write")]
            Self::Tasks { address, source } => return with_causes(f, address, source),
            Self::Unchangeable { address, profile } => {
                return write!(
                    f,
                    "{address} is a store of {profile}, and only stores of 0.9 can be changed; \
                     migrate it"
                );
            }
            Self::Unnamed => {
                return f.write_str(
                    "the replacing geometry names no object: no vertex or path has an object id",
                );
            }
            Self::OutdatedRows { expected, found } => {
                return write!(
                    f,
                    "the ids are of transaction {expected}, but the store is at transaction {found}; \
                     query them again"
                );
            }
            Self::Severed { links } => {
                return write!(
                    f,
                    "{links} links to other objects would be lost; \
                     name the objects at their other ends as well"
                );
            }
            Self::AttributeExists { name, of } => {
                return write!(f, "attribute {name} of {of} already exists");
            }
            Self::Interrupted => return f.write_str("the work was interrupted"),
        };
        f.write_str(&error_chain(cause))
    }
}

fn is_transient_query(error: &QueryError) -> bool {
    let mut source = core::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<ListError>() {
            return error.is_transient();
        }
        // Merged reads return shared copies of one error.
        let read = cause.downcast_ref::<ReadError>();
        let cell = cause.downcast_ref::<CellError>();
        let read = read.or(match cell {
            Some(CellError::Read(error)) => Some(error),
            _ => None,
        });
        if let Some(error) = read {
            return error.is_transient();
        }
        source = cause.source();
    }
    false
}

fn is_transient_transaction(error: &TransactionError) -> bool {
    match error {
        TransactionError::Contended => true,
        TransactionError::Read(error) => error.is_transient(),
        TransactionError::Write(error) => error.is_transient(),
        TransactionError::List(error) => error.is_transient(),
        _ => false,
    }
}

fn open_kind(error: &OpenError) -> ErrorKind {
    match error {
        OpenError::NotFound(_) => ErrorKind::NotFound,
        OpenError::Feature { .. } | OpenError::ReadOnly(_) => ErrorKind::Unsupported,
        OpenError::Io { .. } => ErrorKind::Unavailable,
        OpenError::Zip { .. } => ErrorKind::Damaged,
        _ => ErrorKind::InvalidInput,
    }
}

fn read_kind(error: &ReadError) -> ErrorKind {
    match error {
        ReadError::OverBudget { .. } => ErrorKind::OverBudget,
        error if error.is_damage() => ErrorKind::Damaged,
        _ => ErrorKind::Unavailable,
    }
}

fn list_kind(error: &ListError) -> ErrorKind {
    match error {
        ListError::TooMany { .. } => ErrorKind::OverBudget,
        ListError::Unlistable { .. } => ErrorKind::Unsupported,
        ListError::Sealed { source, .. } => read_kind(source),
        _ => ErrorKind::Unavailable,
    }
}

fn write_kind(error: &WriteError) -> ErrorKind {
    match error {
        WriteError::ReadOnly { .. } | WriteError::Unconditional { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    }
}

fn transaction_kind(error: &TransactionError) -> ErrorKind {
    match error {
        TransactionError::NoStore => ErrorKind::NotFound,
        TransactionError::Contended => ErrorKind::Conflict,
        TransactionError::Write(error) => write_kind(error),
        TransactionError::Read(error) => read_kind(error),
        TransactionError::List(error) => list_kind(error),
        _ => ErrorKind::Damaged,
    }
}

/// The detail of an [`Error`]: a message with the array, file or object that it is about.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Cause(Box<Failure>);

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        use Failure as F;
        match failure {
            F::Open(OpenError::NotFound(address)) => Self::NoStore {
                address,
                exists: false,
            },
            F::Open(error) => Self::Open(error),
            F::NoStore { address } => Self::NoStore {
                address,
                exists: true,
            },
            F::Unfinished { address } => Self::Unfinished { address },
            F::Changed { address } => Self::Changed { address },
            F::Generation(error) => Self::Generation(error),
            F::Query(error) => Self::Query(error),
            F::Read(error) | F::Cell(CellError::Read(error))
                if !matches!(error, ReadError::OverBudget { .. }) =>
            {
                Self::Read(error)
            }
            F::List(error) => Self::List(error),
            #[cfg(feature = "write")]
            F::Build(error) => Self::Rejected(error),
            F::Source(error) => Self::Source(error),
            F::Declined(error) => Self::Declined(error),
            F::Create { address, source } => Self::Create { address, source },
            #[cfg(feature = "write")]
            F::Plan { address, source } => Self::Tasks { address, source },
            F::Unchangeable { address, profile } => Self::Unchangeable { address, profile },
            #[cfg(feature = "write")]
            F::Edit(error) => Self::Edit(error),
            F::Severed { links } => Self::Severed { links },
            F::OutdatedRows { expected, found } => Self::OutdatedRows { expected, found },
            F::AttributeExists { name, of } => Self::AttributeExists { name, of },
            F::Commit(error @ CommitError::Conflict { .. }) => Self::Conflict(error),
            F::Commit(error) => Self::Commit(error),
            F::Interrupted => Self::Interrupted,
            other => {
                let group = match other {
                    F::NoLevel { .. } | F::AbsentLevel { .. } => Self::NoLevel,
                    F::Unlistable { .. } | F::Uncountable { .. } => Self::Unlistable,
                    F::OverBudget { .. } | F::Read(_) => Self::OverBudget,
                    F::Cell(ref error) if error.is_over_budget() => Self::OverBudget,
                    F::Cell(ref error) if error.is_unsupported() => Self::Unsupported,
                    F::Array { ref source, .. } if source.is_unsupported() => Self::Unsupported,
                    F::Metadata(ref error) if error.kind() == ErrorKind::Unsupported => {
                        Self::Unsupported
                    }
                    F::Cell(CellError::Interrupted { .. }) => return Self::Interrupted,
                    F::AdditiveLevel { .. } => Self::Unsupported,
                    F::NotGeometry { .. } => Self::NotGeometry,
                    F::Attribute { .. } => Self::Attribute,
                    F::NoPyramid { .. } | F::PyramidAttribute { .. } | F::PyramidBins { .. } => {
                        Self::Pyramid
                    }
                    #[cfg(feature = "pyramid")]
                    F::Sparsity(_) | F::Coarsen(_) => Self::Pyramid,
                    F::Write(_) | F::Encode { .. } | F::Transaction(_) | F::Scratch { .. } => {
                        Self::Write
                    }
                    _ => Self::Damaged,
                };
                group(Cause(Box::new(other)))
            }
        }
    }
}

/// Boxes the future of a public method.
pub(crate) fn boxed<'a, T>(
    work: impl Future<Output = Result<T, Failure>> + MaybeSend + 'a,
) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(async move { Ok(work.await?) })
}

#[cfg(test)]
mod tests {
    use zvf_model::{
        fetch::{FetchError, FetchProblem},
        level::LevelId,
    };

    use super::*;

    #[test]
    fn failures_are_grouped_and_keep_their_message() {
        let node = Key::root();
        let failures = [
            (
                Failure::AbsentLevel {
                    address: "a".to_owned(),
                    level: LevelId::FULL,
                },
                "NoLevel",
            ),
            (Failure::MissingArray { node: node.clone() }, "Damaged"),
            (
                Failure::OverBudget {
                    node,
                    bytes: 2,
                    budget: 1,
                },
                "OverBudget",
            ),
            (Failure::NoPyramid { why: "no" }, "Pyramid"),
        ];
        for (failure, group) in failures {
            let message = error_chain(&failure);
            let error = Error::from(failure);
            assert!(format!("{error:?}").starts_with(group), "{error:?}");
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn errors_name_what_they_are_about() {
        let node = Key::parse("0/vertices").unwrap();
        let damaged = Error::from(Failure::MissingArray { node: node.clone() });
        assert_eq!(damaged.key(), Some(&node));
        let unknown = Error::from(Failure::NoPyramid { why: "no" });
        assert_eq!(unknown.key(), None);
    }

    #[test]
    fn a_missing_store_has_one_spelling() {
        let address = || "a".to_owned();
        let absent = Error::from(Failure::Open(OpenError::NotFound(address())));
        let other = Error::from(Failure::NoStore { address: address() });
        assert_eq!(absent.to_string(), "a does not exist");
        assert_eq!(
            other.to_string(),
            "a is not a Zarr store: it has no zarr.json"
        );
        for error in [absent, other] {
            assert!(matches!(error, Error::NoStore { .. }), "{error:?}");
            assert!(error.is_not_found() && !error.is_retryable());
        }
    }

    #[test]
    fn the_text_names_the_causes_and_transient_reads_are_retryable() {
        let read = |transient: bool| {
            let (key, source) = (
                Key::root(),
                Box::<dyn core::error::Error + Send + Sync>::from,
            );
            match transient {
                true => ReadError::Unavailable {
                    key,
                    source: source("status 503").into(),
                },
                false => ReadError::Forbidden {
                    key,
                    source: source("status 403").into(),
                },
            }
        };
        for transient in [true, false] {
            let fetch = FetchError {
                key: Key::root(),
                problem: FetchProblem::Unavailable,
                source: Box::new(CellError::Read(read(transient))),
            };
            let query = Error::from(Failure::Query(QueryError::from(fetch)));
            let status = if transient {
                "status 503"
            } else {
                "status 403"
            };
            assert!(query.to_string().ends_with(status), "{query}");
            assert!(!query.to_string().contains('\n'));
            for error in [query, Error::from(Failure::Read(read(transient)))] {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert_eq!(error.is_retryable(), transient);
            }
        }
    }
}
