//! Classes of errors.

/// Class of an error by what a caller can do about it.
///
/// The errors of queries and of the library each return their class, so that a program decides
/// without matching the variants of several crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store contradicts itself or the specification. A retry gives the same error.
    Damaged,
    /// The store is not damaged, but this build or this kind of store does not support the operation: a
    /// codec that is not built in, an encoding that is not decoded, a store that cannot list.
    Unsupported,
    /// The work exceeds the memory budget or the budget of the query. Select less, or raise it.
    OverBudget,
    /// The data was not delivered or not written: the network, the disk, missing permissions.
    Unavailable,
    /// The store, or the level, object or attribute that was named, does not exist.
    NotFound,
    /// Other work prevents it: another writer was first, or something already exists.
    Conflict,
    /// The query, geometry or option is not valid for this store.
    InvalidInput,
    /// The work was stopped, or a part that the caller supplied failed.
    Interrupted,
}
