//! The blosc codec, through zarrs.

use bytes::Bytes;
use zarrs::array::{
    BytesRepresentation,
    codec::{
        BloscCodec, BloscCompressor, BloscShuffleMode,
        api::{BytesToBytesCodecTraits, CodecOptions},
    },
};
use zvf_model::zarr::Codec;

use super::{
    error::{DecodeError, EncodeError, damaged, failed},
    settings::{Settings, integer},
};

const CODEC: &str = "blosc";
/// The bytes of the header with the decoded size, little-endian.
const DECODED_SIZE: core::ops::Range<usize> = 4..8;
const HEADER: usize = 16;

/// Decodes a chunk, within `limit` bytes.
///
/// The header declares the decoded size, which is allocated exactly. zarrs validates the whole
/// header first.
pub(super) fn decode(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    let decoded = bytes.get(DECODED_SIZE).and_then(|b| b.try_into().ok());
    let decoded = decoded.map(u32::from_le_bytes);
    let decoded = decoded.filter(|_| bytes.len() >= HEADER);
    let decoded = decoded.ok_or_else(|| damaged(CODEC, "shorter than a header".into()))?;
    if u64::from(decoded) > limit {
        return Err(DecodeError::OverLimit { limit });
    }
    if decoded == 0 {
        return Ok(Bytes::new());
    }
    // The configuration matters to the encoder only.
    let codec = BloscCodec::new(
        BloscCompressor::Zstd,
        0.try_into()
            .map_err(|_| damaged(CODEC, "the level is out of range".into()))?,
        None,
        BloscShuffleMode::NoShuffle,
        None,
    );
    let codec = codec.map_err(|source| damaged(CODEC, Box::new(source)))?;
    let bytes = (&**bytes).into();
    let options = CodecOptions::default();
    let decoded = codec.decode(bytes, &BytesRepresentation::UnboundedSize, &options);
    let decoded = decoded.map_err(|source| damaged(CODEC, Box::new(source)))?;
    Ok(decoded.into_owned().into())
}

/// Maximum length of a payload: the size of a chunk is a signed 32-bit number and includes the
/// header.
const MAX_BYTES: usize = 0x7fff_ffff - HEADER;

/// The settings of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blosc {
    compressor: BloscCompressor,
    level: u8,
    shuffle: BloscShuffleMode,
    typesize: usize,
    blocksize: usize,
}

impl Blosc {
    pub(super) fn new(codec: &Codec) -> Settings<Self> {
        let text = |field: &'static str, or: &'static str| match codec.configuration.get(field) {
            None => Ok(or),
            Some(text) => text.as_str().ok_or(field),
        };
        let size = |field: &'static str, or: usize| match integer(codec, field)? {
            None => Ok(or),
            Some(size) => usize::try_from(size).map_err(|_| field),
        };
        let level = integer(codec, "clevel")?.unwrap_or(5);
        let level = u8::try_from(level).ok().filter(|level| *level <= 9);
        Ok(Self {
            compressor: compressor(text("cname", "zstd")?).ok_or("cname")?,
            level: level.ok_or("clevel")?,
            shuffle: shuffle(text("shuffle", "noshuffle")?).ok_or("shuffle")?,
            // The library stores the size in a byte and takes larger sizes for 1.
            typesize: match size("typesize", 1)? {
                typesize @ 1..=255 => typesize,
                _ => return Err("typesize"),
            },
            blocksize: size("blocksize", 0)?,
        })
    }

    /// Encodes a chunk.
    pub(super) fn encode(self, bytes: &[u8]) -> Result<Vec<u8>, EncodeError> {
        if bytes.len() > MAX_BYTES {
            return Err(EncodeError::TooLong {
                codec: CODEC,
                max: MAX_BYTES,
                found: bytes.len(),
            });
        }
        let level = self.level.try_into();
        let level = level.map_err(|_| failed(CODEC, "the level is out of range".into()))?;
        let (size, block) = (Some(self.typesize), Some(self.blocksize));
        let codec = BloscCodec::new(self.compressor, level, block, self.shuffle, size);
        let codec = codec.map_err(|source| failed(CODEC, Box::new(source)))?;
        let encoded = codec.encode(bytes.into(), &CodecOptions::default());
        let encoded = encoded.map_err(|source| failed(CODEC, Box::new(source)))?;
        Ok(encoded.into_owned())
    }
}

/// Returns the compressor of a name in metadata.
pub(super) fn compressor(name: &str) -> Option<BloscCompressor> {
    Some(match name {
        "blosclz" => BloscCompressor::BloscLZ,
        "lz4" => BloscCompressor::LZ4,
        "lz4hc" => BloscCompressor::LZ4HC,
        "snappy" => BloscCompressor::Snappy,
        "zlib" => BloscCompressor::Zlib,
        "zstd" => BloscCompressor::Zstd,
        _ => return None,
    })
}

/// Returns the shuffle mode of a name in metadata.
pub(super) fn shuffle(name: &str) -> Option<BloscShuffleMode> {
    Some(match name {
        "noshuffle" => BloscShuffleMode::NoShuffle,
        "shuffle" => BloscShuffleMode::Shuffle,
        "bitshuffle" => BloscShuffleMode::BitShuffle,
        _ => return None,
    })
}
