//! Attributes of shards up to 0.8.0.

use serde_json::Value;

use crate::{
    grid::ChunkCoord,
    key::Key,
    metadata::{Attributes, Excerpt, Fields, JsonField, JsonMembers, MetadataError, MetadataFault},
};

const INDEX: &str = "shard_index";

/// Prefix of the names of shards, for example `__shard_000006`.
pub const SHARD_PREFIX: &str = "__shard_";

/// Positions of the cells in a shard.
///
/// A family may have both shards and arrays of single chunks. The assignment of chunks to shards is
/// not specified, so a reader loads all indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyShardIndex {
    spans: Vec<ShardSpan>,
}

/// One chunk's bytes in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSpan {
    /// The chunk.
    pub chunk: ChunkCoord,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl LegacyShardIndex {
    /// Reads the attributes of shard `key`, an array of `bytes` bytes, whose
    /// chunk keys have `arity` numbers.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the index is missing or malformed, or a chunk exceeds the shard.
    pub fn parse(
        key: &Key,
        attributes: &Attributes,
        arity: usize,
        bytes: u64,
    ) -> Result<Self, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut spans = Vec::new();
        for (name, at) in fields.require(INDEX)?.fields()?.iter() {
            let chunk = ChunkCoord::parse(name, arity).map_err(|error| {
                let found = Excerpt::of(name);
                at.error(MetadataFault::Segment { found, error })
            })?;
            let (offset, len) = match at.exactly(2, JsonField::u64)?.as_slice() {
                [offset, len] => (*offset, *len),
                _ => (0, 0),
            };
            if offset.checked_add(len).is_none_or(|end| end > bytes) {
                return Err(at.disagrees("the length of the shard"));
            }
            spans.push(ShardSpan { chunk, offset, len });
        }
        spans.sort_unstable_by(|a, b| a.chunk.cmp(&b.chunk));
        Ok(Self { spans })
    }

    /// Returns the attributes of the shard.
    pub fn to_attributes(&self) -> Attributes {
        let spans: Attributes = self
            .spans
            .iter()
            .map(|span| {
                let place = Value::from([span.offset, span.len]);
                (span.chunk.to_string(), place)
            })
            .collect();
        JsonMembers::default().with(INDEX, spans).finish()
    }

    /// Returns the chunks, ascending as tuples of integers.
    pub fn spans(&self) -> &[ShardSpan] {
        &self.spans
    }

    /// Returns the span of `chunk`; `None` if it is not in the shard. O(log chunks).
    pub fn get(&self, chunk: &ChunkCoord) -> Option<&ShardSpan> {
        let at = self.spans.binary_search_by(|span| span.chunk.cmp(chunk));
        self.spans.get(at.ok()?)
    }
}
