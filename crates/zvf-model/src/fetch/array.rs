//! Arrays whose cells a port reads.

use core::{any::Any, fmt};
use std::sync::Arc;

use super::{FetchError, FetchProblem};
use crate::{key::Key, zarr};

/// An array whose cells can be read.
pub trait CellSource: Any + Send + Sync {
    /// Returns the key of the array.
    fn node(&self) -> &Key;

    /// Returns its metadata.
    fn metadata(&self) -> &Arc<zarr::Array>;

    /// Returns whether a part of a cell can be read without the rest.
    fn is_plain(&self) -> bool;

    /// Returns whether a part of a compressed cell can be read without the rest, once its first bytes,
    /// which a request for an empty part fetches, are known.
    fn is_in_blocks(&self) -> bool {
        false
    }
}

/// An array that an implementation of [`Fetch`](super::Fetch) opened. Cloning is cheap.
#[derive(Clone)]
pub struct AnyArray(Arc<dyn CellSource>);

impl AnyArray {
    /// Creates a handle on an array.
    pub fn new(array: impl CellSource) -> Self {
        Self(Arc::new(array))
    }

    /// Returns the key of the array.
    pub fn node(&self) -> &Key {
        self.0.node()
    }

    /// Returns its metadata.
    pub fn metadata(&self) -> &Arc<zarr::Array> {
        self.0.metadata()
    }

    /// Returns whether a part of a cell can be read without the rest.
    pub fn is_plain(&self) -> bool {
        self.0.is_plain()
    }

    /// Returns whether a part of a compressed cell can be read without the rest, once its first bytes,
    /// which a request for an empty part fetches, are known.
    pub fn is_in_blocks(&self) -> bool {
        self.0.is_in_blocks()
    }

    pub(super) fn source(&self) -> &dyn CellSource {
        &*self.0
    }

    /// Returns the array in the type that an implementation of [`Fetch`](super::Fetch) opens.
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Unavailable`] if another implementation opened the array.
    pub fn downcast<A: CellSource>(&self) -> Result<&A, FetchError> {
        let array: &dyn Any = self.source();
        array.downcast_ref().ok_or_else(|| FetchError {
            key: self.node().clone(),
            problem: FetchProblem::Unavailable,
            source: "the array was opened by another kind of port".into(),
        })
    }
}

impl fmt::Debug for AnyArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyArray").field(self.node()).finish()
    }
}
