//! Shards: many chunks in one object, and the index that says where they are.

use core::ops::Range;

use bytes::Bytes;
use zvf_model::zarr::{Array, Codecs, IndexLocation};

use crate::{
    codec::{
        ChunkCodecs, ChunkForm, CodecsError, DecodeError, EncodeError, crc32c, field, with_crc32c,
    },
    range::ByteRange,
};

/// How the chunks of an array are laid out in shards.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sharding {
    pub(crate) codecs: ChunkCodecs,
    /// Chunks of a shard along each axis.
    chunks: Vec<u64>,
    /// Chunks of a shard.
    count: u64,
    checksum: bool,
    location: IndexLocation,
}

const NAME: &str = "sharding_indexed";
/// Offset and length, two little-endian u64.
const ENTRY: u64 = 16;
/// Both numbers of a chunk that is absent.
const ABSENT: u64 = u64::MAX;

impl Sharding {
    /// The sharding of an array, if it has one; nothing may stand around it,
    /// or the chunks of a shard could not be read alone.
    pub(crate) fn new(array: &Array) -> Result<Option<Self>, CodecsError> {
        let Some(any) = array.sharding() else {
            return Ok(None);
        };
        let Some(sharding) = array.codecs.plain_sharding() else {
            let other = array.codecs.iter().find(|codec| codec.name != NAME);
            let other = other.map_or(NAME, |codec| &codec.name);
            return Err(CodecsError::Unsupported(other.to_owned()));
        };
        let along = array.chunk_shape.iter().zip(&any.chunk_shape);
        let along = along.map(|(shard, chunk)| shard.checked_div(*chunk));
        let chunks: Option<Vec<u64>> = along.collect();
        let bad_shape = || field(NAME, "chunk_shape");
        let chunks = chunks.ok_or_else(bad_shape)?;
        let count = chunks
            .iter()
            .try_fold(1_u64, |count, chunks| count.checked_mul(*chunks))
            .filter(|count| count.checked_mul(ENTRY).is_some_and(|b| b < u64::MAX - 4));
        Ok(Some(Self {
            codecs: ChunkCodecs::new(&sharding.codecs)?,
            chunks,
            count: count.ok_or_else(bad_shape)?,
            checksum: index_checksum(&sharding.index_codecs)
                .ok_or_else(|| field(NAME, "index_codecs"))?,
            location: sharding.index_location,
        }))
    }

    /// The shard of a chunk, and the chunk's number in it.
    pub(crate) fn place(&self, index: &[u64]) -> Option<(Vec<u64>, u64)> {
        let mut shard = Vec::with_capacity(index.len());
        let mut number = 0_u64;
        for (at, chunks) in index.iter().zip(&self.chunks) {
            shard.push(at.checked_div(*chunks)?);
            number = number
                .checked_mul(*chunks)?
                .checked_add(at.checked_rem(*chunks)?)?;
        }
        Some((shard, number))
    }

    /// Which part of a shard is its index.
    pub(crate) fn index_range(&self) -> ByteRange {
        let checksum = if self.checksum { 4 } else { 0 };
        let size = self.count.saturating_mul(ENTRY).saturating_add(checksum);
        match self.location {
            IndexLocation::End => ByteRange::Suffix(size),
            IndexLocation::Start => ByteRange::Bounded(0..size),
        }
    }

    /// Chunks of a shard.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// A shard of these encoded chunks by their numbers, in any order.
    pub(crate) fn encode(&self, mut chunks: Vec<(u64, Bytes)>) -> Result<Bytes, EncodeError> {
        chunks.sort_by_cached_key(|(number, _)| self.morton(*number));
        let checksum = if self.checksum { 4 } else { 0 };
        let index_size = self.count.saturating_mul(ENTRY).saturating_add(checksum);
        let index_size = usize::try_from(index_size).map_err(|_| EncodeError::ShardSize)?;
        let sizes = chunks.iter().map(|(_, chunk)| chunk.len());
        let size = sizes.fold(index_size, usize::saturating_add);
        let mut index = Vec::new();
        let mut shard = Vec::new();
        let reserved = index.try_reserve_exact(index_size);
        let reserved = reserved.and_then(|()| shard.try_reserve_exact(size));
        reserved.map_err(|_| EncodeError::ShardSize)?;

        let entries = usize::try_from(self.count.saturating_mul(ENTRY));
        index.resize(entries.unwrap_or(index_size), u8::MAX);
        let mut offset = match self.location {
            IndexLocation::Start => u64::try_from(index_size).unwrap_or(u64::MAX),
            IndexLocation::End => 0,
        };
        for (number, chunk) in &chunks {
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            let entry = entry_at(*number).filter(|_| *number < self.count);
            let entry = entry.and_then(|range| index.get_mut(range));
            let Some(([at, len], _)) = entry.map(<[u8]>::as_chunks_mut::<8>) else {
                let (number, cells) = (*number, self.count);
                return Err(EncodeError::NoSuchCell { number, cells });
            };
            if *at != ABSENT.to_le_bytes() {
                return Err(EncodeError::DuplicateCell(*number));
            }
            *at = offset.to_le_bytes();
            *len = length.to_le_bytes();
            offset = offset.saturating_add(length);
        }
        if self.checksum {
            index = with_crc32c(index);
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

    /// Where a chunk comes in the order in which zarr-python writes a shard: the
    /// bits of its coordinates interleaved, of the first axis the lowest. Two
    /// chunks of a shard never have the same, unless they are one.
    fn morton(&self, number: u64) -> Vec<u64> {
        let mut left = number;
        let along = self.chunks.iter().rev().map(|chunks| {
            let at = left.checked_rem(*chunks).unwrap_or(0);
            left = left.checked_div(*chunks).unwrap_or(0);
            at
        });
        // The last axis first: of bits of the same place it decides.
        let coordinates: Vec<u64> = along.collect();
        let most = self.chunks.iter().max().copied().unwrap_or(0);
        let places = u64::BITS.saturating_sub(most.leading_zeros());
        let code = |place: u32| {
            let bits = coordinates.iter().map(|at| at.wrapping_shr(place) & 1);
            bits.fold(0_u64, |code, bit| code.wrapping_shl(1) | bit)
        };
        (0..places).rev().map(code).collect()
    }

    /// Checks an index read from [`index_range`](Self::index_range).
    pub(crate) fn index(&self, bytes: Bytes) -> Result<ShardIndex, DecodeError> {
        let bytes = if self.checksum {
            crc32c(&bytes)?
        } else {
            bytes
        };
        let expected = self.count.saturating_mul(ENTRY);
        crate::codec::DecodedSize::Exactly(expected).check(&bytes)?;
        Ok(ShardIndex(bytes))
    }
}

/// Where in the index the entry of a chunk is.
fn entry_at(number: u64) -> Option<Range<usize>> {
    let start = number.checked_mul(ENTRY)?;
    let end = start.checked_add(ENTRY)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Whether an index has a checksum; `None` when it is not two numbers a chunk.
fn index_checksum(codecs: &Codecs) -> Option<bool> {
    let codecs = ChunkCodecs::new(codecs).ok()?;
    codecs.checksum_at_most(ChunkForm::LittleEndian)
}

/// Where the chunks of one shard are.
#[derive(Clone, Debug)]
pub(crate) struct ShardIndex(Bytes);

impl ShardIndex {
    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }

    /// The bytes of chunk `number`: `Ok(None)` for an absent chunk, `Err` for
    /// an entry that is no range.
    pub(crate) fn chunk(&self, number: u64) -> Result<Option<Range<u64>>, ShardEntryError> {
        let entry = || {
            let at = usize::try_from(number.checked_mul(ENTRY)?).ok()?;
            let (offset, rest) = self.0.get(at..)?.split_first_chunk::<8>()?;
            let (length, _) = rest.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*offset), u64::from_le_bytes(*length)))
        };
        let (offset, length) = entry().ok_or(ShardEntryError { number })?;
        if (offset, length) == (ABSENT, ABSENT) {
            return Ok(None);
        }
        let end = offset.checked_add(length);
        let end = end.ok_or(ShardEntryError { number })?;
        Ok(Some(offset..end))
    }
}

/// An entry of a shard's index that is no range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} of the shard index is no range")]
pub struct ShardEntryError {
    /// The chunk's number in its shard, in C order.
    pub number: u64,
}
