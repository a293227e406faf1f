//! Shards: objects that hold many chunks and an index of them.

use core::ops::Range;

use bytes::Bytes;
use zvf_model::zarr::{Array, Codecs, IndexLocation};

use crate::{
    ChunkCodecs, CodecsError, DecodeError, DecodedForm, DecodedSize, EncodeError,
    compression::crc32c, error::unsupported_field,
};

/// The layout of the chunks of an array in shards.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardLayout {
    codecs: ChunkCodecs,
    /// Chunks of a shard along each axis.
    chunks: Vec<u64>,
    /// Number of chunks of a shard.
    count: u64,
    checksum: bool,
    location: IndexLocation,
}

const NAME: &str = "sharding_indexed";
/// Size of an index entry: offset and length, two little-endian u64.
const ENTRY_SIZE: u64 = 16;
/// Offset and length of an absent chunk.
const ABSENT: u64 = u64::MAX;

impl ShardLayout {
    /// Returns the sharding of an array, if it has one. No codec may surround it, because then the
    /// chunks of a shard could not be read alone.
    ///
    /// # Errors
    ///
    /// [`CodecsError`] for a sharding that is not supported.
    pub fn new(array: &Array) -> Result<Option<Self>, CodecsError> {
        let Some(declared) = array.sharding() else {
            return Ok(None);
        };
        let Some(sharding) = array.codecs.plain_sharding() else {
            let other = array
                .codecs
                .iter()
                .find(|codec| codec.name != NAME)
                .map_or(NAME, |codec| &codec.name);
            return Err(CodecsError::Unsupported(other.to_owned()));
        };
        let along = array
            .chunk_shape
            .iter()
            .zip(&declared.chunk_shape)
            .map(|(shard, chunk)| shard.checked_div(*chunk));
        let chunks: Option<Vec<u64>> = along.collect();
        let bad_shape = || unsupported_field(NAME, "chunk_shape");
        let chunks = chunks.ok_or_else(bad_shape)?;
        let count = chunks
            .iter()
            .try_fold(1_u64, |count, chunks| count.checked_mul(*chunks))
            .filter(|count| {
                count
                    .checked_mul(ENTRY_SIZE)
                    .is_some_and(|b| b < u64::MAX - 4)
            });
        Ok(Some(Self {
            codecs: ChunkCodecs::new(&sharding.codecs)?,
            chunks,
            count: count.ok_or_else(bad_shape)?,
            checksum: index_checksum(&sharding.index_codecs)
                .ok_or_else(|| unsupported_field(NAME, "index_codecs"))?,
            location: sharding.index_location,
        }))
    }

    /// Returns the grid index of the shard of a chunk, and the number of the chunk in the shard.
    pub fn locate(&self, index: &[u64]) -> Option<(Vec<u64>, u64)> {
        let mut shard = Vec::with_capacity(index.len());
        let mut number = 0_u64;
        for (index, chunks) in index.iter().zip(&self.chunks) {
            shard.push(index.checked_div(*chunks)?);
            number = number
                .checked_mul(*chunks)?
                .checked_add(index.checked_rem(*chunks)?)?;
        }
        Some((shard, number))
    }

    /// Returns the codecs of the chunks in shards.
    pub fn codecs(&self) -> &ChunkCodecs {
        &self.codecs
    }

    /// Returns whether the index is at the start or at the end of a shard.
    pub fn index_location(&self) -> IndexLocation {
        self.location
    }

    /// Returns the size of the index in bytes, with its checksum.
    pub fn index_size(&self) -> u64 {
        let checksum = if self.checksum { 4 } else { 0 };
        let entries = self.count.saturating_mul(ENTRY_SIZE);
        entries.saturating_add(checksum)
    }

    /// Returns the number of chunks of a shard.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Assembles a shard from encoded chunks and their numbers, in any order.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a number is outside the shard or given twice, or the shard is too large.
    pub fn encode(&self, mut chunks: Vec<(u64, Bytes)>) -> Result<Bytes, EncodeError> {
        chunks.sort_by_cached_key(|(number, _)| self.morton(*number));
        let index_size = usize::try_from(self.index_size()).map_err(|_| EncodeError::ShardSize)?;
        let sizes = chunks.iter().map(|(_, chunk)| chunk.len());
        let size = sizes.fold(index_size, usize::saturating_add);
        let mut index = Vec::new();
        let mut shard = Vec::new();
        let reserved = index
            .try_reserve_exact(index_size)
            .and_then(|()| shard.try_reserve_exact(size));
        reserved.map_err(|_| EncodeError::ShardSize)?;

        let entries = usize::try_from(self.count.saturating_mul(ENTRY_SIZE));
        index.resize(entries.unwrap_or(index_size), u8::MAX);
        let mut offset = match self.location {
            IndexLocation::Start => u64::try_from(index_size).unwrap_or(u64::MAX),
            IndexLocation::End => 0,
        };
        for (number, chunk) in &chunks {
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            let entry = entry_range(*number)
                .filter(|_| *number < self.count)
                .and_then(|range| index.get_mut(range));
            let Some(([start, len], _)) = entry.map(<[u8]>::as_chunks_mut::<8>) else {
                let (number, cells) = (*number, self.count);
                return Err(EncodeError::NoSuchCell { number, cells });
            };
            if *start != ABSENT.to_le_bytes() {
                return Err(EncodeError::DuplicateCell(*number));
            }
            *start = offset.to_le_bytes();
            *len = length.to_le_bytes();
            offset = offset.saturating_add(length);
        }
        if self.checksum {
            index = crc32c::encode(index);
        }
        if self.location == IndexLocation::Start {
            shard.extend_from_slice(&index);
        }
        for (_, chunk) in &chunks {
            shard.extend_from_slice(chunk);
        }
        if self.location == IndexLocation::End {
            shard.extend_from_slice(&index);
        }
        Ok(shard.into())
    }

    /// Returns the Morton code of a chunk, the order in which zarr-python writes a shard: the bits of
    /// its coordinates interleaved, with the first axis lowest. The code is unique in a shard.
    fn morton(&self, number: u64) -> Vec<u64> {
        let mut left = number;
        let along = self.chunks.iter().rev().map(|chunks| {
            let coordinate = left.checked_rem(*chunks).unwrap_or(0);
            left = left.checked_div(*chunks).unwrap_or(0);
            coordinate
        });
        // The last axis comes first, because its bit is the highest of each group.
        let coordinates: Vec<u64> = along.collect();
        let max = self.chunks.iter().max().copied().unwrap_or(0);
        let bits = u64::BITS.saturating_sub(max.leading_zeros());
        let code = |bit: u32| {
            let group = coordinates.iter().map(|index| index.wrapping_shr(bit) & 1);
            group.fold(0_u64, |code, bit| code.wrapping_shl(1) | bit)
        };
        (0..bits).rev().map(code).collect()
    }

    /// Parses an index that was read from its [location](Self::index_location).
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if its size or checksum is wrong.
    pub fn index(&self, bytes: Bytes) -> Result<ShardIndex, DecodeError> {
        let bytes = if self.checksum {
            crc32c::decode(&bytes)?
        } else {
            bytes
        };
        let expected = self.count.saturating_mul(ENTRY_SIZE);
        DecodedSize::Exactly(expected).check(&bytes)?;
        Ok(ShardIndex(bytes))
    }
}

/// Returns the range of the index that holds the entry of a chunk.
fn entry_range(number: u64) -> Option<Range<usize>> {
    let start = number.checked_mul(ENTRY_SIZE)?;
    let end = start.checked_add(ENTRY_SIZE)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Returns whether an index has a checksum, or `None` for unsupported index codecs.
fn index_checksum(codecs: &Codecs) -> Option<bool> {
    let codecs = ChunkCodecs::new(codecs).ok()?;
    codecs.checksum_only(DecodedForm::LittleEndian)
}

/// The index of one shard: the ranges of its chunks.
#[derive(Clone, Debug)]
pub struct ShardIndex(Bytes);

impl ShardIndex {
    /// Returns the size of the decoded index in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns the range of chunk `number`, or `Ok(None)` for an absent chunk.
    ///
    /// # Errors
    ///
    /// [`ShardEntryError`] for an entry that is not a range.
    pub fn chunk(&self, number: u64) -> Result<Option<Range<u64>>, ShardEntryError> {
        let entry = || {
            let start = usize::try_from(number.checked_mul(ENTRY_SIZE)?).ok()?;
            let (offset, rest) = self.0.get(start..)?.split_first_chunk::<8>()?;
            let (length, _) = rest.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*offset), u64::from_le_bytes(*length)))
        };
        let (offset, length) = entry().ok_or(ShardEntryError { number })?;
        if (offset, length) == (ABSENT, ABSENT) {
            return Ok(None);
        }
        let end = offset
            .checked_add(length)
            .ok_or(ShardEntryError { number })?;
        Ok(Some(offset..end))
    }
}

/// The error of a shard index entry that is not a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} of the shard index is not a range")]
pub struct ShardEntryError {
    /// The number of the chunk in its shard, in C order.
    pub number: u64,
}
