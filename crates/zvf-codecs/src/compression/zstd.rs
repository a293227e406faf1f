//! The zstd codec.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe,
};
use zvf_model::zarr::Codec;

use crate::error::{DecodeError, EncodeError, damaged};

use super::{
    crc32c,
    inflate::inflate,
    settings::{Settings, failed, integer},
};

const CODEC: &str = "zstd";
/// Maximum number of bytes that a block of four bytes decodes to.
const MAX_BLOCK_BYTES: u64 = 128 << 10;
/// Maximum size of the buffer that a thread keeps between two frames.
const MAX_CACHED_BUFFER_BYTES: usize = 4 << 20;

/// The settings of the encoder. Level 0 is the default of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zstd {
    level: i32,
    checksum: bool,
}

impl Zstd {
    pub(super) fn new(codec: &Codec) -> Settings<Self> {
        let level = integer(codec, "level")?.unwrap_or(0);
        let level = i32::try_from(level).map_err(|_| "level")?;
        let checksum = match codec.setting("checksum") {
            None => false,
            Some(checksum) => checksum.as_bool().ok_or("checksum")?,
        };
        Ok(Self { level, checksum })
    }

    /// Encodes one frame that declares its size.
    pub(super) fn encode(self, bytes: &[u8]) -> Result<Vec<u8>, EncodeError> {
        thread_local! {
            /// The encoder of the thread and its buffer. Creating its tables takes longer than
            /// compressing a small cell, as does allocating a buffer as long as the cell.
            static ENCODER: RefCell<Option<(Compressor<'static>, Vec<u8>)>> =
                const { RefCell::new(None) };
        }
        let fail = |source: std::io::Error| failed(CODEC, source.into());
        ENCODER.with_borrow_mut(|cached| {
            let (mut encoder, mut frame) = match cached.take() {
                Some(cached) => cached,
                None => (Compressor::new(self.level).map_err(fail)?, Vec::new()),
            };
            encoder.set_compression_level(self.level).map_err(fail)?;
            encoder.include_checksum(self.checksum).map_err(fail)?;
            frame.clear();
            frame.reserve(zstd_safe::compress_bound(bytes.len()));
            // An encoder that fails is dropped, not cached again.
            encoder
                .compress_to_buffer(bytes, &mut frame)
                .map_err(fail)?;
            // Room for the checksum, which usually follows.
            let mut encoded = Vec::with_capacity(frame.len().saturating_add(crc32c::SIZE));
            encoded.extend_from_slice(&frame);
            frame.shrink_to(MAX_CACHED_BUFFER_BYTES);
            *cached = Some((encoder, frame));
            Ok(encoded)
        })
    }
}

/// Decodes all frames, within `limit` bytes.
pub(super) fn decode(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    thread_local! {
        /// The decoder of the thread. Its tables take 150 kB, which small cells would otherwise
        /// spend their time on.
        static DECODER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let declared = zstd_safe::get_frame_content_size(bytes)
        .map_err(|_| damaged(CODEC, "not a frame".into()))?;
    if let Some(declared) = declared {
        let encoded = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let possible = encoded.saturating_mul(MAX_BLOCK_BYTES / 4);
        // A size that the frame cannot decode to is damage, not a cell above the budget.
        if declared > possible {
            return Err(damaged(
                CODEC,
                "the declared size is impossible for a frame of this length".into(),
            ));
        }
        if declared > limit {
            return Err(DecodeError::OverLimit { limit });
        }
        let single = zstd_safe::find_frame_compressed_size(bytes) == Ok(bytes.len());
        if let (true, Ok(size)) = (single, usize::try_from(declared)) {
            let decoded = DECODER
                .with_borrow_mut(|cached| match cached {
                    Some(decoder) => decoder.decompress(bytes, size),
                    none => none.insert(Decompressor::new()?).decompress(bytes, size),
                })
                .map_err(|source| damaged(CODEC, source.into()))?;
            return Ok(decoded.into());
        }
    }
    let stream = zstd::stream::read::Decoder::with_buffer(&**bytes)
        .map_err(|source| damaged(CODEC, source.into()))?;
    inflate(CODEC, stream, limit)
}
