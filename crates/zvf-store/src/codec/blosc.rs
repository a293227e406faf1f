//! Blosc, through zarrs.

use bytes::Bytes;
use zarrs::array::{
    BytesRepresentation,
    codec::{
        BloscCodec, BloscCompressor, BloscShuffleMode,
        api::{BytesToBytesCodecTraits, CodecOptions},
    },
};

use super::{
    compression::{DecodeError, damaged},
    encode::{EncodeError, failed},
    settings::Blosc,
};

const CODEC: &str = "blosc";
/// Where a chunk says how many bytes it decodes to, little-endian.
const DECODED_AT: core::ops::Range<usize> = 4..8;
const HEADER: usize = 16;

/// The bytes before blosc. The chunk's header says how many these are, and
/// exactly so many are allocated; zarrs has the whole header validated first.
pub(super) fn undo(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    let decoded = bytes.get(DECODED_AT).and_then(|b| b.try_into().ok());
    let decoded = decoded.map(u32::from_le_bytes);
    let decoded = decoded.filter(|_| bytes.len() >= HEADER);
    let decoded = decoded.ok_or_else(|| damaged(CODEC, "no header".into()))?;
    if u64::from(decoded) > limit {
        return Err(DecodeError::OverLimit { limit });
    }
    if decoded == 0 {
        return Ok(Bytes::new());
    }
    // What the codec is configured with matters to its encoder alone.
    let codec = BloscCodec::new(
        BloscCompressor::Zstd,
        0.try_into()
            .map_err(|_| damaged(CODEC, "no level".into()))?,
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

/// The most bytes of a blosc chunk: a signed number of 32 bits, less the header.
const MOST: usize = 0x7fff_ffff - HEADER;

/// Encodes as configured.
pub(super) fn apply(bytes: &[u8], settings: Blosc) -> Result<Vec<u8>, EncodeError> {
    if bytes.len() > MOST {
        return Err(EncodeError::TooLong {
            codec: CODEC,
            most: MOST,
            found: bytes.len(),
        });
    }
    let level = settings.level.try_into();
    let level = level.map_err(|_| failed(CODEC, "no level".into()))?;
    let (size, block) = (Some(settings.typesize), Some(settings.blocksize));
    let codec = BloscCodec::new(settings.compressor, level, block, settings.shuffle, size);
    let codec = codec.map_err(|source| failed(CODEC, Box::new(source)))?;
    let encoded = codec.encode(bytes.into(), &CodecOptions::default());
    let encoded = encoded.map_err(|source| failed(CODEC, Box::new(source)))?;
    Ok(encoded.into_owned())
}

/// A compressor by the name that metadata give it.
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

/// A way to shuffle by the name that metadata give it.
pub(super) fn shuffle(name: &str) -> Option<BloscShuffleMode> {
    Some(match name {
        "noshuffle" => BloscShuffleMode::NoShuffle,
        "shuffle" => BloscShuffleMode::Shuffle,
        "bitshuffle" => BloscShuffleMode::BitShuffle,
        _ => return None,
    })
}
