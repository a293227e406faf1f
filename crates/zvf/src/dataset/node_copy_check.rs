//! Whether the copy of nodes in the root is what the nodes are.
//!
//! Programs that know nothing of the copy change nodes and leave it as it was. Few of
//! their changes leave the first level and its vertices alone, which say what is in the
//! level and which chunks there are. These two are read beside the first cells, so that
//! being sure takes no round trip more.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use futures_util::lock::Mutex;
use serde_json::Value;
use zvf_model::{key::Key, level::LevelId, node_copy::Known};
use zvf_query::LevelCache;
use zvf_store::{CellReader, Read, Store};

use super::opening;
use crate::{error::Error, nodes};

const OPEN: u8 = 0;
const CONFIRMED: u8 = 1;
const REFUTED: u8 = 2;

/// A copy that is used, and what to read with if it turns out to be stale.
#[derive(Debug)]
pub(crate) struct NodeCopyCheck {
    state: AtomicU8,
    /// Files, and what the copy says is in them.
    expected: Vec<(Key, Option<Value>)>,
    settling: Mutex<()>,
    pub(crate) cells: CellReader,
    pub(crate) levels: LevelCache,
}

impl NodeCopyCheck {
    /// Of a store as it was opened; `None` when nodes are read.
    pub(crate) fn of(store: &Store, first: Option<LevelId>) -> Result<Option<Self>, Error> {
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
                Some(Known::Node(json)) => expected.push((file, Some(json))),
                Some(_) => expected.push((file, None)),
                // It is read anyway.
                None => {}
            }
        }
        Ok(Some(Self {
            state: OPEN.into(),
            expected,
            settling: Mutex::new(()),
            cells: CellReader::new(store.without_node_copy()),
            levels: LevelCache::default(),
        }))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Relaxed) == OPEN
    }

    pub(crate) fn is_refuted(&self) -> bool {
        self.state.load(Relaxed) == REFUTED
    }

    /// Reads the nodes, unless somebody did.
    pub(crate) async fn settle(&self, store: &Store) -> Result<(), Error> {
        let _settling = self.settling.lock().await;
        if !self.is_open() {
            return Ok(());
        }
        let reads = self
            .expected
            .iter()
            .map(|(file, _)| Read::full(file.clone()));
        let reads: Vec<Read> = reads.collect();
        let found = store.read(&reads).await?;
        let same = self
            .expected
            .iter()
            .zip(found)
            .all(|((_, expected), found)| {
                let found = found.map(|bytes| serde_json::from_slice::<Value>(&bytes));
                match (expected, found) {
                    (None, None) => true,
                    (Some(expected), Some(Ok(found))) => *expected == found,
                    _ => false,
                }
            });
        self.state
            .store(if same { CONFIRMED } else { REFUTED }, Relaxed);
        Ok(())
    }
}
