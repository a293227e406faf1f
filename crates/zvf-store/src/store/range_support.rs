//! The objects that a server does not return in ranges.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use zvf_model::key::Key;

/// Number of objects after which a server that never returned a range counts as one that cannot.
const MAX_REFUSALS: usize = 3;
/// Maximum number of objects that are remembered.
const MAX_OBJECTS: usize = 1024;

/// The objects that a server returned whole when a range of them was requested.
///
/// A cache in front of a server may do so for single objects, so others are still requested by
/// range.
#[derive(Debug, Default)]
pub(crate) struct RangeSupport {
    whole: Mutex<HashSet<Key>>,
    /// The server returned a range of an object.
    has_ranges: AtomicBool,
}

impl RangeSupport {
    /// Returns whether to read an object whole in order to read a range of it.
    pub(super) fn lacks(&self, key: &Key) -> bool {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let never = whole.len() >= MAX_REFUSALS && !self.has_ranges.load(Relaxed);
        never || whole.contains(key)
    }

    /// Records that the server returned a range.
    pub(super) fn note_range(&self) {
        self.has_ranges.store(true, Relaxed);
    }

    /// Records that the server returned an object whole instead of a range of it.
    pub(super) fn note_whole(&self, key: &Key) {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if whole.len() >= MAX_OBJECTS {
            whole.clear();
        }
        whole.insert(key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_ranges_is_recognised_after_a_few_objects() {
        let key = |number: usize| Key::parse(&number.to_string()).unwrap();
        let support = RangeSupport::default();
        for number in 0..MAX_REFUSALS {
            assert!(!support.lacks(&key(number)));
            support.note_whole(&key(number));
            assert!(support.lacks(&key(number)));
        }
        assert!(support.lacks(&key(9)));
        support.note_range();
        assert!(!support.lacks(&key(9)) && support.lacks(&key(0)));
        for number in 0..MAX_OBJECTS {
            support.note_whole(&key(number));
        }
        let whole = support.whole.lock().unwrap();
        assert!(whole.len() <= MAX_OBJECTS, "{}", whole.len());
    }
}
