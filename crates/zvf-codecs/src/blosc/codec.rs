//! The compression codecs of streams.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
#[cfg(feature = "zstd")]
use zstd::bulk::{Compressor, Decompressor};

use super::{StreamError, blosclz, lz4};

/// The compression codec of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BloscCodec {
    /// BloscLZ, the built-in codec of Blosc; decoding only.
    BloscLz,
    /// LZ4 blocks. LZ4HC writes the same format.
    Lz4,
    /// Snappy blocks; decoding only.
    Snappy,
    /// zlib streams.
    Zlib,
    /// zstd frames.
    Zstd,
}

impl BloscCodec {
    /// Returns the codec number in the flags of a chunk.
    pub fn format(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }

    pub(super) fn from_format(format: u8) -> Option<Self> {
        [
            Self::BloscLz,
            Self::Lz4,
            Self::Snappy,
            Self::Zlib,
            Self::Zstd,
        ]
        .into_iter()
        .find(|codec| codec.format() == format)
    }

    /// Returns the codec number in the header of a frame.
    pub fn number(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 => 1,
            Self::Snappy => 3,
            Self::Zlib => 4,
            Self::Zstd => 5,
        }
    }
}

/// A stream decoder that reuses the state of its codecs between streams.
#[derive(Default)]
pub(super) struct StreamDecoder {
    zlib: Option<Decompress>,
    #[cfg(feature = "zstd")]
    zstd: Option<Decompressor<'static>>,
    /// The dictionary that `zstd` was created with.
    #[cfg(feature = "zstd")]
    dictionary: Vec<u8>,
}

impl StreamDecoder {
    /// Decodes at least the first `wanted` bytes of `stream`. If `wanted` covers all of `out`, the
    /// stream must decode to exactly the length of `out`.
    pub(super) fn decode(
        &mut self,
        codec: BloscCodec,
        stream: &[u8],
        dictionary: &[u8],
        wanted: usize,
        out: &mut [u8],
    ) -> Result<(), StreamError> {
        let want = out.len();
        let is_whole = wanted >= want;
        // A complete stream is decoded to its end, so that excess output is detected.
        let until = if is_whole { usize::MAX } else { wanted };
        let found = match codec {
            BloscCodec::BloscLz => blosclz::decode(stream, until, out),
            BloscCodec::Lz4 if dictionary.is_empty() => lz4::decode(stream, until, out),
            BloscCodec::Lz4 => {
                lz4_flex::block::decompress_into_with_dict(stream, out, dictionary).ok()
            }
            BloscCodec::Snappy => snap::raw::Decoder::new().decompress(stream, out).ok(),
            BloscCodec::Zlib => self.inflate(stream, out),
            #[cfg(feature = "zstd")]
            BloscCodec::Zstd => self.zstd(stream, dictionary, out),
            #[cfg(not(feature = "zstd"))]
            BloscCodec::Zstd => zstd_in_rust(stream, dictionary, out),
        };
        match found {
            None => Err(StreamError::Codec),
            Some(found) if found < wanted.min(want) || is_whole && found != want => {
                Err(StreamError::Decoded { found, want })
            }
            Some(_) => Ok(()),
        }
    }

    fn inflate(&mut self, stream: &[u8], out: &mut [u8]) -> Option<usize> {
        let zlib = self.zlib.get_or_insert_with(|| Decompress::new(true));
        zlib.reset(true);
        let status = zlib.decompress(stream, out, FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) => usize::try_from(zlib.total_out()).ok(),
            _ => None,
        }
    }

    /// Decompresses a zstd frame. The capacity of `out` limits the output; the content size in the
    /// frame header is not trusted.
    #[cfg(feature = "zstd")]
    fn zstd(&mut self, stream: &[u8], dictionary: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.dictionary != dictionary {
            self.zstd = None;
            self.dictionary = dictionary.to_vec();
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(Decompressor::with_dictionary(dictionary).ok()?),
        };
        zstd.decompress_to_buffer(stream, out).ok()
    }
}

/// Decompresses a zstd frame without a dictionary, in builds without the C library.
#[cfg(not(feature = "zstd"))]
fn zstd_in_rust(stream: &[u8], dictionary: &[u8], out: &mut [u8]) -> Option<usize> {
    if !dictionary.is_empty() {
        return None;
    }
    #[cfg(feature = "ruzstd")]
    {
        let limit = u64::try_from(out.len()).ok()?;
        let stream = bytes::Bytes::copy_from_slice(stream);
        let decoded = crate::zstd_in_rust::decode(&stream, limit).ok()?;
        out.get_mut(..decoded.len())?.copy_from_slice(&decoded);
        Some(decoded.len())
    }
    #[cfg(not(feature = "ruzstd"))]
    {
        let _ = (stream, out);
        None
    }
}

/// A stream encoder at one compression level.
pub(super) enum StreamEncoder {
    Lz4,
    Zlib(Compress),
    #[cfg(feature = "zstd")]
    Zstd(Compressor<'static>),
}

impl StreamEncoder {
    /// Creates an encoder; `None` for a codec that only decodes.
    pub(super) fn new(codec: BloscCodec, level: u8) -> Option<Self> {
        Some(match codec {
            BloscCodec::BloscLz | BloscCodec::Snappy => return None,
            BloscCodec::Lz4 => Self::Lz4,
            BloscCodec::Zlib => {
                Self::Zlib(Compress::new(Compression::new(level.min(9).into()), true))
            }
            #[cfg(not(feature = "zstd"))]
            BloscCodec::Zstd => return None,
            #[cfg(feature = "zstd")]
            BloscCodec::Zstd => Self::Zstd(Compressor::new(zstd_level(level)).ok()?),
        })
    }

    /// Encodes `stream` into `out`. Returns `None` if the result does not fit, so the length of
    /// `out` sets the acceptable size.
    pub(super) fn encode(&mut self, stream: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Self::Lz4 => lz4_flex::block::compress_into(stream, out).ok(),
            Self::Zlib(zlib) => {
                zlib.reset();
                let status = zlib.compress(stream, out, FlushCompress::Finish);
                match status {
                    Ok(Status::StreamEnd) => usize::try_from(zlib.total_out()).ok(),
                    _ => None,
                }
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => zstd.compress_to_buffer(stream, out).ok(),
        }
    }
}

/// Maps the levels of Blosc to the full range of zstd levels.
#[cfg(feature = "zstd")]
fn zstd_level(level: u8) -> i32 {
    match level {
        0 | 1 => 1,
        2..=7 => i32::from(level) * 2 - 1,
        8 => 20,
        _ => 22,
    }
}
