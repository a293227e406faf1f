//! Shards: many chunks in one object, and the index that says where they are.

use core::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    codec::{ChunkCodecs, CodecsError, DecodeError, crc32c, field, named},
    range::ByteRange,
};

/// How the chunks of an array are laid out in shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sharding {
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) codecs: ChunkCodecs,
    /// Chunks of a shard along each axis.
    chunks: Vec<u64>,
    /// Chunks of a shard.
    count: u64,
    checksum: bool,
    at_end: bool,
}

const NAME: &str = "sharding_indexed";
/// Offset and length, two little-endian u64.
const ENTRY: u64 = 16;
/// Both numbers of a chunk that is absent.
const ABSENT: u64 = u64::MAX;

impl Sharding {
    /// The sharding in `codecs`, if that is what they are; nothing may stand
    /// around it, or the chunks of a shard could not be read alone.
    pub(crate) fn parse(codecs: &Value, shard_shape: &[u64]) -> Result<Option<Self>, CodecsError> {
        let named = named(codecs)?;
        let sharded = named.iter().any(|(name, _)| *name == NAME);
        let (configuration, beside) = match named[..] {
            _ if !sharded => return Ok(None),
            [(NAME, configuration)] => (configuration.unwrap_or(&Value::Null), None),
            [(NAME, _), (other, _), ..] | [(other, _), ..] => (&Value::Null, Some(other)),
            [] => return Ok(None),
        };
        if let Some(other) = beside {
            return Err(CodecsError::Unsupported(other.to_owned()));
        }
        let chunk_shape = configuration.get("chunk_shape").and_then(Value::as_array);
        let chunk_shape: Option<Vec<u64>> =
            chunk_shape.and_then(|shape| shape.iter().map(Value::as_u64).collect());
        let bad_shape = || field(NAME, "chunk_shape");
        let chunk_shape = chunk_shape.ok_or_else(bad_shape)?;
        if chunk_shape.len() != shard_shape.len() {
            return Err(bad_shape());
        }
        let along = |(shard, chunk): (&u64, &u64)| match shard.checked_rem(*chunk) {
            Some(0) => shard.checked_div(*chunk).filter(|chunks| *chunks > 0),
            _ => None,
        };
        let chunks = shard_shape.iter().zip(&chunk_shape).map(along);
        let chunks: Vec<u64> = chunks.collect::<Option<_>>().ok_or_else(bad_shape)?;
        let count = chunks
            .iter()
            .try_fold(1_u64, |count, chunks| count.checked_mul(*chunks))
            .filter(|count| count.checked_mul(ENTRY).is_some_and(|b| b < u64::MAX - 4));
        let checksum = configuration.get("index_codecs").and_then(index_checksum);
        let at_end = match configuration.get("index_location") {
            None => true,
            Some(location) if location == "end" => true,
            Some(location) if location == "start" => false,
            Some(_) => return Err(field(NAME, "index_location")),
        };
        let codecs = configuration.get("codecs").unwrap_or(&Value::Null);
        Ok(Some(Self {
            codecs: ChunkCodecs::parse(codecs)?,
            chunk_shape,
            chunks,
            count: count.ok_or_else(bad_shape)?,
            checksum: checksum.ok_or_else(|| field(NAME, "index_codecs"))?,
            at_end,
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
        if self.at_end {
            ByteRange::Suffix(size)
        } else {
            ByteRange::Bounded(0..size)
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
fn index_checksum(codecs: &Value) -> Option<bool> {
    let named = named(codecs).ok()?;
    let little = |configuration: Option<&Value>| {
        configuration
            .and_then(|c| c.get("endian"))
            .is_some_and(|e| e == "little")
    };
    match named[..] {
        [("bytes", order)] if little(order) => Some(false),
        [("bytes", order), ("crc32c", None)] if little(order) => Some(true),
        [("bytes", order), ("crc32c", Some(c))] if little(order) => c
            .get("location")
            .is_none_or(|at| at == "end")
            .then_some(true),
        _ => None,
    }
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
