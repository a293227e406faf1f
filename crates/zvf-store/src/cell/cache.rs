//! The cache of decoded cells.

use core::mem;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use zvf_model::key::Key;

/// The key of a cached cell: its object, and its number in a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    pub(super) object: Key,
    /// `u64::MAX` outside shards.
    pub(super) number: u64,
}

/// A cache of payloads with two generations, which approximates least-recently-used eviction.
///
/// A hit in the old generation moves the payload to the young one. Once the young generation has
/// half of the capacity, it becomes the old one, and the previous old generation is evicted. This
/// needs no list of uses.
#[derive(Debug)]
pub(super) struct CellCache {
    generation_bytes: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<CacheKey, Bytes>,
    old: HashMap<CacheKey, Bytes>,
    young_bytes: usize,
}

impl CellCache {
    /// Creates a cache of at most `capacity` bytes.
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            generation_bytes: usize::try_from(capacity / 2).unwrap_or(usize::MAX),
            generations: Mutex::default(),
        }
    }

    /// Returns the cached payloads of `keys`, in their order.
    pub(super) fn get<'k>(
        &self,
        keys: impl Iterator<Item = Option<&'k CacheKey>>,
    ) -> Vec<Option<Bytes>> {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let generations = &mut *generations;
        let get = |key: Option<&CacheKey>| {
            let key = key?;
            if let Some(payload) = generations.young.get(key) {
                return Some(payload.clone());
            }
            let (key, payload) = generations.old.remove_entry(key)?;
            generations.insert(key, payload.clone(), self.generation_bytes);
            Some(payload)
        };
        keys.map(get).collect()
    }

    /// Inserts payloads, except those that exceed an eighth of the capacity.
    pub(super) fn insert(&self, payloads: impl Iterator<Item = (CacheKey, Bytes)>) {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (key, payload) in payloads {
            if payload.len() <= self.generation_bytes / 4 {
                generations.insert(key, payload, self.generation_bytes);
            }
        }
    }
}

impl Generations {
    fn insert(&mut self, key: CacheKey, payload: Bytes, generation_bytes: usize) {
        if self.young.contains_key(&key) {
            return;
        }
        let size = size_of::<(CacheKey, Bytes)>()
            .saturating_add(key.object.as_str().len())
            .saturating_add(payload.len());
        if self.young_bytes.saturating_add(size) > generation_bytes {
            self.old = mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes = self.young_bytes.saturating_add(size);
        self.young.insert(key, payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> CacheKey {
        CacheKey {
            object: Key::parse(name).unwrap(),
            number: 0,
        }
    }

    fn is_cached(cache: &CellCache, name: &str) -> bool {
        cache.get([Some(&key(name))].into_iter())[0].is_some()
    }

    #[test]
    fn used_cells_stay_cached_and_unused_cells_are_evicted() {
        let cache = CellCache::new(8000);
        let payload = Bytes::from(vec![7; 700]);
        for name in ["a", "b", "c", "d"] {
            cache.insert([(key(name), payload.clone())].into_iter());
        }
        assert!(
            ["a", "b", "c", "d"]
                .iter()
                .all(|name| is_cached(&cache, name))
        );
        for name in ["e", "f", "g", "h", "i", "j"] {
            cache.insert([(key(name), payload.clone())].into_iter());
            assert!(is_cached(&cache, "a"), "used after every insertion");
        }
        assert!(!is_cached(&cache, "b"));
        let generations = cache.generations.lock().unwrap();
        let held = generations.young.values().chain(generations.old.values());
        assert!(held.map(Bytes::len).sum::<usize>() <= 8000);
    }

    #[test]
    fn a_cell_above_an_eighth_of_the_capacity_is_not_cached() {
        let cache = CellCache::new(8000);
        cache.insert([(key("a"), Bytes::from(vec![7; 1001]))].into_iter());
        assert!(!is_cached(&cache, "a"));
    }
}
