//! Blosc, through zarrs.

use bytes::Bytes;
use zarrs::array::{
    BytesRepresentation,
    codec::{
        BloscCodec, BloscShuffleMode,
        api::{BytesToBytesCodecTraits, CodecOptions},
    },
};

use super::compression::{DecodeError, damaged};

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
        zarrs::array::codec::BloscCompressor::Zstd,
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
