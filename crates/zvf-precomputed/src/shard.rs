//! Shards: files of many values with a two-level index.
//!
//! | part | content |
//! |---|---|
//! | shard index | for each minishard u64 start and end of its index, counted from the end of this part |
//! | values | encoded as `data_encoding` |
//! | minishard indexes | u64 `[3, n]`: key deltas, start deltas, sizes; as `minishard_index_encoding` |

use std::collections::BTreeMap;

use crate::{
    gzip,
    sharding::{ENTRY, ShardEncoding, ShardingSpec},
};

/// Size of a key in the index of a minishard.
const KEY: usize = 24;

/// The reason why a shard cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A key belongs to another shard.
    #[error("key {key} belongs to shard {shard:#x}")]
    OtherShard {
        /// The key.
        key: u64,
        /// Its shard.
        shard: u64,
    },
    /// A key was added twice.
    #[error("key {0} occurs twice")]
    Twice(u64),
    /// A key belongs to a shard that is already written.
    #[error("key {key} belongs to shard {shard:#x}, which is already written")]
    Complete {
        /// The key.
        key: u64,
        /// Its shard.
        shard: u64,
    },
    /// The file ends inside the index of the shard.
    #[error("the shard ends inside its index")]
    Index,
    /// The index of a minishard is outside of the file, or not rows of three columns.
    #[error("the index of minishard {0} is outside the shard, or damaged")]
    Minishard(u64),
    /// A value is outside of the file.
    #[error("the value of key {0} is outside the shard")]
    Outside(u64),
    /// A value is not gzip, or larger than the limit.
    #[error("the value of key {key} is damaged, or larger than {limit} bytes")]
    Value {
        /// The key.
        key: u64,
        /// The limit of decompressed bytes.
        limit: u64,
    },
}

/// Collects the values of one shard.
#[derive(Clone, Debug)]
pub struct ShardBuilder {
    spec: ShardingSpec,
    shard: u64,
    /// By minishard and key: start in `values` and size.
    entries: BTreeMap<(u64, u64), (u64, u64)>,
    values: Vec<u8>,
}

impl ShardBuilder {
    /// Creates a builder of the shard of this number.
    pub fn new(spec: ShardingSpec, shard: u64) -> Self {
        Self {
            spec,
            shard,
            entries: BTreeMap::new(),
            values: Vec::new(),
        }
    }

    /// Adds a value and encodes it. Values keep their order; keys may come in any order.
    ///
    /// # Errors
    ///
    /// [`ShardError`] if the key belongs to another shard or was added before.
    pub fn push(&mut self, key: u64, value: &[u8]) -> Result<(), ShardError> {
        match self.spec.data_encoding {
            ShardEncoding::Raw => self.push_encoded(key, value),
            ShardEncoding::Gzip => self.push_encoded(key, &gzip::compress(value)),
        }
    }

    /// Adds a value directly after other bytes, which no index lists and which stay as they are:
    /// the manifest of a multi-resolution mesh after its fragments.
    ///
    /// # Errors
    ///
    /// [`ShardError`] if the key belongs to another shard or was added before.
    pub fn push_after(&mut self, key: u64, before: &[u8], value: &[u8]) -> Result<(), ShardError> {
        let size = self.values.len();
        self.values.extend_from_slice(before);
        let pushed = self.push(key, value);
        if pushed.is_err() {
            self.values.truncate(size);
        }
        pushed
    }

    fn push_encoded(&mut self, key: u64, value: &[u8]) -> Result<(), ShardError> {
        let place = self.spec.locate(key);
        if place.shard != self.shard {
            let shard = place.shard;
            return Err(ShardError::OtherShard { key, shard });
        }
        let entry = (length(&self.values), length(value));
        if self.entries.contains_key(&(place.minishard, key)) {
            return Err(ShardError::Twice(key));
        }
        self.entries.insert((place.minishard, key), entry);
        self.values.extend_from_slice(value);
        Ok(())
    }

    /// Returns whether there are no values. A shard without values has no file.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size of the values so far.
    pub fn size(&self) -> u64 {
        length(&self.values)
    }

    /// Returns the bytes of the file.
    pub fn finish(self) -> Vec<u8> {
        let mut minishards: BTreeMap<u64, Vec<(u64, u64, u64)>> = BTreeMap::new();
        for ((minishard, key), (start, size)) in &self.entries {
            let rows = minishards.entry(*minishard).or_default();
            rows.push((*key, *start, *size));
        }
        let indexes: BTreeMap<u64, Vec<u8>> = minishards
            .into_iter()
            .map(|(minishard, rows)| {
                let index = minishard_index(&rows);
                let index = match self.spec.minishard_index_encoding {
                    ShardEncoding::Raw => index,
                    ShardEncoding::Gzip => gzip::compress(&index),
                };
                (minishard, index)
            })
            .collect();
        let mut at = length(&self.values);
        let mut file = Vec::new();
        for minishard in 0..self.spec.index_size().checked_div(ENTRY).unwrap_or(0) {
            let end = at.saturating_add(indexes.get(&minishard).map_or(0, |index| length(index)));
            file.extend_from_slice(&at.to_le_bytes());
            file.extend_from_slice(&end.to_le_bytes());
            at = end;
        }
        file.extend_from_slice(&self.values);
        for index in indexes.values() {
            file.extend_from_slice(index);
        }
        file
    }
}

/// Encodes keys, starts and sizes column by column, the first two as differences. A start is
/// counted from the end of the value before, so that a value that lies further back wraps.
fn minishard_index(rows: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut index = Vec::with_capacity(rows.len().saturating_mul(KEY));
    let mut before = 0_u64;
    for (key, ..) in rows {
        index.extend_from_slice(&key.wrapping_sub(before).to_le_bytes());
        before = *key;
    }
    let mut end = 0_u64;
    for (_, start, size) in rows {
        index.extend_from_slice(&start.wrapping_sub(end).to_le_bytes());
        end = start.wrapping_add(*size);
    }
    for (.., size) in rows {
        index.extend_from_slice(&size.to_le_bytes());
    }
    index
}

/// A whole shard in memory.
#[derive(Clone, Copy, Debug)]
pub struct ShardFile<'a> {
    spec: ShardingSpec,
    index: &'a [u8],
    data: &'a [u8],
}

impl<'a> ShardFile<'a> {
    /// Borrows a shard. Indexes of minishards are checked when they are read.
    ///
    /// # Errors
    ///
    /// [`ShardError::Index`] if the bytes are shorter than the index of the shard.
    pub fn parse(spec: ShardingSpec, bytes: &'a [u8]) -> Result<Self, ShardError> {
        let size = usize::try_from(spec.index_size());
        let parts = size.ok().and_then(|size| bytes.split_at_checked(size));
        let (index, data) = parts.ok_or(ShardError::Index)?;
        Ok(Self { spec, index, data })
    }

    /// Returns the value of a key, decompressed to at most `limit` bytes; `None` if the shard does
    /// not have the key.
    ///
    /// # Errors
    ///
    /// [`ShardError`] if the index of the minishard or the value is damaged.
    pub fn get(&self, key: u64, limit: u64) -> Result<Option<Vec<u8>>, ShardError> {
        let rows = self.minishard(self.spec.locate(key).minishard)?;
        let row = rows.into_iter().find(|row| row.0 == key);
        row.map(|(key, start, size)| self.value(key, start, size, limit))
            .transpose()
    }

    /// Returns the keys of all minishards, in the order of the minishards.
    ///
    /// # Errors
    ///
    /// [`ShardError::Minishard`] if an index is damaged.
    pub fn keys(&self) -> Result<Vec<u64>, ShardError> {
        let minishards = self.spec.index_size().checked_div(ENTRY).unwrap_or(0);
        let mut keys = Vec::new();
        for minishard in 0..minishards {
            keys.extend(self.minishard(minishard)?.into_iter().map(|row| row.0));
        }
        Ok(keys)
    }

    /// Returns key, start and size of each value of a minishard.
    fn minishard(&self, minishard: u64) -> Result<Vec<(u64, u64, u64)>, ShardError> {
        let damaged = ShardError::Minishard(minishard);
        let at = usize::try_from(minishard).ok();
        let entry = at.and_then(|at| self.index.as_chunks::<8>().0.as_chunks::<2>().0.get(at));
        let [start, end] = entry.ok_or(damaged)?.map(u64::from_le_bytes);
        if start == end {
            return Ok(Vec::new());
        }
        let stored = self
            .slice(start, end.checked_sub(start).ok_or(damaged)?)
            .ok_or(damaged)?;
        let decoded;
        let index = match self.spec.minishard_index_encoding {
            ShardEncoding::Raw => stored,
            ShardEncoding::Gzip => {
                // A key needs a byte of the file or more, unless its value is empty.
                let limit = self.data.len().saturating_mul(KEY).max(1 << 20);
                let limit = u64::try_from(limit).unwrap_or(u64::MAX);
                decoded = gzip::decompress(stored, limit).ok_or(damaged)?;
                &decoded
            }
        };
        rows_of(index).ok_or(damaged)
    }

    fn value(&self, key: u64, start: u64, size: u64, limit: u64) -> Result<Vec<u8>, ShardError> {
        let stored = self.slice(start, size).ok_or(ShardError::Outside(key))?;
        let value = match self.spec.data_encoding {
            ShardEncoding::Raw => (size <= limit).then(|| stored.to_vec()),
            ShardEncoding::Gzip => gzip::decompress(stored, limit),
        };
        value.ok_or(ShardError::Value { key, limit })
    }

    fn slice(&self, start: u64, size: u64) -> Option<&'a [u8]> {
        let end = usize::try_from(start.checked_add(size)?).ok()?;
        self.data.get(usize::try_from(start).ok()?..end)
    }
}

/// Decodes the index of a minishard: key, start and size of each value.
pub(crate) fn rows_of(index: &[u8]) -> Option<Vec<(u64, u64, u64)>> {
    let (words, rest) = index.as_chunks::<8>();
    if !rest.is_empty() || !words.len().is_multiple_of(3) {
        return None;
    }
    let keys = words.len().checked_div(3)?;
    let (deltas, rest) = words.split_at_checked(keys)?;
    let (starts, sizes) = rest.split_at_checked(keys)?;
    let (mut key, mut end) = (0_u64, 0_u64);
    let columns = deltas.iter().zip(starts).zip(sizes);
    let rows = columns.map(|((delta, start), size)| {
        let size = u64::from_le_bytes(*size);
        key = key.wrapping_add(u64::from_le_bytes(*delta));
        let start = end.wrapping_add(u64::from_le_bytes(*start));
        end = start.wrapping_add(size);
        (key, start, size)
    });
    Some(rows.collect())
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
