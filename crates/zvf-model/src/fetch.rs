//! The port through which query plans read a store.
//!
//! A plan is a function over a [`Port`], a handle on a [`Fetch`]: it requests everything known to
//! be needed at once, waits, and continues. Each awaited call is one dependent round trip, however
//! much it requests. Plans have no executor, clock or I/O, so tests can serve them from memory.

use core::{error::Error, future::Future, ops::Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    error_kind::ErrorKind,
    key::Key,
    zarr::{Array, Node},
};

mod array;
mod cached;
pub mod contract;
mod maybe_send;
mod options;
mod padded;
mod port;

pub use array::{AnyArray, CellSource};
pub use cached::CachedFetch;
pub use maybe_send::{BoxFuture, MaybeSend, MaybeSync};
pub use options::CellOptions;
pub use port::Port;

/// Reads nodes and cells of one store.
///
/// The module [`contract`] says what implementations have to do, and tests them. Implementations
/// and their futures are [`Send`] and [`Sync`], except in browsers; see [`MaybeSend`].
pub trait Fetch: MaybeSync {
    /// Prepares the array at `node` for reading, without I/O.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if its cells cannot be read, for example because of an unknown codec.
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError>;

    /// Reads the nodes at `keys` in order; `None` where there is no `zarr.json`.
    ///
    /// # Errors
    ///
    /// The first [`FetchError`]: either all nodes are returned or none.
    fn nodes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, FetchError>> + MaybeSend;

    /// Reads the payloads of cells in the requested order, `None` for absent ones. Each may fail
    /// separately. Common parts of two requests are fetched once. Cells of an array that another
    /// implementation opened are unavailable.
    fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> impl Future<Output = Vec<Result<Option<Fetched>, FetchError>>> + MaybeSend;

    /// Prepares reads of cells of these arrays that will follow: over a network, reads the indexes
    /// of all of their shards, unless this takes more than `max_requests`. Takes at most one round
    /// trip.
    ///
    /// Returns no error: a later read of an unreadable cell does.
    fn prepare(
        &self,
        arrays: &[AnyArray],
        max_requests: usize,
    ) -> impl Future<Output = ()> + MaybeSend {
        let _ = (arrays, max_requests);
        async {}
    }

    /// Lists the names of the children of a node that are nodes or have children, in ascending
    /// order. The list is empty if there are none, even if the node does not exist.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn children(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Vec<String>, FetchError>> + MaybeSend;

    /// Returns the sizes of the objects at `keys` in order, `None` for absent ones. Lists each of
    /// their folders once and reads nothing.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn sizes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<u64>>, FetchError>> + MaybeSend;

    /// Lists every object at or below `prefix` by key with its size, in any order, and reads
    /// nothing. Only plans that examine the whole store need it; other ports may return an error.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn files(
        &self,
        prefix: &Key,
    ) -> impl Future<Output = Result<Vec<(String, u64)>, FetchError>> + MaybeSend {
        let key = prefix.clone();
        async {
            Err(FetchError {
                key,
                problem: FetchProblem::Unlistable,
                source: "this port cannot list files".into(),
            })
        }
    }

    /// Returns the number of bytes that [`fragment_lengths`](Self::fragment_lengths) transfers for all
    /// cells of the array at `node`; `None` if the store records none of them. Takes no request.
    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        let _ = node;
        None
    }

    /// Returns the [lengths of fragments](zvf_format::fragment_lengths) that the store records of cells
    /// of fragment indexes, in order; `None` for a cell without. Takes at most one round trip.
    ///
    /// # Errors
    ///
    /// [`FetchError`]
    fn fragment_lengths(
        &self,
        cells: &[CellRef],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, FetchError>> + MaybeSend {
        let lengths = vec![None; cells.len()];
        async { Ok(lengths) }
    }

    /// Confirms that everything read so far belongs to one state of the store, if that takes no
    /// request; `None` otherwise.
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`] if the store was changed meanwhile.
    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        Some(Ok(()))
    }

    /// Confirms that everything read so far belongs to one state of the store.
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`] if the store was changed meanwhile.
    fn confirm(&self) -> impl Future<Output = Result<(), FetchError>> + MaybeSend {
        async { Ok(()) }
    }

    /// Returns the memory budget in bytes. A plan that would exceed it returns an error.
    fn budget(&self) -> u64;

    /// Returns the recommended number of bytes per request for a plan that scans many cells: fewer
    /// for a local store, where a round trip is cheap and recent data is still in the processor's
    /// cache.
    fn at_once(&self) -> u64 {
        self.budget() / 4
    }
}

/// A requested cell.
#[derive(Clone, Debug)]
pub struct CellRequest {
    /// The cell.
    pub cell: CellRef,
    /// The requested range of its payload; all if `None`.
    pub part: Option<Range<u64>>,
}

/// Identity of a cell.
#[derive(Clone, Debug)]
pub enum CellRef {
    /// An element of an array, with one index per axis from 0. In a sharded array the element is an
    /// inner chunk.
    Element(AnyArray, Vec<u64>),
    /// A whole array of bytes, known by its key only: its metadata and its single chunk are
    /// read concurrently.
    Child(Key),
}

impl CellRef {
    /// Returns the key of the array.
    pub fn node(&self) -> &Key {
        match self {
            Self::Element(array, _) => array.node(),
            Self::Child(node) => node,
        }
    }
}

/// A payload, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The requested bytes.
    pub bytes: Bytes,
    /// Bytes of the whole payload.
    pub size: u64,
}

/// Reason that something cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct FetchError {
    /// The requested key.
    pub key: Key,
    /// Category of the failure.
    pub problem: FetchProblem,
    /// Cause of the failure.
    pub source: Box<dyn Error + Send + Sync>,
}

impl FetchError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self.problem {
            FetchProblem::Damaged => ErrorKind::Damaged,
            FetchProblem::Unavailable => ErrorKind::Unavailable,
            FetchProblem::OverBudget => ErrorKind::OverBudget,
            FetchProblem::Changed => ErrorKind::Conflict,
            FetchProblem::Unsupported | FetchProblem::Unlistable => ErrorKind::Unsupported,
        }
    }
}

/// Category of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchProblem {
    /// The data is damaged: a retry gives the same result.
    #[error("is damaged")]
    Damaged,
    /// The data was not delivered: a retry may succeed.
    #[error("cannot be read")]
    Unavailable,
    /// The data is encoded in a way that the port does not decode, such as a codec that is not
    /// built in.
    #[error("cannot be decoded here")]
    Unsupported,
    /// The data exceeds the memory budget.
    #[error("takes more memory than the budget allows")]
    OverBudget,
    /// The store cannot list its children.
    #[error("cannot be listed")]
    Unlistable,
    /// The store was changed since it was opened.
    #[error("was replaced")]
    Changed,
}
