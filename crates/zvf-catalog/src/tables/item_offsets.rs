//! A cache of the byte ranges of items in parsed cells.

use core::ops::Range;
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

/// Maximum size of the cached cells and ranges, in bytes. The store's cache usually shares the
/// cells, which are then in memory once.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// The byte range of each item of a cell. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct ItemOffsets(Arc<[Range<usize>]>);

impl ItemOffsets {
    /// Computes the ranges of items that are slices of `payload`.
    pub(super) fn of<'a>(payload: &'a [u8], items: impl Iterator<Item = &'a [u8]>) -> Self {
        let begin = payload.as_ptr().addr();
        let range = |item: &[u8]| {
            let start = item.as_ptr().addr().saturating_sub(begin);
            start..start.saturating_add(item.len())
        };
        Self(items.map(range).collect())
    }

    /// Returns the item at an index of the payload these ranges belong to.
    pub(crate) fn get<'a>(&self, payload: &'a [u8], at: usize) -> Option<&'a [u8]> {
        payload.get(self.0.get(at)?.clone())
    }
}

/// Ranges of the items of recently parsed cells.
#[derive(Debug, Default)]
pub(super) struct ItemOffsetCache {
    cells: HashMap<u64, (Bytes, ItemOffsets)>,
    bytes: usize,
}

impl ItemOffsetCache {
    /// Returns the ranges of a cell if `payload` is the memory they were computed for; equal bytes
    /// at another address do not match.
    pub(super) fn get(&self, cell: u64, payload: &Bytes) -> Option<ItemOffsets> {
        let (known, offsets) = self.cells.get(&cell)?;
        (known.as_ptr_range() == payload.as_ptr_range()).then(|| offsets.clone())
    }

    /// Inserts the ranges of a payload. Holds the payload as well, so that no other payload can
    /// occupy its memory.
    pub(super) fn put(&mut self, cell: u64, payload: Bytes, offsets: ItemOffsets) {
        let size = |payload: &Bytes, offsets: &ItemOffsets| {
            let offsets = size_of_val::<[Range<usize>]>(&offsets.0);
            payload.len().saturating_add(offsets)
        };
        let more = size(&payload, &offsets);
        if let Some((payload, offsets)) = self.cells.remove(&cell) {
            self.bytes = self.bytes.saturating_sub(size(&payload, &offsets));
        }
        if self.bytes.saturating_add(more) > MAX_CACHED_BYTES {
            self.cells.clear();
            self.bytes = 0;
        }
        if more <= MAX_CACHED_BYTES {
            self.bytes = self.bytes.saturating_add(more);
            self.cells.insert(cell, (payload, offsets));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(payload: &Bytes) -> ItemOffsets {
        ItemOffsets::of(payload, payload.chunks(2))
    }

    #[test]
    fn ranges_are_returned_for_the_payload_they_were_computed_for() {
        let payload = Bytes::from(vec![1, 2, 3]);
        let mut item_offsets = ItemOffsetCache::default();
        item_offsets.put(7, payload.clone(), offsets(&payload));
        let known = item_offsets.get(7, &payload.clone()).unwrap();
        assert_eq!(known.get(&payload, 0), Some(&[1, 2][..]));
        assert_eq!(known.get(&payload, 1), Some(&[3][..]));
        assert_eq!(known.get(&payload, 2), None);
        assert!(item_offsets.get(8, &payload).is_none(), "another cell");
        let anew = Bytes::from(vec![1, 2, 3]);
        assert!(item_offsets.get(7, &anew).is_none(), "read anew");
    }

    #[test]
    fn size_is_bounded() {
        let mut item_offsets = ItemOffsetCache::default();
        for cell in 0..100 {
            let payload = Bytes::from(vec![0; 100_000]);
            item_offsets.put(cell, payload.clone(), offsets(&payload));
            assert!(item_offsets.get(cell, &payload).is_some());
            let loaded = item_offsets
                .cells
                .values()
                .map(|(payload, _)| payload.len());
            assert!(
                loaded.sum::<usize>() <= item_offsets.bytes
                    && item_offsets.bytes <= MAX_CACHED_BYTES
            );
        }
        let payload = Bytes::from(vec![0; MAX_CACHED_BYTES]);
        item_offsets.put(100, payload.clone(), offsets(&payload));
        assert!(item_offsets.get(100, &payload).is_none());
        assert_eq!(item_offsets.bytes, 0);
    }
}
