//! A dataset behind any [`Fetch`].

use core::{fmt, ops::ControlFlow};
use std::sync::Arc;

use zvf_catalog::{Catalog, CatalogError};
use zvf_model::{
    detection::Detection,
    fetch::{CachedFetch, Fetch, MaybeSend, Port},
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
    state_error::StateError,
};

/// A dataset read through an implementation of [`Fetch`] other than that of a
/// [`Store`](zvf_store::Store): a cache, a protocol, a database.
///
/// It detects the generation as [`Dataset`](crate::Dataset) does and runs the same queries, takes
/// nodes from the copy in the root, and caches decoded cells. Retries are left to the
/// implementation. `zvf_model::fetch::contract` tests an implementation.
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
    fetch: CachedFetch<F>,
    opened: Opened,
}

/// Options of a [`FetchDataset`].
///
/// ```
/// use zvf::FetchOptions;
///
/// let options = FetchOptions::new().cache(0);
/// assert_eq!((options.cache, options.node_copy), (0, true));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchOptions {
    /// Size of the cache of decoded cells in bytes; 0 turns it off. Default: 64 MiB.
    pub cache: u64,
    /// Takes nodes from the copy in the root, if there is one. Default: `true`. Turn it off for a
    /// store that was changed by a program that does not update the copy.
    pub node_copy: bool,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            cache: 64 << 20,
            node_copy: true,
        }
    }
}

impl FetchOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        cache: u64,
        node_copy: bool,
    }
}

impl<F: Fetch + MaybeSend + 'static> FetchDataset<F> {
    /// Opens the store behind `fetch` with the default options.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no store, its generation is not supported, or its metadata is invalid.
    pub async fn open(fetch: F) -> Result<Self, Error> {
        Self::open_with(fetch, &FetchOptions::default()).await
    }

    /// Opens the store behind `fetch`.
    ///
    /// # Errors
    ///
    /// Errors of [`open`](Self::open).
    pub async fn open_with(fetch: F, options: &FetchOptions) -> Result<Self, Error> {
        let inner = boxed(open(fetch, options)).await?;
        Ok(Self(Arc::new(inner)))
    }

    /// Returns the implementation that this dataset reads through.
    pub fn fetch(&self) -> &F {
        self.0.fetch.inner()
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

    /// Returns a session that runs queries on the [`catalog`](Self::catalog).
    pub fn session(&self) -> Session<'_> {
        Session::new(self.catalog())
    }

    /// Returns the catalog, which reads parts of levels and shares the metadata cache of this dataset.
    pub fn catalog(&self) -> Catalog<'_> {
        Catalog {
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
    /// [`QueryError`](zvf_query::QueryError).
    pub async fn query(&self, query: &Query) -> Result<QueryResult, Error> {
        boxed(async move { Ok(self.session().query(query).await?) }).await
    }

    /// Runs a query and passes its result to `each` in batches, as
    /// [`Dataset::batches`](crate::Dataset::batches) does.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError).
    pub async fn batches(
        &self,
        query: &Query,
        each: impl FnMut(QueryResult) -> ControlFlow<()> + MaybeSend,
    ) -> Result<QueryReport, Error> {
        boxed(async move { Ok(self.session().batches(query, each).await?) }).await
    }

    /// Counts the vertices, objects and links that a query selects.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError).
    pub async fn count(&self, query: &Query) -> Result<Counts, Error> {
        boxed(async move { Ok(self.session().count(query).await?) }).await
    }

    /// Divides a query into at most `parts` independent parts, as
    /// [`Dataset::partitions`](crate::Dataset::partitions) does.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query is not valid for the store.
    pub async fn partitions(
        &self,
        query: &Query,
        parts: usize,
    ) -> Result<Vec<QueryPartition>, Error> {
        boxed(async move { Ok(self.session().partitions(query, parts).await?) }).await
    }

    /// Returns the plan of a query with the reads it would make.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query is not valid for the store.
    pub async fn explain(&self, query: &Query) -> Result<Explanation, Error> {
        boxed(async move { Ok(self.session().explain(query).await?) }).await
    }

    /// Runs a query and returns its result as a stream of batches, as
    /// [`Dataset::stream`](crate::Dataset::stream) does.
    ///
    /// # Errors
    ///
    /// The stream yields [`QueryError`](zvf_query::QueryError) and ends.
    pub fn stream(&self, query: &Query, options: BatchOptions) -> BatchStream<Error> {
        let (dataset, query) = (self.clone(), query.clone());
        BatchStream::new(options, move |sender| async move {
            let session = dataset.session();
            let mut send = |batch| sender.send(batch);
            let report = session.batches_within(&query, options, &mut send).await;
            report.map_err(|error| Failure::from(error).into())
        })
    }
}

async fn open<F: Fetch + MaybeSend>(fetch: F, options: &FetchOptions) -> Result<Inner<F>, Failure> {
    let address = "the root of the implementation of Fetch";
    let mut fetch = CachedFetch::new(fetch).with_cache(options.cache);
    let root = if options.node_copy {
        fetch.read_node_copy().await.map_err(CatalogError::from)?
    } else {
        NodeSource::node(Port::new(&fetch), &Key::root()).await?
    };
    let Some(root) = root else {
        return Err(Failure::State(StateError::NoStore {
            address: address.to_owned(),
            exists: true,
        }));
    };
    let opened = opening::below(Port::new(&fetch), address, &root).await?;
    Ok(Inner { fetch, opened })
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
