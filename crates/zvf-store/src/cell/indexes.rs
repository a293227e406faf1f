//! The indexes of shards, read once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use zvf_model::key::Key;

use super::{CellError, element::Element};
use crate::{range::Read, shard::ShardIndex, store::Store};

/// Shard indexes by key; `None` is an absent shard.
#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<Key, Option<ShardIndex>>,
    bytes: usize,
}

/// Indexes kept, in bytes; all are dropped at once when there are more.
const MOST: usize = 64 << 20;

/// What is known of the shards of one call; each fails alone.
pub(super) type Known = HashMap<Key, Result<Option<ShardIndex>, CellError>>;

impl Indexes {
    /// The indexes of all shards that `elements` are in. One round trip when
    /// some were not read yet, else none.
    pub(super) async fn of<'a>(
        &self,
        elements: impl Iterator<Item = &'a Element>,
        store: &Store,
    ) -> Known {
        let mut known = Known::new();
        let mut missing = BTreeMap::new();
        self.with(|kept| {
            for element in elements {
                let Some((key, sharding)) = element.shard() else {
                    continue;
                };
                match kept.by_key.get(key) {
                    Some(index) => {
                        known.insert(key.clone(), Ok(index.clone()));
                    }
                    None => {
                        missing.insert(key, sharding);
                    }
                }
            }
        });
        if missing.is_empty() {
            return known;
        }
        let reads = missing
            .iter()
            .map(|(key, sharding)| Read::new((*key).clone(), sharding.index_range()));
        let reads: Vec<Read> = reads.collect();
        let answers = store.read_each(&reads).await;
        let mut read = Vec::with_capacity(missing.len());
        for ((key, sharding), bytes) in missing.into_iter().zip(answers) {
            let index = bytes.map_err(CellError::from).and_then(|bytes| {
                let index = bytes.map(|bytes| sharding.index(bytes)).transpose();
                index.map_err(|source| CellError::ShardIndex {
                    key: key.clone(),
                    source,
                })
            });
            read.push((key, index));
        }
        self.with(|kept| {
            for (key, index) in read {
                if let Ok(index) = &index {
                    kept.keep(key, index.clone());
                }
                known.insert(key.clone(), index);
            }
        });
        known
    }

    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn keep(&mut self, key: &Key, index: Option<ShardIndex>) {
        let size = index.as_ref().map_or(0, ShardIndex::size);
        let size = size.saturating_add(key.as_str().len());
        if self.bytes.saturating_add(size) > MOST {
            *self = Self::default();
        }
        if self.by_key.insert(key.clone(), index).is_none() {
            self.bytes = self.bytes.saturating_add(size);
        }
    }
}
