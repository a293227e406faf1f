//! The codecs from bytes to bytes, each undone within a limit.

use core::error::Error;
use std::{
    cell::RefCell,
    io::{self, Read},
    sync::Arc,
};

use bytes::Bytes;
use zvf_model::zarr::Codec;

use super::{
    CodecsError, field,
    settings::{self, Settings},
};

/// A codec from bytes to bytes, and what its encoder is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zstd(Settings<settings::Zstd>),
    Gzip(Settings<settings::Gzip>),
    #[cfg(feature = "blosc")]
    Blosc(Settings<settings::Blosc>),
    Crc32c,
}

/// What is known of a chunk's size before it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedSize {
    /// Its elements have a fixed size.
    Exactly(u64),
    /// What may be spent on it.
    AtMost(u64),
}

impl DecodedSize {
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtMost(bytes) => bytes,
        }
    }

    pub(crate) fn check(self, bytes: &Bytes) -> Result<(), DecodeError> {
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

/// Why a chunk cannot be decoded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The compressed bytes are damaged.
    #[error("bytes are not of codec {codec:?}")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// What its library says.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The checksum is not that of the bytes.
    #[error("checksum is {stored:#010x}, that of the bytes {computed:#010x}")]
    Checksum {
        /// The checksum beside the bytes.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The chunk decodes to more than declared or allowed. No more than this
    /// was allocated.
    #[error("chunk decodes to more than {limit} bytes")]
    OverLimit {
        /// The declared size, or what may be spent.
        limit: u64,
    },
    /// The chunk does not decode to its declared size.
    #[error("chunk decodes to {found} bytes, not {expected}")]
    Size {
        /// What its elements take.
        expected: u64,
        /// What there is.
        found: u64,
    },
}

const CHECKSUM: usize = 4;

impl Compression {
    pub(crate) fn new(codec: &Codec) -> Result<Self, CodecsError> {
        match &*codec.name {
            "zstd" => Ok(Self::Zstd(settings::Zstd::of(codec))),
            "gzip" => Ok(Self::Gzip(settings::Gzip::of(codec))),
            #[cfg(feature = "blosc")]
            "blosc" => Ok(Self::Blosc(settings::Blosc::of(codec))),
            #[cfg(not(feature = "blosc"))]
            name @ "blosc" => Err(CodecsError::Feature {
                codec: name.to_owned(),
                feature: "blosc",
            }),
            name @ "crc32c" => match codec.configuration.get("location") {
                None => Ok(Self::Crc32c),
                Some(location) if location == "end" => Ok(Self::Crc32c),
                Some(_) => Err(field(name, "location")),
            },
            name => Err(CodecsError::Unsupported(name.to_owned())),
        }
    }

    /// The most that so many bytes become when encoded, generously.
    pub(crate) fn most_encoded(self, bytes: u64) -> u64 {
        match self {
            Self::Crc32c => bytes.saturating_add(4),
            _ => bytes.saturating_add(bytes.div_ceil(8)).saturating_add(4096),
        }
    }

    /// The bytes before this codec; no more than `limit` are allocated.
    pub(crate) fn undo(self, bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
        match self {
            Self::Zstd(_) => zstd(bytes, limit),
            Self::Gzip(_) => {
                let stream = flate2::bufread::MultiGzDecoder::new(&**bytes);
                inflate("gzip", stream, limit)
            }
            #[cfg(feature = "blosc")]
            Self::Blosc(_) => super::blosc::undo(bytes, limit),
            Self::Crc32c => crc32c(bytes),
        }
    }
}

/// The bytes before their checksum, which must be right.
pub(crate) fn crc32c(bytes: &Bytes) -> Result<Bytes, DecodeError> {
    let Some((rest, stored)) = bytes.split_last_chunk::<CHECKSUM>() else {
        return Err(damaged("crc32c", "no room for the checksum".into()));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), ::crc32c::crc32c(rest));
    if stored != computed {
        return Err(DecodeError::Checksum { stored, computed });
    }
    Ok(bytes.slice(..rest.len()))
}

thread_local! {
    /// Its tables take 150 kB, which small cells would spend their time on.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

/// The most a zstd block of four bytes can stand for.
const ZSTD_BLOCK: u64 = 128 << 10;

fn zstd(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    const CODEC: &str = "zstd";
    use zstd::zstd_safe;
    let declared = zstd_safe::get_frame_content_size(bytes);
    let declared = declared.map_err(|_| damaged(CODEC, "no frame".into()))?;
    if let Some(declared) = declared {
        let encoded = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let possible = encoded.saturating_mul(ZSTD_BLOCK / 4);
        // A damaged number, and not a cell too large for whoever reads it.
        if declared > possible {
            return Err(damaged(CODEC, "more declared than there can be".into()));
        }
        if declared > limit {
            return Err(DecodeError::OverLimit { limit });
        }
        let single = zstd_safe::find_frame_compressed_size(bytes) == Ok(bytes.len());
        if let (true, Ok(size)) = (single, usize::try_from(declared)) {
            let decoded = DECOMPRESSOR.with_borrow_mut(|kept| match kept {
                Some(kept) => kept.decompress(bytes, size),
                none => none
                    .insert(zstd::bulk::Decompressor::new()?)
                    .decompress(bytes, size),
            });
            let decoded = decoded.map_err(|source| damaged(CODEC, source.into()))?;
            return Ok(decoded.into());
        }
    }
    let stream = zstd::stream::read::Decoder::with_buffer(&**bytes);
    let stream = stream.map_err(|source| damaged(CODEC, source.into()))?;
    inflate(CODEC, stream, limit)
}

/// All of a stream that may not be longer than `limit`.
fn inflate(codec: &'static str, stream: impl Read, limit: u64) -> Result<Bytes, DecodeError> {
    let mut decoded = Vec::new();
    // One byte more tells a longer stream.
    let read = stream
        .take(limit.saturating_add(1))
        .read_to_end(&mut decoded);
    match read.map(u64::try_from) {
        Ok(Ok(read)) if read <= limit => Ok(decoded.into()),
        Ok(_) => Err(DecodeError::OverLimit { limit }),
        Err(source) if source.kind() == io::ErrorKind::OutOfMemory => {
            Err(DecodeError::OverLimit { limit })
        }
        Err(source) => Err(damaged(codec, source.into())),
    }
}

pub(crate) fn damaged(codec: &'static str, source: Box<dyn Error + Send + Sync>) -> DecodeError {
    DecodeError::Damaged {
        codec,
        source: source.into(),
    }
}
