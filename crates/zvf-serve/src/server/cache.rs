//! A cache of encoded responses, bounded in bytes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

use super::stored_object::StoredObject;

/// Bookkeeping of an entry, in bytes.
const OVERHEAD: usize = 128;

/// The response for a path.
#[derive(Clone, Debug)]
pub(super) enum CachedResponse {
    Bytes(Bytes),
    /// Bytes in a temporary file.
    File(Arc<StoredObject>),
    /// The path leads nowhere.
    Nothing,
}

impl CachedResponse {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(file) => usize::try_from(file.len()).unwrap_or(usize::MAX),
            Self::Nothing => 0,
        }
    }
}

impl From<Option<Bytes>> for CachedResponse {
    fn from(bytes: Option<Bytes>) -> Self {
        bytes.map_or(Self::Nothing, Self::Bytes)
    }
}

/// Responses by path. The least recently used are evicted when a new one exceeds the limit.
#[derive(Debug)]
pub(super) struct ResponseCache {
    limit: usize,
    /// Maximum size of a cached response.
    largest: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<String, Entry>,
    /// Keys by the time of their last use.
    uses: BTreeMap<u64, String>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    value: CachedResponse,
    used: u64,
}

impl ResponseCache {
    pub(super) fn new(limit: usize, largest: usize) -> Self {
        Self {
            limit,
            largest,
            state: Mutex::default(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<CachedResponse> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State {
            entries,
            uses,
            clock,
            ..
        } = &mut *state;
        let entry = entries.get_mut(key)?;
        *clock = clock.saturating_add(1);
        if let Some(key) = uses.remove(&entry.used) {
            uses.insert(*clock, key);
        }
        entry.used = *clock;
        Some(entry.value.clone())
    }

    pub(super) fn put(&self, key: String, value: CachedResponse) {
        let size = size_of(&key, &value);
        if value.len() > self.largest || size > self.limit {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.remove(&key);
        while state.bytes.saturating_add(size) > self.limit {
            let Some((_, oldest)) = state.uses.pop_first() else {
                break;
            };
            state.remove(&oldest);
        }
        state.clock = state.clock.saturating_add(1);
        let used = state.clock;
        state.bytes = state.bytes.saturating_add(size);
        state.uses.insert(used, key.clone());
        state.entries.insert(key, Entry { value, used });
    }
}

impl ResponseCache {
    /// Evicts the least recently used response that has bytes. Returns whether there was one.
    pub(super) fn remove_oldest(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = state
            .uses
            .values()
            .find(|key| {
                let entry = state.entries.get(*key);
                entry.is_some_and(|entry| entry.value.len() > 0)
            })
            .cloned();
        if let Some(key) = &oldest {
            state.remove(key);
        }
        oldest.is_some()
    }
}

impl State {
    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            let size = size_of(key, &entry.value);
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}

fn size_of(key: &str, value: &CachedResponse) -> usize {
    // The key is stored twice.
    let keys = key.len().saturating_mul(2);
    value.len().saturating_add(keys).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_responses_go_first() {
        let response = || CachedResponse::Bytes(Bytes::from(vec![0; 200]));
        let cache = ResponseCache::new(1000 + 4 * (OVERHEAD + 2), 200);
        for key in ["a", "b", "c", "d"] {
            cache.put(key.to_owned(), response());
        }
        assert!(cache.get("a").is_some());
        cache.put("e".to_owned(), response());
        cache.put("e".to_owned(), response());
        assert!(cache.get("a").is_some() && cache.get("e").is_some());
        assert!(cache.get("b").is_none());
    }

    #[test]
    fn large_responses_are_not_kept() {
        let cache = ResponseCache::new(1000, 500);
        cache.put(
            "a".to_owned(),
            CachedResponse::Bytes(Bytes::from(vec![0; 600])),
        );
        assert!(cache.get("a").is_none());
        cache.put("b".to_owned(), CachedResponse::Nothing);
        assert!(matches!(cache.get("b"), Some(CachedResponse::Nothing)));
    }
}
