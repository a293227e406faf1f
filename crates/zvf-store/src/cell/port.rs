//! The port of query plans, implemented by [`CellReader`].

use core::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde_json::Value;
use zvf_format::{fragment::FragmentIndex, fragment_lengths};
use zvf_model::{
    fetch::{
        AnyArray, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem,
        Fetched, Port,
    },
    key::Key,
    layout::VERTEX_FRAGMENTS,
    node_copy::CopiedNode,
    zarr::{Array, Node},
};

use super::{
    CacheMode, CellReader, CellResult, PARALLEL_DECODE_BYTES, array::CellArray, error::CellError,
};
use crate::{
    io::{ListError, Read},
    threads::run_blocking,
    transaction::SnapshotError,
};

/// Bytes of files that are read at once, about the size of a processor cache.
const MAX_FILE_BATCH_BYTES: u64 = 8 << 20;
/// Size of a cell from which on its parts are worth the round trip in which a query finds out which
/// parts it needs.
const MIN_BYTES_IN_PARTS: u64 = 64 << 10;
/// Limit on the children of a node, far above any known store.
const MAX_CHILDREN: usize = 1 << 24;
/// Limit on the objects of a store, far above any known store.
const MAX_FILES: usize = 1 << 26;

impl CellSource for CellArray {
    fn node(&self) -> &Key {
        self.node()
    }

    fn metadata(&self) -> &Arc<Array> {
        self.metadata()
    }

    fn is_plain(&self) -> bool {
        self.is_read_in_parts()
    }

    fn is_in_blocks(&self) -> bool {
        self.is_read_in_blocks()
    }
}

impl Fetch for CellReader {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        let array = CellArray::new(node.clone(), array);
        let in_store = |array: CellArray| {
            let is_sealed = self.reads_sealed_parts(self.cache.is_some());
            if is_sealed && self.store().may_have_larger(node, MIN_BYTES_IN_PARTS) {
                array.sealed()
            } else {
                array
            }
        };
        array.map(in_store).map(AnyArray::new).map_err(|source| {
            let problem = if source.is_unsupported() {
                FetchProblem::Unsupported
            } else {
                FetchProblem::Damaged
            };
            error(node, problem, source)
        })
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let mut known = Vec::with_capacity(keys.len());
        let mut reads = Vec::new();
        for key in keys {
            let file = key
                .metadata()
                .map_err(|source| error(key, FetchProblem::Damaged, source))?;
            known.push(match self.store().copied_node(key) {
                Some(CopiedNode::Node(json)) => Some(Some(node(&file, json)?)),
                Some(_) => Some(None),
                None => {
                    reads.push(Read::full(file));
                    None
                }
            });
        }
        let mut read = self.read_nodes(reads).await?.into_iter();
        let nodes = known.into_iter();
        // One node was read for each that the copy does not have.
        let nodes = nodes.map(|known| known.unwrap_or_else(|| read.next().flatten()));
        Ok(nodes.collect())
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let cache_mode = if options.bypasses_cache {
            CacheMode::Bypass
        } else {
            CacheMode::Fill
        };
        let read = self.read_each(wanted, cache_mode).await;
        self.keep_lengths(wanted, &read);
        let results = read.into_iter().zip(wanted).map(|(result, wanted)| {
            result.map_err(|source| cell_error(wanted.cell.node(), source))
        });
        results.collect()
    }

    async fn prepare(&self, arrays: &[AnyArray], max_requests: usize) {
        self.prepare_shards(arrays, max_requests).await;
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        if let Some(known) = self.store().copied_children(key) {
            return Ok(known);
        }
        let listing = self.store().list(key, MAX_CHILDREN).await;
        Ok(listing.map_err(list_error)?.folders)
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        let sizes = self.store().sizes(keys, MAX_CHILDREN).await;
        sizes.map_err(list_error)
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        let files = self
            .store()
            .list_all(prefix, MAX_FILES)
            .await
            .map_err(list_error)?
            .into_iter();
        let full_path = |name: String| {
            if prefix.is_root() {
                name
            } else {
                format!("{prefix}/{name}", prefix = prefix.as_str())
            }
        };
        Ok(files
            .map(|file| (full_path(file.name), file.size))
            .collect())
    }

    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        // Files are read at once, without a round trip to save.
        if self.store().folder().is_some() {
            return None;
        }
        self.store().row_table_bytes(node)
    }

    async fn fragment_lengths(&self, cells: &[CellRef]) -> Result<Vec<Option<Bytes>>, FetchError> {
        let located = cells.iter().map(|cell| match cell {
            CellRef::Element(array, index) => {
                let array = array.downcast::<CellArray>()?.description();
                let place = array.locate(index);
                place.map_err(|source| error(cell.node(), FetchProblem::Damaged, source))
            }
            CellRef::Child(node) => Ok((node.clone(), None)),
        });
        let places: Vec<(Key, Option<u64>)> = located.collect::<Result<_, _>>()?;
        let lengths = self.store().fragment_lengths(&places).await;
        lengths.map_err(|source| cell_error(&source.key().clone(), source.into()))
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        let confirmed = self.store().confirm_snapshot_now()?;
        Some(confirmed.map_err(snapshot_error))
    }

    async fn confirm(&self) -> Result<(), FetchError> {
        let confirmed = self.store().confirm_snapshot().await;
        confirmed.map_err(snapshot_error)
    }

    fn budget(&self) -> u64 {
        self.store().budget()
    }

    fn at_once(&self) -> u64 {
        let max = self.store().budget() / 4;
        match self.store().folder() {
            Some(_) => max.min(MAX_FILE_BATCH_BYTES),
            None => max,
        }
    }
}

impl CellReader {
    /// Returns this reader as the port of query plans.
    // Inlining would compile the whole reader again in every calling crate.
    #[inline(never)]
    pub fn port(&self) -> Port<'_> {
        Port::new(self)
    }

    /// Keeps the lengths of fragments for the comparison with row tables, if the store keeps entries.
    fn keep_lengths(&self, wanted: &[CellRequest], read: &[CellResult]) {
        if !self.store().keeps_entries() {
            return;
        }
        for (wanted, read) in wanted.iter().zip(read) {
            if let CellRef::Element(array, index) = &wanted.cell
                && array.node().name() == Some(VERTEX_FRAGMENTS)
                && wanted.part.is_none()
                && let Ok(Some(cell)) = read
                && let Ok(array) = array.downcast::<CellArray>()
                && let Ok((object, number)) = array.locate(index)
            {
                self.store().keep_lengths(&object, number, || {
                    let fragments = FragmentIndex::parse(&cell.bytes).ok()?;
                    fragment_lengths::encode(&fragments)
                });
            }
        }
    }

    /// Reads and parses the metadata of nodes.
    async fn read_nodes(&self, reads: Vec<Read>) -> Result<Vec<Option<Node>>, FetchError> {
        let results = if reads.is_empty() {
            Vec::new()
        } else {
            self.store().read(&reads).await.map_err(|source| {
                let key = source.key().clone();
                cell_error(&key, source.into())
            })?
        };
        let nodes = reads.into_iter().zip(results).map(|(read, bytes)| async {
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            let key = read.key.clone();
            let is_large = bytes.len() >= PARALLEL_DECODE_BYTES;
            let parse = move || Node::parse(&read.key, &bytes);
            // Metadata that list chunks can be as long as cells.
            let node = if is_large {
                let node = run_blocking(parse).await;
                node.map_err(|source| error(&key, FetchProblem::Unavailable, source))?
            } else {
                parse()
            };
            let node = node.map_err(|source| error(&key, FetchProblem::Damaged, source))?;
            Ok(Some(node))
        });
        try_join_all(nodes).await
    }
}

/// Parses a node of the node copy.
fn node(file: &Key, json: Value) -> Result<Node, FetchError> {
    let node = Node::from_json(file, json);
    node.map_err(|source| error(file, FetchProblem::Damaged, source))
}

fn list_error(source: ListError) -> FetchError {
    let (key, problem) = match &source {
        ListError::TooMany { prefix, .. } => (prefix, FetchProblem::OverBudget),
        ListError::Sealed { prefix, .. } => (prefix, FetchProblem::Damaged),
        ListError::Unlistable { prefix, .. } => (prefix, FetchProblem::Unlistable),
        ListError::NoBucket { prefix, .. }
        | ListError::Unauthenticated { prefix, .. }
        | ListError::Throttled { prefix, .. }
        | ListError::Unavailable { prefix, .. }
        | ListError::Io { prefix, .. } => (prefix, FetchProblem::Unavailable),
    };
    error(&key.clone(), problem, source)
}

fn snapshot_error(source: SnapshotError) -> FetchError {
    match source {
        SnapshotError::Read(source) => cell_error(&source.key().clone(), source.into()),
        source @ SnapshotError::Changed => error(&Key::root(), FetchProblem::Changed, source),
    }
}

fn cell_error(key: &Key, source: CellError) -> FetchError {
    let problem = if source.is_over_budget() {
        FetchProblem::OverBudget
    } else if source.is_unsupported() {
        FetchProblem::Unsupported
    } else if source.is_damage() {
        FetchProblem::Damaged
    } else {
        FetchProblem::Unavailable
    };
    error(key, problem, source)
}

fn error(
    key: &Key,
    problem: FetchProblem,
    source: impl Error + Send + Sync + 'static,
) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: Box::new(source),
    }
}
