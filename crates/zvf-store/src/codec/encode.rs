//! Applying codecs, and why that fails.

use core::error::Error;
use std::{borrow::Cow, cell::RefCell, io::Write, sync::Arc};

use zstd::bulk::Compressor;
use zvf_format::vlen::{VlenFrameError, VlenFrameLimit};

use super::{
    compression::Compression,
    settings::{Gzip, Settings, Zstd},
};

/// Why the payload of a cell cannot be encoded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The elements of a cell have a fixed size, and this is another.
    #[error("a cell takes {expected} bytes, not {found}")]
    Size {
        /// What its elements take.
        expected: u64,
        /// What was given.
        found: u64,
    },
    /// The payload is more than a frame holds.
    #[error("a payload that no frame holds")]
    PayloadTooLong(#[from] VlenFrameLimit),
    /// The payload of a cell of several byte strings is not the frame of them.
    #[error("no frame of the byte strings of a cell")]
    Frame(#[from] VlenFrameError),
    /// The frame does not hold as many byte strings as the cell.
    #[error("a cell takes {expected} byte strings, not {found}")]
    ItemCount {
        /// What the cell has.
        expected: u64,
        /// What the frame holds.
        found: u32,
    },
    /// A codec's configuration is none that its encoder follows.
    #[error("the {field:?} of codec {codec:?} is not supported for writing")]
    Configuration {
        /// The codec.
        codec: &'static str,
        /// The field.
        field: &'static str,
    },
    /// More bytes than the codec takes at once.
    #[error("codec {codec:?} takes at most {most} bytes, not {found}")]
    TooLong {
        /// The codec.
        codec: &'static str,
        /// The most it takes.
        most: usize,
        /// What it was to take.
        found: usize,
    },
    /// The codec's library failed.
    #[error("codec {codec:?} failed")]
    Codec {
        /// The codec.
        codec: &'static str,
        /// What its library says.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A shard of an array that has none.
    #[error("the array is not sharded")]
    NotSharded,
    /// The shard has no cell of this number.
    #[error("a shard has {cells} cells, none of number {number}")]
    NoSuchCell {
        /// The number given.
        number: u64,
        /// How many there are.
        cells: u64,
    },
    /// The shard was given two cells of this number.
    #[error("cell {0} of a shard is given twice")]
    DuplicateCell(u64),
    /// The shard would have more bytes than memory.
    #[error("the shard is too large")]
    ShardSize,
}

impl Compression {
    /// What [`undo`](Self::undo) undoes.
    pub(crate) fn apply(self, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, EncodeError> {
        match self {
            Self::Zstd(settings) => zstd(&bytes, known("zstd", settings)?),
            Self::Gzip(settings) => gzip(&bytes, known("gzip", settings)?),
            #[cfg(feature = "blosc")]
            Self::Blosc(settings) => super::blosc::apply(&bytes, known("blosc", settings)?),
            Self::Crc32c => Ok(crc32c(bytes.into_owned())),
        }
    }
}

fn known<T>(codec: &'static str, settings: Settings<T>) -> Result<T, EncodeError> {
    settings.map_err(|field| EncodeError::Configuration { codec, field })
}

/// Bytes of a checksum, which mostly follows.
const CHECKSUM: usize = 4;

/// The bytes, and their checksum after them.
pub(crate) fn crc32c(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = ::crc32c::crc32c(&bytes);
    // Not twice as many as there are.
    bytes.reserve_exact(CHECKSUM);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What is made in memory that is kept, at most: more is given back.
const KEPT: usize = 4 << 20;

/// One frame that says its size.
fn zstd(bytes: &[u8], settings: Zstd) -> Result<Vec<u8>, EncodeError> {
    thread_local! {
        /// Its tables take longer to make than a small cell to compress, and so does memory
        /// for a frame that might be as long as the cell.
        static ENCODER: RefCell<Option<(Compressor<'static>, Vec<u8>)>> =
            const { RefCell::new(None) };
    }
    let fail = |source: std::io::Error| failed("zstd", source.into());
    ENCODER.with_borrow_mut(|kept| {
        let (mut encoder, mut frame) = match kept.take() {
            Some(kept) => kept,
            None => (Compressor::new(settings.level).map_err(fail)?, Vec::new()),
        };
        encoder
            .set_compression_level(settings.level)
            .map_err(fail)?;
        encoder.include_checksum(settings.checksum).map_err(fail)?;
        frame.clear();
        frame.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        // One that failed is not used again.
        encoder
            .compress_to_buffer(bytes, &mut frame)
            .map_err(fail)?;
        let mut encoded = Vec::with_capacity(frame.len().saturating_add(CHECKSUM));
        encoded.extend_from_slice(&frame);
        frame.shrink_to(KEPT);
        *kept = Some((encoder, frame));
        Ok(encoded)
    })
}

/// One member without a time, so that equal payloads are equal chunks.
fn gzip(bytes: &[u8], settings: Gzip) -> Result<Vec<u8>, EncodeError> {
    let level = flate2::Compression::new(settings.level);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_err(|source| failed("gzip", source.into()))
}

pub(super) fn failed(codec: &'static str, source: Box<dyn Error + Send + Sync>) -> EncodeError {
    EncodeError::Codec {
        codec,
        source: source.into(),
    }
}
