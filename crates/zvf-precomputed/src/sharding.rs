//! The division of keys among shards.

use serde_json::{Value, json};

use crate::{InfoError, info_node::InfoNode, murmur::murmurhash3_x86_128_low};

const TYPE: &str = "neuroglancer_uint64_sharded_v1";
/// Size of a minishard's entry in the index of a shard.
pub(crate) const ENTRY: u64 = 16;

/// The hash of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardHash {
    /// The key itself, for keys that lie together.
    #[default]
    Identity,
    /// The low 64 bits of `MurmurHash3` x86 128, for keys of unknown distribution.
    Murmur,
}

/// The encoding of values or of minishard indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardEncoding {
    /// Values without compression.
    #[default]
    Raw,
    /// Compressed with gzip.
    Gzip,
}

impl ShardEncoding {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
        }
    }
}

/// The `sharding` member of an `info` document: how keys are divided among shards and minishards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardingSpec {
    /// Low bits of a key that do not count.
    pub preshift_bits: u32,
    /// The hash of the remaining bits.
    pub hash: ShardHash,
    /// Bits of the hash that select a minishard.
    pub minishard_bits: u32,
    /// Bits of the hash above those, which select a shard.
    pub shard_bits: u32,
    /// Encoding of the indexes of minishards.
    pub minishard_index_encoding: ShardEncoding,
    /// Encoding of values.
    pub data_encoding: ShardEncoding,
}

/// The shard and minishard of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardLocation {
    /// Number of the shard.
    pub shard: u64,
    /// Number of the minishard in the shard.
    pub minishard: u64,
}

impl ShardingSpec {
    /// Largest number of minishard bits that this crate reads: an index of 16 MiB.
    pub const MAX_MINISHARD_BITS: u32 = 20;
    const KEYS_PER_MINISHARD: u64 = 4096;
    const SHARD_BYTES: u64 = 64 << 20;

    /// Returns a division of consecutive keys `0..keys`, or of compressed Morton codes below
    /// `keys`, with neighbours in one minishard. The number of the shard does not decrease from a key
    /// to the next. `bytes` estimates the size of all values.
    pub fn for_consecutive(keys: u64, bytes: u64) -> Self {
        let per_minishard = Self::KEYS_PER_MINISHARD.min(keys_within(1 << 20, keys, bytes));
        let preshift_bits = per_minishard.max(1).ilog2();
        // A minishard has the keys that differ in the low bits alone.
        let per_minishard = 1 << preshift_bits;
        Self {
            preshift_bits,
            ..Self::divided(keys, per_minishard, bytes, ShardHash::Identity)
        }
    }

    /// Returns a division of `keys` keys of unknown distribution. `bytes` estimates the size of all
    /// values.
    pub fn for_any(keys: u64, bytes: u64) -> Self {
        let per_minishard = Self::KEYS_PER_MINISHARD.min(keys_within(16 << 20, keys, bytes));
        Self::divided(keys, per_minishard.max(1), bytes, ShardHash::Murmur)
    }

    fn divided(keys: u64, per_minishard: u64, bytes: u64, hash: ShardHash) -> Self {
        let minishards = bits(keys.div_ceil(per_minishard));
        let shard_bits = bits(bytes.div_ceil(Self::SHARD_BYTES)).min(minishards);
        let minishard_bits = minishards
            .saturating_sub(shard_bits)
            .min(Self::MAX_MINISHARD_BITS);
        Self {
            preshift_bits: 0,
            hash,
            minishard_bits,
            // The bits number all minishards, so that no key is in the first one again.
            shard_bits: minishards.saturating_sub(minishard_bits),
            minishard_index_encoding: ShardEncoding::Gzip,
            data_encoding: ShardEncoding::Gzip,
        }
    }

    /// Sets the encoding of values.
    #[must_use]
    pub fn data_encoding(mut self, encoding: ShardEncoding) -> Self {
        self.data_encoding = encoding;
        self
    }

    /// Returns the shard and minishard of a key.
    pub fn locate(&self, key: u64) -> ShardLocation {
        let shifted = key.checked_shr(self.preshift_bits).unwrap_or(0);
        let hash = match self.hash {
            ShardHash::Identity => shifted,
            ShardHash::Murmur => murmurhash3_x86_128_low(shifted),
        };
        let above = hash.checked_shr(self.minishard_bits).unwrap_or(0);
        ShardLocation {
            shard: above & mask(self.shard_bits),
            minishard: hash & mask(self.minishard_bits),
        }
    }

    /// Returns the name of the file of a shard.
    pub fn file_name(&self, shard: u64) -> String {
        let digits = usize::try_from(self.shard_bits.div_ceil(4)).unwrap_or(16);
        format!("{shard:0digits$x}.shard")
    }

    /// Returns the size of the index at the start of a shard.
    pub fn index_size(&self) -> u64 {
        ENTRY.checked_shl(self.minishard_bits).unwrap_or(u64::MAX)
    }

    /// Returns the value of the member `sharding`.
    pub fn to_json(&self) -> Value {
        json!({
            "@type": TYPE,
            "preshift_bits": self.preshift_bits,
            "hash": match self.hash {
                ShardHash::Identity => "identity",
                ShardHash::Murmur => "murmurhash3_x86_128",
            },
            "minishard_bits": self.minishard_bits,
            "shard_bits": self.shard_bits,
            "minishard_index_encoding": self.minishard_index_encoding.name(),
            "data_encoding": self.data_encoding.name(),
        })
    }

    /// Reads the value of the member `sharding`.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if a member is missing or unknown, or if the bits exceed 64 or
    /// [`MAX_MINISHARD_BITS`](Self::MAX_MINISHARD_BITS).
    pub fn from_json(json: &Value) -> Result<Self, InfoError> {
        Self::from_node(&InfoNode::below(json, "sharding"))
    }

    pub(crate) fn from_node(node: &InfoNode<'_>) -> Result<Self, InfoError> {
        if node.need("@type", TYPE)?.text()? != TYPE {
            return Err(node.fault("@type", TYPE));
        }
        let bits = |key: &'static str, max: u32| {
            let found = node.need(key, "a number of bits")?.unsigned()?;
            let bits = u32::try_from(found).ok().filter(|bits| *bits <= max);
            bits.ok_or_else(|| node.fault(key, "a supported number of bits"))
        };
        let encoding = |key: &'static str| match node.get(key) {
            None => Ok(ShardEncoding::Raw),
            Some(name) => match name.text()? {
                "raw" => Ok(ShardEncoding::Raw),
                "gzip" => Ok(ShardEncoding::Gzip),
                _ => Err(node.fault(key, "raw or gzip")),
            },
        };
        let spec = Self {
            preshift_bits: bits("preshift_bits", 64)?,
            hash: match node.need("hash", "a hash")?.text()? {
                "identity" => ShardHash::Identity,
                "murmurhash3_x86_128" => ShardHash::Murmur,
                _ => return Err(node.fault("hash", "identity or murmurhash3_x86_128")),
            },
            minishard_bits: bits("minishard_bits", Self::MAX_MINISHARD_BITS)?,
            shard_bits: bits("shard_bits", 64)?,
            minishard_index_encoding: encoding("minishard_index_encoding")?,
            data_encoding: encoding("data_encoding")?,
        };
        let all = spec.minishard_bits.saturating_add(spec.shard_bits);
        if all > 64 {
            return Err(node.fault("shard_bits", "64 bits with minishard_bits, or less"));
        }
        Ok(spec)
    }
}

/// Returns how many keys have `size` bytes together.
fn keys_within(size: u64, keys: u64, bytes: u64) -> u64 {
    size.checked_div(bytes.div_ceil(keys.max(1)).max(1))
        .unwrap_or(1)
        .max(1)
}

/// Returns the bits that number `count` things.
fn bits(count: u64) -> u32 {
    u64::BITS.saturating_sub(count.saturating_sub(1).leading_zeros())
}

fn mask(bits: u32) -> u64 {
    1_u64
        .checked_shl(bits)
        .map_or(u64::MAX, |bit| bit.wrapping_sub(1))
}
