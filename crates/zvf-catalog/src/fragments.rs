//! Decoded fragment indexes and their cache.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexError, Rows},
    fragment_lengths::FragmentLengths,
};
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
    /// Whether tables were inserted for all chunks whose rows the store records.
    has_all: bool,
}

/// Maximum size of the cached tables, in bytes. The cache is cleared when it would grow beyond.
const MAX_CACHED_BYTES: usize = 64 << 20;

impl FragmentTableCache {
    pub(crate) fn get(&self, chunk: &ChunkCoord) -> Option<Arc<FragmentTable>> {
        lock(&self.0).tables.get(chunk).cloned()
    }

    /// Returns whether the tables of all chunks that the store records are here.
    pub(crate) fn has_all(&self) -> bool {
        lock(&self.0).has_all
    }

    /// Records that the tables of all chunks that the store records were inserted.
    pub(crate) fn set_all(&self) {
        lock(&self.0).has_all = true;
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
pub struct FragmentTable {
    entries: Entries,
    extent: u64,
    total: u64,
}

/// The rows of fragments, in the smallest form. Paths look fragments up in no order, so that most of
/// the time goes to memory that is not in the processor cache.
#[derive(Clone, Debug)]
enum Entries {
    /// Start and end of each fragment: all are ranges that end before 2^32.
    Ranges(Vec<[u32; 2]>),
    Any {
        entries: Vec<Entry>,
        pool: Vec<u64>,
    },
}

impl Default for Entries {
    fn default() -> Self {
        Self::Ranges(Vec::new())
    }
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Range { start: u64, end: u64 },
    List { start: usize, end: usize },
}

impl FragmentTable {
    /// Decodes a fragment index.
    ///
    /// # Errors
    ///
    /// Returns [`FragmentIndexError`] if the bytes are not an index.
    pub fn parse(blob: &[u8]) -> Result<Self, FragmentIndexError> {
        let index = FragmentIndex::parse(blob)?;
        let mut total = 0_u64;
        let mut ranges = Vec::with_capacity(index.iter().len());
        let mut fragments = index.iter();
        let is_small = fragments.all(|rows| {
            total = total.saturating_add(rows.len());
            let range = match rows {
                Rows::Range(rows) => u32::try_from(rows.start)
                    .ok()
                    .zip(u32::try_from(rows.end).ok()),
                Rows::List(_) => None,
            };
            ranges.extend(range.map(|(start, end)| [start, end]));
            range.is_some()
        });
        let entries = if is_small {
            Entries::Ranges(ranges)
        } else {
            total = index
                .iter()
                .map(|rows| rows.len())
                .fold(0, u64::saturating_add);
            Entries::any(&index)
        };
        Ok(Self {
            entries,
            extent: index.extent(),
            total,
        })
    }

    /// Creates the table of fragments with these lengths; `None` if there are 2^32 rows or more.
    pub(crate) fn of_lengths(lengths: &FragmentLengths<'_>) -> Option<Self> {
        let range = |rows: core::ops::Range<u64>| {
            let [start, end] = [rows.start, rows.end].map(u32::try_from);
            Some([start.ok()?, end.ok()?])
        };
        let ranges: Vec<[u32; 2]> = lengths.ranges().map(range).collect::<Option<_>>()?;
        Some(Self {
            entries: Entries::Ranges(ranges),
            extent: lengths.extent(),
            total: lengths.extent(),
        })
    }

    /// Creates a table of one fragment with all rows, for a chunk without an index.
    pub(crate) fn whole(rows: u64) -> Self {
        let entry = Entry::Range {
            start: 0,
            end: rows,
        };
        Self {
            entries: Entries::Any {
                entries: vec![entry],
                pool: Vec::new(),
            },
            extent: rows,
            total: rows,
        }
    }

    /// Returns the heap size in bytes.
    fn size(&self) -> usize {
        match &self.entries {
            Entries::Ranges(ranges) => size_of_val(ranges.as_slice()),
            Entries::Any { entries, pool } => {
                size_of_val(entries.as_slice()).saturating_add(size_of_val(pool.as_slice()))
            }
        }
    }

    /// Returns the number of fragments.
    #[inline]
    pub fn len(&self) -> u32 {
        let len = match &self.entries {
            Entries::Ranges(ranges) => ranges.len(),
            Entries::Any { entries, .. } => entries.len(),
        };
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    /// Returns whether there are no fragments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total number of rows of all fragments; shared rows count once per fragment.
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the highest row of any fragment plus one.
    pub(crate) fn extent(&self) -> u64 {
        self.extent
    }

    /// Returns the rows of a fragment, or `None` past the last fragment.
    #[inline]
    pub fn rows(&self, fragment: u32) -> Option<FragmentRows<'_>> {
        let at = usize::try_from(fragment).ok()?;
        match &self.entries {
            Entries::Ranges(ranges) => {
                let [start, end] = ranges.get(at)?.map(u64::from);
                Some(FragmentRows::Range(start..end))
            }
            Entries::Any { entries, pool } => Some(match *entries.get(at)? {
                Entry::Range { start, end } => FragmentRows::Range(start..end),
                Entry::List { start, end } => {
                    FragmentRows::List(pool.get(start..end).unwrap_or_default())
                }
            }),
        }
    }

    /// Returns start and end of each fragment, if all are ranges.
    #[inline]
    pub(crate) fn ranges(&self) -> Option<&[[u32; 2]]> {
        match &self.entries {
            Entries::Ranges(ranges) => Some(ranges),
            Entries::Any { .. } => None,
        }
    }
}

impl Entries {
    /// Decodes ranges and lists.
    fn any(index: &FragmentIndex<'_>) -> Self {
        let (mut entries, mut pool) = (Vec::with_capacity(index.iter().len()), Vec::new());
        for rows in index {
            entries.push(match rows {
                Rows::Range(rows) => Entry::Range {
                    start: rows.start,
                    end: rows.end,
                },
                Rows::List(list) => {
                    let start = pool.len();
                    pool.extend(list.iter());
                    let end = pool.len();
                    Entry::List { start, end }
                }
            });
        }
        Self::Any { entries, pool }
    }
}

/// The rows of a fragment, in stored order.
#[derive(Clone, Debug)]
pub enum FragmentRows<'a> {
    /// Consecutive rows.
    Range(core::ops::Range<u64>),
    /// Rows in any order.
    List(&'a [u64]),
}

impl FragmentRows<'_> {
    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end.saturating_sub(rows.start),
            Self::List(rows) => u64::try_from(rows.len()).unwrap_or(u64::MAX),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use zvf_format::{fragment::FragmentIndexBuilder, fragment_lengths};

    use super::*;

    #[test]
    fn tables_of_all_forms_have_the_rows_of_the_index() {
        let far = u64::from(u32::MAX);
        let ranges = |ranges: &[core::ops::Range<u64>]| {
            let mut builder = FragmentIndexBuilder::default();
            for range in ranges {
                builder.push_range(range.clone()).unwrap();
            }
            builder
        };
        let mut lists = ranges(&[0..4, 2..9]);
        lists.push_list(&[12, 7, 12]).unwrap();
        let indexes = [
            (ranges(&[0..4, 4..4, 2..9, far - 1..far]), true),
            (ranges(&[0..4, 4..4, 4..900]), true),
            (ranges(&[0..4, far..far + 2]), false),
            (lists, false),
            (FragmentIndexBuilder::default(), true),
        ];
        for (builder, is_compact) in indexes {
            let blob = builder.finish();
            let index = FragmentIndex::parse(&blob).unwrap();
            let table = FragmentTable::parse(&blob).unwrap();
            assert_eq!(table.ranges().is_some(), is_compact);
            if let Some(lengths) = fragment_lengths::encode(&index) {
                let lengths = FragmentLengths::parse(&lengths).unwrap();
                let short = FragmentTable::of_lengths(&lengths);
                assert_eq!(
                    short.map(|table| format!("{table:?}")),
                    Some(format!("{table:?}"))
                );
            }
            assert_eq!((table.len(), table.extent()), (index.len(), index.extent()));
            let rows = index.iter().map(|rows| rows.len());
            assert_eq!(table.total(), rows.sum::<u64>());
            for fragment in 0..=index.len() {
                let stored = index
                    .rows(fragment)
                    .map(|rows| rows.iter().collect::<Vec<u64>>());
                let decoded = table.rows(fragment).map(|rows| match rows {
                    FragmentRows::Range(rows) => rows.collect(),
                    FragmentRows::List(rows) => rows.to_vec(),
                });
                assert_eq!(decoded, stored);
            }
        }
    }
}
