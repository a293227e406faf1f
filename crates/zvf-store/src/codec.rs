//! Undoing the codecs of one chunk.
//!
//! A chain is read from metadata once and undone for each chunk. zstd, gzip and
//! the checksum go through the libraries that zarrs itself uses, because zarrs
//! decodes without a bound; blosc goes through zarrs. `docs/adr/0006` says why.

#[cfg(feature = "blosc")]
mod blosc;
mod compression;

use bytes::Bytes;
use serde_json::Value;

pub use compression::{DecodeError, DecodedSize};

pub(crate) use compression::{Compression, crc32c};

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
    /// The codecs are no list of names and configurations.
    #[error("codecs are not a list of names and configurations")]
    Shape,
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
    /// Reads `codecs` as they stand in a `zarr.json`: a list of objects with
    /// `name` and `configuration`, in the order of encoding.
    ///
    /// ```
    /// use zvf_store::{ChunkCodecs, DecodedSize};
    ///
    /// let codecs = serde_json::json!([{"name": "bytes"}, {"name": "crc32c"}]);
    /// let codecs = ChunkCodecs::parse(&codecs)?;
    /// let chunk = bytes::Bytes::from_static(b"123456789\x83\x92\x06\xe3");
    /// assert_eq!(codecs.undo(chunk, DecodedSize::Exactly(9))?, "123456789");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CodecsError`], also for sharding: see [`CellArray`](crate::CellArray).
    pub fn parse(codecs: &Value) -> Result<Self, CodecsError> {
        let mut codecs = named(codecs)?.into_iter();
        let (name, configuration) = codecs.next().ok_or(CodecsError::NoSerialiser)?;
        let form = match name {
            "bytes" => match configuration.and_then(|c| c.get("endian")) {
                None => ChunkForm::LittleEndian,
                Some(endian) => match endian.as_str() {
                    Some("little") => ChunkForm::LittleEndian,
                    Some("big") => ChunkForm::BigEndian,
                    _ => return Err(field(name, "endian")),
                },
            },
            "vlen-bytes" | "vlen-utf8" => ChunkForm::VlenFrame,
            "zstd" | "gzip" | "blosc" | "crc32c" => return Err(CodecsError::NoSerialiser),
            _ => return Err(CodecsError::Unsupported(name.to_owned())),
        };
        let compressions = codecs
            .map(|(name, configuration)| Compression::parse(name, configuration))
            .collect::<Result<_, _>>()?;
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

    /// The bytes before compressions and checksums. No copy of plain chunks.
    ///
    /// Never allocates more than `size` says, whatever `chunk` claims.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a damaged chunk and one of another size.
    pub fn undo(&self, chunk: Bytes, size: DecodedSize) -> Result<Bytes, DecodeError> {
        let mut bytes = chunk;
        for (at, compression) in self.compressions.iter().enumerate().rev() {
            let inner = self.compressions.iter().take(at);
            let limit = inner.fold(size.most(), |limit, inner| inner.most_encoded(limit));
            bytes = compression.undo(&bytes, limit)?;
        }
        size.check(&bytes)?;
        Ok(bytes)
    }
}

/// Names and configurations; a bare name is a codec too.
pub(crate) fn named(codecs: &Value) -> Result<Vec<(&str, Option<&Value>)>, CodecsError> {
    let codecs = codecs.as_array().ok_or(CodecsError::Shape)?;
    let named = |codec| -> Option<(&str, Option<&Value>)> {
        let codec: &Value = codec;
        match codec.as_str() {
            Some(name) => Some((name, None)),
            None => Some((codec.get("name")?.as_str()?, codec.get("configuration"))),
        }
    };
    let all = codecs.iter().map(named).collect::<Option<_>>();
    all.ok_or(CodecsError::Shape)
}

pub(crate) fn field(codec: &str, field: &'static str) -> CodecsError {
    CodecsError::Configuration {
        codec: codec.to_owned(),
        field,
    }
}
