//! Errors of `.tet` files.

use std::io;

use zvf_format::tetration::{
    ChunkIndexError, ChunkMapError, ChunkRowLimit, DatasetLimit, DirectoryError, FooterError,
    SuperblockError,
};

/// An error in a `.tet` file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TetError {
    /// The superblock is invalid.
    #[error("the superblock is invalid")]
    Superblock(#[from] SuperblockError),
    /// The chunk index ends past the end of the file.
    #[error("the chunk index ends at {end}, past the end of the file at {len}")]
    IndexSpan {
        /// End of the index.
        end: u64,
        /// Length of the file.
        len: u64,
    },
    /// The dataset directory is invalid.
    #[error("the dataset directory is invalid")]
    Directory(#[from] DirectoryError),
    /// The chunk index is invalid.
    #[error("the chunk index is invalid")]
    Index(#[from] ChunkIndexError),
    /// The chunk index contradicts the directory or the file.
    #[error("the chunk index contradicts the directory or the file")]
    Map(#[from] ChunkMapError),
    /// Two rows describe one tile.
    #[error(
        "row {row} describes a tile that another row describes: dataset {dataset}, coordinate {coordinate:?}"
    )]
    DuplicateTile {
        /// The second row.
        row: u64,
        /// Its dataset.
        dataset: u64,
        /// Its tile.
        coordinate: Vec<u64>,
    },
    /// Two payloads overlap.
    #[error("two payloads overlap at byte {0}")]
    Overlap(u64),
    /// The frame of the footer is invalid.
    #[error("the footer is invalid")]
    Footer(#[from] FooterError),
    /// The footer is not JSON.
    #[error("the footer is not JSON")]
    FooterJson(#[source] serde_json::Error),
    /// A value in the footer is invalid.
    #[error("footer: {key}: {fault}")]
    FooterValue {
        /// The key in the footer.
        key: String,
        /// The fault.
        fault: &'static str,
    },
    /// No dataset has this name.
    #[error("there is no dataset {name:?}; the datasets are {}", .available.join(", "))]
    NoDataset {
        /// The requested name.
        name: String,
        /// The first few names that exist.
        available: Vec<String>,
    },
    /// A payload differs from its checksum.
    #[error(
        "dataset {dataset}, tile {coordinate:?}: the payload differs from its checksum; write the \
         dataset again from its source"
    )]
    Checksum {
        /// Id of the dataset.
        dataset: usize,
        /// The tile.
        coordinate: Vec<u64>,
    },
    /// A payload cannot be decoded.
    #[error(
        "dataset {dataset}, tile {coordinate:?}: the payload at {offset} cannot be decompressed"
    )]
    Decode {
        /// Id of the dataset.
        dataset: usize,
        /// The tile.
        coordinate: Vec<u64>,
        /// Offset of the payload.
        offset: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A payload decodes to fewer bytes than its tile has.
    #[error(
        "dataset {dataset}, tile {coordinate:?}: the payload at {offset} decodes to {found} bytes, but the tile has {expected}"
    )]
    DecodedLen {
        /// Id of the dataset.
        dataset: usize,
        /// The tile.
        coordinate: Vec<u64>,
        /// Offset of the payload.
        offset: u64,
        /// Bytes decoded.
        found: usize,
        /// Bytes of the tile.
        expected: usize,
    },
    /// A dataset cannot be written.
    #[error("dataset {name:?} cannot be written")]
    Dataset {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: DatasetLimit,
    },
    /// A row cannot be written.
    #[error("a row of the chunk index cannot be written")]
    Row(#[from] ChunkRowLimit),
    /// The file would exceed 2^64 bytes.
    #[error("the file would be larger than the format can address")]
    Large,
    /// A chunk arrives in the wrong order or with the wrong length.
    #[error("dataset {dataset}: {fault}")]
    Order {
        /// Id of the dataset.
        dataset: usize,
        /// The fault.
        fault: &'static str,
    },
}
