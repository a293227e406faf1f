//! A cache of decoded cells within a memory bound.

use core::{fmt, hash::Hash, mem};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;

/// A key of a [`PayloadCache`].
pub trait PayloadKey: Clone + Eq + Hash {
    /// Returns the memory that the key owns outside of itself.
    fn heap_bytes(&self) -> usize;
}

/// A cache of payloads with two generations, which approximates least-recently-used eviction.
///
/// A hit in the old generation moves the payload to the young one. Once the young generation has
/// half of the capacity, it becomes the old one, and the previous old generation is evicted. This
/// needs no list of uses.
pub struct PayloadCache<K> {
    generation_bytes: usize,
    generations: Mutex<Generations<K>>,
}

struct Generations<K> {
    recent: HashMap<K, Bytes>,
    old: HashMap<K, Bytes>,
    young_bytes: usize,
}

impl<K: PayloadKey> PayloadCache<K> {
    /// Creates a cache of at most `capacity` bytes, including the keys.
    pub fn new(capacity: u64) -> Self {
        Self {
            generation_bytes: usize::try_from(capacity / 2).unwrap_or(usize::MAX),
            generations: Mutex::new(Generations {
                recent: HashMap::new(),
                old: HashMap::new(),
                young_bytes: 0,
            }),
        }
    }

    /// Returns the cached payloads of `keys`, in their order; `None` where there is no key.
    pub fn get<'k>(&self, keys: impl Iterator<Item = Option<&'k K>>) -> Vec<Option<Bytes>>
    where
        K: 'k,
    {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let generations = &mut *generations;
        let get = |key: Option<&'k K>| {
            let key = key?;
            if let Some(payload) = generations.recent.get(key) {
                return Some(payload.clone());
            }
            let (key, payload) = generations.old.remove_entry(key)?;
            generations.insert(key, payload.clone(), self.generation_bytes);
            Some(payload)
        };
        keys.map(get).collect()
    }

    /// Inserts payloads, except those that exceed an eighth of the capacity.
    pub fn insert(&self, payloads: impl Iterator<Item = (K, Bytes)>) {
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

impl<K: PayloadKey> Generations<K> {
    fn insert(&mut self, key: K, payload: Bytes, generation_bytes: usize) {
        if self.recent.contains_key(&key) {
            return;
        }
        let size = size_of::<(K, Bytes)>()
            .saturating_add(key.heap_bytes())
            .saturating_add(payload.len());
        if self.young_bytes.saturating_add(size) > generation_bytes {
            self.old = mem::take(&mut self.recent);
            self.young_bytes = 0;
        }
        self.young_bytes = self.young_bytes.saturating_add(size);
        self.recent.insert(key, payload);
    }
}

impl<K> fmt::Debug for PayloadCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PayloadKey for &'static str {
        fn heap_bytes(&self) -> usize {
            self.len()
        }
    }

    fn is_cached(cache: &PayloadCache<&'static str>, name: &'static str) -> bool {
        cache.get([Some(&name)].into_iter())[0].is_some()
    }

    #[test]
    fn used_cells_stay_cached_and_unused_cells_are_evicted() {
        let cache = PayloadCache::new(8000);
        let payload = Bytes::from(vec![7; 700]);
        for name in ["a", "b", "c", "d"] {
            cache.insert([(name, payload.clone())].into_iter());
        }
        assert!(
            ["a", "b", "c", "d"]
                .iter()
                .all(|name| is_cached(&cache, name))
        );
        for name in ["e", "f", "g", "h", "i", "j"] {
            cache.insert([(name, payload.clone())].into_iter());
            assert!(is_cached(&cache, "a"), "used after every insertion");
        }
        assert!(!is_cached(&cache, "b"));
        let generations = cache.generations.lock().unwrap();
        let held = generations.recent.values().chain(generations.old.values());
        assert!(held.map(Bytes::len).sum::<usize>() <= 8000);
    }

    #[test]
    fn a_cell_above_an_eighth_of_the_capacity_is_not_cached() {
        let cache = PayloadCache::new(8000);
        cache.insert([("a", Bytes::from(vec![7; 1001]))].into_iter());
        assert!(!is_cached(&cache, "a"));
    }
}
