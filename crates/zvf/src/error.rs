//! The public error: what failed, grouped by what a caller can do about it.

use zvf_build::{BuildError, edit::EditError};
use zvf_model::detection::GenerationError;
use zvf_query::QueryError;
use zvf_store::{CellError, CommitError, CreateError, ListError, OpenError, ReadError};

use futures_util::future::BoxFuture;

use crate::failure::Failure;

/// The error of every operation on a store.
///
/// Each variant is a group of failures that a caller handles in one way. The message names the
/// array, file or object, and [`source`](core::error::Error::source) the cause. A variant that
/// contains the error of another crate, as [`Query`](Self::Query) does, can be matched further with
/// the types of that crate.
///
/// ```
/// use zvf::{Dataset, Error};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// match Dataset::open("does/not/exist.zv").await {
///     Err(Error::Open(error)) => println!("cannot open it: {error}"),
///     Err(Error::NoStore { address }) => println!("{address} is something else"),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be opened: nothing is there, or its scheme or feature is missing.
    #[error(transparent)]
    Open(OpenError),
    /// The address exists but holds no Zarr store.
    #[error("{address} is not a Zarr store: it has no zarr.json")]
    NoStore {
        /// The address.
        address: String,
    },
    /// A creation began at the address and has not completed.
    #[error("{address} is not complete: its creation is under way or was interrupted")]
    Unfinished {
        /// The address.
        address: String,
    },
    /// The store lacks the requested level, or has no level at all.
    #[error(transparent)]
    NoLevel(Cause),
    /// The store belongs to no supported generation.
    #[error(transparent)]
    Generation(GenerationError),
    /// The operation needs a listing, and the store cannot list its contents.
    #[error(transparent)]
    Unlistable(Cause),
    /// The store contradicts itself or the specification.
    #[error(transparent)]
    Damaged(Cause),
    /// An object cannot be read.
    #[error(transparent)]
    Read(ReadError),
    /// The contents of a folder cannot be listed.
    #[error(transparent)]
    List(ListError),
    /// An array or cell exceeds the memory budget the store was opened with.
    #[error(transparent)]
    OverBudget(Cause),
    /// A query fails.
    #[error(transparent)]
    Query(QueryError),
    /// The geometry or the design is rejected before anything is written.
    #[error(transparent)]
    Rejected(BuildError),
    /// A query result holds rows that geometry cannot express.
    #[error(transparent)]
    NotGeometry(Cause),
    /// A [`GeometrySource`](crate::GeometrySource) or [`TaskRunner`](crate::TaskRunner) fails.
    #[error("the geometry cannot be read")]
    Source(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// The check of the expected size stopped the creation.
    #[error(transparent)]
    Declined(Box<dyn core::error::Error + Send + Sync>),
    /// Something stands at the address where a store is to be created, or it cannot be written.
    #[error("{address} cannot be created")]
    Create {
        /// The address.
        address: String,
        /// The cause.
        source: CreateError,
    },
    /// The store is of a generation that cannot be changed in place.
    #[error("{address} is a store of {profile}, and only stores of 0.9 can be changed; migrate it")]
    Unchangeable {
        /// The address.
        address: String,
        /// The generation.
        profile: &'static str,
    },
    /// The change does not fit the store.
    #[error(transparent)]
    Edit(EditError),
    /// The geometry that is to replace objects names none.
    #[error("the replacing geometry names no object: no vertex or path has an object id")]
    Unnamed,
    /// Replacing the objects would drop links to other objects.
    #[error(
        "{links} links to other objects would be lost; name the objects at their other ends as well"
    )]
    Severed {
        /// Number of links that would be dropped.
        links: usize,
    },
    /// The attribute already exists.
    #[error("attribute {name} of {of} already exists")]
    AttributeExists {
        /// Its name.
        name: String,
        /// The scope of the attribute: vertices or objects.
        of: &'static str,
    },
    /// The attribute cannot be written.
    #[error(transparent)]
    Attribute(Cause),
    /// Coarser levels cannot be built as requested.
    #[error(transparent)]
    Pyramid(Cause),
    /// Another writer changed the same part of the store first. Nothing was changed.
    #[error(transparent)]
    Conflict(CommitError),
    /// The transaction was not committed, or was committed but not yet applied in full.
    #[error(transparent)]
    Commit(CommitError),
    /// An object or a temporary file cannot be written.
    #[error(transparent)]
    Write(Cause),
    /// The work stopped because the program is ending.
    #[error("the work was interrupted")]
    Interrupted,
}

/// The detail of an [`Error`]: a message with the array, file or object that it is about.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Cause(Box<Failure>);

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        use Failure as F;
        match failure {
            F::Open(error) => Self::Open(error),
            F::NoStore { address } => Self::NoStore { address },
            F::Unfinished { address } => Self::Unfinished { address },
            F::Generation(error) => Self::Generation(error),
            F::Query(error) => Self::Query(error),
            F::Read(error) | F::Cell(CellError::Read(error)) => Self::Read(error),
            F::List(error) => Self::List(error),
            F::Build(error) => Self::Rejected(error),
            F::Source(error) => Self::Source(error),
            F::Declined(error) => Self::Declined(error),
            F::Create { address, source } => Self::Create { address, source },
            F::Unchangeable { address, profile } => Self::Unchangeable { address, profile },
            F::Edit(error) => Self::Edit(error),
            F::Severed { links } => Self::Severed { links },
            F::AttributeExists { name, of } => Self::AttributeExists { name, of },
            F::Commit(error @ CommitError::Conflict { .. }) => Self::Conflict(error),
            F::Commit(error) => Self::Commit(error),
            F::Interrupted => Self::Interrupted,
            other => {
                let group = match other {
                    F::NoLevel { .. } | F::AbsentLevel { .. } => Self::NoLevel,
                    F::Unlistable { .. } | F::Uncountable { .. } => Self::Unlistable,
                    F::OverBudget { .. } | F::Cell(CellError::OverBudget { .. }) => {
                        Self::OverBudget
                    }
                    F::NotGeometry { .. } => Self::NotGeometry,
                    F::Attribute { .. } => Self::Attribute,
                    F::NoPyramid { .. }
                    | F::PyramidAttribute { .. }
                    | F::PyramidBins { .. }
                    | F::Sparsity(_)
                    | F::Coarsen(_) => Self::Pyramid,
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
    work: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(async move { Ok(work.await?) })
}

#[cfg(test)]
mod tests {
    use zvf_model::{key::Key, level::LevelId};

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
            let message = failure.to_string();
            let error = Error::from(failure);
            assert!(format!("{error:?}").starts_with(group), "{error:?}");
            assert_eq!(error.to_string(), message);
        }
    }
}
