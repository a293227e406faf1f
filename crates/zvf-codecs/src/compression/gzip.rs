//! The gzip codec.

use std::io::Write;

use bytes::Bytes;
use zvf_model::zarr::Codec;

use crate::error::{DecodeError, EncodeError};

use super::{
    inflate::inflate,
    settings::{Settings, failed, integer},
};

const CODEC: &str = "gzip";

/// The settings of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gzip {
    level: u32,
}

impl Gzip {
    pub(super) fn new(codec: &Codec) -> Settings<Self> {
        let level = integer(codec, "level")?.unwrap_or(5);
        let level = u32::try_from(level).ok().filter(|level| *level <= 9);
        level.map(|level| Self { level }).ok_or("level")
    }

    /// Encodes one member without a timestamp, so that equal payloads give equal chunks.
    pub(super) fn encode(self, bytes: &[u8]) -> Result<Vec<u8>, EncodeError> {
        let level = flate2::Compression::new(self.level);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
        let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
        written.map_err(|source| failed(CODEC, source.into()))
    }
}

/// Decodes all members, within `limit` bytes.
pub(super) fn decode(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    inflate(CODEC, flate2::bufread::MultiGzDecoder::new(&**bytes), limit)
}
