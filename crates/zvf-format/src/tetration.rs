//! Tetration (`.tet`), layout version 1: dense arrays divided into tiles, in one file.
//!
//! | part | offset | size in bytes | content |
//! |---|---|---|---|
//! | superblock | 0 | 32 | number of datasets, position of the index |
//! | dataset directory | 32 | 8 + B | names, types and shapes |
//! | chunk index | align8(40 + B) | 32 + 104 · N | one row for each tile |
//! | payloads | anywhere after the index | | the tiles' bytes |
//! | spills | after the payloads | | JSON the footer refers to |
//! | footer | to the end of the file | J + 16 | JSON and its frame |
//!
//! All numbers are little-endian. The length of every directory record is a multiple of 8, so 40 +
//! B is aligned and there is never a gap between directory and index. A file without datasets is
//! the superblock alone, with neither directory nor index.
//!
//! # Superblock
//!
//! | part | offset | type | content |
//! |---|---|---|---|
//! | magic | 0 | 4 bytes | `TETR` |
//! | version | 4 | u32 | 1 |
//! | datasets | 8 | u32 | D |
//! | flags | 12 | u32 | bit 0: there is a footer. Other bits: 0 on write, ignored on read |
//! | index offset | 16 | u64 | align8(40 + B); 32 when D = 0 |
//! | index length | 24 | u64 | 32 + 104 · N; 0 when D = 0 |
//!
//! # Dataset directory
//!
//! A u64, B, then D records that fill B bytes. A dataset's id is its position.
//!
//! | part | offset in record | size | content |
//! |---|---|---|---|
//! | name length | 0 | 4 | u32, L |
//! | dtype | 4 | 4 | u32 tag: 1 f32, 2 f64, 3 i32, 4 i64, 5 u8, 6 u16, 7 i16, 8 u32, 9 f16, 10 u64 |
//! | rank | 8 | 4 | u32, R, 1 to 8 |
//! | reserved | 12 | 4 | u32, 0 on write, ignored on read |
//! | name | 16 | L | UTF-8, no terminator |
//! | padding | 16 + L | 0 to 7 | up to a multiple of 8; 0 on write, ignored on read |
//! | shape | | 8 · R | u64 each, not 0 |
//! | chunk shape | | 8 · R | u64 each, not 0; may exceed the shape |
//!
//! # Chunk index
//!
//! | part | offset | type | content |
//! |---|---|---|---|
//! | magic | 0 | 4 bytes | `TIDX` |
//! | version | 4 | u32 | 1 |
//! | rows | 8 | u64 | N |
//! | memory budget | 16 | u16 | basis points of the host's memory; 0: engine default, 2500 |
//! | reserved | 18 | u16 | 0 on write, ignored on read |
//! | memory budget | 20 | u32 | bytes; 0: use the basis points |
//! | reserved | 24 | u64 | 0 on write, ignored on read |
//!
//! Then N rows of 104 bytes each:
//!
//! | part | offset in row | type | content |
//! |---|---|---|---|
//! | dataset | 0 | u64 | id, below D |
//! | coordinate | 8 | eight u64 | position of the tile in its grid; slots past the rank are 0 |
//! | payload offset | 72 | u64 | from the start of the file |
//! | raw length | 80 | u64 | bytes of the tile |
//! | stored length | 88 | u64 | bytes of the payload |
//! | codec | 96 | u32 | 0: raw, both lengths the same. 1: one zstd frame |
//! | reserved | 100 | u32 | 0 on write, ignored on read |
//!
//! # Tiles
//!
//! The grid has ⌈shape / chunk shape⌉ tiles on each axis. Every tile of every dataset has exactly
//! one row; the order of rows is arbitrary. [`ChunkIndex::check`] compares the number of rows with
//! the grids; checking that no tile has two rows and that payloads do not overlap needs memory and
//! is left to callers that keep a map of the rows. Tiles at the edge are truncated, never padded:
//! the extent of the tile at position `i` is min(chunk, shape − i · chunk). A decoded payload is
//! the tile's elements, row-major over that extent, little-endian. Payloads need not be aligned, in
//! order, or next to each other. To read a tile, compute its coordinate, find the row with that
//! dataset and coordinate, and read the range in the row.
//!
//! # Footer
//!
//! Present if flag bit 0 is set; read from the end of the file.
//!
//! | part | size | content |
//! |---|---|---|
//! | JSON | J | one object |
//! | JSON length | 8 | u64, J |
//! | version | 4 | u32, 1 or 2 |
//! | magic | 4 | `THST` |
//!
//! The JSON may contain the positions of spills: `metadata_ref`, and in version 2 also
//! `zone_maps_ref` and `secondary_index_ref`, each an object of `offset` and `len`. Payloads end at
//! the smallest of these offsets. This module does not parse JSON, so [`TetLayout::parse`] allows
//! payloads up to the start of the JSON.
//!
//! # Refused
//!
//! Other magics, versions, dtypes, ranks and codecs; extents of 0; names that are not UTF-8; a
//! directory that its records do not fill, D that cannot fit (a record takes 32 bytes or more), an
//! index whose position or length differs from the superblock; rows of unknown datasets or outside
//! their grid, with used slots past the rank, with lengths that are not the tile's, or with
//! payloads outside the file's payload region; a raw payload whose lengths differ.
//!
//! ```
//! use zvf_format::tetration::TetLayout;
//! # #[cfg(feature = "alloc")] {
//! use zvf_format::tetration::{
//!     ChunkIndexBuilder, DatasetDirectoryBuilder, TetDtype, Payload, Superblock,
//! };
//!
//! let mut datasets = DatasetDirectoryBuilder::default();
//! datasets.push("a", TetDtype::U16, &[5], &[4])?;
//! let directory = datasets.finish();
//! // 32 + 8 + 40 bytes up to the index, 32 + 2 · 104 bytes of index.
//! let mut index = ChunkIndexBuilder::default();
//! index.push(0, &[0], Payload::Raw { offset: 320, len: 8 })?;
//! index.push(0, &[1], Payload::Raw { offset: 328, len: 2 })?;
//! let superblock = Superblock::new(1, 40, 2, 0)?;
//! let parts = [&superblock.encode()[..], &directory, &index.finish(), &[0; 10]];
//! let file = parts.concat();
//!
//! let layout = TetLayout::parse(&file)?;
//! let (id, dataset) = layout.directory().find("a").ok_or("no such dataset")?;
//! assert_eq!((id, dataset.dtype()), (0, TetDtype::U16));
//! assert!(dataset.grid().eq([2]));
//! assert_eq!(dataset.tile_byte_len(&[1]), Some(2), "cut off at the edge");
//! let row = layout.index().get(1).ok_or("no such row")?;
//! assert_eq!(row.payload_span(), 328..330);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod directory;
mod footer;
mod index;
mod superblock;

pub use directory::{
    DatasetDirectory, DatasetFault, DatasetRecord, Datasets, DirectoryError, Extents, TetDtype,
};
#[cfg(feature = "alloc")]
pub use directory::{DatasetDirectoryBuilder, DatasetLimit};
pub use footer::{FOOTER_MAGIC, Footer, FooterError, FooterTail, FooterVersion};
pub use index::{
    ChunkFault, ChunkIndex, ChunkIndexError, ChunkMapError, ChunkRow, ChunkRows, INDEX_MAGIC,
    INDEX_VERSION, Payload, RowFault, TetCodec,
};
#[cfg(feature = "alloc")]
pub use index::{ChunkIndexBuilder, ChunkRowLimit};
pub use superblock::{FLAG_FOOTER, LAYOUT_VERSION, MAGIC, Superblock, SuperblockError};

use core::ops::Range;

/// Maximum number of axes of a dataset.
pub const MAX_RANK: usize = 8;
/// Bytes of the superblock.
pub const SUPERBLOCK_LEN: u64 = 32;
/// Length of the end of a file that locates its footer.
pub const FOOTER_TAIL_LEN: u64 = 16;

/// Bytes of the chunk index before its rows.
const HEADER_LEN: u64 = 32;
/// Bytes of one row.
const ROW_LEN: u64 = 104;
/// A record with an empty name and one axis.
const MIN_RECORD_LEN: u64 = 32;

/// A whole file in memory, mapped or read, with all parts validated.
///
/// Remote readers parse the parts one by one instead: the superblock, then
/// directory and index in one range, and the footer from the end.
#[derive(Clone, Copy, Debug)]
pub struct TetLayout<'a> {
    superblock: Superblock,
    directory: DatasetDirectory<'a>,
    index: ChunkIndex<'a>,
    footer: Option<Footer<'a>>,
    payload_end: u64,
}

impl<'a> TetLayout<'a> {
    /// Checks all parts of `file` and their consistency, including the positions of payloads; the
    /// payloads themselves are not read.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] describes the first invalid part.
    pub fn parse(file: &'a [u8]) -> Result<Self, LayoutError> {
        let superblock = Superblock::parse(file)?;
        let regions =
            slice(file, superblock.directory_span()).zip(slice(file, superblock.index_span()));
        let (records, rows) = regions.ok_or(LayoutError::IndexSpan)?;
        let directory = DatasetDirectory::parse(records, superblock.datasets())?;
        let index = match superblock.datasets() {
            0 => ChunkIndex::EMPTY,
            _ => ChunkIndex::parse(rows)?,
        };
        let file_len = u64::try_from(file.len()).unwrap_or(u64::MAX);
        let index_end = superblock.index_span().end;
        let (footer, payload_end) = if superblock.has_footer() {
            let tail = slice(file, index_end..file_len).unwrap_or_default();
            let footer = Footer::parse(tail)?;
            let payload_end = file_len.checked_sub(footer.tail().footer_len());
            (Some(footer), payload_end.unwrap_or(index_end))
        } else {
            (None, file_len)
        };
        index.check(&directory, payload_end)?;
        Ok(Self {
            superblock,
            directory,
            index,
            footer,
            payload_end,
        })
    }

    /// Returns the first 32 bytes.
    pub fn superblock(&self) -> Superblock {
        self.superblock
    }

    /// Returns the datasets.
    pub fn directory(&self) -> DatasetDirectory<'a> {
        self.directory
    }

    /// Returns the positions of the tiles.
    pub fn index(&self) -> ChunkIndex<'a> {
        self.index
    }

    /// Returns the footer, when the file has one.
    pub fn footer(&self) -> Option<Footer<'a>> {
        self.footer
    }

    /// Returns the end of payloads and spills: the start of the footer, or the end of the file.
    pub fn payload_end(&self) -> u64 {
        self.payload_end
    }
}

fn slice(file: &[u8], span: Range<u64>) -> Option<&[u8]> {
    let start = usize::try_from(span.start).ok()?;
    let end = usize::try_from(span.end).ok()?;
    file.get(start..end)
}

/// The reason why bytes are not a `.tet` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The superblock is invalid.
    #[error("superblock")]
    Superblock(#[from] SuperblockError),
    /// The chunk index ends past the end of the file.
    #[error("the chunk index ends past the end of the file")]
    IndexSpan,
    /// The dataset directory is invalid.
    #[error("dataset directory")]
    Directory(#[from] DirectoryError),
    /// The chunk index is invalid.
    #[error("chunk index")]
    Index(#[from] ChunkIndexError),
    /// The footer is invalid.
    #[error("footer")]
    Footer(#[from] FooterError),
    /// The chunk index contradicts the directory or the file.
    #[error("chunk map")]
    Map(#[from] ChunkMapError),
}
