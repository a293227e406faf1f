//! A type-erased port, so that plans are compiled once.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{
    AnyArray, BoxFuture, CellOptions, CellRef, CellRequest, Fetch, FetchError, Fetched, MaybeSync,
    padded::{self, PaddedReads},
};
use crate::{
    key::Key,
    zarr::{Array, Node},
};

/// A handle on any [`Fetch`].
///
/// Plans take this handle instead of a type parameter: generic plans would be compiled again for
/// each port, in the crate that uses it. A call costs an allocation for its future. Dropping a
/// future drops that of the port.
///
/// The handle carries the [`CellOptions`] of its reads.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    fetch: &'a dyn AnyFetch,
    options: CellOptions,
}

impl<'a> Port<'a> {
    /// Creates a handle on `fetch`.
    pub fn new(fetch: &'a impl Fetch) -> Self {
        let options = CellOptions::default();
        Self { fetch, options }
    }

    /// Returns a handle whose cells are not cached, for a scan that reads each of them once.
    #[must_use]
    pub fn bypass_cache(mut self) -> Self {
        self.options.bypasses_cache = true;
        self
    }

    /// Returns a handle whose reads are attributed to an operator of a plan.
    #[must_use]
    pub fn for_operator(mut self, operator: &'static str) -> Self {
        self.options.operator = Some(operator);
        self
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

    /// See [`Fetch::cells`]. Cells of an array that another kind of port opened are unavailable. Cells of
    /// [padded arrays](crate::array::Padded::cells) are joined here.
    pub async fn cells(self, wanted: &[CellRequest]) -> Vec<Result<Option<Fetched>, FetchError>> {
        let Some(padded) = PaddedReads::plan(wanted, self.budget()) else {
            return self.fetch.cells(wanted, self.options).await;
        };
        let results = self.fetch.cells(&padded.requests, self.options).await;
        padded.finish(results)
    }

    /// See [`Fetch::prepare`].
    pub async fn prepare(self, arrays: &[AnyArray], max_requests: usize) {
        let opened: Vec<AnyArray> = arrays.iter().map(padded::opened).cloned().collect();
        self.fetch.prepare(&opened, max_requests).await;
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

    /// See [`Fetch::fragment_lengths_bytes`].
    pub fn fragment_lengths_bytes(self, node: &Key) -> Option<u64> {
        self.fetch.fragment_lengths_bytes(node)
    }

    /// See [`Fetch::fragment_lengths`].
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch::fragment_lengths`].
    pub async fn fragment_lengths(
        self,
        cells: &[CellRef],
    ) -> Result<Vec<Option<Bytes>>, FetchError> {
        self.fetch.fragment_lengths(cells).await
    }

    /// Confirms reads without a request; see [`Fetch::confirm_now`].
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`](super::FetchProblem::Changed) if the store was changed meanwhile.
    pub fn confirm_now(self) -> Option<Result<(), FetchError>> {
        self.fetch.confirm_now()
    }

    /// Confirms reads; see [`Fetch::confirm`].
    ///
    /// # Errors
    ///
    /// [`FetchProblem::Changed`](super::FetchProblem::Changed) if the store was changed meanwhile.
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

/// The object-safe part of [`Fetch`].
trait AnyFetch: MaybeSync {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError>;
    fn nodes<'f>(&'f self, keys: &'f [Key])
    -> BoxFuture<'f, Result<Vec<Option<Node>>, FetchError>>;
    fn cells<'f>(
        &'f self,
        wanted: &'f [CellRequest],
        options: CellOptions,
    ) -> BoxFuture<'f, Vec<Result<Option<Fetched>, FetchError>>>;
    fn prepare<'f>(&'f self, arrays: &'f [AnyArray], max_requests: usize) -> BoxFuture<'f, ()>;
    fn children<'f>(&'f self, key: &'f Key) -> BoxFuture<'f, Result<Vec<String>, FetchError>>;
    fn sizes<'f>(&'f self, keys: &'f [Key]) -> BoxFuture<'f, Result<Vec<Option<u64>>, FetchError>>;
    fn files<'f>(
        &'f self,
        prefix: &'f Key,
    ) -> BoxFuture<'f, Result<Vec<(String, u64)>, FetchError>>;
    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64>;
    fn fragment_lengths<'f>(
        &'f self,
        cells: &'f [CellRef],
    ) -> BoxFuture<'f, Result<Vec<Option<Bytes>>, FetchError>>;
    fn confirm_now(&self) -> Option<Result<(), FetchError>>;
    fn confirm(&self) -> BoxFuture<'_, Result<(), FetchError>>;
    fn budget(&self) -> u64;
    fn at_once(&self) -> u64;
}

impl<F: Fetch> AnyFetch for F {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        Fetch::array(self, node, array)
    }

    fn nodes<'f>(
        &'f self,
        keys: &'f [Key],
    ) -> BoxFuture<'f, Result<Vec<Option<Node>>, FetchError>> {
        Box::pin(Fetch::nodes(self, keys))
    }

    fn cells<'f>(
        &'f self,
        wanted: &'f [CellRequest],
        options: CellOptions,
    ) -> BoxFuture<'f, Vec<Result<Option<Fetched>, FetchError>>> {
        Box::pin(Fetch::cells(self, wanted, options))
    }

    fn prepare<'f>(&'f self, arrays: &'f [AnyArray], max_requests: usize) -> BoxFuture<'f, ()> {
        Box::pin(Fetch::prepare(self, arrays, max_requests))
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

    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        Fetch::fragment_lengths_bytes(self, node)
    }

    fn fragment_lengths<'f>(
        &'f self,
        cells: &'f [CellRef],
    ) -> BoxFuture<'f, Result<Vec<Option<Bytes>>, FetchError>> {
        Box::pin(Fetch::fragment_lengths(self, cells))
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
