//! Bounded reading of a decompression stream.

use std::io::{self, Read};

use bytes::Bytes;

use crate::error::{DecodeError, damaged};

/// Reads all of a stream, which may not be longer than `limit`.
pub(super) fn inflate(
    codec: &'static str,
    stream: impl Read,
    limit: u64,
) -> Result<Bytes, DecodeError> {
    let mut decoded = Vec::new();
    // One byte above the limit shows that the stream is too long.
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
