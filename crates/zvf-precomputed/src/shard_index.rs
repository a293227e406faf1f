//! Shards that are read by ranges: their indexes, without the values.

use core::ops::Range;

use crate::{
    gzip,
    shard::{ShardError, rows_of},
    sharding::{ENTRY, ShardEncoding, ShardLocation, ShardingSpec},
};

/// The place of a value in the file of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardEntry {
    /// The key.
    pub key: u64,
    /// First byte of the encoded value, counted from the start of the file.
    pub start: u64,
    /// Size of the encoded value.
    pub size: u64,
}

/// The index at the start of a shard, for readers that do not hold the whole file.
///
/// ```
/// use zvf_precomputed::{ShardBuilder, ShardFileIndex, ShardingSpec};
///
/// let spec = ShardingSpec::default();
/// let mut shard = ShardBuilder::new(spec, 0);
/// shard.push(7, b"seven")?;
/// let file = shard.finish();
/// let index = ShardFileIndex::parse(spec, 0, &file)?;
/// for (minishard, place) in index.minishards()? {
///     let stored = &file[usize::try_from(place.start)?..usize::try_from(place.end)?];
///     for entry in index.entries(minishard, stored, 1 << 20)? {
///         assert_eq!((entry.key, entry.start, entry.size), (7, 16, 5));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShardFileIndex {
    spec: ShardingSpec,
    shard: u64,
    places: Vec<[u64; 2]>,
}

impl ShardFileIndex {
    /// Reads the index of the shard with this number from its first
    /// [`index_size`](ShardingSpec::index_size) bytes.
    ///
    /// # Errors
    ///
    /// [`ShardError::Index`] if there are fewer bytes.
    pub fn parse(spec: ShardingSpec, shard: u64, bytes: &[u8]) -> Result<Self, ShardError> {
        let size = usize::try_from(spec.index_size());
        let index = size.ok().and_then(|size| bytes.get(..size));
        let words = index.ok_or(ShardError::Index)?.as_chunks::<8>().0;
        let places = words.as_chunks::<2>().0.iter();
        Ok(Self {
            spec,
            shard,
            places: places.map(|place| place.map(u64::from_le_bytes)).collect(),
        })
    }

    /// Returns the numbers of the minishards that have keys, with the places of their indexes in
    /// the file.
    ///
    /// # Errors
    ///
    /// [`ShardError::Minishard`] if an index ends before it starts.
    pub fn minishards(&self) -> Result<Vec<(u64, Range<u64>)>, ShardError> {
        let offset = self.offset();
        let places = (0_u64..)
            .zip(&self.places)
            .filter(|(_, [start, end])| start != end)
            .map(|(minishard, [start, end])| {
                let place = start
                    .checked_add(offset)
                    .zip(end.checked_add(offset))
                    .filter(|(start, end)| start < end);
                let (start, end) = place.ok_or(ShardError::Minishard(minishard))?;
                Ok((minishard, start..end))
            });
        places.collect()
    }

    /// Decodes the index of a minishard, unpacked to at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ShardError`] if the bytes are damaged or larger, or if a key belongs to another shard or
    /// minishard.
    pub fn entries(
        &self,
        minishard: u64,
        stored: &[u8],
        limit: u64,
    ) -> Result<Vec<ShardEntry>, ShardError> {
        let damaged = ShardError::Minishard(minishard);
        let unpacked;
        let index = match self.spec.minishard_index_encoding {
            ShardEncoding::Raw => stored,
            ShardEncoding::Gzip => {
                unpacked = gzip::decompress(stored, limit).ok_or(damaged)?;
                &unpacked
            }
        };
        let shard = self.shard;
        let here = ShardLocation { shard, minishard };
        let rows = rows_of(index).ok_or(damaged)?.into_iter();
        let entries = rows.map(|(key, start, size)| {
            let place = self.spec.locate(key);
            if place != here {
                let shard = place.shard;
                return Err(ShardError::OtherShard { key, shard });
            }
            let start = start.checked_add(self.offset());
            let start = start
                .filter(|start| start.checked_add(size).is_some())
                .ok_or(ShardError::Outside(key))?;
            Ok(ShardEntry { key, start, size })
        });
        entries.collect()
    }

    /// Decodes the value of a key to at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ShardError::Value`] if the bytes are damaged or larger.
    pub fn decode_value(
        spec: &ShardingSpec,
        key: u64,
        stored: Vec<u8>,
        limit: u64,
    ) -> Result<Vec<u8>, ShardError> {
        let value = match spec.data_encoding {
            ShardEncoding::Raw => {
                let is_small = u64::try_from(stored.len()).is_ok_and(|size| size <= limit);
                is_small.then_some(stored)
            }
            ShardEncoding::Gzip => gzip::decompress(&stored, limit),
        };
        value.ok_or(ShardError::Value { key, limit })
    }

    /// Returns the size of the index, from whose end places are counted.
    fn offset(&self) -> u64 {
        let minishards = u64::try_from(self.places.len()).unwrap_or(u64::MAX);
        minishards.saturating_mul(ENTRY)
    }
}

impl ShardingSpec {
    /// Returns the number of the shard with this file name; `None` if it is not the name of one.
    pub fn shard_of(&self, file_name: &str) -> Option<u64> {
        let digits = file_name.strip_suffix(".shard")?;
        let shard = u64::from_str_radix(digits, 16).ok()?;
        (self.file_name(shard) == file_name).then_some(shard)
    }
}
