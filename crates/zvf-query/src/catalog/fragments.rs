//! Decoded fragment indexes and their cache.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use zvf_format::fragment::{FragmentIndex, FragmentIndexError, Rows};
use zvf_model::grid::ChunkCoord;

use crate::sync::lock;

/// A cache of the fragment tables of chunks, shared by queries: every lookup of objects and bins
/// needs them.
#[derive(Debug, Default)]
pub(crate) struct FragmentTableCache(Mutex<CachedTables>);

#[derive(Debug, Default)]
struct CachedTables {
    tables: HashMap<ChunkCoord, Arc<FragmentTable>>,
    bytes: usize,
}

/// Maximum size of the cached tables, in bytes. The cache is cleared when it would grow beyond.
const MAX_CACHED_BYTES: usize = 64 << 20;

impl FragmentTableCache {
    pub(crate) fn get(&self, chunk: &ChunkCoord) -> Option<Arc<FragmentTable>> {
        lock(&self.0).tables.get(chunk).cloned()
    }

    pub(crate) fn insert(&self, chunk: &ChunkCoord, table: FragmentTable) -> Arc<FragmentTable> {
        let table = Arc::new(table);
        let mut kept = lock(&self.0);
        let size = table.size().saturating_add(size_of::<FragmentTable>());
        if kept.bytes.saturating_add(size) > MAX_CACHED_BYTES {
            *kept = CachedTables::default();
        }
        kept.bytes = kept.bytes.saturating_add(size);
        kept.tables.insert(chunk.clone(), Arc::clone(&table));
        table
    }
}

/// The rows of each fragment of a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct FragmentTable {
    entries: Vec<Entry>,
    pool: Vec<u64>,
    extent: u64,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Range { start: u64, end: u64 },
    List { start: usize, end: usize },
}

impl FragmentTable {
    pub(crate) fn parse(blob: &[u8]) -> Result<Self, FragmentIndexError> {
        let index = FragmentIndex::parse(blob)?;
        let mut table = Self {
            extent: index.extent(),
            ..Self::default()
        };
        table.entries.reserve(index.iter().len());
        for rows in &index {
            table.total = table.total.saturating_add(rows.len());
            table.entries.push(match rows {
                Rows::Range(rows) => Entry::Range {
                    start: rows.start,
                    end: rows.end,
                },
                Rows::List(list) => {
                    let start = table.pool.len();
                    table.pool.extend(list.iter());
                    let end = table.pool.len();
                    Entry::List { start, end }
                }
            });
        }
        Ok(table)
    }

    /// Creates a table of one fragment with all rows, for a chunk without an index.
    pub(crate) fn whole(rows: u64) -> Self {
        let entry = Entry::Range {
            start: 0,
            end: rows,
        };
        Self {
            entries: vec![entry],
            pool: Vec::new(),
            extent: rows,
            total: rows,
        }
    }

    /// Returns the heap size in bytes.
    fn size(&self) -> usize {
        let pool = size_of_val(self.pool.as_slice());
        size_of_val(self.entries.as_slice()).saturating_add(pool)
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Returns the total number of rows of all fragments; shared rows count once per fragment.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the highest row of any fragment plus one.
    pub(crate) fn extent(&self) -> u64 {
        self.extent
    }

    /// Returns the rows of a fragment, or `None` past the last fragment.
    pub(crate) fn rows(&self, fragment: u32) -> Option<FragmentRows<'_>> {
        let entry = self.entries.get(usize::try_from(fragment).ok()?)?;
        Some(match *entry {
            Entry::Range { start, end } => FragmentRows::Range(start..end),
            Entry::List { start, end } => {
                FragmentRows::List(self.pool.get(start..end).unwrap_or_default())
            }
        })
    }
}

/// The rows of a fragment, in stored order.
#[derive(Clone, Debug)]
pub(crate) enum FragmentRows<'a> {
    Range(core::ops::Range<u64>),
    List(&'a [u64]),
}

impl FragmentRows<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end.saturating_sub(rows.start),
            Self::List(rows) => u64::try_from(rows.len()).unwrap_or(u64::MAX),
        }
    }
}
