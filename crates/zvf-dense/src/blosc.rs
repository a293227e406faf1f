//! Blosc chunks: bytes cut into blocks, filtered and compressed one by one.
//!
//! Written in Rust throughout but for zstd; no code of C-Blosc is linked. Reads
//! chunks of Blosc 2 and of Blosc 1, writes those of Blosc 2.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | header | 32, or 16 in Blosc 1 | [`ChunkHeader`] |
//! | block starts | 4 · blocks | i32 each: where a block starts, counted from the chunk's first byte, in any order |
//! | dictionary | 4 + n | only with one: i32 n, 1 to 32768, and n bytes |
//! | blocks | | streams: one, or one for each byte of an item |
//!
//! A stream is an i32 and what it says:
//!
//! | i32 | what follows |
//! |---|---|
//! | 0 | nothing; the stream is zeros |
//! | −255 to −1 | a byte with its lowest bit set; the stream repeats the number less its sign |
//! | length of the stream | the stream |
//! | less | the stream, compressed |
//!
//! A chunk stored raw has its bytes right after the header, one that repeats a
//! value that value, and one of zeros, NaN or nothing at all ends there.
//!
//! All numbers are little-endian. A block is decoded without the others, but
//! for the filter delta, which needs the first one as well.
//!
//! ```
//! use zvf_dense::blosc::{BloscChunk, ChunkEncoder, BloscCodec, Decoder, BloscFilter};
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

pub use chunk::{BlockStarts, BloscChunk, Special};
pub use codec::BloscCodec;
pub use decode::{BlockContext, Decoder};
pub(crate) use encode::slots;
pub use encode::{BloscEncodeError, ChunkEncoder, Split};
pub use error::{ChunkError, StreamError};
pub use filter::BloscFilter;
pub use header::{ChunkHeader, HEADER_LEN, SpecialKind};

/// A length that is here of 32 bits in memory.
fn memory_len(len: u32) -> usize {
    // Only of less than 32 bits is it ever anything else: then nothing is as long.
    usize::try_from(len).unwrap_or(usize::MAX)
}
