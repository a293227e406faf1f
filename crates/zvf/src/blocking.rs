//! Operations for programs without async.
//!
//! [`block_on`] waits for any operation of this crate on a runtime of its own, and [`Dataset`] has
//! the operations that programs use most. A call may come from any thread, except from async code.
//!
//! ```
//! # use zvf::{CreateOptions, Design, Geometry, GeometryKind, NumericColumn};
//! use zvf::{BatchOptions, Bbox, Query, ValidateOptions, blocking};
//!
//! # let folder = tempfile::tempdir()?;
//! # let address = folder.path().join("points.zv").display().to_string();
//! # let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
//! # let design = Design::new(GeometryKind::Points);
//! # blocking::block_on(zvf::create(&address, &points, design, &CreateOptions::new()))?;
//! let points = blocking::Dataset::open(&address)?;
//! let query = Query::new().region(Bbox::parse("0,0,0,5,5,5")?);
//! assert_eq!(points.query(&query)?.positions.len(), 1);
//! for batch in points.stream(&Query::new(), BatchOptions::new().rows(1)) {
//!     assert_eq!(batch?.positions.len(), 1);
//! }
//! let report = blocking::block_on(zvf::validate(&address, &ValidateOptions::default()))?;
//! assert!(report.is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::{Mutex, OnceLock, PoisonError};

use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};
use zvf_dataset::{Error, Failure, Location};
use zvf_query::{
    BatchOptions, BatchStream, Counts, Explanation, Query, QueryPartition, QueryReport, QueryResult,
};
use zvf_store::OpenOptions;

/// Waits for an operation, on a runtime that all calls share.
///
/// # Errors
///
/// The errors of the operation; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the
/// runtime cannot be started.
///
/// # Panics
///
/// If called from async code, which should await the operation instead.
pub fn block_on<T>(operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    runtime()?.block_on(operation)
}

fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    static START_LOCK: Mutex<()> = Mutex::new(());
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let _starting = START_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// A [`zvf_dataset::Dataset`] whose queries return when they are done.
#[derive(Clone, Debug)]
pub struct Dataset(zvf_dataset::Dataset);

impl Dataset {
    /// Opens the store at `location`, as [`zvf_dataset::Dataset::open`] does.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::open`].
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, &OpenOptions::default())
    }

    /// Opens the store with `options`, as [`zvf_dataset::Dataset::open_with`] does.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::open`].
    pub fn open_with(location: impl Into<Location>, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self(block_on(zvf_dataset::Dataset::open_with(
            location, options,
        ))?))
    }

    /// Returns the async dataset, for metadata and for operations to pass to [`block_on`].
    pub fn as_async(&self) -> &zvf_dataset::Dataset {
        &self.0
    }

    /// Runs a query and returns its whole result in memory.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::query`].
    pub fn query(&self, query: &Query) -> Result<QueryResult, Error> {
        block_on(self.0.query(query))
    }

    /// Runs a query and returns its result as an iterator of batches, which reads while it is
    /// advanced. See [`zvf_dataset::Dataset::stream`].
    pub fn stream(&self, query: &Query, options: BatchOptions) -> BatchIter {
        BatchIter(self.0.stream(query, options))
    }

    /// Divides a query into at most `parts` independent parts.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::partitions`].
    pub fn partitions(&self, query: &Query, parts: usize) -> Result<Vec<QueryPartition>, Error> {
        block_on(self.0.partitions(query, parts))
    }

    /// Counts the vertices, objects and links that a query selects.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::count`].
    pub fn count(&self, query: &Query) -> Result<Counts, Error> {
        block_on(self.0.count(query))
    }

    /// Returns the plan of a query with the reads it would make.
    ///
    /// # Errors
    ///
    /// See [`zvf_dataset::Dataset::explain`].
    pub fn explain(&self, query: &Query) -> Result<Explanation, Error> {
        block_on(self.0.explain(query))
    }
}

/// The batches of a query.
#[derive(Debug)]
#[must_use = "an iterator does nothing unless advanced"]
pub struct BatchIter(BatchStream<Error>);

impl BatchIter {
    /// Returns the levels, skipped parts and notes of the result, once the iterator has ended
    /// without an error.
    pub fn report(&self) -> Option<&QueryReport> {
        self.0.report()
    }
}

impl Iterator for BatchIter {
    type Item = Result<QueryResult, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(async { Ok(self.0.next().await) }).unwrap_or_else(|error| Some(Err(error)))
    }
}
