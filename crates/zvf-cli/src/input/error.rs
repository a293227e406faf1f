//! Why a file is not read.

use std::{
    io,
    path::{Path, PathBuf},
};

use zvf::query::closest;

use super::{ColumnError, CsvError, NpyError};

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no zip file, or a broken one.
    #[error("{} is no npz file that can be read", path.display())]
    Zip {
        /// The file.
        path: PathBuf,
        /// Why.
        source: zip::result::ZipError,
    },
    /// An array of an npz file cannot be read.
    #[error("{}: array {array}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The array.
        array: String,
        /// Why.
        source: NpyError,
    },
    /// An array is not one that is looked for.
    #[error(
        "{}: {array:?} is no array that is read; call an attribute vertex.NAME, link.NAME, object.NAME or fragment.NAME, or leave it out", path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The array.
        array: String,
    },
    /// A line of text cannot be read.
    #[error("{}, line {line}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Why.
        source: CsvError,
    },
    /// A column or array is not what it should be.
    #[error("{}: {column}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Its name.
        column: String,
        /// Why.
        source: ColumnError,
    },
    /// There are no positions.
    #[error("{} has no array positions, of a row a vertex", path.display())]
    NoPositions {
        /// The file.
        path: PathBuf,
    },
    /// No column is an axis.
    #[error(
        "{} has no column x, y, z or w; name those that are axes, as --axes {}", path.display(), example(columns)
    )]
    NoAxes {
        /// The file.
        path: PathBuf,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A column is not there.
    #[error("{} has no column {column}; it has {}{}", path.display(), columns.join(", "), meant(column, columns))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// Links beside the file, of geometry that has none.
    #[error(
        "{} holds links, and {kind} have none of their own; choose another --kind, or move it away", path.display()
    )]
    Links {
        /// The file with the links.
        path: PathBuf,
        /// What was asked for.
        kind: &'static str,
    },
    /// Links in a file beside an npz file, which holds its own.
    #[error("{} holds its links itself; --links goes with csv, arrow and parquet", path.display())]
    LinksInside {
        /// The file.
        path: PathBuf,
    },
    /// This build leaves the format out.
    #[error("this build of zvf does not read {}; build it with its feature", path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// Arrow refuses.
    #[cfg(feature = "arrow")]
    #[error("{} cannot be read", path.display())]
    Arrow {
        /// The file.
        path: PathBuf,
        /// Why.
        source: arrow_schema::ArrowError,
    },
    /// Parquet refuses.
    #[cfg(feature = "parquet")]
    #[error("{} cannot be read", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
}

impl ReadError {
    /// The file does not do what it should.
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        Self::File { path, source }
    }
}

/// The column that a misspelt name likely means.
fn meant(name: &str, columns: &[String]) -> String {
    let other = closest(name, columns.iter().map(String::as_str));
    other.map_or_else(String::new, |other| format!("; did you mean {other}?"))
}

/// What could be given for axes.
fn example(columns: &[String]) -> String {
    let first: Vec<&str> = columns.iter().take(3).map(String::as_str).collect();
    first.join(",")
}
