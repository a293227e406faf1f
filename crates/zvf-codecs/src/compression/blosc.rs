//! The blosc codec: chunks of Blosc 1, with the settings that a Zarr array has for them.
//!
//! A chunk names its compressor and filter itself, so the settings matter to the encoder only.

use std::cell::RefCell;

use bytes::Bytes;
use zvf_model::zarr::Codec;

use crate::{
    blocks::{BlocksPrefix, ChunkBlocks, StoredBlocks},
    blosc::{
        BlockContext, BlockStarts, BloscChunk, BloscCodec, BloscFilter, ChunkEncoder, ChunkError,
        ChunkHeader, Decoder,
    },
    error::{DecodeError, EncodeError, damaged},
};

use super::settings::{Settings, failed, integer};

const CODEC: &str = "blosc";

/// Maximum length of a payload: the size of a chunk is a signed 32-bit number and includes the
/// header.
const MAX_BYTES: usize = 0x7fff_ffff - 16;

/// Maximum number of bytes that a stored byte decodes to: a zstd block of 4 bytes has 128 KiB.
const MAX_RATIO: u64 = (128 << 10) / 4;

/// Maximum size of the buffer that a thread keeps between two chunks.
const MAX_CACHED_BUFFER_BYTES: usize = 4 << 20;

thread_local! {
    /// The decoder of the thread, which keeps its buffer and the tables of its codecs.
    static DECODER: RefCell<Decoder> = RefCell::default();
}

/// Parses the header of a chunk of `stored` bytes that decodes to at most `limit` bytes.
fn parse_header(bytes: &[u8], stored: u64, limit: u64) -> Result<ChunkHeader, DecodeError> {
    let header = ChunkHeader::parse(bytes).map_err(|source| damaged(CODEC, Box::new(source)))?;
    if u64::from(header.nbytes()) > limit {
        return Err(DecodeError::OverLimit { limit });
    }
    if u64::from(header.nbytes()) > u64::from(header.cbytes()).saturating_mul(MAX_RATIO) {
        return Err(damaged(
            CODEC,
            "the declared size is impossible for a chunk of this length".into(),
        ));
    }
    if u64::from(header.cbytes()) != stored {
        let text = format!(
            "the chunk has {stored} bytes, its header says {}",
            header.cbytes()
        );
        return Err(damaged(CODEC, text.into()));
    }
    Ok(header)
}

/// Reads the blocks of a chunk of `stored` bytes from its first bytes.
pub(crate) fn blocks(prefix: &[u8], stored: u64) -> Result<BlocksPrefix, DecodeError> {
    let fail = |source| damaged(CODEC, Box::new(source));
    let parsed = parse_header(prefix, stored, u64::MAX)?;
    // Chunks of Blosc 2, which Zarr does not have, may need a dictionary or another block.
    let Some(first) = prefix.first_chunk().filter(|_| !parsed.is_blosc2()) else {
        return Ok(BlocksPrefix::Whole);
    };
    let length = parsed.prefix_len();
    if prefix.len() < length {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        return Ok(BlocksPrefix::Longer(length));
    }
    let (block, ranges) = if parsed.is_raw() {
        (ChunkBlocks::RAW_BLOCK, StoredBlocks::Raw)
    } else {
        let starts = BlockStarts::parse(&parsed, prefix).map_err(fail)?;
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let range = |block| {
            let found = starts.span(&parsed, block);
            let span = found.ok_or_else(|| fail(ChunkError::Block(block)))?;
            Ok(offset(span.start)..offset(span.end))
        };
        let ranges: Result<_, DecodeError> = (0..parsed.block_count()).map(range).collect();
        (parsed.blocksize().into(), StoredBlocks::At(ranges?))
    };
    Ok(BlocksPrefix::Blocks(ChunkBlocks {
        header: *first,
        size: parsed.nbytes().into(),
        block,
        stored: ranges,
    }))
}

/// Decodes one block of a chunk of Blosc 1.
pub(super) fn decode_block(
    blocks: &ChunkBlocks,
    block: u64,
    stored: &[u8],
    out: &mut [u8],
) -> Result<(), DecodeError> {
    let fail = |source| damaged(CODEC, Box::new(source));
    let parsed = ChunkHeader::parse(&blocks.header).map_err(fail)?;
    let number = u32::try_from(block).map_err(|_| fail(ChunkError::Block(u32::MAX)))?;
    let context = BlockContext {
        typesize: parsed.typesize().into(),
        ..BlockContext::default()
    };
    DECODER.with_borrow_mut(|decoder| {
        let done = decoder.block(&parsed, number, stored, &context, out);
        decoder.shrink_to(MAX_CACHED_BUFFER_BYTES);
        done.map_err(fail)
    })
}

/// Decodes a chunk, within `limit` bytes. The header declares the decoded size, which is allocated
/// exactly. Undoing a shuffle takes a buffer of one block besides.
pub(super) fn decode(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    let fail = |source| damaged(CODEC, Box::new(source));
    let stored = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let header = parse_header(bytes, stored, limit)?;
    let chunk = BloscChunk::parse(bytes).map_err(fail)?;
    let len = usize::try_from(header.nbytes()).map_err(|_| DecodeError::OverLimit { limit })?;
    let mut decoded = Vec::new();
    let reserved = decoded.try_reserve_exact(len);
    reserved.map_err(|_| DecodeError::OverLimit { limit })?;
    decoded.resize(len, 0);
    let typesize = u32::from(header.typesize());
    let done = DECODER.with_borrow_mut(|decoder| {
        let done = chunk.decode(typesize, decoder, &mut decoded);
        decoder.shrink_to(MAX_CACHED_BUFFER_BYTES);
        done
    });
    done.map_err(fail)?;
    Ok(decoded.into())
}

/// The settings of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blosc {
    compressor: BloscCodec,
    level: u8,
    shuffle: Option<BloscFilter>,
    typesize: u8,
    blocksize: u32,
}

impl Blosc {
    pub(super) fn new(codec: &Codec) -> Settings<Self> {
        let text = |field: &'static str, or: &'static str| match codec.setting(field) {
            None => Ok(or),
            Some(text) => text.as_str().ok_or(field),
        };
        let size = |field: &'static str, or: u32| match integer(codec, field)? {
            None => Ok(or),
            Some(size) => u32::try_from(size).map_err(|_| field),
        };
        let level = integer(codec, "clevel")?.unwrap_or(5);
        let level = u8::try_from(level).ok().filter(|level| *level <= 9);
        // C-Blosc stores the size of an item in a byte and takes larger sizes for 1.
        let typesize = u8::try_from(size("typesize", 1)?).ok();
        Ok(Self {
            compressor: compressor(text("cname", "zstd")?).ok_or("cname")?,
            level: level.ok_or("clevel")?,
            shuffle: shuffle(text("shuffle", "noshuffle")?)?,
            typesize: typesize.filter(|size| *size > 0).ok_or("typesize")?,
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
        let fail = |source| failed(CODEC, Box::new(source));
        let encoder = ChunkEncoder::blosc1(
            self.compressor,
            self.shuffle,
            self.typesize,
            self.blocksize,
            bytes.len(),
        )
        .map_err(fail)?
        .with_level(self.level);
        encoder.encode(bytes).map_err(fail)
    }
}

/// Returns the compressor that writes chunks for a name in metadata.
///
/// LZ4 stands in for compressors that are only decoded here. A chunk names its own compressor, so
/// every reader decodes it.
fn compressor(name: &str) -> Option<BloscCodec> {
    Some(match name {
        "lz4" | "lz4hc" | "blosclz" | "snappy" => BloscCodec::Lz4,
        "zlib" => BloscCodec::Zlib,
        "zstd" => BloscCodec::Zstd,
        _ => return None,
    })
}

/// Returns the filter of a name in metadata.
fn shuffle(name: &str) -> Settings<Option<BloscFilter>> {
    match name {
        "noshuffle" => Ok(None),
        "shuffle" => Ok(Some(BloscFilter::Shuffle)),
        "bitshuffle" => Ok(Some(BloscFilter::BitShuffle)),
        _ => Err("shuffle"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes and decodes a chunk of one block. Returns the size of the buffer that the thread
    /// keeps.
    fn kept_after(filter: Option<BloscFilter>, len: usize) -> usize {
        let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
        let blocksize = u32::try_from(len).unwrap();
        let encoder = ChunkEncoder::blosc1(BloscCodec::Zstd, filter, 8, blocksize, len).unwrap();
        let chunk = encoder.with_level(1).encode(&bytes).unwrap();
        let header = ChunkHeader::parse(&chunk).unwrap();
        assert!(!header.is_raw() && header.block_len(0) == len);
        DECODER.take();
        let decoded = decode(&chunk.into(), u64::from(blocksize)).unwrap();
        assert!(decoded == bytes);
        DECODER.with_borrow(Decoder::capacity)
    }

    #[test]
    fn a_thread_keeps_a_small_buffer() {
        for filter in [BloscFilter::Shuffle, BloscFilter::BitShuffle] {
            let kept = kept_after(Some(filter), 6 << 20);
            assert!(kept <= MAX_CACHED_BUFFER_BYTES, "{kept}");
            assert!(kept_after(Some(filter), 1 << 20) >= 1 << 20);
        }
        // Without a filter, blocks are decoded in place.
        assert_eq!(kept_after(None, 6 << 20), 0);
    }
}
