//! A store that may refuse listings, behind the port that query plans read through.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use zvf::Dataset;
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched},
    key::Key,
    zarr::{Array, Node},
};

/// Delegates to a store, except for listings.
pub(crate) struct FromStore {
    pub(crate) dataset: Dataset,
    /// Allows listings.
    pub(crate) lists: bool,
    /// Number of requested nodes.
    pub(crate) nodes: AtomicUsize,
    /// Number of requested cells.
    pub(crate) cells: AtomicUsize,
}

impl FromStore {
    pub(crate) fn new(dataset: Dataset) -> Self {
        Self {
            dataset,
            lists: true,
            nodes: AtomicUsize::new(0),
            cells: AtomicUsize::new(0),
        }
    }

    /// Returns the numbers of nodes and cells that were requested since the last call.
    pub(crate) fn take_requested(&self) -> (usize, usize) {
        let nodes = self.nodes.swap(0, Ordering::Relaxed);
        (nodes, self.cells.swap(0, Ordering::Relaxed))
    }
}

impl Fetch for FromStore {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.dataset.cells().array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.nodes.fetch_add(keys.len(), Ordering::Relaxed);
        self.dataset.cells().nodes(keys).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.cells.fetch_add(wanted.len(), Ordering::Relaxed);
        self.dataset.cells().cells(wanted, options).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        if self.lists {
            return self.dataset.cells().children(key).await;
        }
        Err(FetchError {
            key: key.clone(),
            problem: FetchProblem::Unlistable,
            source: "a store without listings".into(),
        })
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.dataset.cells().sizes(keys).await
    }

    fn budget(&self) -> u64 {
        self.dataset.cells().budget()
    }
}
