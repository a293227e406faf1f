//! The chunk index: position and storage of each tile's payload.

use core::{fmt, ops::Range};

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U16, U32, U64},
};

use self::seek::Seek;
use super::{DatasetDirectory, DatasetRecord, MAX_RANK, SUPERBLOCK_LEN};
use crate::cursor::Cursor;

#[cfg(feature = "alloc")]
mod builder;
mod seek;

#[cfg(feature = "alloc")]
pub use builder::{ChunkIndexBuilder, ChunkRowLimit};

/// First four bytes of every chunk index.
pub const INDEX_MAGIC: [u8; 4] = *b"TIDX";
/// The one index version there is.
pub const INDEX_VERSION: u32 = 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 4],
    version: U32,
    rows: U64,
    budget_bps: U16,
    reserved_16: U16,
    budget_bytes: U32,
    reserved_64: U64,
}

#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawRow {
    dataset: U64,
    coordinate: [U64; MAX_RANK],
    offset: U64,
    raw_len: U64,
    stored_len: U64,
    codec: U32,
    reserved: U32,
}

const _: () = assert!(size_of::<RawHeader>() == 32 && size_of::<RawRow>() == 104);

/// A file's chunk index, borrowed from its encoded bytes.
///
/// [`parse`](Self::parse) validates the index by itself; [`check`](Self::check) compares it with
/// the dataset directory and the file.
#[derive(Clone, Copy)]
pub struct ChunkIndex<'a> {
    budget_bps: u16,
    budget_bytes: u32,
    region_len: u64,
    rows: &'a [RawRow],
}

impl<'a> ChunkIndex<'a> {
    /// The index of a file without datasets; it takes no bytes.
    pub const EMPTY: Self = Self {
        budget_bps: 0,
        budget_bytes: 0,
        region_len: 0,
        rows: &[],
    };

    /// Checks `region`, the bytes of [`Superblock::index_span`], and borrows
    /// the index in them. One pass, no allocation.
    ///
    /// Reserved fields are ignored, as in the reference.
    ///
    /// [`Superblock::index_span`]: super::Superblock::index_span
    ///
    /// # Errors
    ///
    /// [`ChunkIndexError`] describes the first invalid part.
    pub fn parse(region: &'a [u8]) -> Result<Self, ChunkIndexError> {
        use ChunkIndexError as E;
        let mut cursor = Cursor::new(region);
        let header: &RawHeader = cursor.take().ok_or(E::Truncated)?;
        if header.magic != INDEX_MAGIC {
            return Err(E::Magic(header.magic));
        }
        if header.version.get() != INDEX_VERSION {
            return Err(E::Version(header.version.get()));
        }
        let count = header.rows.get();
        let rows = usize::try_from(count)
            .ok()
            .and_then(|count| cursor.take_slice::<RawRow>(count))
            .ok_or(E::Rows(count))?;
        if !cursor.rest().is_empty() {
            return Err(E::TrailingBytes(cursor.rest().len()));
        }
        for (row, raw) in (0..count).zip(rows) {
            raw.validate().map_err(|fault| E::Row { row, fault })?;
        }
        Ok(Self {
            budget_bps: header.budget_bps.get(),
            budget_bytes: header.budget_bytes.get(),
            region_len: u64::try_from(region.len()).unwrap_or(u64::MAX),
            rows,
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        u64::try_from(self.rows.len()).unwrap_or(u64::MAX)
    }

    /// Returns whether the index has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes the index takes in the file, its header included.
    pub fn region_len(&self) -> u64 {
        self.region_len
    }

    /// Share of the host's memory that dense reads may use, in basis points (10000 is all of it); 0
    /// selects the default of the engine, 2500. The reference accepts more than 10000.
    pub fn memory_budget_bps(&self) -> u16 {
        self.budget_bps
    }

    /// Returns the number of bytes of memory that dense reads may use; 0 selects
    /// [`memory_budget_bps`](Self::memory_budget_bps); any other value takes precedence.
    pub fn memory_budget_bytes(&self) -> u32 {
        self.budget_bytes
    }

    /// Returns row number `row`. The order of rows is arbitrary: a tile is found by its dataset and
    /// coordinate.
    pub fn get(&self, row: u64) -> Option<ChunkRow<'a>> {
        self.rows.get(usize::try_from(row).ok()?).map(ChunkRow)
    }

    /// Returns every row, in stored order.
    pub fn iter(&self) -> ChunkRows<'a> {
        ChunkRows(self.rows.iter())
    }

    /// Compares the index with the datasets and the file: every row belongs to
    /// a tile of the grid and has its length, every payload lies between the
    /// index and `payload_end`, and there are as many rows as tiles.
    ///
    /// `payload_end` is the smallest offset of a spill; without spills, the start of the footer's
    /// JSON; without a footer, the length of the file. Duplicate rows of a tile and overlapping
    /// payloads are not detected, because that takes memory for all rows; `zvf-validate` checks
    /// them.
    ///
    /// One pass if the rows are grouped by dataset in directory order, as every known writer does.
    /// A row out of order visits at most D/64 records of the directory; callers that can allocate
    /// may collect the datasets and call [`ChunkRow::check`] instead.
    ///
    /// # Errors
    ///
    /// [`ChunkMapError`] describes the first invalid row.
    pub fn check(
        &self,
        directory: &DatasetDirectory<'_>,
        payload_end: u64,
    ) -> Result<(), ChunkMapError> {
        use ChunkMapError as E;
        let mut counts = directory.iter().map(|dataset| dataset.chunk_count());
        let chunks = counts.try_fold(0_u64, |sum, count| sum.checked_add(count?));
        if chunks != Some(self.len()) {
            return Err(E::Rows {
                rows: self.len(),
                chunks,
            });
        }
        let head = SUPERBLOCK_LEN.saturating_add(directory.region_len());
        let payloads = head.saturating_add(self.region_len)..payload_end;
        let mut seek = Seek::new(*directory);
        for (number, row) in (0..self.len()).zip(self) {
            let id = row.dataset();
            let dataset = seek.to(id).ok_or(ChunkFault::Dataset(id));
            let checked = dataset.and_then(|dataset| row.check(&dataset, payloads.clone()));
            checked.map_err(|fault| E::Row { row: number, fault })?;
        }
        Ok(())
    }
}

impl Default for ChunkIndex<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for ChunkIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Compares budgets and rows in order, ignoring reserved fields.
impl PartialEq for ChunkIndex<'_> {
    fn eq(&self, other: &Self) -> bool {
        let budgets = (self.budget_bps, self.budget_bytes);
        budgets == (other.budget_bps, other.budget_bytes) && self.iter().eq(other.iter())
    }
}

impl Eq for ChunkIndex<'_> {}

impl<'a> IntoIterator for ChunkIndex<'a> {
    type Item = ChunkRow<'a>;
    type IntoIter = ChunkRows<'a>;

    fn into_iter(self) -> ChunkRows<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &ChunkIndex<'a> {
    type Item = ChunkRow<'a>;
    type IntoIter = ChunkRows<'a>;

    fn into_iter(self) -> ChunkRows<'a> {
        self.iter()
    }
}

/// Iterator over the rows of an index, created by [`ChunkIndex::iter`].
#[derive(Clone)]
pub struct ChunkRows<'a>(core::slice::Iter<'a, RawRow>);

impl<'a> Iterator for ChunkRows<'a> {
    type Item = ChunkRow<'a>;

    fn next(&mut self) -> Option<ChunkRow<'a>> {
        self.0.next().map(ChunkRow)
    }

    fn nth(&mut self, n: usize) -> Option<ChunkRow<'a>> {
        self.0.nth(n).map(ChunkRow)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for ChunkRows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(ChunkRow)
    }
}

impl ExactSizeIterator for ChunkRows<'_> {}
impl core::iter::FusedIterator for ChunkRows<'_> {}

impl fmt::Debug for ChunkRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl RawRow {
    fn validate(&self) -> Result<(), RowFault> {
        let (raw, stored) = (self.raw_len.get(), self.stored_len.get());
        match self.codec.get() {
            0 if raw != stored => return Err(RowFault::RawLen { raw, stored }),
            0 | 1 => (),
            other => return Err(RowFault::Codec(other)),
        }
        let end = self.offset.get().checked_add(stored);
        end.map(drop).ok_or(RowFault::SpanOverflow)
    }
}

/// Storage of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TetCodec {
    /// Number 0: the tile's bytes themselves.
    Raw,
    /// Number 1: one zstd frame, with or without its decoded size.
    Zstd,
}

impl TetCodec {
    /// Returns the number in a row.
    pub fn number(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
        }
    }
}

/// Position and storage of a tile's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The tile's bytes themselves.
    Raw {
        /// Their position in the file.
        offset: u64,
        /// Their number.
        len: u64,
    },
    /// One zstd frame.
    Zstd {
        /// Its position in the file.
        offset: u64,
        /// Its length.
        stored_len: u64,
        /// The length of the tile it decodes to.
        raw_len: u64,
    },
}

/// One tile's row, borrowed from the index.
#[derive(Clone, Copy)]
pub struct ChunkRow<'a>(&'a RawRow);

impl ChunkRow<'_> {
    /// Id of the dataset: its position in the directory.
    pub fn dataset(&self) -> u64 {
        self.0.dataset.get()
    }

    /// Grid coordinate, first axis first. Slots past the dataset's rank are 0
    /// once [`ChunkIndex::check`] has passed.
    pub fn coordinate(&self) -> [u64; MAX_RANK] {
        self.0.coordinate.map(U64::get)
    }

    /// Returns the position of the payload in the file. Not aligned.
    pub fn payload_offset(&self) -> u64 {
        self.0.offset.get()
    }

    /// Returns the number of bytes of the tile, decoded. A decoder's output is capped at this.
    pub fn raw_len(&self) -> u64 {
        self.0.raw_len.get()
    }

    /// Length of the stored payload. Equals the decoded length if raw.
    pub fn stored_len(&self) -> u64 {
        self.0.stored_len.get()
    }

    /// Returns the range of the payload in the file.
    pub fn payload_span(&self) -> Range<u64> {
        // `prove` has verified that the sum fits.
        let start = self.payload_offset();
        start..start.saturating_add(self.stored_len())
    }

    /// Returns the storage of the payload.
    pub fn codec(&self) -> TetCodec {
        match self.0.codec.get() {
            0 => TetCodec::Raw,
            _ => TetCodec::Zstd,
        }
    }

    /// Returns position and storage of the payload as one value.
    pub fn payload(&self) -> Payload {
        match self.codec() {
            TetCodec::Raw => Payload::Raw {
                offset: self.payload_offset(),
                len: self.raw_len(),
            },
            TetCodec::Zstd => Payload::Zstd {
                offset: self.payload_offset(),
                stored_len: self.stored_len(),
                raw_len: self.raw_len(),
            },
        }
    }

    /// Returns the reserved field as stored: readers ignore it, writers leave it 0.
    pub fn reserved(&self) -> u32 {
        self.0.reserved.get()
    }

    /// Compares the row with its dataset and the region of payloads in the file.
    ///
    /// # Errors
    ///
    /// [`ChunkFault`] describes the first invalid field.
    pub fn check(
        &self,
        dataset: &DatasetRecord<'_>,
        payloads: Range<u64>,
    ) -> Result<(), ChunkFault> {
        use ChunkFault as E;
        let coordinate = self.coordinate();
        let mut tile_len = Some(dataset.dtype().size());
        for (axis, &at) in coordinate.iter().enumerate() {
            if axis >= dataset.rank() {
                if at != 0 {
                    return Err(E::UnusedSlot { axis });
                }
                continue;
            }
            let extent = dataset
                .tile_extent(axis, at)
                .ok_or(E::Coordinate { axis })?;
            tile_len = tile_len.and_then(|len| len.checked_mul(extent));
        }
        if tile_len != Some(self.raw_len()) {
            return Err(E::TileLen(self.raw_len()));
        }
        let span = self.payload_span();
        if span.start < payloads.start || span.end > payloads.end {
            return Err(E::Span {
                start: span.start,
                end: span.end,
            });
        }
        Ok(())
    }
}

impl fmt::Debug for ChunkRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkRow")
            .field("dataset", &self.dataset())
            .field("coordinate", &self.coordinate())
            .field("payload_span", &self.payload_span())
            .field("raw_len", &self.raw_len())
            .field("codec", &self.codec())
            .finish()
    }
}

/// Compares tile and storage, ignoring the reserved field.
impl PartialEq for ChunkRow<'_> {
    fn eq(&self, other: &Self) -> bool {
        let of = |row: &Self| (row.dataset(), row.coordinate(), row.payload_span());
        let how = |row: &Self| (row.raw_len(), row.codec());
        of(self) == of(other) && how(self) == how(other)
    }
}

impl Eq for ChunkRow<'_> {}

/// The reason why bytes are not a chunk index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkIndexError {
    /// The bytes end inside the header.
    #[error("bytes end inside the chunk index header")]
    Truncated,
    /// The bytes do not start with [`INDEX_MAGIC`].
    #[error("chunk index magic is {0:02x?}, not \"TIDX\"")]
    Magic([u8; 4]),
    /// An index version this crate does not read.
    #[error("chunk index version {0} is not supported, only 1 is")]
    Version(u32),
    /// The declared number of rows does not fit in the bytes.
    #[error("{0} rows do not fit in the chunk index")]
    Rows(u64),
    /// Bytes are left after the last row.
    #[error("{0} bytes left after the last row")]
    TrailingBytes(usize),
    /// A row is invalid.
    #[error("row {row}")]
    Row {
        /// Its number.
        row: u64,
        /// Its fault.
        #[source]
        fault: RowFault,
    },
}

/// Fault of a row by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowFault {
    /// The number is not a codec.
    #[error("codec {0} is unknown")]
    Codec(u32),
    /// The lengths of a raw payload differ.
    #[error("a raw payload of {stored} bytes cannot hold {raw}")]
    RawLen {
        /// Bytes decoded.
        raw: u64,
        /// Bytes stored.
        stored: u64,
    },
    /// The payload ends past 2^64.
    #[error("payload offset and length overflow")]
    SpanOverflow,
}

/// The reason why a chunk index does not belong to a directory and a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkMapError {
    /// The number of rows differs from the number of tiles.
    #[error("the index has {rows} rows, but needs one for each tile of the datasets")]
    Rows {
        /// Rows in the index.
        rows: u64,
        /// Tiles of all datasets; `None` past 64 bits.
        chunks: Option<u64>,
    },
    /// A row is invalid.
    #[error("row {row}")]
    Row {
        /// Its number.
        row: u64,
        /// Its fault.
        #[source]
        fault: ChunkFault,
    },
}

/// Fault of a row relative to its dataset and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkFault {
    /// No dataset has this id.
    #[error("there is no dataset {0}")]
    Dataset(u64),
    /// The coordinate is outside the grid.
    #[error("the coordinate is outside the grid on axis {axis}")]
    Coordinate {
        /// The first such axis.
        axis: usize,
    },
    /// A coordinate slot past the rank is not 0.
    #[error("coordinate slot {axis} is past the rank but not 0")]
    UnusedSlot {
        /// The first such slot.
        axis: usize,
    },
    /// The decoded length is not that of the tile.
    #[error("the payload decodes to {0} bytes, which is not the length of the tile")]
    TileLen(u64),
    /// The payload overlaps the index or extends past the end of payloads.
    #[error("payload {start}..{end} is outside the file's payloads")]
    Span {
        /// Its first byte.
        start: u64,
        /// One past its last byte.
        end: u64,
    },
}
