//! Where the items of cells are, once somebody went through them.

use core::ops::Range;
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

/// Bytes of cells that are known, and of where their items are. Mostly the store keeps these
/// cells too, and they are in memory once.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// Where each item of a cell is. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct ItemOffsets(Arc<[Range<usize>]>);

impl ItemOffsets {
    /// Those of items that are parts of `payload`.
    pub(super) fn of<'a>(payload: &'a [u8], items: impl Iterator<Item = &'a [u8]>) -> Self {
        let begin = payload.as_ptr().addr();
        let place = |item: &[u8]| {
            let start = item.as_ptr().addr().saturating_sub(begin);
            start..start.saturating_add(item.len())
        };
        Self(items.map(place).collect())
    }

    /// The item at a place, of the payload that they are of.
    pub(crate) fn get<'a>(&self, payload: &'a [u8], at: usize) -> Option<&'a [u8]> {
        payload.get(self.0.get(at)?.clone())
    }
}

/// Cells whose items were found.
#[derive(Debug, Default)]
pub(super) struct ItemOffsetCache {
    cells: HashMap<u64, (Bytes, ItemOffsets)>,
    bytes: usize,
}

impl ItemOffsetCache {
    /// Of a cell, if this is its payload still: the very bytes, not equal ones.
    pub(super) fn get(&self, cell: u64, payload: &Bytes) -> Option<ItemOffsets> {
        let (known, places) = self.cells.get(&cell)?;
        (known.as_ptr_range() == payload.as_ptr_range()).then(|| places.clone())
    }

    /// Knows them until there is no room. The payload stays as long, so that no other can
    /// come where it is.
    pub(super) fn put(&mut self, cell: u64, payload: Bytes, places: ItemOffsets) {
        let size = |payload: &Bytes, places: &ItemOffsets| {
            let places = size_of_val::<[Range<usize>]>(&places.0);
            payload.len().saturating_add(places)
        };
        let more = size(&payload, &places);
        if let Some((payload, places)) = self.cells.remove(&cell) {
            self.bytes = self.bytes.saturating_sub(size(&payload, &places));
        }
        if self.bytes.saturating_add(more) > MAX_CACHED_BYTES {
            self.cells.clear();
            self.bytes = 0;
        }
        if more <= MAX_CACHED_BYTES {
            self.bytes = self.bytes.saturating_add(more);
            self.cells.insert(cell, (payload, places));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(payload: &Bytes) -> ItemOffsets {
        ItemOffsets::of(payload, payload.chunks(2))
    }

    #[test]
    fn items_are_found_of_the_very_payload_that_was_walked() {
        let payload = Bytes::from(vec![1, 2, 3]);
        let mut item_offsets = ItemOffsetCache::default();
        item_offsets.put(7, payload.clone(), places(&payload));
        let known = item_offsets.get(7, &payload.clone()).unwrap();
        assert_eq!(known.get(&payload, 0), Some(&[1, 2][..]));
        assert_eq!(known.get(&payload, 1), Some(&[3][..]));
        assert_eq!(known.get(&payload, 2), None);
        assert!(item_offsets.get(8, &payload).is_none(), "another cell");
        let anew = Bytes::from(vec![1, 2, 3]);
        assert!(item_offsets.get(7, &anew).is_none(), "read anew");
    }

    #[test]
    fn there_is_room_for_so_much() {
        let mut item_offsets = ItemOffsetCache::default();
        for cell in 0..100 {
            let payload = Bytes::from(vec![0; 100_000]);
            item_offsets.put(cell, payload.clone(), places(&payload));
            assert!(item_offsets.get(cell, &payload).is_some());
            let held = item_offsets
                .cells
                .values()
                .map(|(payload, _)| payload.len());
            assert!(
                held.sum::<usize>() <= item_offsets.bytes && item_offsets.bytes <= MAX_CACHED_BYTES
            );
        }
        let payload = Bytes::from(vec![0; MAX_CACHED_BYTES]);
        item_offsets.put(100, payload.clone(), places(&payload));
        assert!(item_offsets.get(100, &payload).is_none());
        assert_eq!(item_offsets.bytes, 0);
    }
}
