//! Errors of reading and writing files of geometry.

use std::{
    io,
    path::{Path, PathBuf},
};

use zvf_query::closest;

use super::Format;
use crate::display::shell_word;

/// A file of geometry that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryReadError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Parts of paths need ids that do not exist.
    #[error("{}: paths have several parts, and no object id is left above the largest", path.display())]
    ObjectIds {
        /// The file.
        path: PathBuf,
    },
    /// The description of the store is damaged.
    #[error("{}: the description of the store is damaged: {reason}; correct or remove it", path.display())]
    Metadata {
        /// The file that holds it.
        path: PathBuf,
        /// Reason.
        reason: String,
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
        source: NpyReadError,
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
        "{}: which columns are axes is not known; name them, as --axes {}; the columns are {}", path.display(), example(columns), columns.join(", ")
    )]
    NoAxes {
        /// The file.
        path: PathBuf,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A column to rename is not there.
    #[error("--rename: {} has no attribute {name}; it has {}{}", path.display(), names.join(", "), meant(name, names))]
    Rename {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Names of the attributes.
        names: Vec<String>,
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

impl GeometryReadError {
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
    shell_word(&first.join(","))
}

/// What is wrong with a column or array. Rows count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// Rows are not in the order of their numbers.
    #[error("row {0} does not hold its own number; write one row per group, counted from 0")]
    Order(usize),
    /// Text where numbers have to be.
    #[error("holds text where numbers have to be")]
    Text,
    /// A field of a text file that is not a number.
    #[error("line {line} has {text:?} where numbers have to be")]
    TextAt {
        /// The line, counted from 1.
        line: u64,
        /// The field, or the start of a long one.
        text: String,
    },
    /// Numbers where text has to be.
    #[error("holds values of a kind that has no place here: {0}")]
    Kind(String),
    /// Numbers of a kind that is no id or row.
    #[error("holds {0} where whole numbers have to be; convert it to int64")]
    NotIntegers(&'static str),
    /// A number above what ids can be.
    #[error("row {row} is {value}, and the greatest number there can be is 9223372036854775807")]
    TooLarge {
        /// The row.
        row: usize,
        /// The number.
        value: u64,
    },
    /// Whole numbers that no type holds together.
    #[error("holds whole numbers below 0 and above 9223372036854775807, which no type holds")]
    Wide,
    /// A number below 0.
    #[error("row {0} is below 0")]
    Negative(usize),
    /// Another number of columns.
    #[error("has {found} numbers in a row, not {expected}")]
    Columns {
        /// What it should have.
        expected: usize,
        /// What it has.
        found: usize,
    },
    /// Another number of dimensions.
    #[error("has {found} dimensions, not {expected}")]
    Dimensions {
        /// What it should have.
        expected: usize,
        /// What it has.
        found: usize,
    },
    /// Another number of rows.
    #[error("has {found} rows where there are {expected}")]
    Rows {
        /// What it should have.
        expected: usize,
        /// What it has.
        found: usize,
    },
    /// A number that is missing.
    #[error(
        "row {0} has no value; give it one, leave the column out, or store NaN with --missing nan"
    )]
    Missing(usize),
    /// A whole number that is none as float64.
    #[error("row {0} is no float64 exactly, which it would have to become; convert the column")]
    Inexact(usize),
    /// The same name twice.
    #[error("is there twice")]
    Twice,
    /// A column of paths, in geometry that has none.
    #[error(
        "says where paths are; choose --kind lines, polylines or streamlines, or call it vertex.{0}"
    )]
    OfPaths(String),
    /// An attribute in the table of something else.
    #[error("belongs in a table of its own, {0}")]
    Elsewhere(&'static str),
    /// A mask without what it is of.
    #[error("says what is missing in an array that is not there")]
    Mask,
    /// The number of a group is beyond what there can be.
    #[error("is no group that there can be: {0}")]
    Group(String),
}

/// Why a line of csv is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// There is no first line.
    #[error("there have to be the names of the columns, and there is nothing")]
    Empty,
    /// Fields that another character separates.
    #[error(
        "{0:?} separates the fields; save the file with commas between fields, and a point in numbers"
    )]
    Separator(char),
    /// Another number of fields than the first line has.
    #[error("has {found} fields, and the first line names {expected} columns")]
    Fields {
        /// Columns.
        expected: usize,
        /// Fields.
        found: usize,
    },
    /// A quote is not closed.
    #[error("a field in quotes does not end")]
    Unclosed,
    /// Something stands behind a closing quote.
    #[error("a field goes on behind its closing quote; a quote inside is written twice")]
    Behind,
    /// Bytes that are no UTF-8.
    #[error("is no UTF-8; save the file as UTF-8")]
    Encoding,
    /// More bytes than a line may have.
    #[error("is longer than 64 MiB")]
    Long,
    /// A number that is missing.
    #[error(
        "{column} has no value; give it one, leave the column out, or store NaN with --missing nan"
    )]
    Missing {
        /// The column.
        column: String,
    },
    /// The file is another than it was.
    #[error("the file changed while it was read")]
    Changed,
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] io::Error),
}

/// Why bytes are no array that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyReadError {
    /// They do not start as arrays do.
    #[error("is no .npy: it does not start with \\x93NUMPY")]
    Magic,
    /// Of a version there is none of.
    #[error("is of version {0}.{1}; save it again, as numpy.savez does")]
    Version(u8, u8),
    /// The header is longer than any is.
    #[error("has a header of {0} bytes, and more than 65536 are not read")]
    HeaderLength(u32),
    /// The header is no dictionary of the three entries.
    #[error("has a header that is no dictionary of descr, fortran_order and shape")]
    Header,
    /// Addresses of a process long gone, or pickles.
    #[error(
        "holds Python objects, which are not read; convert it, as with array.astype(str) or array.astype(float)"
    )]
    Object,
    /// Records of several values.
    #[error("holds records; save each of their fields as an array")]
    Records,
    /// A type of value that is not read.
    #[error("is of dtype {0:?}; convert it to numbers, bools or text")]
    Dtype(String),
    /// Text without characters.
    #[error("is of text of no characters; save it as '<U1'")]
    NoWidth,
    /// A single value.
    #[error("is a single value; save it as an array of one dimension or two")]
    NoDimension,
    /// Rows without values.
    #[error("has rows of no values")]
    NoColumns,
    /// Text in more than one column.
    #[error("holds several texts a row; save each column as an array")]
    TextColumns,
    /// More values than can be counted.
    #[error("has a shape of more values than can be counted")]
    Shape,
    /// Another number of bytes than the shape says.
    #[error("has {found} bytes of data, and its shape and dtype make {needed}")]
    Size {
        /// What the header makes.
        needed: usize,
        /// What there is.
        found: u64,
    },
    /// The bytes end early.
    #[error("ends early")]
    Truncated,
    /// Bytes that are no text.
    #[error("row {0} is no text")]
    Characters(usize),
    /// There is not that much memory.
    #[error("takes {0} bytes of memory, which there are not")]
    Memory(usize),
    /// More than its packed size can hold.
    #[error("says that {packed} bytes hold {size}, which they cannot")]
    Packed {
        /// Bytes in the file.
        packed: u64,
        /// Bytes there should be.
        size: u64,
    },
    /// The file cannot be read, or fails its checksum.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The zip file packs it in a way that is not read.
    #[error("is packed in a way that is not read; save it with numpy.savez")]
    Packing,
    /// The zip file does not give it.
    #[error("cannot be unpacked")]
    Zip(#[from] zip::result::ZipError),
}

/// A query result that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultWriteError {
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

/// Why a file was not filled; [`Staged`] knows its name.
pub(super) enum FillError {
    Io(io::Error),
    Write(ResultWriteError),
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ResultWriteError> for FillError {
    fn from(error: ResultWriteError) -> Self {
        Self::Write(error)
    }
}

#[cfg(feature = "arrow")]
impl From<arrow_schema::ArrowError> for FillError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => Self::Io(error),
            error => Self::Write(error.into()),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<parquet::errors::ParquetError> for FillError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError;
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Self::Io(*error),
                Err(error) => Self::Write(ParquetError::External(error).into()),
            },
            error => Self::Write(error.into()),
        }
    }
}
