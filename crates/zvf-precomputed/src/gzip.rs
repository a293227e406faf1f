//! The gzip encoding of shards.

use std::io::{Read, Write};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};

/// Float coordinates compress little; higher levels cost three times the time for 1 % of the size.
const LEVEL: u32 = 2;

pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    // Writing into a vector does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Decompresses at most `limit` bytes; `None` if the bytes are damaged or larger.
pub(crate) fn decompress(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut decompressed = Vec::new();
    let mut decoder = GzDecoder::new(bytes).take(limit.saturating_add(1));
    decoder.read_to_end(&mut decompressed).ok()?;
    let size = u64::try_from(decompressed.len()).ok()?;
    (size <= limit).then_some(decompressed)
}
