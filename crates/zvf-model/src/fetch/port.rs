//! A type-erased port, so that plans are compiled once.

use core::{any::Any, fmt};
use std::sync::Arc;

use super::{
    BoxFuture, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem, Fetched,
    MaybeSync,
};
use crate::{
    key::Key,
    zarr::{Array, Node},
};

/// A handle on any [`Fetch`].
///
/// Plans take this handle instead of a type parameter: generic plans would be compiled again for
/// each port, in the crate that uses it. A call costs an allocation for its future, and requests
/// for cells are copied. Dropping a future drops that of the port.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    fetch: &'a dyn AnyFetch,
    bypasses_cache: bool,
}

impl<'a> Port<'a> {
    /// Creates a handle on `fetch`.
    pub fn new(fetch: &'a impl Fetch) -> Self {
        let bypasses_cache = false;
        Self {
            fetch,
            bypasses_cache,
        }
    }

    /// Returns a handle whose cells are not cached, for a scan that reads each of them once: see
    /// [`Fetch::cells_once`].
    #[must_use]
    pub fn bypass_cache(self) -> Self {
        let bypasses_cache = true;
        Self {
            bypasses_cache,
            ..self
        }
    }

    /// See [`Fetch::array`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::array`].
    pub fn array(self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.fetch.array(node, array)
    }

    /// See [`Fetch::nodes`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::nodes`].
    pub async fn nodes(self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.fetch.nodes(keys).await
    }

    /// See [`Fetch::cells`]. Cells of an array that another kind of port opened are unavailable.
    pub async fn cells(
        self,
        wanted: &[CellRequest<AnyArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.fetch.cells(wanted, self.bypasses_cache).await
    }

    /// See [`Fetch::prepare`].
    pub async fn prepare(self, arrays: &[AnyArray], max_requests: usize) {
        self.fetch.prepare(arrays, max_requests).await;
    }

    /// See [`Fetch::children`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::children`].
    pub async fn children(self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.fetch.children(key).await
    }

    /// See [`Fetch::sizes`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::sizes`].
    pub async fn sizes(self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.fetch.sizes(keys).await
    }

    /// See [`Fetch::files`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::files`].
    pub async fn files(self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        self.fetch.files(prefix).await
    }

    /// Confirms reads without a request; see [`Fetch::confirm_now`].
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`] if the store was changed meanwhile.
    pub fn confirm_now(self) -> Option<Result<(), FetchError>> {
        self.fetch.confirm_now()
    }

    /// Confirms reads; see [`Fetch::confirm`].
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`] if the store was changed meanwhile.
    pub async fn confirm(self) -> Result<(), FetchError> {
        match self.fetch.confirm_now() {
            Some(confirmed) => confirmed,
            None => self.fetch.confirm().await,
        }
    }

    /// See [`Fetch::budget`].
    pub fn budget(self) -> u64 {
        self.fetch.budget()
    }

    /// See [`Fetch::at_once`].
    pub fn at_once(self) -> u64 {
        self.fetch.at_once()
    }
}

impl fmt::Debug for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

/// An array of any [`Port`]. Cloning is cheap.
#[derive(Clone)]
pub struct AnyArray(Arc<dyn AnySource>);

impl AnyArray {
    /// Returns the key of the array.
    pub fn node(&self) -> &Key {
        self.0.node()
    }

    /// Returns its metadata.
    pub fn metadata(&self) -> &Arc<Array> {
        self.0.metadata()
    }

    /// Returns whether a part of a cell can be read without the rest.
    pub fn is_plain(&self) -> bool {
        self.0.is_plain()
    }

    /// Returns the array in the type of its port.
    fn of<A: CellSource>(&self) -> Result<&A, FetchError> {
        self.0.as_any().downcast_ref().ok_or_else(|| FetchError {
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

/// The object-safe part of [`CellSource`].
trait AnySource: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn node(&self) -> &Key;
    fn metadata(&self) -> &Arc<Array>;
    fn is_plain(&self) -> bool;
}

impl<A: CellSource> AnySource for A {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn node(&self) -> &Key {
        CellSource::node(self)
    }

    fn metadata(&self) -> &Arc<Array> {
        CellSource::metadata(self)
    }

    fn is_plain(&self) -> bool {
        CellSource::is_plain(self)
    }
}

/// The object-safe part of [`Fetch`].
trait AnyFetch: MaybeSync {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError>;
    fn nodes<'f>(&'f self, keys: &'f [Key])
    -> BoxFuture<'f, Result<Vec<Option<Node>>, FetchError>>;
    fn cells<'f>(
        &'f self,
        wanted: &'f [CellRequest<AnyArray>],
        bypasses_cache: bool,
    ) -> BoxFuture<'f, Vec<Result<Option<Fetched>, FetchError>>>;
    fn prepare<'f>(&'f self, arrays: &'f [AnyArray], max_requests: usize) -> BoxFuture<'f, ()>;
    fn children<'f>(&'f self, key: &'f Key) -> BoxFuture<'f, Result<Vec<String>, FetchError>>;
    fn sizes<'f>(&'f self, keys: &'f [Key]) -> BoxFuture<'f, Result<Vec<Option<u64>>, FetchError>>;
    fn files<'f>(
        &'f self,
        prefix: &'f Key,
    ) -> BoxFuture<'f, Result<Vec<(String, u64)>, FetchError>>;
    fn confirm_now(&self) -> Option<Result<(), FetchError>>;
    fn confirm(&self) -> BoxFuture<'_, Result<(), FetchError>>;
    fn budget(&self) -> u64;
    fn at_once(&self) -> u64;
}

impl<F: Fetch> AnyFetch for F {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        Ok(AnyArray(Arc::new(Fetch::array(self, node, array)?)))
    }

    fn nodes<'f>(
        &'f self,
        keys: &'f [Key],
    ) -> BoxFuture<'f, Result<Vec<Option<Node>>, FetchError>> {
        Box::pin(Fetch::nodes(self, keys))
    }

    fn cells<'f>(
        &'f self,
        wanted: &'f [CellRequest<AnyArray>],
        bypasses_cache: bool,
    ) -> BoxFuture<'f, Vec<Result<Option<Fetched>, FetchError>>> {
        Box::pin(async move {
            let mut own = Vec::with_capacity(wanted.len());
            let mut others = Vec::new();
            for (at, wanted) in wanted.iter().enumerate() {
                match wanted.of() {
                    Ok(wanted) => own.push(wanted),
                    Err(error) => others.push((at, error)),
                }
            }
            let mut responses = if bypasses_cache {
                Fetch::cells_once(self, &own).await
            } else {
                Fetch::cells(self, &own).await
            };
            // In order, so that each error is inserted at the position of its request.
            for (at, error) in others {
                responses.insert(at.min(responses.len()), Err(error));
            }
            responses
        })
    }

    fn prepare<'f>(&'f self, arrays: &'f [AnyArray], max_requests: usize) -> BoxFuture<'f, ()> {
        Box::pin(async move {
            let own = arrays.iter().filter_map(|array| array.of().ok());
            let own: Vec<F::Array> = own.cloned().collect();
            Fetch::prepare(self, &own, max_requests).await;
        })
    }

    fn children<'f>(&'f self, key: &'f Key) -> BoxFuture<'f, Result<Vec<String>, FetchError>> {
        Box::pin(Fetch::children(self, key))
    }

    fn sizes<'f>(&'f self, keys: &'f [Key]) -> BoxFuture<'f, Result<Vec<Option<u64>>, FetchError>> {
        Box::pin(Fetch::sizes(self, keys))
    }

    fn files<'f>(
        &'f self,
        prefix: &'f Key,
    ) -> BoxFuture<'f, Result<Vec<(String, u64)>, FetchError>> {
        Box::pin(Fetch::files(self, prefix))
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        Fetch::confirm_now(self)
    }

    fn confirm(&self) -> BoxFuture<'_, Result<(), FetchError>> {
        Box::pin(Fetch::confirm(self))
    }

    fn budget(&self) -> u64 {
        Fetch::budget(self)
    }

    fn at_once(&self) -> u64 {
        Fetch::at_once(self)
    }
}

impl CellRequest<AnyArray> {
    /// Returns the request with the array in the type of its port.
    fn of<A: CellSource>(&self) -> Result<CellRequest<A>, FetchError> {
        let cell = match &self.cell {
            CellRef::Element(array, element) => {
                CellRef::Element(array.of::<A>()?.clone(), element.clone())
            }
            CellRef::Child(key) => CellRef::Child(key.clone()),
        };
        let part = self.part.clone();
        Ok(CellRequest { cell, part })
    }
}
