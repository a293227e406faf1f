//! The error of every operation.

use core::{error::Error as StdError, fmt};

use zvf_catalog::CatalogError;
use zvf_model::{
    error_chain::error_chain,
    error_kind::ErrorKind,
    fetch::{BoxFuture, MaybeSend},
    key::Key,
};
use zvf_query::QueryError;
use zvf_store::{ListError, OpenError, ReadError, TransactionError, WriteError};

use crate::{failure::Failure, state_error::StateError};

/// The error of every operation on a store.
///
/// [`kind`](Self::kind) is the class of the error, by what a caller can do about it. The text is
/// one line: what failed, the array, file or object, and the causes. [`cause`](Self::cause) returns
/// the error of the layer that failed by its type, for a program that handles it in detail:
///
/// | type | of |
/// |---|---|
/// | [`StateError`] | the state of a store or its address |
/// | [`CatalogError`] | levels, as queries and other operations read them |
/// | [`QueryError`] | queries |
/// | [`OpenError`], [`ReadError`], [`ListError`] | addresses and reads |
/// | [`GenerationError`](zvf_model::detection::GenerationError), [`MetadataError`](zvf_model::metadata::MetadataError) | nodes |
/// | `zvf_build::BuildError`, `zvf_build::edit::EditError` | geometry and changes |
/// | [`CreateError`](zvf_store::CreateError), [`CommitError`](zvf_store::CommitError), [`WriteError`] | writes |
/// | `TaskPlanError` | plans of tasks |
///
/// ```
/// use zvf::{Dataset, ErrorKind, StateError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = Dataset::open("does/not/exist.zv").await.unwrap_err();
/// assert_eq!(error.to_string(), "does/not/exist.zv does not exist");
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.is_not_found() && !error.is_retryable());
/// assert!(matches!(error.cause(), Some(StateError::NoStore { .. })));
/// # }
/// ```
#[derive(Debug)]
pub struct Error(Box<Failure>);

impl Error {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }

    /// Returns the array, object or file that the error is about, if it is known.
    pub fn key(&self) -> Option<&Key> {
        self.0.key()
    }

    /// Returns the first [cause](StdError::source) if it has this type.
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        self.source()?.downcast_ref()
    }

    /// Returns whether the store, or the level, object, group or attribute that was named, does not
    /// exist.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether the same call may succeed later: another writer was first, or changed what
    /// was read, or a server throttled requests or did not respond, after the retries of
    /// [`OpenOptions`](zvf_store::OpenOptions).
    pub fn is_retryable(&self) -> bool {
        self.0.is_retryable()
    }

    /// Returns whether a `GeometrySource`, a `TaskRunner` or another part that the caller supplied
    /// failed. Its error is the [source](StdError::source).
    pub fn is_from_caller(&self) -> bool {
        matches!(*self.0, Failure::Source(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_chain(&*self.0))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(Box::new(failure))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        *error.0
    }
}

#[cfg(feature = "write")]
impl From<zvf_build::BuildError> for Error {
    fn from(cause: zvf_build::BuildError) -> Self {
        Failure::from(cause).into()
    }
}

macro_rules! from_causes {
    ($($cause:ty),+ $(,)?) => {$(
        impl From<$cause> for Error {
            fn from(cause: $cause) -> Self {
                Failure::from(cause).into()
            }
        }
    )+};
}

from_causes!(
    CatalogError,
    ListError,
    OpenError,
    QueryError,
    ReadError,
    StateError,
    TransactionError,
    WriteError,
);

/// Boxes the future of a public method.
pub fn boxed<'a, T>(
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
    use zvf_store::CellError;

    use super::*;

    #[test]
    fn failures_have_a_kind_and_keep_their_message() {
        let node = Key::root();
        let failures = [
            (
                Failure::State(StateError::AbsentLevel {
                    address: "a".to_owned(),
                    level: LevelId::FULL,
                }),
                ErrorKind::NotFound,
            ),
            (
                Failure::MissingArray { node: node.clone() },
                ErrorKind::Damaged,
            ),
            (
                Failure::OverBudget {
                    node,
                    bytes: 2,
                    budget: 1,
                },
                ErrorKind::OverBudget,
            ),
            (Failure::NoPyramid { why: "no" }, ErrorKind::InvalidInput),
        ];
        for (failure, kind) in failures {
            let message = error_chain(&failure);
            let error = Error::from(failure);
            assert_eq!(error.kind(), kind);
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
        let absent = Error::from(OpenError::NotFound(address()));
        let other = Error::from(StateError::NoStore {
            address: address(),
            exists: true,
        });
        assert_eq!(absent.to_string(), "a does not exist");
        assert_eq!(
            other.to_string(),
            "a is not a Zarr store: it has no zarr.json"
        );
        for error in [absent, other] {
            assert!(matches!(error.cause(), Some(StateError::NoStore { .. })));
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
            if transient {
                ReadError::Unavailable {
                    key,
                    source: source("status 503").into(),
                }
            } else {
                ReadError::Forbidden {
                    key,
                    source: source("status 403").into(),
                }
            }
        };
        for transient in [true, false] {
            let fetch = FetchError {
                key: Key::root(),
                problem: FetchProblem::Unavailable,
                source: Box::new(CellError::Read(read(transient))),
            };
            let query = Error::from(QueryError::from(fetch));
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
