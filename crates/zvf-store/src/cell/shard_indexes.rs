//! The cache of shard indexes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use zvf_codecs::{ShardIndex, ShardLayout};
use zvf_model::{key::Key, zarr::IndexLocation};

use super::error::CellError;
use crate::{
    io::{ByteRange, Read},
    store::Store,
};

/// A cache of shard indexes by key, including the absence of shards.
#[derive(Debug, Default)]
pub(super) struct ShardIndexes(Mutex<CachedIndexes>);

#[derive(Debug, Default)]
struct CachedIndexes {
    by_key: HashMap<Key, Option<ShardIndex>>,
    /// Shards whose index was requested.
    requested: HashSet<Key>,
    bytes: usize,
}

/// Maximum size of the cache. When it is exceeded, the whole cache is cleared.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// The indexes of the shards of one batch; `Ok(None)` for an absent shard.
pub(super) type KnownIndexes = HashMap<Key, Result<Option<ShardIndex>, CellError>>;

impl ShardIndexes {
    /// Returns the indexes of `shards`. Takes one round trip if some are not cached.
    pub(super) async fn get<'a>(
        &self,
        shards: impl Iterator<Item = (&'a Key, &'a ShardLayout)>,
        store: &Store,
    ) -> KnownIndexes {
        let mut known = KnownIndexes::new();
        let mut missing = BTreeMap::new();
        self.with(|cached| {
            for (key, sharding) in shards {
                match cached.by_key.get(key) {
                    Some(index) => {
                        known.insert(key.clone(), Ok(index.clone()));
                    }
                    None => {
                        cached.requested.insert(key.clone());
                        missing.insert(key, sharding);
                    }
                }
            }
        });
        self.read(missing, store, &mut known).await;
        known
    }

    /// Reads the indexes of `shards` that were not requested yet. Takes one round trip.
    pub(super) async fn prepare<'a>(
        &self,
        shards: impl Iterator<Item = (&'a Key, &'a ShardLayout)>,
        store: &Store,
    ) {
        let mut missing = BTreeMap::new();
        self.with(|cached| {
            for (key, sharding) in shards {
                if cached.requested.insert(key.clone()) {
                    missing.insert(key, sharding);
                }
            }
        });
        self.read(missing, store, &mut KnownIndexes::new()).await;
    }

    /// Reads indexes and adds them to the cache and to `known`.
    async fn read(
        &self,
        missing: BTreeMap<&Key, &ShardLayout>,
        store: &Store,
        known: &mut KnownIndexes,
    ) {
        if missing.is_empty() {
            return;
        }
        let reads: Vec<Read> = missing
            .iter()
            .map(|(key, sharding)| Read::new((*key).clone(), index_range(sharding)))
            .collect();
        let results = store.read_each(&reads).await;
        let mut read = Vec::with_capacity(missing.len());
        for ((key, sharding), bytes) in missing.into_iter().zip(results) {
            let index = bytes.map_err(CellError::from).and_then(|bytes| {
                let index = bytes.map(|bytes| sharding.index(bytes)).transpose();
                index.map_err(|source| CellError::ShardIndex {
                    key: key.clone(),
                    source,
                })
            });
            read.push((key, index));
        }
        self.with(|cached| {
            for (key, index) in read {
                if let Ok(index) = &index {
                    cached.insert(key, index.clone());
                }
                known.insert(key.clone(), index);
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut CachedIndexes) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CachedIndexes {
    fn insert(&mut self, key: &Key, index: Option<ShardIndex>) {
        let size = index.as_ref().map_or(0, ShardIndex::size);
        // The key is also in `requested`.
        let size = size.saturating_add(key.as_str().len().saturating_mul(2));
        if self.bytes.saturating_add(size) > MAX_CACHE_BYTES {
            *self = Self::default();
        }
        if self.by_key.insert(key.clone(), index).is_none() {
            self.bytes = self.bytes.saturating_add(size);
        }
    }
}

/// Returns the range of a shard that holds its index.
fn index_range(sharding: &ShardLayout) -> ByteRange {
    match sharding.index_location() {
        IndexLocation::End => ByteRange::Suffix(sharding.index_size()),
        IndexLocation::Start => ByteRange::Bounded(0..sharding.index_size()),
    }
}
