//! The blocks of a chunk, which are decoded independently of each other.
//!
//! The first bytes of a chunk of Blosc 1 locate its blocks, so that a reader of a few rows fetches and
//! decodes only the blocks that contain them.

use core::ops::Range;

/// The blocks of a chunk, read from its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkBlocks {
    /// The header of the chunk.
    pub(crate) header: [u8; Self::HEADER],
    pub(crate) size: u64,
    /// Decoded size of a block; the last one may be shorter.
    pub(crate) block: u64,
    pub(crate) stored: StoredBlocks,
}

/// The stored bytes of the blocks, relative to the first byte of the chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "blosc"),
    expect(dead_code, reason = "only chunks of Blosc have blocks")
)]
pub(crate) enum StoredBlocks {
    /// The decoded bytes follow the header.
    Raw,
    /// The range of each block.
    At(Vec<Range<u32>>),
}

/// The result of [`ChunkCodecs::blocks`](crate::ChunkCodecs::blocks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlocksPrefix {
    /// The blocks.
    Blocks(ChunkBlocks),
    /// The first bytes of this number are needed.
    Longer(u64),
    /// The chunk is decoded only as a whole.
    Whole,
}

impl ChunkBlocks {
    /// Size of the blocks into which an uncompressed chunk is divided, whatever its header says.
    #[cfg(feature = "blosc")]
    pub(crate) const RAW_BLOCK: u64 = 16 << 10;

    /// The number of bytes that locate the blocks of an uncompressed chunk, and tell the number for
    /// others.
    pub const HEADER: usize = 16;

    /// Returns the decoded size of the chunk in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the memory of the value in bytes.
    pub fn memory(&self) -> usize {
        let ranges = match &self.stored {
            StoredBlocks::Raw => 0,
            StoredBlocks::At(ranges) => ranges.len().saturating_mul(size_of::<Range<u32>>()),
        };
        ranges.saturating_add(size_of::<Self>())
    }

    /// Returns the numbers of the blocks that contain `range` of the decoded bytes.
    pub fn covering(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.min(self.size);
        match range.start.checked_div(self.block) {
            Some(first) if range.start < end => first..end.div_ceil(self.block),
            _ => 0..0,
        }
    }

    /// Returns the decoded bytes of a block; empty past the last block.
    pub fn decoded(&self, block: u64) -> Range<u64> {
        let start = block.saturating_mul(self.block).min(self.size);
        start..start.saturating_add(self.block).min(self.size)
    }

    /// Returns the stored bytes of a block, relative to the first byte of the chunk. A block past the
    /// last one has none.
    pub fn stored(&self, block: u64) -> Range<u64> {
        match &self.stored {
            StoredBlocks::Raw => {
                let header = u64::try_from(Self::HEADER).unwrap_or(u64::MAX);
                let decoded = self.decoded(block);
                decoded.start.saturating_add(header)..decoded.end.saturating_add(header)
            }
            StoredBlocks::At(ranges) => {
                let block = usize::try_from(block).unwrap_or(usize::MAX);
                let range = ranges.get(block).cloned().unwrap_or_default();
                range.start.into()..range.end.into()
            }
        }
    }
}
