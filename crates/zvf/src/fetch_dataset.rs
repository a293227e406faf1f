//! A dataset behind any [`Fetch`].

use core::{fmt, ops::ControlFlow};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use zvf_model::{
    detection::Detection,
    fetch::{Fetch, Port},
    key::Key,
    layout::Layout,
    level::LevelId,
    root::RootMetadata,
};
use zvf_query::{
    BatchOptions, BatchStream, Counts, Explanation, Query, QueryPartition, QueryReport,
    QueryResult, Session,
};

use crate::{
    dataset::opening::{self, Opened},
    error::{Error, boxed},
    failure::Failure,
    nodes::NodeSource,
};

/// A dataset read through an implementation of [`Fetch`] other than that of a
/// [`Store`](crate::Store): a cache, a protocol, a database.
///
/// It detects the generation as [`Dataset`](crate::Dataset) does and answers the same queries. What
/// a [`Store`](crate::Store) adds is left to the implementation: caching, retries and the
/// copy of the nodes in the root. `zvf_model::fetch::contract` tests an implementation.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::{FetchDataset, Query, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Store::create("memory:")?;
/// # let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
/// # let design = Design::new(GeometryKind::Points);
/// # zvf::create(store.clone(), &points, design, &Default::default()).await?;
/// // `CellReader` reads the cells of a store; programs put their own type here.
/// let fetch = zvf_store::CellReader::new(store);
/// let points = FetchDataset::open(fetch).await?;
/// assert_eq!(points.query(&Query::new()).await?.positions.len(), 2);
/// # Ok(()) }
/// ```
pub struct FetchDataset<F>(Arc<Inner<F>>);

struct Inner<F> {
    fetch: F,
    opened: Opened,
}

impl<F: Fetch + Send + 'static> FetchDataset<F> {
    /// Opens the store behind `fetch`.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no store, its generation is not supported, or its metadata is invalid.
    pub async fn open(fetch: F) -> Result<Self, Error> {
        let opened = boxed(open(Port::new(&fetch))).await?;
        Ok(Self(Arc::new(Inner { fetch, opened })))
    }

    /// Returns the implementation that this dataset reads through.
    pub fn fetch(&self) -> &F {
        &self.0.fetch
    }

    /// Returns the metadata of the root.
    pub fn root(&self) -> &RootMetadata {
        &self.0.opened.root
    }

    /// Returns the detected generation and the evidence that contradicts it.
    pub fn detection(&self) -> &Detection {
        &self.0.opened.detection
    }

    /// Returns the layout of the arrays in the store.
    pub fn layout(&self) -> &Layout {
        &self.detection().layout
    }

    /// Returns the levels of the store, finest first.
    pub fn levels(&self) -> &[LevelId] {
        &self.0.opened.ids
    }

    /// Returns a session that runs queries and shares the metadata cache of this dataset.
    pub fn session(&self) -> Session<'_> {
        Session {
            fetch: Port::new(&self.0.fetch),
            layout: self.layout(),
            root: self.root(),
            levels: &self.0.opened.levels,
        }
    }

    /// Runs a query and returns its whole result in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub fn query<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<QueryResult, Error>> {
        boxed(async move { Ok(self.session().query(query).await?) })
    }

    /// Runs a query and passes its result to `each` in batches, as
    /// [`Dataset::batches`](crate::Dataset::batches) does.
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub fn batches<'a>(
        &'a self,
        query: &'a Query,
        each: impl FnMut(QueryResult) -> ControlFlow<()> + Send + 'a,
    ) -> BoxFuture<'a, Result<QueryReport, Error>> {
        boxed(async move { Ok(self.session().batches(query, each).await?) })
    }

    /// Counts the vertices, objects and links that a query selects.
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub fn count<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Counts, Error>> {
        boxed(async move { Ok(self.session().count(query).await?) })
    }

    /// Divides a query into at most `parts` independent parts, as
    /// [`Dataset::partitions`](crate::Dataset::partitions) does.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] if the query is not valid for the store.
    pub fn partitions<'a>(
        &'a self,
        query: &'a Query,
        parts: usize,
    ) -> BoxFuture<'a, Result<Vec<QueryPartition>, Error>> {
        boxed(async move { Ok(self.session().partitions(query, parts).await?) })
    }

    /// Returns the plan of a query with the reads it would make.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] if the query is not valid for the store.
    pub fn explain<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Explanation, Error>> {
        boxed(async move { Ok(self.session().explain(query).await?) })
    }

    /// Runs a query and returns its result as a stream of batches, as
    /// [`Dataset::stream`](crate::Dataset::stream) does.
    ///
    /// # Errors
    ///
    /// The stream yields [`Error::Query`] and ends.
    pub fn stream(&self, query: &Query, options: BatchOptions) -> BatchStream<Error> {
        let (dataset, query) = (self.clone(), query.clone());
        BatchStream::new(options, move |sender| async move {
            let session = dataset.session();
            let mut send = |batch| sender.send(batch);
            let report = session.batches_within(&query, options, &mut send).await;
            report.map_err(|error| Failure::Query(error).into())
        })
    }
}

async fn open(port: Port<'_>) -> Result<Opened, Failure> {
    let address = "the root of the implementation of Fetch";
    match port.node(&Key::root()).await? {
        Some(node) => opening::below(port, address, &node).await,
        None => Err(Failure::NoStore {
            address: address.to_owned(),
        }),
    }
}

impl<F> Clone for FetchDataset<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for FetchDataset<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchDataset")
            .field("levels", &self.0.opened.ids)
            .finish_non_exhaustive()
    }
}
