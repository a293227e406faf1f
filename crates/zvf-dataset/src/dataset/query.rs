//! Queries of a dataset.

use core::ops::ControlFlow;

use futures_util::future::join;
use zvf_model::fetch::BoxFuture;
use zvf_query::{
    BatchOptions, BatchStream, Counts, Explanation, OperatorReport, Query, QueryPartition,
    QueryReport, QueryResult,
};

use super::Dataset;
use crate::error::{Error, boxed};

/// A callback that receives batches.
pub(super) type Each<'a> = dyn FnMut(QueryResult) -> ControlFlow<()> + Send + 'a;

impl Dataset {
    /// Runs a query and returns its whole result in memory.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Bbox, Dataset, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let points = Dataset::open(address).await?;
    /// let near = Query::new().region(Bbox::parse("0,0,0,10,10,10")?);
    /// let result = points.query(&near).await?;
    /// assert_eq!(result.positions.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query does not fit the store;
    /// [`CatalogError`](zvf_catalog::CatalogError) if a level cannot be read, and if the result exceeds
    /// the memory budget that the store was opened with; use [`batches`](Self::batches) for such a query.
    pub async fn query(&self, query: &Query) -> Result<QueryResult, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                if dataset.is_copy_unverified() {
                    // Concurrently, so that the verification adds no round trip.
                    let session = dataset.session();
                    let verified = Box::pin(dataset.verify());
                    let (result, verified) = join(session.query(query), verified).await;
                    verified?;
                    if !dataset.is_copy_stale() {
                        return Ok(result?);
                    }
                }
                Ok(dataset.session().query(query).await?)
            })
        }))
        .await
    }

    /// Runs a query and passes its result to `each` in batches, so that only a part is in memory at
    /// a time. [`ControlFlow::Break`] ends the query. The batches, concatenated in order, are the
    /// result of [`query`](Self::query).
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use std::ops::ControlFlow;
    /// use zvf::{Dataset, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let points = Dataset::open(address).await?;
    /// let mut vertices = 0;
    /// points
    ///     .batches(&Query::new(), |piece| {
    ///         vertices += piece.positions.len();
    ///         ControlFlow::Continue(())
    ///     })
    ///     .await?;
    /// assert_eq!(vertices, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError). Batches passed before the error are correct, but not
    /// the whole result.
    pub async fn batches(
        &self,
        query: &Query,
        mut each: impl FnMut(QueryResult) -> ControlFlow<()> + Send,
    ) -> Result<QueryReport, Error> {
        self.each_batch(query, &mut each).await
    }

    /// Runs a query and returns its result as a stream of batches, which concatenated in order are the
    /// result of [`query`](Self::query).
    ///
    /// No batch has more vertices or links than `options` allow, also where a level is one chunk,
    /// except for a path that is longer. The query runs while the stream is polled and stops at each
    /// batch until it was taken. It ends when the stream is dropped. Memory holds the
    /// chunks that are read at once; for paths and links in a region that is the region.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use futures_util::TryStreamExt;
    /// use zvf::{BatchOptions, Dataset, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let design = Design::new(GeometryKind::Points);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let points = Dataset::open(address).await?;
    /// let mut batches = points.stream(&Query::new(), BatchOptions::new().rows(2));
    /// let mut rows = Vec::new();
    /// while let Some(batch) = batches.try_next().await? {
    ///     rows.push(batch.positions.len());
    /// }
    /// assert_eq!(rows, [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The stream yields [`QueryError`](zvf_query::QueryError) and ends. Batches before the error
    /// are correct, but not the whole result.
    pub fn stream(&self, query: &Query, options: BatchOptions) -> BatchStream<Error> {
        let (dataset, query) = (self.clone(), query.clone());
        BatchStream::new(options, move |sender| async move {
            let mut send = |batch| sender.send(batch);
            let report = dataset.batches_at_one_state(&query, Some(options), &mut send);
            Ok(report.await?)
        })
    }

    fn each_batch<'a>(
        &'a self,
        query: &'a Query,
        each: &'a mut Each<'a>,
    ) -> BoxFuture<'a, Result<QueryReport, Error>> {
        boxed(self.batches_at_one_state(query, None, each))
    }

    /// Counts the vertices, objects and links that a query selects. Reads what the selection needs,
    /// and no attribute that only the result would contain.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Dataset, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let points = Dataset::open(address).await?;
    /// assert_eq!(points.count(&Query::new()).await?.vertices, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError).
    pub async fn count(&self, query: &Query) -> Result<Counts, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                if dataset.is_copy_unverified() {
                    let session = dataset.session();
                    let (counts, verified) = join(session.count(query), dataset.verify()).await;
                    verified?;
                    if !dataset.is_copy_stale() {
                        return Ok(counts?);
                    }
                }
                Ok(dataset.session().count(query).await?)
            })
        }))
        .await
    }

    /// Checks that the attributes that a query selects by name exist, as far as the store can be
    /// listed. A query does so itself; a [count](Self::count) reads no attributes and does not.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError).
    pub async fn check_selection(&self, query: &Query) -> Result<(), Error> {
        boxed(async move {
            // Comparing the node copy takes a round trip, which a count makes beside its own.
            if !query.names_attributes() {
                return Ok(());
            }
            self.at_one_state(move |dataset| {
                Box::pin(async move {
                    dataset.verify().await?;
                    Ok(dataset.session().check_selection(query).await?)
                })
            })
            .await
        })
        .await
    }

    /// Divides a query into at most `parts` independent parts of about equal size. Each vertex, path
    /// and link of the result is in the result of exactly one part; no path is cut. See
    /// [`Session::partitions`](zvf_query::Session::partitions) for the division of each kind of
    /// geometry.
    ///
    /// A partition is text that another process parses. That process must read the same transaction
    /// of the store: compare [`transaction`](Self::transaction), and open the dataset with
    /// [`Follow::Never`](zvf_store::Follow::Never).
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use futures_util::TryStreamExt;
    /// use zvf::{BatchOptions, Dataset, Query, QueryPartition};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let (points, query) = (Dataset::open(address).await?, Query::new());
    /// let mut rows = 0;
    /// for part in points.partitions(&query, 4).await? {
    ///     // On another machine:
    ///     let part: QueryPartition = part.to_string().parse()?;
    ///     let mut batches = points.stream(&part.query(&query), BatchOptions::new());
    ///     while let Some(batch) = batches.try_next().await? {
    ///         rows += batch.positions.len();
    ///     }
    /// }
    /// assert_eq!(rows, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query is not valid for the store.
    pub async fn partitions(
        &self,
        query: &Query,
        parts: usize,
    ) -> Result<Vec<QueryPartition>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                dataset.verify().await?;
                Ok(dataset.session().partitions(query, parts).await?)
            })
        }))
        .await
    }

    /// Returns the plan of a query with the reads it would make, computed from metadata and
    /// listings.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Dataset, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let points = Dataset::open(address).await?;
    /// let plan = points.explain(&Query::new()).await?;
    /// println!("{} requests, {:?} bytes", plan.requests(), plan.bytes());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query is not valid for the store.
    pub async fn explain(&self, query: &Query) -> Result<Explanation, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                dataset.verify().await?;
                Ok(dataset.session().explain(query).await?)
            })
        }))
        .await
    }

    /// Runs a query and returns its operators with the requests that each of them made.
    ///
    /// The result itself is dropped. Requests count cells, before neighbouring reads are merged.
    ///
    /// # Errors
    ///
    /// [`QueryError`](zvf_query::QueryError) if the query fails.
    pub async fn analyze(&self, query: &Query) -> Result<Vec<OperatorReport>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                dataset.verify().await?;
                Ok(dataset.session().analyze(query).await?)
            })
        }))
        .await
    }
}
