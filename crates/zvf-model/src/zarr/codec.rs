//! The codec chain of an array: names and configurations, sharding typed.

use serde_json::Value;
use zvf_format::numeric::ByteOrder;

use super::{extension, extents_like, named};
use crate::metadata::{
    Attributes, Excerpt, Fields, JsonField, JsonMembers, MetadataError, MetadataFault,
};

/// One codec of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Codec {
    /// Its name.
    pub name: String,
    /// Its configuration; `None` and an empty one are equal.
    pub configuration: Option<Attributes>,
}

/// The chain that turns a chunk into bytes, in the order of encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Codecs {
    chain: Vec<Codec>,
    /// Layout of shards, if the chain contains the sharding codec.
    sharding: Option<Box<Sharding>>,
}

/// Layout of the chunks in a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharding {
    /// Extent of an inner chunk; divides the shard's in each dimension.
    pub chunk_shape: Vec<u64>,
    /// Encoding of an inner chunk.
    pub codecs: Codecs,
    /// Encoding of the index.
    pub index_codecs: Codecs,
    /// Position of the index in the shard.
    pub index_location: IndexLocation,
}

/// Position of the index in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexLocation {
    /// Before the chunks.
    Start,
    /// After them.
    #[default]
    End,
}

/// A chain of a single codec that only serializes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainCodec {
    /// `bytes`: numbers one after the other.
    Bytes(ByteOrder),
    /// `vlen-bytes`: a frame of byte strings, see [`zvf_format::vlen`].
    VlenBytes,
}

impl Codecs {
    /// Creates a chain without shards.
    pub fn new(serializer: Codec, compression: impl IntoIterator<Item = Codec>) -> Self {
        Self {
            chain: [serializer].into_iter().chain(compression).collect(),
            sharding: None,
        }
    }

    /// Creates a chain of shards whose inner chunks have these codecs. The index is at the end of a
    /// shard, with a checksum.
    pub fn sharded(chunk_shape: Vec<u64>, codecs: Self) -> Self {
        let sharding = Sharding {
            chunk_shape,
            codecs,
            index_codecs: Self::new(Codec::bytes(8), [Codec::crc32c()]),
            index_location: IndexLocation::End,
        };
        Self {
            chain: vec![Codec::new(SHARDING, Some(sharding.to_members()))],
            sharding: Some(Box::new(sharding)),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let codecs = self.chain.iter();
        codecs
            .map(|codec| Value::from(named(&codec.name, codec.configuration.as_ref())))
            .collect()
    }

    /// Reads a chain for chunks of `chunk_shape`.
    pub(super) fn read(place: &JsonField<'_>, chunk_shape: &[u64]) -> Result<Self, MetadataError> {
        let mut chain = Vec::new();
        let mut sharding = None;
        for codec in place.items()? {
            let (name, configuration) = extension(&codec)?;
            if name == SHARDING {
                if sharding.is_some() {
                    return Err(codec.error(MetadataFault::Twice(Excerpt::of(name))));
                }
                let Some((_, at)) = &configuration else {
                    return Err(codec
                        .fields()?
                        .fault("configuration", MetadataFault::Missing));
                };
                sharding = Some(Box::new(Sharding::read(&at.fields()?, chunk_shape)?));
            }
            chain.push(Codec {
                name: name.to_owned(),
                configuration: configuration.map(|(members, _)| members),
            });
        }
        if chain.is_empty() {
            let expected = 1;
            return Err(place.error(MetadataFault::Length { expected, found: 0 }));
        }
        Ok(Self { chain, sharding })
    }

    /// Returns the codecs, in the order of encoding.
    pub fn iter(&self) -> core::slice::Iter<'_, Codec> {
        self.chain.iter()
    }

    /// Returns the codec, if it is the only one and only serializes values, so that parts of a
    /// chunk can be read without decoding all of it.
    pub fn plain(&self) -> Option<PlainCodec> {
        let [codec] = self.chain.as_slice() else {
            return None;
        };
        match codec.name.as_str() {
            VLEN_BYTES => Some(PlainCodec::VlenBytes),
            BYTES => codec.byte_order().map(PlainCodec::Bytes),
            _ => None,
        }
    }

    /// Returns the codecs of cells: those of the inner chunks of shards, otherwise the chain itself.
    pub fn of_cells(&self) -> &Self {
        self.sharding()
            .map_or(self, |sharding| sharding.codecs.of_cells())
    }

    /// Returns whether cells carry a checksum, in shards or not.
    pub fn has_checksum(&self) -> bool {
        let inner = self
            .sharding()
            .is_some_and(|sharding| sharding.codecs.has_checksum());
        inner || self.chain.iter().any(|codec| codec.name == CRC32C)
    }

    /// Returns the sharding in the chain, with or without other codecs.
    pub fn sharding(&self) -> Option<&Sharding> {
        self.sharding.as_deref()
    }

    /// Returns the sharding, if it is the only codec, so that inner chunks can be read by range.
    pub fn plain_sharding(&self) -> Option<&Sharding> {
        match self.chain.as_slice() {
            [_] => self.sharding(),
            _ => None,
        }
    }
}

impl<'a> IntoIterator for &'a Codecs {
    type Item = &'a Codec;
    type IntoIter = core::slice::Iter<'a, Codec>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Codec {
    pub(super) fn new(name: &str, configuration: Option<JsonMembers>) -> Self {
        Self {
            name: name.to_owned(),
            configuration: configuration.map(JsonMembers::finish),
        }
    }

    /// Creates the codec of little-endian numbers of `size` bytes.
    pub fn bytes(size: usize) -> Self {
        let order = JsonMembers::default().with("endian", "little");
        Self::new(BYTES, (size > 1).then_some(order))
    }

    /// Creates the codec that frames byte strings.
    pub fn vlen_bytes() -> Self {
        Self::new(VLEN_BYTES, Some(JsonMembers::default()))
    }

    /// Creates the codec that appends a checksum.
    pub fn crc32c() -> Self {
        Self::new(CRC32C, None)
    }

    /// Returns a member of the configuration.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.configuration.as_ref()?.get(name)
    }

    /// Returns the `endian` of a `bytes` codec; little-endian if absent, as for values of one byte.
    /// `None` for another codec or order.
    pub fn byte_order(&self) -> Option<ByteOrder> {
        let endian = self.setting("endian");
        match (self.name.as_str(), endian.map(|endian| endian.as_str())) {
            (BYTES, None | Some(Some("little"))) => Some(ByteOrder::Little),
            (BYTES, Some(Some("big"))) => Some(ByteOrder::Big),
            _ => None,
        }
    }
}

impl Sharding {
    fn read(fields: &Fields<'_>, outer: &[u64]) -> Result<Self, MetadataError> {
        let at = fields.require("chunk_shape")?;
        let chunk_shape = extents_like(&at, outer.len())?;
        let mut pairs = chunk_shape.iter().zip(outer);
        let divides = |inner: u64, outer: u64| outer.checked_rem(inner) == Some(0);
        if let Some((&inner, &outer)) = pairs.find(|(inner, outer)| !divides(**inner, **outer)) {
            return Err(at.error(MetadataFault::InnerChunk { inner, outer }));
        }
        let codecs = Codecs::read(&fields.require("codecs")?, &chunk_shape)?;
        // The shape of the index is the shard's grid of chunks, with two numbers each.
        let mut index_shape: Vec<u64> = chunk_shape
            .iter()
            .zip(outer)
            .filter_map(|(inner, outer)| outer.checked_div(*inner))
            .collect();
        index_shape.push(2);
        let index_codecs = Codecs::read(&fields.require("index_codecs")?, &index_shape)?;
        let index_location = match fields.get("index_location") {
            None => IndexLocation::End,
            Some(at) => match at.text()? {
                END => IndexLocation::End,
                START => IndexLocation::Start,
                other => return Err(at.unknown_word(other, "\"start\" or \"end\"")),
            },
        };
        Ok(Self {
            chunk_shape,
            codecs,
            index_codecs,
            index_location,
        })
    }

    fn to_members(&self) -> JsonMembers {
        let location = match self.index_location {
            IndexLocation::Start => START,
            IndexLocation::End => END,
        };
        JsonMembers::default()
            .with("chunk_shape", self.chunk_shape.clone())
            .with("codecs", self.codecs.to_json())
            .with("index_codecs", self.index_codecs.to_json())
            .with("index_location", location)
    }

    /// Returns the inner chunk that contains element `index` of the array.
    ///
    /// `None` if the dimensions do not match.
    pub fn inner_of(&self, index: &[u64], shard_shape: &[u64]) -> Option<Vec<u64>> {
        let ranks = [index.len(), shard_shape.len()];
        let places = index.iter().zip(shard_shape).zip(&self.chunk_shape);
        let place = |((at, shard), inner): ((&u64, &u64), &u64)| {
            at.checked_rem(*shard)?.checked_div(*inner)
        };
        let matches = ranks == [self.chunk_shape.len(); 2];
        matches.then(|| places.map(place).collect())?
    }
}

const SHARDING: &str = "sharding_indexed";
const BYTES: &str = "bytes";
const VLEN_BYTES: &str = "vlen-bytes";
const CRC32C: &str = "crc32c";
const START: &str = "start";
const END: &str = "end";

/// Returns the name of an extension, for a message.
pub(super) fn name_of(place: &JsonField<'_>) -> Result<Excerpt, MetadataError> {
    extension(place).map(|(name, ..)| Excerpt::of(name))
}
