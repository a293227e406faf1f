//! Cells that were read, for whoever asks again.

use core::mem;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use zvf_model::key::Key;

/// Its object, and which cell of a shard it is.
pub(super) type Place = (Key, u64);

/// Payloads of cells, within a room. Those that nobody asked for since half the room was filled
/// anew make way all at once: that takes no list of who came when.
#[derive(Debug)]
pub(super) struct Kept {
    half: usize,
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    young: HashMap<Place, Bytes>,
    old: HashMap<Place, Bytes>,
    /// Bytes of the young.
    bytes: usize,
}

impl Kept {
    /// Room for so many bytes.
    pub(super) fn new(room: u64) -> Self {
        Self {
            half: usize::try_from(room / 2).unwrap_or(usize::MAX),
            halves: Mutex::default(),
        }
    }

    /// The payloads at these places, as far as they are there.
    pub(super) fn get<'p>(
        &self,
        places: impl Iterator<Item = Option<&'p Place>>,
    ) -> Vec<Option<Bytes>> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let halves = &mut *halves;
        let get = |place: Option<&Place>| {
            let place = place?;
            if let Some(payload) = halves.young.get(place) {
                return Some(payload.clone());
            }
            let (place, payload) = halves.old.remove_entry(place)?;
            halves.put(place, payload.clone(), self.half);
            Some(payload)
        };
        places.map(get).collect()
    }

    /// Keeps payloads, but none that takes much of the room alone.
    pub(super) fn put(&self, payloads: impl Iterator<Item = (Place, Bytes)>) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, payload) in payloads {
            if payload.len() <= self.half / 4 {
                halves.put(place, payload, self.half);
            }
        }
    }
}

impl Halves {
    fn put(&mut self, place: Place, payload: Bytes, half: usize) {
        let size = |place: &Place, payload: &Bytes| {
            let entry = size_of::<(Place, Bytes)>();
            entry
                .saturating_add(place.0.as_str().len())
                .saturating_add(payload.len())
        };
        if self.young.contains_key(&place) {
            return;
        }
        let more = size(&place, &payload);
        if self.bytes.saturating_add(more) > half {
            self.old = mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(more);
        self.young.insert(place, payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        (Key::parse(name).unwrap(), 0)
    }

    fn found(kept: &Kept, name: &str) -> bool {
        kept.get([Some(&place(name))].into_iter())[0].is_some()
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_makes_way() {
        let kept = Kept::new(8000);
        let payload = Bytes::from(vec![7; 700]);
        for name in ["a", "b", "c", "d"] {
            kept.put([(place(name), payload.clone())].into_iter());
        }
        assert!(["a", "b", "c", "d"].iter().all(|name| found(&kept, name)));
        for name in ["e", "f", "g", "h", "i", "j"] {
            kept.put([(place(name), payload.clone())].into_iter());
            assert!(found(&kept, "a"), "asked for all the time");
        }
        assert!(!found(&kept, "b"));
        let halves = kept.halves.lock().unwrap();
        let held = halves.young.values().chain(halves.old.values());
        assert!(held.map(Bytes::len).sum::<usize>() <= 8000);
    }

    #[test]
    fn a_cell_that_would_push_out_all_others_is_not_kept() {
        let kept = Kept::new(8000);
        kept.put([(place("a"), Bytes::from(vec![7; 1001]))].into_iter());
        assert!(!found(&kept, "a"));
    }
}
