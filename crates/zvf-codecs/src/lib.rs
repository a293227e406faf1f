//! Codecs of Zarr chunks and shards, without I/O.
//!
//! [`ChunkCodecs`] is the codec chain of a chunk, parsed once from the metadata of an array and
//! applied to each chunk. [`ShardLayout`] locates chunks in the shards of an array, and assembles
//! shards. [`blosc`] decodes and encodes single Blosc chunks, without a codec chain.
//!
//! ```
//! use zvf_codecs::{ChunkCodecs, DecodedSize};
//! use zvf_model::{key::Key, zarr::Node};
//!
//! let json = br#"{"zarr_format": 3, "node_type": "array", "shape": [9],
//!   "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}, {"name": "zstd"}],
//!   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [9]}},
//!   "chunk_key_encoding": {"name": "default"}}"#;
//! let node = Node::parse(&Key::parse("a/zarr.json")?, json)?;
//! let codecs = ChunkCodecs::new(&node.as_array().ok_or("a group")?.codecs)?;
//! let chunk = codecs.encode(b"123456789")?;
//! assert_eq!(codecs.decode(chunk, DecodedSize::Exactly(9))?, "123456789");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Chains start with `bytes`, `vlen-bytes` or `vlen-utf8`, or are `sharding_indexed`, which
//! [`ShardLayout`] reads and writes. `crc32c`, `blosc`, `gzip` and `zstd` may follow; each of the
//! last three is a Cargo feature. They decode and encode, except that the feature `ruzstd` only
//! decodes zstd, and that [`blosc`] encodes with LZ4 where metadata names a compressor other than
//! LZ4, zlib and zstd.
//!
//! Every decoder takes a limit and never allocates more, whatever size a chunk declares.

#[deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]
mod blocks;
#[cfg(feature = "blosc")]
pub mod blosc;
#[deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]
mod chain;
#[deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]
mod compression;
mod error;
#[deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]
mod shard;
#[cfg(all(feature = "ruzstd", any(test, not(feature = "zstd"))))]
mod zstd_in_rust;

pub use blocks::{BlocksPrefix, ChunkBlocks};
pub use chain::{ChunkCodecs, DecodedForm, DecodedSize};
pub use error::{CodecsError, DecodeError, EncodeError};
pub use shard::{ShardEntryError, ShardIndex, ShardLayout};
