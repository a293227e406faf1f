//! Why a file is no `.tet`, or does not hold what it says.

use std::io;

use zvf_format::tetration::{
    ChunkIndexError, ChunkMapError, ChunkRowLimit, DatasetLimit, DirectoryError, FooterError,
    SuperblockError,
};

/// Why a file is no `.tet`, or does not hold what it says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TetError {
    /// The superblock does not hold.
    #[error("superblock")]
    Superblock(#[from] SuperblockError),
    /// The chunk index ends past the end of the file.
    #[error("the chunk index ends at {end}, and the file at {len}")]
    IndexSpan {
        /// Where the index ends.
        end: u64,
        /// Where the file ends.
        len: u64,
    },
    /// The dataset directory does not hold.
    #[error("dataset directory")]
    Directory(#[from] DirectoryError),
    /// The chunk index does not hold.
    #[error("chunk index")]
    Index(#[from] ChunkIndexError),
    /// The chunk index does not belong to the directory or the file.
    #[error("chunk map")]
    Map(#[from] ChunkMapError),
    /// Two rows are of one tile.
    #[error(
        "row {row} is of a tile that another row has: dataset {dataset}, coordinate {coordinate:?}"
    )]
    DuplicateTile {
        /// The second row.
        row: u64,
        /// Its dataset.
        dataset: u64,
        /// Its tile.
        coordinate: Vec<u64>,
    },
    /// Two payloads share bytes.
    #[error("two payloads share bytes, from {0} on")]
    Overlap(u64),
    /// The footer's frame does not hold.
    #[error("footer")]
    Footer(#[from] FooterError),
    /// The footer is no JSON.
    #[error("the footer is no JSON")]
    FooterJson(#[source] serde_json::Error),
    /// What the footer says is not what it may say.
    #[error("footer: {key}: {fault}")]
    FooterValue {
        /// Where in the footer.
        key: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// No dataset has this name.
    #[error("there is no dataset {name:?}; there are {}", .available.join(", "))]
    NoDataset {
        /// What was asked for.
        name: String,
        /// What there is, the first few.
        available: Vec<String>,
    },
    /// A payload cannot be decoded.
    #[error(
        "dataset {dataset}, tile {coordinate:?}: the payload at {offset} is no zstd frame of its tile"
    )]
    Decode {
        /// Id of the dataset.
        dataset: usize,
        /// The tile.
        coordinate: Vec<u64>,
        /// Where the payload is.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A payload decodes to fewer bytes than its tile has.
    #[error(
        "dataset {dataset}, tile {coordinate:?}: the payload at {offset} decodes to {found} bytes, and the tile has {expected}"
    )]
    DecodedLen {
        /// Id of the dataset.
        dataset: usize,
        /// The tile.
        coordinate: Vec<u64>,
        /// Where the payload is.
        offset: u64,
        /// Bytes decoded.
        found: usize,
        /// Bytes of the tile.
        expected: usize,
    },
    /// A dataset cannot be written.
    #[error("dataset {name:?}")]
    Dataset {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: DatasetLimit,
    },
    /// A row cannot be written.
    #[error("chunk index")]
    Row(#[from] ChunkRowLimit),
    /// More bytes than a file can have.
    #[error("the file would be larger than can be counted")]
    Large,
    /// Chunks come in another order than they are to be written in, or of another length.
    #[error("dataset {dataset}: {fault}")]
    Order {
        /// Id of the dataset.
        dataset: usize,
        /// What came.
        fault: &'static str,
    },
}
