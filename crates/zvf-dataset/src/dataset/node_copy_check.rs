//! Verification of the copy of the nodes in the root.
//!
//! A program that does not know the copy changes nodes without updating it. Most changes touch the
//! first level or its vertices, which describe the level and list its chunks. Both nodes are read
//! together with the first cells, so that the verification takes no round trip of its own.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use futures_util::lock::Mutex;
use serde_json::Value;
use zvf_catalog::LevelCache;
use zvf_model::{
    key::Key,
    level::LevelId,
    node_copy::{CopiedNode, with_chunk_runs},
};
use zvf_store::{CellReader, Read, Store};

use super::opening;
use crate::{failure::Failure, nodes};

const UNVERIFIED: u8 = 0;
const CURRENT: u8 = 1;
const STALE: u8 = 2;

/// The state of a node copy in use, with the reader and cache that replace it if it is stale.
#[derive(Debug)]
pub(crate) struct NodeCopyCheck {
    state: AtomicU8,
    /// Files and their contents according to the copy.
    expected: Vec<(Key, Option<Value>)>,
    verifying: Mutex<()>,
    pub(crate) cells: CellReader,
    pub(crate) levels: LevelCache,
}

impl NodeCopyCheck {
    /// Returns the check of the node copy that `store` uses; `None` if it reads nodes.
    pub(crate) fn of(store: &Store, first: Option<LevelId>) -> Result<Option<Self>, Failure> {
        if store
            .copied_node(&nodes::child(&Key::root(), "0")?)
            .is_none()
            && store.copied_children(&Key::root()).is_none()
        {
            return Ok(None);
        }
        let level = first.unwrap_or(LevelId::FULL);
        let keys = [
            nodes::child(&Key::root(), &level.to_string())?,
            opening::vertices_of(level)?,
        ];
        let mut expected = Vec::new();
        for key in keys {
            let file = nodes::metadata(&key)?;
            match store.copied_node(&key) {
                Some(CopiedNode::Node(json)) => {
                    expected.push((file, Some(with_chunk_runs(json))));
                }
                Some(_) => expected.push((file, None)),
                // The copy lacks the node, so that it is read in any case.
                None => {}
            }
        }
        Ok(Some(Self {
            state: UNVERIFIED.into(),
            expected,
            verifying: Mutex::new(()),
            cells: CellReader::new(store.without_node_copy()),
            levels: LevelCache::default(),
        }))
    }

    pub(crate) fn is_unverified(&self) -> bool {
        self.state.load(Relaxed) == UNVERIFIED
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.state.load(Relaxed) == STALE
    }

    /// Compares the copy with the nodes, once.
    pub(crate) async fn verify(&self, store: &Store) -> Result<(), Failure> {
        let _verifying = self.verifying.lock().await;
        if !self.is_unverified() {
            return Ok(());
        }
        let reads: Vec<Read> = self
            .expected
            .iter()
            .map(|(file, _)| Read::full(file.clone()))
            .collect();
        let found = store.read(&reads).await?;
        let is_current = self
            .expected
            .iter()
            .zip(found)
            .all(|((_, expected), found)| {
                let found = found.map(|bytes| serde_json::from_slice::<Value>(&bytes));
                match (expected, found) {
                    (None, None) => true,
                    (Some(expected), Some(Ok(found))) => *expected == with_chunk_runs(found),
                    _ => false,
                }
            });
        self.state
            .store(if is_current { CURRENT } else { STALE }, Relaxed);
        Ok(())
    }
}
