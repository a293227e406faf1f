//! The codecs from bytes to bytes.

#[cfg(feature = "blosc")]
mod blosc;
pub(crate) mod crc32c;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(any(feature = "gzip", feature = "zstd"))]
mod inflate;
#[cfg(any(feature = "blosc", feature = "gzip", feature = "zstd"))]
mod settings;
#[cfg(feature = "zstd")]
mod zstd;

use std::borrow::Cow;

use bytes::Bytes;
use zvf_model::zarr::Codec;

use crate::{
    blocks::{ChunkBlocks, StoredBlocks},
    error::{CodecsError, DecodeError, EncodeError, unsupported_field},
};

#[cfg(feature = "blosc")]
use blosc::Blosc;
#[cfg(feature = "blosc")]
pub(crate) use blosc::blocks;
#[cfg(feature = "gzip")]
use gzip::Gzip;
#[cfg(any(feature = "blosc", feature = "gzip", feature = "zstd"))]
use settings::{Settings, for_encoding};
#[cfg(feature = "zstd")]
use zstd::Zstd;

/// A codec from bytes to bytes, with the settings of its encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteCodec {
    #[cfg(feature = "zstd")]
    Zstd(Settings<Zstd>),
    #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
    Zstd,
    #[cfg(feature = "gzip")]
    Gzip(Settings<Gzip>),
    #[cfg(feature = "blosc")]
    Blosc(Settings<Blosc>),
    Crc32c,
}

/// Returns the error for a codec that this build lacks.
#[cfg(not(all(
    feature = "blosc",
    feature = "gzip",
    any(feature = "ruzstd", feature = "zstd")
)))]
fn feature_error(codec: &str, feature: &'static str) -> CodecsError {
    CodecsError::Feature {
        codec: codec.to_owned(),
        feature,
    }
}

impl ByteCodec {
    pub(crate) fn new(codec: &Codec) -> Result<Self, CodecsError> {
        match &*codec.name {
            #[cfg(feature = "zstd")]
            "zstd" => Ok(Self::Zstd(Zstd::new(codec))),
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            "zstd" => Ok(Self::Zstd),
            #[cfg(not(any(feature = "ruzstd", feature = "zstd")))]
            name @ "zstd" => Err(feature_error(name, "zstd")),
            #[cfg(feature = "gzip")]
            "gzip" => Ok(Self::Gzip(Gzip::new(codec))),
            #[cfg(not(feature = "gzip"))]
            name @ "gzip" => Err(feature_error(name, "gzip")),
            #[cfg(feature = "blosc")]
            "blosc" => Ok(Self::Blosc(Blosc::new(codec))),
            #[cfg(not(feature = "blosc"))]
            name @ "blosc" => Err(feature_error(name, "blosc")),
            name @ "crc32c" => match codec.setting("location") {
                None => Ok(Self::Crc32c),
                Some(location) if location == "end" => Ok(Self::Crc32c),
                Some(_) => Err(unsupported_field(name, "location")),
            },
            name => Err(CodecsError::Unsupported(name.to_owned())),
        }
    }

    /// Returns whether there is a codec of this name, in this build or in one with more features.
    pub(crate) fn is_known(codec: &Codec) -> bool {
        !matches!(Self::new(codec), Err(CodecsError::Unsupported(_)))
    }

    /// Returns a generous upper bound on the encoded size of `bytes` bytes.
    pub(crate) fn max_encoded_size(self, bytes: u64) -> u64 {
        if self == Self::Crc32c {
            bytes.saturating_add(4)
        } else {
            bytes.saturating_add(bytes.div_ceil(8)).saturating_add(4096)
        }
    }

    /// Decodes `bytes` to at most `limit` bytes. Shuffled chunks of Blosc take a buffer of one block
    /// besides, which is not longer than the chunk.
    pub(crate) fn decode(self, bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
        match self {
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => zstd::decode(bytes, limit),
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            Self::Zstd => crate::zstd_in_rust::decode(bytes, limit),
            #[cfg(feature = "gzip")]
            Self::Gzip(_) => gzip::decode(bytes, limit),
            #[cfg(feature = "blosc")]
            Self::Blosc(_) => blosc::decode(bytes, limit),
            Self::Crc32c => crc32c::decode(bytes),
        }
    }

    pub(crate) fn encode(self, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, EncodeError> {
        match self {
            #[cfg(feature = "zstd")]
            Self::Zstd(settings) => for_encoding("zstd", settings)?.encode(&bytes),
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            Self::Zstd => Err(EncodeError::Feature {
                codec: "zstd",
                feature: "zstd",
            }),
            #[cfg(feature = "gzip")]
            Self::Gzip(settings) => for_encoding("gzip", settings)?.encode(&bytes),
            #[cfg(feature = "blosc")]
            Self::Blosc(settings) => for_encoding("blosc", settings)?.encode(&bytes),
            Self::Crc32c => Ok(crc32c::encode(bytes.into_owned())),
        }
    }
}

impl ChunkBlocks {
    /// Decodes a block from its [`stored`](Self::stored) bytes into `out`, which must have its
    /// [`decoded`](Self::decoded) length. Shuffled blocks take a buffer of the same size besides.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Damaged`].
    pub fn decode(&self, block: u64, stored: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        if self.stored == StoredBlocks::Raw && stored.len() == out.len() {
            out.copy_from_slice(stored);
            return Ok(());
        }
        #[cfg(feature = "blosc")]
        return blosc::decode_block(self, block, stored, out);
        #[cfg(not(feature = "blosc"))]
        {
            let _ = block;
            Err(crate::error::damaged("blosc", "is not built in".into()))
        }
    }
}
