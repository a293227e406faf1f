//! A cache of checked blocks.
//!
//! Cells that are read whole are cached by the reader of cells. Of others only blocks are read, which
//! are cached here, so that a repeated or overlapping query requests them once.

use core::ops::Range;

use bytes::{Bytes, BytesMut};
use zvf_model::{
    key::Key,
    payload_cache::{PayloadCache, PayloadKey},
};

use super::entry::BLOCK;
use crate::io::{ByteRange, FetchedRange};

/// Holds blocks of objects whose checksums equal those in the inventory.
#[derive(Debug)]
pub(crate) struct BlockCache(PayloadCache<BlockKey>);

/// A block of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    object: Key,
    number: u64,
}

impl PayloadKey for BlockKey {
    fn heap_bytes(&self) -> usize {
        self.object.as_str().len()
    }
}

impl BlockCache {
    /// Creates a cache of at most `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        Self(PayloadCache::new(capacity))
    }

    /// Returns the blocks around a range of an object of `size` bytes, if all of them are cached.
    pub(crate) fn get(&self, object: &Key, range: &Range<u64>, size: u64) -> Option<FetchedRange> {
        if range.is_empty() {
            return None;
        }
        let first = range.start.checked_div(BLOCK)?;
        let keys = (first..range.end.div_ceil(BLOCK)).map(|number| BlockKey {
            object: object.clone(),
            number,
        });
        let keys: Vec<_> = keys.collect();
        let blocks: Option<Vec<_>> = self.0.get(keys.iter().map(Some)).into_iter().collect();
        let mut blocks = blocks?;
        let bytes = if blocks.len() == 1 {
            blocks.pop()?
        } else {
            let length = blocks.iter().map(Bytes::len).sum();
            let mut bytes = BytesMut::with_capacity(length);
            for block in &blocks {
                bytes.extend_from_slice(block);
            }
            bytes.freeze()
        };
        Some(FetchedRange {
            start: first.saturating_mul(BLOCK),
            size,
            bytes,
        })
    }

    /// Inserts the whole blocks of checked bytes.
    pub(crate) fn insert(&self, object: &Key, fetched: &FetchedRange) {
        let length = u64::try_from(fetched.bytes.len()).unwrap_or(u64::MAX);
        let end = fetched.start.saturating_add(length);
        let numbers = fetched.start.div_ceil(BLOCK)..end.div_ceil(BLOCK);
        let blocks = numbers.filter_map(|number| {
            let start = number.saturating_mul(BLOCK);
            let stop = start.saturating_add(BLOCK).min(fetched.size);
            let bytes = fetched.slice(&ByteRange::Bounded(start..stop))?;
            let object = object.clone();
            // A copy, because the block may be a small part of a large response.
            Some((BlockKey { object, number }, Bytes::copy_from_slice(&bytes)))
        });
        self.0.insert(blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_blocks_are_kept_and_a_range_needs_all_of_its_blocks() {
        let cache = BlockCache::new(1 << 20);
        let key = Key::parse("a/c/0").unwrap();
        let object: Vec<u8> = (0..=250).cycle().take(70_000).collect();
        let size = 70_000;
        let fetched = |range: Range<usize>| FetchedRange {
            start: u64::try_from(range.start).unwrap(),
            size,
            bytes: Bytes::copy_from_slice(object.get(range).unwrap()),
        };
        // Blocks 1 and 2 are whole, and so is the short last one.
        cache.insert(&key, &fetched(10_000..50_000));
        cache.insert(&key, &fetched(65_536..70_000));
        let found = cache.get(&key, &(20_000..40_000), size).unwrap();
        assert_eq!(
            (found.start, &*found.bytes),
            (16_384, &object[16_384..49_152])
        );
        let last = cache.get(&key, &(69_000..70_000), size).unwrap();
        assert_eq!((last.start, &*last.bytes), (65_536, &object[65_536..]));
        for absent in [0..10, 10_000..20_000, 40_000..50_000, 50_000..66_000, 5..5] {
            assert!(cache.get(&key, &absent, size).is_none(), "{absent:?}");
        }
        let other = Key::parse("a/c/1").unwrap();
        assert!(cache.get(&other, &(20_000..40_000), size).is_none());
    }
}
