//! Why an answer cannot be written.

use std::{io, path::PathBuf};

use super::Format;

/// Why an answer cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// This build leaves the format out.
    #[error("this build of zvf writes no {0}; build it with the feature `{0}`")]
    NotBuilt(Format),
    /// A column is longer or shorter than what it belongs to.
    #[error("{column} has {found} rows, not {needed}")]
    Rows {
        /// The column.
        column: String,
        /// Rows it has.
        found: usize,
        /// Rows it should have.
        needed: usize,
    },
    /// Positions, parts or links do not make sense.
    #[error("the answer is broken: {0}")]
    Broken(&'static str),
    /// Two columns of a table have one name.
    #[error("two columns are named {0:?}; leave one out with --select")]
    TwoColumns(String),
    /// A name cannot be part of a zip file.
    #[error("{0:?} cannot name an array of an npz file; leave it out with --select, or write csv")]
    Name(String),
    /// Words that numpy would hold at full length in every row.
    #[error(
        "{column} would take {bytes} bytes as text of fixed length; leave it out with --select, or write csv, arrow or parquet"
    )]
    Text {
        /// The column.
        column: String,
        /// Bytes it would take.
        bytes: u64,
    },
    /// Words that are longer together than the format can count.
    #[error("the words of {0} are more than 2 GiB; leave it out with --select, or write csv")]
    Words(String),
    /// Rows of more numbers than the format can count.
    #[error("a row of {0} has too many channels for this format; write csv or npz")]
    Channels(String),
    /// Coordinates in a number of axes the format has no place for.
    #[error("obj holds 2 or 3 axes, not {0}; write ply, csv or npz")]
    Axes(usize),
    /// Coordinates that would not come back as they are.
    #[error("{format} cannot hold coordinates of kind {kind} exactly; write csv, npz or arrow")]
    Coordinates {
        /// The format.
        format: Format,
        /// What the coordinates are.
        kind: &'static str,
    },
    /// More of something than the format can count.
    #[error("{format} cannot hold {what}; write csv, npz or arrow")]
    Beyond {
        /// The format.
        format: Format,
        /// What there is too much of.
        what: String,
    },
    /// The zip file cannot be written.
    #[error("npz cannot be written")]
    Zip(#[from] zip::result::ZipError),
    /// Arrow refuses.
    #[cfg(feature = "arrow")]
    #[error("arrow cannot be written")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// Parquet refuses.
    #[cfg(feature = "parquet")]
    #[error("parquet cannot be written")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}
