//! Blosc chunks: bytes divided into blocks that are filtered and compressed independently.
//!
//! Everything but zstd is implemented in Rust; no code of C-Blosc is linked. The module reads
//! chunks of Blosc 2 and Blosc 1, and writes chunks of Blosc 2.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | header | 32, or 16 in Blosc 1 | [`ChunkHeader`] |
//! | block starts | 4 · blocks | one i32 per block: its offset from the first byte of the chunk, in any order |
//! | dictionary | 4 + n | optional: i32 n, 1 to 32768, and n bytes |
//! | blocks | | streams: one per block, or one per byte of an item |
//!
//! A stream is an i32 followed by bytes that depend on it:
//!
//! | i32 | content of the stream |
//! |---|---|
//! | 0 | no bytes; the stream is all zeros |
//! | −255 to −1 | a byte with its lowest bit set; the stream repeats the negated number |
//! | length of the stream | the stream, uncompressed |
//! | less | the stream, compressed |
//!
//! In an uncompressed ("raw") chunk, the bytes follow the header directly. In a chunk that repeats
//! one value, that value follows the header. A chunk of zeros, NaN or uninitialized items ends
//! after the header.
//!
//! All numbers are little-endian. Each block is decoded independently, except with the delta
//! filter, which also needs the first block.
//!
//! ```
//! use zvf_codecs::blosc::{BloscChunk, ChunkEncoder, BloscCodec, Decoder, BloscFilter};
//!
//! let items: Vec<u8> = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
//! let encoder = ChunkEncoder::new(BloscCodec::Lz4, 4, 1000).with_filters(&[BloscFilter::Shuffle])?;
//! let stored = encoder.encode(&items)?;
//! assert!(stored.len() < items.len() / 2);
//!
//! let chunk = BloscChunk::parse(&stored)?;
//! let mut block = vec![0; chunk.header().block_len(3)];
//! chunk.decode_block(3, 4, &mut Decoder::default(), &mut block)?;
//! assert_eq!(block, items[3000..]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blosclz;
mod chunk;
mod codec;
mod decode;
mod encode;
mod error;
mod filter;
mod filter_id;
mod header;
mod lz4;
mod repeat;
mod stripes;

pub use chunk::{BlockStarts, BloscChunk, Special};
pub use codec::BloscCodec;
pub use decode::{BlockContext, Decoder};
pub use encode::{BloscEncodeError, ChunkEncoder, Split, slots};
pub use error::{ChunkError, StreamError};
pub use filter::BloscFilter;
pub use header::{ChunkHeader, HEADER_LEN, SpecialKind};
pub use stripes::Stripes;

/// Converts a 32-bit length to a length in memory.
fn memory_len(len: u32) -> usize {
    // The conversion fails only on targets below 32 bits, where no buffer has that length.
    usize::try_from(len).unwrap_or(usize::MAX)
}
