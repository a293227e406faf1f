//! The codec chain of a chunk.
//!
//! A chain is parsed from metadata once and applied to each chunk. zstd, gzip and crc32c use the
//! libraries that zarrs itself uses, because zarrs decodes without a memory bound.
//! `docs/adr/0005` explains this choice. Encoding uses the same libraries.

use std::borrow::Cow;

use bytes::Bytes;
use zvf_format::numeric::ByteOrder;
use zvf_model::zarr::Codecs;

use crate::{
    BlocksPrefix, CodecsError, DecodeError, EncodeError, compression::ByteCodec,
    error::unsupported_field,
};

/// The codec chain of an unsharded chunk: the form of its bytes, and the compressions and checksums
/// applied to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkCodecs {
    form: DecodedForm,
    /// In the order of encoding.
    compressions: Vec<ByteCodec>,
}

/// The form of a chunk after its compressions are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedForm {
    /// Little-endian numbers.
    LittleEndian,
    /// Big-endian numbers.
    BigEndian,
    /// A [`zvf_format::vlen`] frame.
    VlenFrame,
}

/// The size that a chunk decodes to, if it is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedSize {
    /// The exact size, because the elements have a fixed size.
    Exactly(u64),
    /// An upper bound: the rest of the budget.
    AtMost(u64),
}

impl DecodedSize {
    fn max(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtMost(bytes) => bytes,
        }
    }

    /// Checks the size of decoded bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Size`] or [`DecodeError::OverLimit`].
    pub fn check(self, bytes: &Bytes) -> Result<(), DecodeError> {
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match self {
            Self::Exactly(expected) if found != expected => {
                Err(DecodeError::Size { expected, found })
            }
            Self::AtMost(limit) if found > limit => Err(DecodeError::OverLimit { limit }),
            Self::Exactly(_) | Self::AtMost(_) => Ok(()),
        }
    }
}

impl ChunkCodecs {
    /// Parses the codec chain in the metadata of an array.
    ///
    /// ```
    /// use zvf_model::{key::Key, zarr::Node};
    /// use zvf_codecs::{ChunkCodecs, DecodedSize};
    ///
    /// let json = br#"{"zarr_format": 3, "node_type": "array", "shape": [9],
    ///   "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}, {"name": "crc32c"}],
    ///   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [9]}},
    ///   "chunk_key_encoding": {"name": "default"}}"#;
    /// let node = Node::parse(&Key::parse("a/zarr.json")?, json)?;
    /// let codecs = ChunkCodecs::new(&node.as_array().ok_or("a group")?.codecs)?;
    /// let chunk = bytes::Bytes::from_static(b"123456789\x83\x92\x06\xe3");
    /// assert_eq!(codecs.decode(chunk, DecodedSize::Exactly(9))?, "123456789");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CodecsError`]; also for sharding, which is not a codec of a chunk: see
    /// [`ShardLayout`](crate::ShardLayout).
    pub fn new(codecs: &Codecs) -> Result<Self, CodecsError> {
        let mut codecs = codecs.iter();
        let first = codecs.next().ok_or(CodecsError::NoSerialiser)?;
        let form = match &*first.name {
            "bytes" => match first.byte_order() {
                Some(ByteOrder::Little) => DecodedForm::LittleEndian,
                Some(ByteOrder::Big) => DecodedForm::BigEndian,
                None => return Err(unsupported_field(&first.name, "endian")),
            },
            "vlen-bytes" | "vlen-utf8" => DecodedForm::VlenFrame,
            _ if ByteCodec::is_known(first) => return Err(CodecsError::NoSerialiser),
            name => return Err(CodecsError::Unsupported(name.to_owned())),
        };
        let compressions = codecs.map(ByteCodec::new).collect::<Result<_, _>>()?;
        Ok(Self { form, compressions })
    }

    /// Returns the form of a decoded chunk.
    pub fn form(&self) -> DecodedForm {
        self.form
    }

    /// Returns whether the stored bytes are the decoded bytes, so that a part of the chunk can be
    /// read alone.
    pub fn is_plain(&self) -> bool {
        self.compressions.is_empty()
    }

    /// Returns the size of the checksum that follows the decoded bytes, 0 if there is none; `None` if the
    /// stored bytes are compressed.
    pub fn trailer(&self) -> Option<u64> {
        match &self.compressions[..] {
            [] => Some(0),
            [ByteCodec::Crc32c] => Some(4),
            _ => None,
        }
    }

    /// Returns the size of the checksum that follows the blocks of a chunk, 0 if there is none; `None` if
    /// chunks do not consist of blocks.
    pub fn block_trailer(&self) -> Option<u64> {
        #[cfg(feature = "blosc")]
        if let [ByteCodec::Blosc(_), rest @ ..] = &self.compressions[..] {
            return match rest {
                [] => Some(0),
                [ByteCodec::Crc32c] => Some(4),
                _ => None,
            };
        }
        None
    }

    /// Reads the blocks of a chunk of `stored` bytes, without its checksum, from the first of these bytes.
    /// Allocates no more than twice the bytes of `prefix`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the first bytes are damaged or belong to a chunk of another size.
    pub fn blocks(&self, prefix: &[u8], stored: u64) -> Result<BlocksPrefix, DecodeError> {
        #[cfg(feature = "blosc")]
        if self.block_trailer().is_some() {
            return crate::compression::blocks(prefix, stored);
        }
        let _ = (prefix, stored);
        Ok(BlocksPrefix::Whole)
    }

    /// Estimates the cost of decoding `bytes` bytes, in bytes of decompression. Checksums are about
    /// ten times cheaper.
    pub fn decode_cost(&self, bytes: usize) -> usize {
        match &self.compressions[..] {
            [] => 0,
            [ByteCodec::Crc32c] => bytes / 10,
            _ => bytes,
        }
    }

    /// Returns whether the chain is `form` with a checksum (`true`) or without one (`false`), or
    /// `None` for any other chain.
    pub(crate) fn checksum_only(&self, form: DecodedForm) -> Option<bool> {
        match self.compressions[..] {
            _ if self.form != form => None,
            [] => Some(false),
            [ByteCodec::Crc32c] => Some(true),
            _ => None,
        }
    }

    /// Decodes a chunk. An uncompressed chunk is not copied.
    ///
    /// Never allocates more than `size` allows, whatever size the chunk declares, except for the
    /// buffer of one block that undoes a shuffle of Blosc.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a damaged chunk or one of another size.
    pub fn decode(&self, chunk: Bytes, size: DecodedSize) -> Result<Bytes, DecodeError> {
        let mut bytes = chunk;
        for (index, compression) in self.compressions.iter().enumerate().rev() {
            let inner = self.compressions.iter().take(index);
            let limit = inner.fold(size.max(), |limit, inner| inner.max_encoded_size(limit));
            bytes = compression.decode(&bytes, limit)?;
        }
        size.check(&bytes)?;
        Ok(bytes)
    }

    /// Encodes a chunk: applies compressions and checksums in their order.
    ///
    /// `payload` must already have the [form](Self::form) of the chain.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] for a configuration that an encoder does not support and for a payload that is
    /// too long for a codec.
    pub fn encode(&self, payload: &[u8]) -> Result<Bytes, EncodeError> {
        self.encode_cow(Cow::Borrowed(payload))
    }

    /// Encodes a chunk; an owned payload without compressions is not copied.
    ///
    /// # Errors
    ///
    /// See [`encode`](Self::encode).
    pub fn encode_cow(&self, payload: Cow<'_, [u8]>) -> Result<Bytes, EncodeError> {
        let mut bytes = payload;
        for compression in &self.compressions {
            bytes = Cow::Owned(compression.encode(bytes)?);
        }
        Ok(bytes.into_owned().into())
    }
}
