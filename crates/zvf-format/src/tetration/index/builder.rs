//! Collects rows and encodes the chunk index.

use alloc::vec::Vec;

use zerocopy::{
    IntoBytes,
    little_endian::{U16, U32, U64},
};

use super::{ChunkRow, INDEX_MAGIC, INDEX_VERSION, MAX_RANK, Payload, RawHeader, RawRow, TetCodec};

/// Collects rows and encodes the chunk index. Rows keep the order in which they were pushed;
/// reserved fields and unused coordinate slots are 0.
///
/// Readers accept any order. The reference writes datasets in directory order and the tiles of each
/// in row-major order of the grid.
#[derive(Clone, Debug, Default)]
pub struct ChunkIndexBuilder {
    budget_bps: U16,
    budget_bytes: U32,
    rows: Vec<RawRow>,
}

/// A row that the index cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkRowLimit {
    /// The coordinate has more than eight axes.
    #[error("a coordinate has at most 8 axes, not {0}")]
    Rank(usize),
    /// The payload ends past 2^64.
    #[error("payload offset and length overflow")]
    SpanOverflow,
}

impl ChunkIndexBuilder {
    /// Sets the share of the host's memory for dense reads, in basis points.
    pub fn memory_budget_bps(&mut self, bps: u16) -> &mut Self {
        self.budget_bps = U16::new(bps);
        self
    }

    /// Sets the bytes of memory for dense reads.
    pub fn memory_budget_bytes(&mut self, bytes: u32) -> &mut Self {
        self.budget_bytes = U32::new(bytes);
        self
    }

    /// Appends the row of one tile.
    ///
    /// # Errors
    ///
    /// [`ChunkRowLimit`] if a limit of the format is exceeded.
    pub fn push(
        &mut self,
        dataset: u64,
        coordinate: &[u64],
        payload: Payload,
    ) -> Result<&mut Self, ChunkRowLimit> {
        let (codec, offset, raw_len, stored_len) = match payload {
            Payload::Raw { offset, len } => (TetCodec::Raw, offset, len, len),
            Payload::Zstd {
                offset,
                stored_len,
                raw_len,
            } => (TetCodec::Zstd, offset, raw_len, stored_len),
        };
        if coordinate.len() > MAX_RANK {
            return Err(ChunkRowLimit::Rank(coordinate.len()));
        }
        if offset.checked_add(stored_len).is_none() {
            return Err(ChunkRowLimit::SpanOverflow);
        }
        let mut slots = [U64::ZERO; MAX_RANK];
        for (slot, &at) in slots.iter_mut().zip(coordinate) {
            slot.set(at);
        }
        self.rows.push(RawRow {
            dataset: U64::new(dataset),
            coordinate: slots,
            offset: U64::new(offset),
            raw_len: U64::new(raw_len),
            stored_len: U64::new(stored_len),
            codec: U32::new(codec.number()),
            reserved: U32::ZERO,
        });
        Ok(self)
    }

    /// Appends a row taken from another index.
    ///
    /// # Errors
    ///
    /// [`ChunkRowLimit`] says which limit of the format it breaks; a row of a parsed index always
    /// fits.
    pub fn push_row(&mut self, row: ChunkRow<'_>) -> Result<&mut Self, ChunkRowLimit> {
        self.push(row.dataset(), &row.coordinate(), row.payload())
    }

    /// Encodes the rows pushed so far. A file without datasets has no index rather than an index
    /// without rows.
    pub fn finish(&self) -> Vec<u8> {
        let header = RawHeader {
            magic: INDEX_MAGIC,
            version: U32::new(INDEX_VERSION),
            rows: U64::new(u64::try_from(self.rows.len()).unwrap_or(u64::MAX)),
            budget_bps: self.budget_bps,
            reserved_16: U16::ZERO,
            budget_bytes: self.budget_bytes,
            reserved_64: U64::ZERO,
        };
        [header.as_bytes(), self.rows.as_bytes()].concat()
    }
}
