//! The codecs of one chunk: undoing and applying them.
//!
//! A chain is read from metadata once and undone for each chunk. zstd, gzip and
//! the checksum go through the libraries that zarrs itself uses, because zarrs
//! decodes without a bound; blosc goes through zarrs. `docs/adr/0005` says why.
//! Encoding goes through the same libraries, so that what is written is what
//! was tested to be read.

#[cfg(feature = "blosc")]
mod blosc;
mod compression;
mod encode;
mod settings;

use std::borrow::Cow;

use bytes::Bytes;
use zvf_format::numeric::ByteOrder;
use zvf_model::zarr::Codecs;

pub use compression::{DecodeError, DecodedSize};
pub use encode::EncodeError;

pub(crate) use compression::{Compression, crc32c};
pub(crate) use encode::crc32c as with_crc32c;

/// The codecs of a chunk that is no shard: how values become bytes, and what
/// happens to the bytes then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkCodecs {
    form: ChunkForm,
    /// In the order of encoding.
    compressions: Vec<Compression>,
}

/// What a chunk is once its compressions are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkForm {
    /// Numbers one after the other, the least significant byte first.
    LittleEndian,
    /// Numbers one after the other, the most significant byte first.
    BigEndian,
    /// A [`zvf_format::vlen`] frame.
    VlenFrame,
}

/// Why a list of codecs cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecsError {
    /// A codec that is not supported, or not where it stands.
    #[error("codec {0:?} is not supported here")]
    Unsupported(String),
    /// Only with a feature that this build leaves out.
    #[error("codec {codec:?} needs the feature {feature:?} of zvf-store")]
    Feature {
        /// The codec.
        codec: String,
        /// The cargo feature that undoes it.
        feature: &'static str,
    },
    /// A codec's configuration is not one of its own.
    #[error("the {field:?} of codec {codec:?} is not supported")]
    Configuration {
        /// The codec.
        codec: String,
        /// The field.
        field: &'static str,
    },
    /// No codec turns values into bytes.
    #[error("no codec turns values into bytes")]
    NoSerialiser,
}

impl ChunkCodecs {
    /// Takes the chain of a node's metadata.
    ///
    /// ```
    /// use zvf_model::{key::Key, zarr::Node};
    /// use zvf_store::{ChunkCodecs, DecodedSize};
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
    /// [`CodecsError`], also for sharding: see [`CellArray`](crate::CellArray).
    pub fn new(codecs: &Codecs) -> Result<Self, CodecsError> {
        let mut codecs = codecs.iter();
        let first = codecs.next().ok_or(CodecsError::NoSerialiser)?;
        let form = match &*first.name {
            "bytes" => match first.byte_order() {
                Some(ByteOrder::Little) => ChunkForm::LittleEndian,
                Some(ByteOrder::Big) => ChunkForm::BigEndian,
                None => return Err(field(&first.name, "endian")),
            },
            "vlen-bytes" | "vlen-utf8" => ChunkForm::VlenFrame,
            "zstd" | "gzip" | "blosc" | "crc32c" => return Err(CodecsError::NoSerialiser),
            name => return Err(CodecsError::Unsupported(name.to_owned())),
        };
        let compressions = codecs.map(Compression::new).collect::<Result<_, _>>()?;
        Ok(Self { form, compressions })
    }

    /// What the bytes are once the codecs are undone.
    pub fn form(&self) -> ChunkForm {
        self.form
    }

    /// Whether the stored bytes are the decoded ones, so that a part of the
    /// chunk can be read alone.
    pub fn is_plain(&self) -> bool {
        self.compressions.is_empty()
    }

    /// How much work it is to undo them over so many bytes, in bytes of a
    /// compression. Checksums are some ten times faster.
    pub(crate) fn work(&self, bytes: usize) -> usize {
        match &self.compressions[..] {
            [] => 0,
            [Compression::Crc32c] => bytes / 10,
            _ => bytes,
        }
    }

    /// Whether this is `form` with a checksum, or without; `None` when it is
    /// anything else.
    pub(crate) fn checksum_at_most(&self, form: ChunkForm) -> Option<bool> {
        match self.compressions[..] {
            _ if self.form != form => None,
            [] => Some(false),
            [Compression::Crc32c] => Some(true),
            _ => None,
        }
    }

    /// The bytes before compressions and checksums. No copy of plain chunks.
    ///
    /// Never allocates more than `size` says, whatever `chunk` claims.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a damaged chunk and one of another size.
    pub fn decode(&self, chunk: Bytes, size: DecodedSize) -> Result<Bytes, DecodeError> {
        let mut bytes = chunk;
        for (at, compression) in self.compressions.iter().enumerate().rev() {
            let inner = self.compressions.iter().take(at);
            let limit = inner.fold(size.most(), |limit, inner| inner.most_encoded(limit));
            bytes = compression.undo(&bytes, limit)?;
        }
        size.check(&bytes)?;
        Ok(bytes)
    }

    /// The chunk that [`decode`](Self::decode) makes `payload` of: compressions and
    /// checksums in their order, as the configuration says. Of the form it is
    /// only told, see [`CellArray::encode`](crate::CellArray::encode).
    ///
    /// # Errors
    ///
    /// [`EncodeError`] for a configuration that no encoder follows and for more
    /// bytes than a codec takes.
    pub fn encode(&self, payload: &[u8]) -> Result<Bytes, EncodeError> {
        self.apply(Cow::Borrowed(payload))
    }

    /// Copies nothing of an owned payload without compressions.
    pub(crate) fn apply(&self, payload: Cow<'_, [u8]>) -> Result<Bytes, EncodeError> {
        let mut bytes = payload;
        for compression in &self.compressions {
            bytes = Cow::Owned(compression.apply(bytes)?);
        }
        Ok(bytes.into_owned().into())
    }
}

pub(crate) fn field(codec: &str, field: &'static str) -> CodecsError {
    CodecsError::Configuration {
        codec: codec.to_owned(),
        field,
    }
}
