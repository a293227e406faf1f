//! The port between plans, which know what they need, and whoever reads it.
//!
//! A plan is a function over a [`Port`], which is some [`Fetch`]: it asks for
//! everything it knows it needs at once, waits, and goes on. Each call it waits for
//! is one dependent round trip, however much is asked for. Plans have no executor,
//! no clock and no I/O of their own, so a test can answer them from memory.

use core::{error::Error, future::Future, ops::Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    key::Key,
    zarr::{Array, Node},
};

mod port;

pub use port::{AnyArray, Port};

/// Reads nodes and cells of one store.
pub trait Fetch: Sync {
    /// An array whose cells can be read.
    type Array: CellSource;

    /// The array at `node`, prepared for reading. No I/O.
    ///
    /// # Errors
    ///
    /// [`FetchError`] when its cells could not be read, as for codecs that are
    /// not known.
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<Self::Array, FetchError>;

    /// The nodes at `keys` in their order, `None` where there is no `zarr.json`.
    ///
    /// # Errors
    ///
    /// The first [`FetchError`]: metadata are read all or not at all.
    fn nodes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, FetchError>> + Send;

    /// The payloads of cells in the order asked for, `None` for absent ones.
    /// Each fails alone. What two of them have in common is fetched once.
    fn cells(
        &self,
        wanted: &[Wanted<Self::Array>],
    ) -> impl Future<Output = Vec<Result<Option<Fetched>, FetchError>>> + Send;

    /// As [`cells`](Self::cells), for who goes through much and will not ask again: a port that
    /// keeps cells keeps none of these.
    fn cells_once(
        &self,
        wanted: &[Wanted<Self::Array>],
    ) -> impl Future<Output = Vec<Result<Option<Fetched>, FetchError>>> + Send {
        self.cells(wanted)
    }

    /// Names of the children of a node that are nodes themselves or have
    /// children of their own, in ascending order. None is an empty list, whether
    /// or not there is a node.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn children(&self, key: &Key) -> impl Future<Output = Result<Vec<String>, FetchError>> + Send;

    /// Sizes of the objects at `keys` in their order, `None` for absent ones.
    /// Nothing is read: each folder that one of them is in is listed once.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn sizes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<u64>>, FetchError>> + Send;

    /// Every object at or below `prefix` with its size, by key, in any order. Nothing
    /// is read. Plans that ask for all there is need it; ports of others cannot.
    ///
    /// # Errors
    ///
    /// [`FetchError`], also when the store cannot list.
    fn files(
        &self,
        prefix: &Key,
    ) -> impl Future<Output = Result<Vec<(String, u64)>, FetchError>> + Send {
        let key = prefix.clone();
        async {
            Err(FetchError {
                key,
                problem: FetchProblem::Unlistable,
                source: "this port lists no files".into(),
            })
        }
    }

    /// How many bytes may be held at once. A plan that would hold more stops
    /// with an error.
    fn budget(&self) -> u64;

    /// About how many bytes are best asked for at once by a plan that goes through many
    /// cells one after the other: less of a store that is near, where a round trip
    /// costs little and what was read is still in the processor's cache.
    fn at_once(&self) -> u64 {
        self.budget() / 4
    }
}

/// An array whose cells can be read. Cloning is cheap.
pub trait CellSource: Clone + Send + Sync + 'static {
    /// Its key.
    fn node(&self) -> &Key;

    /// What its metadata say.
    fn metadata(&self) -> &Arc<Array>;

    /// Whether a part of a cell can be read without the rest.
    fn is_plain(&self) -> bool;
}

/// A cell that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted<A> {
    /// Which.
    pub cell: CellOf<A>,
    /// The bytes of its payload that are wanted; all when `None`.
    pub part: Option<Range<u64>>,
}

/// Which cell.
#[derive(Clone, Debug)]
pub enum CellOf<A> {
    /// This one of an array: from 0, one number an axis. In a sharded array this
    /// counts inner chunks.
    Element(A, Vec<u64>),
    /// All of an array of bytes of which only the key is known: its metadata and
    /// its only chunk, side by side.
    Child(Key),
}

/// A payload, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The bytes asked for.
    pub bytes: Bytes,
    /// Bytes of the whole payload.
    pub size: u64,
}

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct FetchError {
    /// What was asked for.
    pub key: Key,
    /// What kind of failure it is.
    pub problem: FetchProblem,
    /// What happened.
    pub source: Box<dyn Error + Send + Sync>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchProblem {
    /// What is there is damaged: asking again gives the same.
    #[error("is damaged")]
    Damaged,
    /// It was not delivered: asking again may help.
    #[error("cannot be read")]
    Unavailable,
    /// More bytes than may be held at once.
    #[error("takes more memory than the budget allows")]
    OverBudget,
    /// The store cannot list its children.
    #[error("cannot be listed")]
    Unlistable,
}
