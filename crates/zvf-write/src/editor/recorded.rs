//! Reads of a level that keep its nodes, in which a change is written.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use zvf_dataset::{
    Failure,
    nodes::{self, NodeSource},
};
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, Fetched},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::CellReader;

/// A port that keeps all nodes that are read through it.
pub(super) struct RecordedReads {
    reader: CellReader,
    nodes: Mutex<BTreeMap<Key, Node>>,
}

impl RecordedReads {
    pub(super) fn new(reader: CellReader) -> Self {
        Self {
            reader,
            nodes: Mutex::default(),
        }
    }

    /// Returns the reader of the store.
    pub(super) fn reader(&self) -> &CellReader {
        &self.reader
    }

    /// Keeps the nodes at these keys.
    fn record(&self, keys: &[Key], nodes: &[Option<Node>]) {
        let mut recorded = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, node) in keys.iter().zip(nodes) {
            if let Some(node) = node {
                recorded.insert(key.clone(), node.clone());
            }
        }
    }

    /// Returns the nodes read so far at and below `top`.
    pub(super) fn nodes_at(&self, top: &Key) -> BTreeMap<Key, Node> {
        let recorded = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let below = recorded
            .iter()
            .filter(|(key, _)| *key == top || key.is_below(top));
        below
            .map(|(key, node)| (key.clone(), node.clone()))
            .collect()
    }
}

impl NodeSource for &RecordedReads {
    async fn nodes(self, keys: &[Key]) -> Result<Vec<Option<Node>>, Failure> {
        let read = nodes::read(self.reader.store(), keys).await?;
        self.record(keys, &read);
        Ok(read)
    }

    async fn children(self, key: &Key) -> Result<Vec<String>, Failure> {
        NodeSource::children(self.reader.store(), key).await
    }
}

impl Fetch for RecordedReads {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.reader.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let read = self.reader.nodes(keys).await?;
        self.record(keys, &read);
        Ok(read)
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.reader.cells(wanted, options).await
    }

    async fn prepare(&self, arrays: &[AnyArray], max_requests: usize) {
        self.reader.prepare(arrays, max_requests).await;
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.reader.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.reader.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        self.reader.files(prefix).await
    }

    fn budget(&self) -> u64 {
        self.reader.budget()
    }

    fn at_once(&self) -> u64 {
        self.reader.at_once()
    }
}
