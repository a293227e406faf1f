//! The fixed first 32 bytes of a file.

use core::ops::Range;

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U32, U64},
};

use super::{HEADER_LEN, MIN_RECORD_LEN, ROW_LEN, SUPERBLOCK_LEN};
use crate::cursor::Cursor;

/// First four bytes of every file.
pub const MAGIC: [u8; 4] = *b"TETR";
/// The one layout version there is.
pub const LAYOUT_VERSION: u32 = 1;
/// Flag bit: the file ends with a footer.
pub const FLAG_FOOTER: u32 = 1;

/// Start of the records, after the superblock and the blob length.
const RECORDS_OFFSET: u64 = SUPERBLOCK_LEN + 8;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSuperblock {
    magic: [u8; 4],
    version: U32,
    datasets: U32,
    flags: U32,
    index_offset: U64,
    index_len: U64,
}

const _: () = assert!(size_of::<RawSuperblock>() == 32);

/// The fixed first 32 bytes: number of datasets and position of the chunk index.
///
/// Validated by [`parse`](Self::parse) or [`new`](Self::new): the lengths are consistent with each
/// other, but not yet with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    datasets: u32,
    flags: u32,
    index_offset: u64,
    index_len: u64,
}

impl Superblock {
    /// Reads the first 32 bytes of `bytes`; the rest is ignored.
    ///
    /// # Errors
    ///
    /// [`SuperblockError`] describes the first invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Self, SuperblockError> {
        use SuperblockError as E;
        let raw: &RawSuperblock = Cursor::new(bytes).take().ok_or(E::Truncated)?;
        if raw.magic != MAGIC {
            return Err(E::Magic(raw.magic));
        }
        if raw.version.get() != LAYOUT_VERSION {
            return Err(E::Version(raw.version.get()));
        }
        Self {
            datasets: raw.datasets.get(),
            flags: raw.flags.get(),
            index_offset: raw.index_offset.get(),
            index_len: raw.index_len.get(),
        }
        .validated()
    }

    /// Creates the superblock of a file with this many `datasets`, whose records take `blob_len`
    /// bytes, and an index of `rows` rows. `flags` is written unchanged: 0 or [`FLAG_FOOTER`].
    ///
    /// # Errors
    ///
    /// [`SuperblockError`] if [`parse`](Self::parse) would reject it.
    pub fn new(
        datasets: u32,
        blob_len: u64,
        rows: u64,
        flags: u32,
    ) -> Result<Self, SuperblockError> {
        use SuperblockError as E;
        let empty = datasets == 0 && blob_len == 0 && rows == 0;
        let (index_offset, index_len) = if empty {
            (SUPERBLOCK_LEN, 0)
        } else {
            let rows_len = rows.checked_mul(ROW_LEN);
            let index_len = rows_len.and_then(|len| len.checked_add(HEADER_LEN));
            let index_offset = blob_len.checked_add(RECORDS_OFFSET);
            (
                index_offset.ok_or(E::IndexOverflow)?,
                index_len.ok_or(E::IndexOverflow)?,
            )
        };
        Self {
            datasets,
            flags,
            index_offset,
            index_len,
        }
        .validated()
    }

    fn validated(self) -> Result<Self, SuperblockError> {
        use SuperblockError as E;
        if self.index_offset.checked_add(self.index_len).is_none() {
            return Err(E::IndexOverflow);
        }
        if self.datasets == 0 {
            let bare = self.index_offset == SUPERBLOCK_LEN && self.index_len == 0;
            return bare.then_some(self).ok_or(E::Empty);
        }
        // Records are multiples of 8 long, so the index follows them without padding.
        let records = self
            .index_offset
            .checked_sub(RECORDS_OFFSET)
            .filter(|len| len % 8 == 0)
            .ok_or(E::IndexOffset(self.index_offset))?;
        if u64::from(self.datasets) > records / MIN_RECORD_LEN {
            return Err(E::Datasets(self.datasets));
        }
        let rows = self.index_len.checked_sub(HEADER_LEN);
        if rows.is_none_or(|len| len % ROW_LEN != 0) {
            return Err(E::IndexLen(self.index_len));
        }
        Ok(self)
    }

    /// Returns the 32 bytes.
    pub fn encode(&self) -> [u8; 32] {
        let raw = RawSuperblock {
            magic: MAGIC,
            version: U32::new(LAYOUT_VERSION),
            datasets: U32::new(self.datasets),
            flags: U32::new(self.flags),
            index_offset: U64::new(self.index_offset),
            index_len: U64::new(self.index_len),
        };
        zerocopy::transmute!(raw)
    }

    /// Returns the number of datasets.
    pub fn datasets(&self) -> u32 {
        self.datasets
    }

    /// Returns the flags as stored. Bits other than [`FLAG_FOOTER`] have no meaning: readers ignore
    /// them and writers set them to 0.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// Returns whether the file ends with a footer.
    pub fn has_footer(&self) -> bool {
        self.flags & FLAG_FOOTER != 0
    }

    /// Returns the range of the dataset directory: the blob length and the records. Empty in a file
    /// without datasets.
    pub fn directory_span(&self) -> Range<u64> {
        SUPERBLOCK_LEN..self.index_offset
    }

    /// Returns the range of the chunk index: its header and its rows. Empty in a file without
    /// datasets. Payloads start after it.
    pub fn index_span(&self) -> Range<u64> {
        // `proven` has verified that the sum fits.
        self.index_offset..self.index_offset.saturating_add(self.index_len)
    }

    /// Returns the number of rows in the index.
    pub fn rows(&self) -> u64 {
        self.index_len.saturating_sub(HEADER_LEN) / ROW_LEN
    }
}

/// The reason why bytes are not a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// Fewer than 32 bytes.
    #[error("bytes end inside the superblock")]
    Truncated,
    /// The bytes do not start with [`MAGIC`].
    #[error("magic is {0:02x?}, not \"TETR\"")]
    Magic([u8; 4]),
    /// A layout version this crate does not read.
    #[error("layout version {0} is not supported, only 1 is")]
    Version(u32),
    /// The end of the index is past 2^64.
    #[error("chunk index offset and length overflow")]
    IndexOverflow,
    /// No datasets, but a directory or an index.
    #[error("there are no datasets, but the chunk index is not empty or does not start at 32")]
    Empty,
    /// The index does not start at a possible end of a directory.
    #[error("chunk index offset {0} is not 40 plus a multiple of 8")]
    IndexOffset(u64),
    /// The records of the declared datasets do not fit before the index.
    #[error("{0} datasets do not fit before the chunk index")]
    Datasets(u32),
    /// The index is not a header followed by whole rows.
    #[error("chunk index length {0} is not 32 plus a multiple of 104")]
    IndexLen(u64),
}
