//! The crc32c codec: bytes followed by their checksum.

use bytes::Bytes;

use crate::error::{DecodeError, damaged};

/// Size of the checksum.
pub(crate) const SIZE: usize = 4;

/// Checks the checksum and returns the bytes before it.
pub(crate) fn decode(bytes: &Bytes) -> Result<Bytes, DecodeError> {
    let Some((rest, stored)) = bytes.split_last_chunk::<SIZE>() else {
        return Err(damaged("crc32c", "shorter than a checksum".into()));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), ::crc32c::crc32c(rest));
    if stored != computed {
        return Err(DecodeError::Checksum { stored, computed });
    }
    Ok(bytes.slice(..rest.len()))
}

/// Appends the checksum to the bytes.
pub(crate) fn encode(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = ::crc32c::crc32c(&bytes);
    // Exactly, because growing would double the capacity.
    bytes.reserve_exact(SIZE);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}
