//! Cells: reading whole payloads or parts of them, from plain, compressed or sharded arrays.
//!
//! A batch passes through these steps:
//!
//! | step | type | what it decides |
//! |---|---|---|
//! | group | [`CellRequest`] | requests for the same cell become one |
//! | locate | [`LocatedCell`] | the object of the cell and, in a shard, its number |
//! | look up | [`PayloadCache`] | payloads that need no read |
//! | look up | [`ShardIndexes`] | ranges of cells in shards: one round trip for unknown indexes |
//! | look up | [`BlockIndexes`] | blocks of compressed cells: one round trip for unknown cells |
//! | plan | [`CellJob`] | the [`Read`]s of each cell |
//! | fetch | [`Store`] | one round trip |
//! | decode | [`CellJob::finish`] | codecs, frames and the requested parts, on all cores if heavy |
//!
//! A child, an array known only by its key, may need another round trip when its chunk
//! has an unusual name.

use core::ops::Range;
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures_util::future::try_join;
use zvf_model::{
    fetch::{AnyArray, CellRef, CellRequest, Fetched},
    key::Key,
    payload_cache::PayloadCache,
};

use crate::{
    io::{ByteBudget, Read},
    store::Store,
    threads::{TaskPanicked, par_map, par_map_above},
};

mod array;
mod child;
mod element;
mod encode;
mod error;
mod job;
mod port;
mod shard_indexes;

use child::Child;
use element::{BlockIndexes, CacheKey, Element, ReadResult};
use job::{CellJob, JobOutcome, JobResult};
use shard_indexes::ShardIndexes;

pub use array::{CellArray, CellArrayError};
pub use error::CellError;

/// A read of a cell, or of a part of it.
#[derive(Clone, Debug)]
pub struct CellRead<'a> {
    /// The array of the cell.
    pub array: &'a CellArray,
    /// The grid index of the cell: one number for each axis, from 0. In a sharded array it counts
    /// inner chunks.
    pub index: &'a [u64],
    /// The bytes of the payload to return; `None` for all.
    pub part: Option<Range<u64>>,
}

/// Reads cells of the arrays of one store, and caches shard indexes and, optionally, cells.
///
/// A change to a shard after its index was read is not seen; use a new reader. The reader
/// implements [`Fetch`](zvf_model::fetch::Fetch), the port of query plans.
///
/// Cloning is cheap; clones share the caches.
#[derive(Clone, Debug)]
pub struct CellReader {
    store: Store,
    shard_indexes: Arc<ShardIndexes>,
    block_indexes: Arc<BlockIndexes>,
    cache: Option<Arc<PayloadCache<CacheKey>>>,
}

/// The bytes of a payload that a request is for; `None` for all.
type Part = Option<Range<u64>>;

/// A part of a payload and the size of the payload; `Ok(None)` for an absent cell.
type CellResult = Result<Option<Fetched>, CellError>;

/// Use of the cell cache for the cells of a batch that it does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheMode {
    /// Cells that are read whole are inserted.
    Fill,
    /// No cell is inserted: the caller scans many cells once.
    Bypass,
}

/// Minimum size of a cell that is decoded on other threads.
const PARALLEL_DECODE_BYTES: usize = 64 << 10;
/// Minimum cost of reading and decoding, in bytes of decompression, for which waking other threads
/// pays off.
const PARALLEL_READ_COST: usize = 192 << 10;
/// Cost of opening and closing a file, in bytes of decompression.
const OPEN_FILE_COST: usize = 8 << 10;

/// Maximum size of the shard indexes that are read before they are needed.
const MAX_PREPARED_BYTES: u64 = 1 << 20;

/// Estimates the cost of the reads of a cell, in bytes of decompression.
fn read_cost(results: &[ReadResult]) -> usize {
    if results.is_empty() {
        return 0;
    }
    let bytes = results.iter().flatten().flatten().map(Bytes::len);
    bytes.fold(OPEN_FILE_COST, |sum, bytes| sum.saturating_add(bytes / 4))
}

impl CellReader {
    /// Creates a reader of the cells of `store`, without a cell cache.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            shard_indexes: Arc::default(),
            block_indexes: Arc::default(),
            cache: None,
        }
    }

    /// Adds a cache of `bytes` bytes for decoded cells that are read whole; 0 for none. Half of it is
    /// for the checked blocks of cells that are read in parts, if the store is sealed and not a folder.
    ///
    /// The least recently used cells are evicted. A cell that changes after it was read is not
    /// read again, so writers should not use a cache.
    ///
    /// ```
    /// use zvf_store::{CellReader, OpenOptions};
    ///
    /// let reader = CellReader::new(OpenOptions::new().open("memory:")?).with_cache(64 << 20);
    /// # let _ = reader;
    /// # Ok::<(), zvf_store::OpenError>(())
    /// ```
    #[must_use]
    pub fn with_cache(self, bytes: u64) -> Self {
        let mut cells = bytes;
        if bytes > 0 && self.reads_sealed_parts(true) {
            cells = bytes / 2;
            self.store.cache_blocks(bytes.saturating_sub(cells));
        }
        Self {
            cache: (bytes > 0).then(|| Arc::new(PayloadCache::new(cells))),
            ..self
        }
    }

    /// Returns whether parts of cells with a checksum are read alone, checked by the inventory: not from
    /// files if there is a cache, since a whole cell in it serves all further queries.
    fn reads_sealed_parts(&self, has_cache: bool) -> bool {
        self.store.is_sealed() && !(has_cache && self.store.is_near())
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads the payloads of cells, in the order of `cells`; `None` for absent cells and for arrays
    /// without elements.
    ///
    /// The payload of a chunk with one element of variable length is the byte string, without its
    /// frame; with several, it is the frame; otherwise it is the elements.
    ///
    /// Takes one round trip, and another one for shards whose index is not cached. A part of an
    /// uncompressed cell is read alone, together with the frame header, against which it is
    /// checked. A cell that is requested twice is read and decoded once.
    ///
    /// # Errors
    ///
    /// The first [`CellError`].
    pub async fn read(&self, cells: &[CellRead<'_>]) -> Result<Vec<Option<Bytes>>, CellError> {
        let requests: Vec<CellRequest> = cells
            .iter()
            .map(|cell| CellRequest {
                cell: CellRef::Element(AnyArray::new(cell.array.clone()), cell.index.to_vec()),
                part: cell.part.clone(),
            })
            .collect();
        let results = self.read_each(&requests, CacheMode::Fill).await.into_iter();
        results
            .map(|result| result.map(|fetched| fetched.map(|fetched| fetched.bytes)))
            .collect()
    }

    /// Reads one cell.
    ///
    /// # Errors
    ///
    /// [`CellError`].
    pub async fn read_one(&self, cell: CellRead<'_>) -> Result<Option<Bytes>, CellError> {
        let mut cells = self.read(&[cell]).await?;
        Ok(cells.pop().flatten())
    }

    /// Reads the indexes of all shards of arrays over the network, if they are few. Cells in these
    /// shards then take one round trip.
    async fn prepare_shards(&self, arrays: &[AnyArray], max_requests: usize) {
        let arrays: Vec<&CellArray> = arrays
            .iter()
            .filter_map(|array| array.downcast().ok())
            .collect();
        let counts = arrays.iter().map(|array| array.shard_count());
        let count = counts.fold(0, usize::saturating_add);
        let sizes = arrays.iter().map(|array| array.shard_index_bytes());
        let bytes = sizes.fold(0, u64::saturating_add);
        if self.store.is_near() || count > max_requests || bytes > MAX_PREPARED_BYTES {
            return;
        }
        let shards: Vec<_> = arrays.iter().flat_map(|array| array.shards()).collect();
        let shards = shards.iter().map(|(key, sharding)| (key, *sharding));
        self.shard_indexes.prepare(shards, &self.store).await;
    }

    /// Reads cells and children, with a separate result for each request.
    ///
    /// Takes one more round trip when the chunk of a child has an unusual name.
    async fn read_each(&self, requests: &[CellRequest], cache_mode: CacheMode) -> Vec<CellResult> {
        let (cells, positions) = group(requests);
        let budget = Arc::new(ByteBudget::new(self.store.budget()));
        let is_unlocated: Vec<bool> = cells.iter().map(|cell| self.is_unlocated(cell)).collect();
        let results = if is_unlocated.contains(&true) {
            // Cells whose blocks are unknown take another round trip, for which others do not wait.
            let mut places = is_unlocated.iter();
            let (unlocated, others) = cells
                .into_iter()
                .partition(|_| places.next() == Some(&true));
            let both = try_join(
                self.read_cells(others, &budget, cache_mode),
                self.read_cells(unlocated, &budget, cache_mode),
            );
            both.await.map(|(early, late)| {
                let mut groups = [early.into_iter(), late.into_iter()];
                let next = |is_unlocated: bool| {
                    let from = groups.get_mut(usize::from(is_unlocated));
                    from.and_then(Iterator::next).unwrap_or_default()
                };
                is_unlocated.into_iter().map(next).collect()
            })
        } else {
            self.read_cells(cells, &budget, cache_mode).await
        };
        let results: Vec<Vec<CellResult>> = match results {
            Ok(results) => results,
            Err(source) => return interrupted(requests, source),
        };
        let result = |position: Position| {
            let parts = results.get(position.cell);
            let result = parts.and_then(|parts| parts.get(position.part));
            result.cloned().unwrap_or(Ok(None))
        };
        positions.into_iter().map(result).collect()
    }

    /// Returns whether the blocks of a cell that is read by block have to be located first.
    fn is_unlocated(&self, (cell, parts): &GroupedCell) -> bool {
        let Ok(LocatedCell::Element(element)) = cell else {
            return false;
        };
        element.is_in_blocks()
            && parts.iter().all(Option::is_some)
            && !self.block_indexes.contains(element)
    }

    /// Reads the parts of cells.
    async fn read_cells(
        &self,
        cells: Vec<GroupedCell>,
        budget: &Arc<ByteBudget>,
        cache_mode: CacheMode,
    ) -> Result<Vec<Vec<CellResult>>, TaskPanicked> {
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let cached = self.cached_payloads(&cells);
        let missing = cells.iter().zip(&cached);
        let shards = missing.filter_map(|((cell, _), cached)| match cell {
            Ok(LocatedCell::Element(element)) if cached.is_none() => element.shard(),
            _ => None,
        });
        let indexes = self.shard_indexes.get(shards, &self.store).await;
        let missing = cells.iter().zip(&cached);
        let compressed = missing.filter_map(|((cell, parts), cached)| {
            let Ok(LocatedCell::Element(element)) = cell else {
                return None;
            };
            let is_read_by_block = element.is_in_blocks()
                && cached.is_none()
                && parts.iter().all(Option::is_some)
                && self.store.checks(element.key());
            is_read_by_block.then_some(element)
        });
        let blocks = self
            .block_indexes
            .get(compressed, &indexes, &self.store)
            .await;
        let jobs = cells
            .into_iter()
            .zip(cached)
            .map(|((cell, parts), cached)| match (cell, cached) {
                (Ok(LocatedCell::Element(element)), Some(payload)) => {
                    CellJob::cached(element, parts, payload)
                }
                (cell, _) => CellJob::plan(cell, parts, &indexes, &blocks, &self.store),
            });
        let cache = self
            .cache
            .as_deref()
            .filter(|_| cache_mode == CacheMode::Fill);
        let finished = self.run(jobs.collect(), budget, cache.is_some()).await?;
        let (outcomes, payloads): (Vec<_>, Vec<_>) = finished
            .into_iter()
            .map(|job| (job.outcome, job.cacheable))
            .unzip();
        if let Some(cache) = cache {
            cache.insert(payloads.into_iter().flatten());
        }
        self.read_renamed_chunks(outcomes, Arc::clone(budget)).await
    }

    fn cached_payloads(&self, cells: &[GroupedCell]) -> Vec<Option<Bytes>> {
        let Some(cache) = &self.cache else {
            return vec![None; cells.len()];
        };
        let keys = cells.iter().map(|(cell, _)| match cell {
            Ok(LocatedCell::Element(element)) => element.cache_key(),
            _ => None,
        });
        cache.get(keys)
    }

    /// Performs the reads of jobs and finishes them.
    async fn run(
        &self,
        mut jobs: Vec<CellJob>,
        budget: &Arc<ByteBudget>,
        fills_cache: bool,
    ) -> Result<Vec<JobResult>, TaskPanicked> {
        let budget = Arc::clone(budget);
        if let Some(folder) = self.store.folder()
            && jobs.iter().all(CellJob::is_independent)
        {
            let (store, folder) = (self.store.clone(), folder.to_owned());
            let read_budget = ByteBudget::new(store.budget());
            let run = move |mut job: CellJob| {
                let reads = job.take_reads();
                let results = store.read_each_blocking(&folder, &reads, &read_budget);
                let cost = job
                    .decode_cost(&results)
                    .saturating_add(read_cost(&results));
                (job.finish(results, &store, &budget, fills_cache), cost)
            };
            return par_map_above(jobs, PARALLEL_READ_COST, run).await;
        }
        let counts: Vec<usize> = jobs.iter().map(CellJob::read_count).collect();
        let reads: Vec<Read> = jobs.iter_mut().flat_map(CellJob::take_reads).collect();
        let mut results = self.store.read_each(&reads).await.into_iter();
        let mut cost = 0_usize;
        let jobs: Vec<_> = jobs
            .into_iter()
            .zip(counts)
            .map(|(job, reads)| {
                let results: Vec<ReadResult> = results.by_ref().take(reads).collect();
                cost = cost.saturating_add(job.decode_cost(&results));
                (job, results)
            })
            .collect();
        let store = self.store.clone();
        let finish =
            move |(job, results): (CellJob, _)| job.finish(results, &store, &budget, fills_cache);
        if cost < PARALLEL_DECODE_BYTES {
            return Ok(jobs.into_iter().map(finish).collect());
        }
        par_map(jobs, finish).await
    }

    /// Reads the chunks of children whose metadata name another chunk than the usual one.
    async fn read_renamed_chunks(
        &self,
        outcomes: Vec<JobOutcome>,
        budget: Arc<ByteBudget>,
    ) -> Result<Vec<Vec<CellResult>>, TaskPanicked> {
        let reads: Vec<Read> = outcomes.iter().filter_map(JobOutcome::next_read).collect();
        if reads.is_empty() {
            let finished = outcomes
                .into_iter()
                .map(|outcome| outcome.finish(None, &budget));
            return Ok(finished.collect());
        }
        let mut results = self.store.read_each(&reads).await.into_iter();
        let outcomes = outcomes.into_iter().map(|outcome| {
            let chunk = match &outcome {
                JobOutcome::Finished(_) => None,
                JobOutcome::ChunkRenamed { .. } => results.next(),
            };
            (outcome, chunk)
        });
        let finish = move |(outcome, chunk): (JobOutcome, _)| outcome.finish(chunk, &budget);
        par_map(outcomes.collect(), finish).await
    }
}

/// A cell whose object is known.
enum LocatedCell {
    Element(Element),
    Child(Child),
}

impl LocatedCell {
    fn new(cell: &CellRef) -> Result<Self, CellError> {
        match cell {
            CellRef::Element(array, index) => {
                let array: &CellArray = array
                    .downcast()
                    .map_err(|_| CellError::ForeignArray(array.node().clone()))?;
                let element = Element::new(array.description(), index)?;
                Ok(Self::Element(element.in_blocks(array.is_read_in_blocks())))
            }
            CellRef::Child(key) => Child::new(key).map(Self::Child),
        }
    }
}

/// A cell and the parts of it that are requested.
type GroupedCell = (Result<LocatedCell, CellError>, Vec<Part>);

/// The position of a request among grouped cells.
#[derive(Clone, Copy)]
struct Position {
    cell: usize,
    part: usize,
}

/// The cell of a request. Clones of an array share their description, so arrays are compared by its
/// address; an array of another port has none.
#[derive(PartialEq, Eq, Hash)]
enum CellId<'a> {
    Element(Option<usize>, &'a [u64]),
    Child(&'a Key),
}

impl<'a> CellId<'a> {
    fn new(cell: &'a CellRef) -> Self {
        match cell {
            CellRef::Element(array, index) => {
                let array = array.downcast::<CellArray>().ok();
                let address = array.map(|array| Arc::as_ptr(array.description()).addr());
                Self::Element(address, index)
            }
            CellRef::Child(key) => Self::Child(key),
        }
    }
}

/// Groups requests by cell, and returns the position of each request.
fn group(requests: &[CellRequest]) -> (Vec<GroupedCell>, Vec<Position>) {
    let mut cell_of: HashMap<CellId<'_>, usize> = HashMap::new();
    let mut cells: Vec<GroupedCell> = Vec::new();
    let mut positions = Vec::with_capacity(requests.len());
    for request in requests {
        let cell = *cell_of
            .entry(CellId::new(&request.cell))
            .or_insert(cells.len());
        if cell == cells.len() {
            cells.push((LocatedCell::new(&request.cell), Vec::new()));
        }
        if let Some((_, parts)) = cells.get_mut(cell) {
            let part = parts.len();
            positions.push(Position { cell, part });
            parts.push(request.part.clone());
        }
    }
    (cells, positions)
}

/// Returns the results of requests whose decoding panicked.
fn interrupted(requests: &[CellRequest], source: TaskPanicked) -> Vec<CellResult> {
    let source: Arc<dyn core::error::Error + Send + Sync> = Arc::new(source);
    let result = |request: &CellRequest| {
        Err(CellError::Interrupted {
            key: request.cell.node().clone(),
            source: Arc::clone(&source),
        })
    };
    requests.iter().map(result).collect()
}
