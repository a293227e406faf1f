//! The blocks of compressed cells, which the first bytes of each cell locate.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use zvf_codecs::{BlocksPrefix, ChunkBlocks};

use super::{CacheKey, Element};
use crate::{
    cell::{error::CellError, shard_indexes::KnownIndexes},
    io::{ByteRange, FetchResult, FetchedRange, Read},
    store::Store,
};

/// A cache of the blocks of cells, including the absence of cells.
#[derive(Debug, Default)]
pub(in crate::cell) struct BlockIndexes(Mutex<CachedBlocks>);

#[derive(Debug, Default)]
struct CachedBlocks {
    by_cell: HashMap<CacheKey, CellBlocks>,
    bytes: usize,
}

/// The blocks of one cell.
#[derive(Clone, Debug)]
pub(in crate::cell) enum CellBlocks {
    /// None: the cell is absent.
    Absent,
    /// None: the cell is decoded only as a whole.
    Whole,
    Blocks(Arc<LocatedBlocks>),
}

/// The blocks of a cell, and the place of the cell.
#[derive(Debug)]
pub(in crate::cell) struct LocatedBlocks {
    pub(in crate::cell) blocks: ChunkBlocks,
    /// The position of the cell in its object.
    pub(in crate::cell) start: u64,
    /// The stored cell, if it is so small that it was read whole.
    pub(in crate::cell) bytes: Option<Bytes>,
}

/// The blocks of the cells of one batch.
pub(in crate::cell) type KnownBlocks = HashMap<CacheKey, Result<CellBlocks, CellError>>;

/// Maximum size of the cache. When it is exceeded, the whole cache is cleared.
const MAX_CACHE_BYTES: usize = 64 << 20;
/// Maximum stored size of a cell that is kept: that of a block of the inventory, the least that is read.
const MAX_KEPT_BYTES: u64 = 16 << 10;
/// Bytes of a cell in a shard that are read first: the block starts of a cell of 4 MiB in blocks of 16 KiB.
const HEAD_BYTES: u64 = 1 << 10;
/// Bytes of a cell of an own object that are read first, besides the rest of a block of the inventory.
const MIN_HEAD_BYTES: u64 = 16;

/// A cell whose first bytes are read.
struct Head<'a> {
    element: &'a Element,
    start: u64,
    /// Size of the stored cell, if known.
    size: Option<u64>,
    /// Number of the bytes to read.
    length: u64,
}

impl BlockIndexes {
    /// Returns the blocks of `cells`. Takes one round trip if some are not cached, and another one for
    /// cells of thousands of blocks.
    pub(in crate::cell) async fn get<'a>(
        &self,
        cells: impl Iterator<Item = &'a Element>,
        indexes: &KnownIndexes,
        store: &Store,
    ) -> KnownBlocks {
        let mut known = KnownBlocks::new();
        let mut heads = Vec::new();
        self.with(|cached| {
            for element in cells {
                let Some(key) = element.cache_key() else {
                    continue;
                };
                if let Some(found) = cached.by_cell.get(key) {
                    known.insert(key.clone(), Ok(found.clone()));
                    continue;
                }
                match element.place(indexes) {
                    Ok(Some((start, size))) => heads.push(Head {
                        element,
                        start,
                        size,
                        length: size.map_or(MIN_HEAD_BYTES, |size| size.min(HEAD_BYTES)),
                    }),
                    Ok(None) => {
                        known.insert(key.clone(), Ok(CellBlocks::Absent));
                    }
                    Err(error) => {
                        known.insert(key.clone(), Err(error));
                    }
                }
            }
        });
        while !heads.is_empty() {
            let end = |head: &Head<'_>| head.start.saturating_add(head.length);
            let reads: Vec<Read> = heads
                .iter()
                .map(|head| Read::bounded(head.element.key().clone(), head.start..end(head)))
                .collect();
            let results = store.read_around(&reads).await;
            let mut longer = Vec::new();
            for (head, result) in heads.into_iter().zip(results) {
                let Some(key) = head.element.cache_key() else {
                    continue;
                };
                let found = match head.blocks(result) {
                    Ok(FoundBlocks::Blocks(found)) => Ok(found),
                    Ok(FoundBlocks::Longer(length)) if length > head.length => {
                        longer.push(Head { length, ..head });
                        continue;
                    }
                    // The read of the whole cell fails with the reason.
                    Ok(FoundBlocks::Longer(_)) => Ok(CellBlocks::Whole),
                    Err(error) => Err(error),
                };
                if let Ok(found) = &found {
                    self.with(|cached| cached.insert(key, found.clone()));
                }
                known.insert(key.clone(), found);
            }
            heads = longer;
        }
        known
    }

    /// Returns whether the blocks of a cell are cached.
    pub(in crate::cell) fn contains(&self, element: &Element) -> bool {
        let key = element.cache_key();
        key.is_none_or(|key| self.with(|cached| cached.by_cell.contains_key(key)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut CachedBlocks) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The blocks in a response, or the number of bytes that locate them.
enum FoundBlocks {
    Blocks(CellBlocks),
    Longer(u64),
}

impl Head<'_> {
    /// Reads the blocks from the response that contains the head.
    fn blocks(&self, result: FetchResult) -> Result<FoundBlocks, CellError> {
        let Some(fetched) = result? else {
            return Ok(FoundBlocks::Blocks(CellBlocks::Absent));
        };
        let rest = fetched.size.saturating_sub(self.start);
        let size = self.size.unwrap_or(rest);
        let bytes = self.bytes_of(&fetched, size);
        let Some((trailer, found)) = self.element.blocks(&bytes, size)? else {
            return Ok(FoundBlocks::Blocks(CellBlocks::Whole));
        };
        Ok(FoundBlocks::Blocks(match found {
            BlocksPrefix::Longer(length) => return Ok(FoundBlocks::Longer(length)),
            BlocksPrefix::Whole => CellBlocks::Whole,
            BlocksPrefix::Blocks(blocks) => {
                let stored = usize::try_from(size.saturating_sub(trailer)).unwrap_or(usize::MAX);
                let whole = bytes.get(..stored).filter(|_| size <= MAX_KEPT_BYTES);
                CellBlocks::Blocks(Arc::new(LocatedBlocks {
                    blocks,
                    start: self.start,
                    // A copy, because the response may be larger.
                    bytes: whole.map(Bytes::copy_from_slice),
                }))
            }
        }))
    }

    /// Returns the bytes of the cell in a response, up to its `size`.
    fn bytes_of(&self, fetched: &FetchedRange, size: u64) -> Bytes {
        let length = u64::try_from(fetched.bytes.len()).unwrap_or(u64::MAX);
        let fetched_end = fetched.start.saturating_add(length);
        let end = self.start.saturating_add(size).min(fetched_end);
        let range = self.start..end.max(self.start);
        fetched
            .slice(&ByteRange::Bounded(range))
            .unwrap_or_default()
    }
}

impl CachedBlocks {
    fn insert(&mut self, key: &CacheKey, blocks: CellBlocks) {
        let size = key.memory().saturating_add(blocks.memory());
        if size > MAX_CACHE_BYTES {
            return;
        }
        if self.bytes.saturating_add(size) > MAX_CACHE_BYTES {
            *self = Self::default();
        }
        if self.by_cell.insert(key.clone(), blocks).is_none() {
            self.bytes = self.bytes.saturating_add(size);
        }
    }
}

impl CellBlocks {
    fn memory(&self) -> usize {
        match self {
            Self::Absent | Self::Whole => 0,
            Self::Blocks(located) => {
                let bytes = located.bytes.as_ref().map_or(0, Bytes::len);
                located.blocks.memory().saturating_add(bytes)
            }
        }
    }
}
