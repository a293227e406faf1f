//! An implementation of the trait `Fetch`: a cache in front of any other implementation, which may
//! be a store, a protocol or a database.

use std::{collections::HashMap, sync::Arc, sync::Mutex, sync::atomic};

use zvf_model::fetch::{AnyArray, CellOptions, CellRef, CellRequest, Fetch, FetchError, Fetched};
use zvf_model::{key::Key, zarr::Array, zarr::Node};

type Name = (Key, Vec<u64>, Option<std::ops::Range<u64>>);
type Cell = Result<Option<Fetched>, FetchError>;

pub struct Cached<F> {
    pub inner: F,
    pub cells: Mutex<HashMap<Name, Option<Fetched>>>,
    pub requested: atomic::AtomicUsize,
}

fn name(CellRequest { cell, part }: &CellRequest) -> Name {
    match cell {
        CellRef::Element(array, index) => (array.node().clone(), index.clone(), part.clone()),
        CellRef::Child(node) => (node.clone(), Vec::new(), part.clone()),
    }
}

impl<F: Fetch + Send> Fetch for Cached<F> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.inner.array(node, array)
    }
    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.inner.nodes(keys).await
    }
    async fn cells(&self, wanted: &[CellRequest], options: CellOptions) -> Vec<Cell> {
        let known = |wanted| self.cells.lock().unwrap().get(&name(wanted)).cloned();
        let cached: Vec<_> = wanted.iter().map(known).collect();
        let missing = wanted.iter().zip(&cached).filter(|(_, cached)| cached.is_none());
        let missing: Vec<_> = missing.map(|(wanted, _)| wanted.clone()).collect();
        self.requested.fetch_add(missing.len(), atomic::Ordering::Relaxed);
        let fetched = self.inner.cells(&missing, options).await;
        for (wanted, fetched) in missing.iter().zip(&fetched) {
            if let Ok(fetched) = fetched {
                self.cells.lock().unwrap().insert(name(wanted), fetched.clone());
            }
        }
        let mut fetched = fetched.into_iter();
        cached
            .into_iter()
            .map(|cached| cached.map_or_else(|| fetched.next().unwrap(), Ok))
            .collect()
    }
    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.inner.children(key).await
    }
    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.inner.sizes(keys).await
    }
    fn budget(&self) -> u64 {
        self.inner.budget()
    }
}
