//! Shards: many chunks in one object, and the index that says where they are.

use core::ops::Range;

use bytes::Bytes;
use zvf_model::zarr::{Array, Codecs, IndexLocation};

use crate::{
    codec::{ChunkCodecs, ChunkForm, CodecsError, DecodeError, crc32c, field},
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
