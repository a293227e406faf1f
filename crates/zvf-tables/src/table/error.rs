//! Errors of reading and writing files of geometry.

use std::{
    io,
    path::{Path, PathBuf},
};

use zvf_model::closest::closest;

use super::OutputFileError;
use crate::{FileFormat, display::shell_word};

/// A file of geometry that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryReadError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Parts of paths need ids that do not exist.
    #[error("{}: paths have several parts, but no object id is left above the largest", path.display())]
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
    /// The file is not a zip file, or is damaged.
    #[error("{} is not an npz file, or is truncated or damaged", path.display())]
    Zip {
        /// The file.
        path: PathBuf,
        /// The cause, in the words of the library.
        error: zip::result::ZipError,
    },
    /// An array of an npz file cannot be read.
    #[error("{}: array {array}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The array.
        array: String,
        /// The cause.
        source: NpyReadError,
    },
    /// An array has an unknown name.
    #[error(
        "{}: {array:?} is not a known array; name attributes vertex.NAME, link.NAME, object.NAME or fragment.NAME, or remove it", path.display()
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
        /// The cause.
        source: CsvError,
    },
    /// A column or array is invalid.
    #[error("{}: {column}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Its name.
        column: String,
        /// The cause.
        source: ColumnError,
    },
    /// The file has no positions.
    #[error(
        "{} has no array named positions, with one row for each vertex; it has {}",
        path.display(), list(arrays)
    )]
    NoPositions {
        /// The file.
        path: PathBuf,
        /// The existing arrays.
        arrays: Vec<String>,
    },
    /// No column is an axis.
    #[error(
        "{}: no columns are recognised as axes; name them, for example --axes {}; the columns are {}", path.display(), example(columns), columns.join(", ")
    )]
    NoAxes {
        /// The file.
        path: PathBuf,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A column to rename does not exist.
    #[error("--rename: {} has no attribute {name}; it has {}{}", path.display(), names.join(", "), suggestion(name, names))]
    Rename {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Names of the attributes.
        names: Vec<String>,
    },
    /// The file holds geometry, not a table.
    #[error("{} is not a table; use .csv, .npz, .arrow or .parquet", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
    },
    /// A column does not exist.
    #[error("{} has no column {column}; it has {}{}", path.display(), columns.join(", "), suggestion(column, columns))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A table of links names no ends.
    #[error(
        "{} has no columns links[0] and links[1], the rows of the ends of each link, from 0; it has {}",
        path.display(), list(columns)
    )]
    NoEnds {
        /// The file.
        path: PathBuf,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A file of links exists beside the file, but the kind of geometry has no links.
    #[error(
        "{} contains links, which {kind} cannot have; choose another --kind, or move the file away", path.display()
    )]
    Links {
        /// The file with the links.
        path: PathBuf,
        /// The requested kind.
        kind: &'static str,
    },
    /// A file of links is given for an npz file, which contains its links.
    #[error("{} already contains its links; --links applies to csv, arrow and parquet files", path.display())]
    LinksInside {
        /// The file.
        path: PathBuf,
    },
    /// A file of `zvf-files` cannot be read.
    #[error(transparent)]
    Field(#[from] crate::FileError),
    /// A batch of a file cannot be read.
    #[error(transparent)]
    Batch(Box<dyn std::error::Error + Send + Sync>),
    /// This build lacks the format.
    #[error("this build of zvf cannot read {}; build zvf with the feature for this format", path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// A library that decodes the format failed without an error of its own.
    #[error("{} is damaged: its decoder stopped unexpectedly", path.display())]
    Undecodable {
        /// The file.
        path: PathBuf,
    },
    /// The table exceeds the memory limit.
    #[error(
        "{}: the table takes at least {found} bytes of memory, but --memory allows {max}; raise --memory, or create a store of profile 0.9 from a part and append the rest",
        path.display()
    )]
    Memory {
        /// The file.
        path: PathBuf,
        /// Minimum size of the table in bytes.
        found: u64,
        /// Memory limit in bytes.
        max: u64,
    },
    /// The Arrow library returned an error.
    #[cfg(feature = "arrow")]
    #[error("{} cannot be read", path.display())]
    Arrow {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: arrow_schema::ArrowError,
    },
    /// The Parquet library returned an error.
    #[cfg(feature = "parquet")]
    #[error("{} cannot be read", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: parquet::errors::ParquetError,
    },
}

impl GeometryReadError {
    /// Returns the error for a failed file operation.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        Self::File { path, source }
    }
}

/// Suggests the column that a misspelt name likely means.
fn suggestion(name: &str, columns: &[String]) -> String {
    let other = closest(name, columns.iter().map(String::as_str));
    other.map_or_else(String::new, |other| format!("; did you mean {other}?"))
}

/// Lists names; `nothing` without any.
fn list(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names => names.join(", "),
    }
}

/// Returns an example for `--axes`: the first three columns.
fn example(columns: &[String]) -> String {
    let first: Vec<&str> = columns.iter().take(3).map(String::as_str).collect();
    shell_word(&first.join(","))
}

/// A column or array that cannot be used. Rows count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// Rows are not ordered by group number.
    #[error("row {0} does not contain its own number; write one row per group, numbered from 0")]
    Order(usize),
    /// A key of a table occurs in several rows.
    #[error("contains {0} more than once; write one row for each")]
    Repeated(i64),
    /// Text instead of numbers.
    #[error("contains text instead of numbers")]
    Text,
    /// A field of a text file is not a number.
    #[error("line {line} has {text:?} instead of a number")]
    TextAt {
        /// The line, counted from 1.
        line: u64,
        /// The field, or the start of a long one.
        text: String,
    },
    /// Values of an unsupported kind.
    #[error("has an unsupported type: {0}")]
    Kind(String),
    /// Numbers that are not integers, in a column of ids or rows.
    #[error("contains {0} instead of integers; convert it to int64")]
    NotIntegers(&'static str),
    /// A number above the largest id.
    #[error("row {row} is {value}, which exceeds the maximum of 9223372036854775807")]
    TooLarge {
        /// The row.
        row: usize,
        /// The number.
        value: u64,
    },
    /// Integers whose range exceeds every integer type.
    #[error(
        "has both negative integers and integers above 9223372036854775807, which no type can represent"
    )]
    Wide,
    /// A number below 0.
    #[error("row {0} is below 0")]
    Negative(usize),
    /// An unexpected number of columns.
    #[error("has {found} numbers in a row, but needs {expected}")]
    Columns {
        /// Expected number.
        expected: usize,
        /// Actual number.
        found: usize,
    },
    /// An unexpected number of dimensions.
    #[error("is an array with {found} dimensions instead of {expected}")]
    Dimensions {
        /// Expected number.
        expected: usize,
        /// Actual number.
        found: usize,
    },
    /// An unexpected number of rows.
    #[error("has {found} rows instead of {expected}")]
    Rows {
        /// Expected number.
        expected: usize,
        /// Actual number.
        found: usize,
    },
    /// A missing number.
    #[error("row {0} has no value; set one, remove the column, or store NaN with --missing nan")]
    Missing(usize),
    /// An integer that float64 cannot represent exactly.
    #[error("row {0} cannot be converted to float64 exactly; convert the column")]
    Inexact(usize),
    /// A duplicate name.
    #[error("occurs twice")]
    Twice,
    /// A column of paths, for a kind of geometry without paths.
    #[error(
        "defines paths; choose --kind lines, polylines or streamlines, or rename it to vertex.{0}"
    )]
    OfPaths(String),
    /// An attribute that belongs in another table.
    #[error("belongs in a separate table, {0}")]
    Elsewhere(&'static str),
    /// A mask without its array.
    #[error("is the null mask of an array that the file does not contain")]
    Mask,
    /// A group number outside the valid range.
    #[error("is not a valid group: {0}")]
    Group(String),
}

/// A line of csv that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// The file has no first line.
    #[error("the file is empty; its first line must name the columns")]
    Empty,
    /// The fields are separated by another character.
    #[error(
        "fields are separated by {0:?}; save the file with commas as separators and decimal points"
    )]
    Separator(char),
    /// The first line has numbers.
    #[error(
        "the first line must name the columns, and has {0}; add a line such as x,y,z before it"
    )]
    NoNames(String),
    /// A column has no name.
    #[error("column {0} has no name; give it one or remove it, in pandas with to_csv(index=False)")]
    Unnamed(usize),
    /// A line has more or fewer fields than the first line.
    #[error("has {found} fields, but the first line names {expected} columns")]
    Fields {
        /// Number of columns.
        expected: usize,
        /// Number of fields.
        found: usize,
    },
    /// A quote is not closed.
    #[error("a quoted field is not closed")]
    Unclosed,
    /// Text follows a closing quote.
    #[error("text follows a closing quote; write a quote inside a field twice")]
    Behind,
    /// The bytes are not UTF-8.
    #[error("is not UTF-8; save the file as UTF-8")]
    Encoding,
    /// A line exceeds the maximum length.
    #[error("is longer than 64 MiB; save the file as a table with one row in each line")]
    Long,
    /// A missing number.
    #[error("{column} has no value; set one, remove the column, or store NaN with --missing nan")]
    Missing {
        /// The column.
        column: String,
    },
    /// The file changed between the two passes.
    #[error("the file changed while it was read")]
    Changed,
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] io::Error),
}

/// An array of NumPy that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyReadError {
    /// The magic is wrong.
    #[error("is not a .npy array: it does not start with \\x93NUMPY")]
    Magic,
    /// The version is not supported.
    #[error("has version {0}.{1}, which is not supported; save it again with numpy.savez")]
    Version(u8, u8),
    /// The header exceeds the maximum length.
    #[error("has a header of {0} bytes; at most 65536 are supported")]
    HeaderLength(u32),
    /// The header is not a dictionary of the three entries.
    #[error("has a header that is not a dictionary with descr, fortran_order and shape")]
    Header,
    /// Python objects: pickles, or addresses in a process that has ended.
    #[error(
        "contains Python objects, which are not supported; convert it with array.astype(str) or array.astype(float)"
    )]
    Object,
    /// Records of several values.
    #[error("contains records; save each field as an array")]
    Records,
    /// The type of the values is not supported.
    #[error("has dtype {0:?}; convert it to numbers, bools or text")]
    Dtype(String),
    /// Text of width 0.
    #[error("has a text type without characters; save it as '<U1'")]
    NoWidth,
    /// An array of no dimensions.
    #[error("is a single value; save it as an array of one dimension or two")]
    NoDimension,
    /// Rows without values.
    #[error("has rows without values")]
    NoColumns,
    /// Text in more than one column.
    #[error("has several texts in a row; save each column as an array")]
    TextColumns,
    /// The number of values overflows.
    #[error("has a shape whose number of values overflows")]
    Shape,
    /// The number of bytes contradicts the shape.
    #[error("has {found} bytes of data, but its shape and dtype need {needed}")]
    Size {
        /// Bytes that the header implies.
        needed: usize,
        /// Bytes in the file.
        found: u64,
    },
    /// The bytes end early.
    #[error("ends early")]
    Truncated,
    /// A row is not valid text.
    #[error("row {0} is not text")]
    Characters(usize),
    /// The allocation failed.
    #[error("needs {0} bytes of memory, which are not available")]
    Memory(usize),
    /// The unpacked size is impossible for the packed size.
    #[error("declares {size} bytes in {packed} compressed bytes, which is impossible")]
    Packed {
        /// Bytes in the file.
        packed: u64,
        /// Declared size after unpacking.
        size: u64,
    },
    /// The file cannot be read, or fails its checksum.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The compression method of the zip file is not supported.
    #[error("uses an unsupported compression method; save it with numpy.savez")]
    Packing,
    /// The zip library returned an error.
    #[error("cannot be decompressed")]
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
        /// The cause.
        source: io::Error,
    },
    /// This build lacks the format.
    #[error("this build of zvf cannot write {0}; build zvf with the feature `{0}`")]
    NotBuilt(FileFormat),
    /// A column has an unexpected number of rows.
    #[error("{column} has {found} rows, but needs {needed}")]
    Rows {
        /// The column.
        column: String,
        /// Actual number of rows.
        found: usize,
        /// Expected number of rows.
        needed: usize,
    },
    /// Positions, parts or links contradict each other.
    #[error("the result is inconsistent: {0}")]
    Broken(&'static str),
    /// Two columns of a table have equal names.
    #[error("two columns are named {0:?}; exclude one with --select")]
    TwoColumns(String),
    /// An array name is not valid in a zip file.
    #[error("{0:?} cannot name an array of an npz file; exclude it with --select, or write csv")]
    Name(String),
    /// Text whose fixed-length form, which NumPy requires, is too large.
    #[error(
        "{column} would take {bytes} bytes as fixed-length text; exclude it with --select, or write csv, arrow or parquet"
    )]
    Text {
        /// The column.
        column: String,
        /// Size in that form, in bytes.
        bytes: u64,
    },
    /// The words of a dictionary exceed the limit of the format.
    #[error("the text of {0} exceeds 2 GiB; exclude it with --select, or write csv")]
    Words(String),
    /// The channels of a row exceed the limit of the format.
    #[error("a row of {0} has too many channels for this format; write csv or npz")]
    Channels(String),
    /// The format does not support this number of axes.
    #[error("obj supports 2 or 3 axes, not {0}; write ply, csv or npz")]
    Axes(usize),
    /// The format cannot represent the coordinates exactly.
    #[error("{format} cannot hold coordinates of kind {kind} exactly; write csv, npz or arrow")]
    Coordinates {
        /// The format.
        format: FileFormat,
        /// Type of the coordinates.
        kind: &'static str,
    },
    /// A number of items exceeds the limit of the format.
    #[error("{format} cannot hold {what}; write csv, npz or arrow")]
    Beyond {
        /// The format.
        format: FileFormat,
        /// The items.
        what: String,
    },
    /// A name with a placeholder for objects, and a result without objects.
    #[error(
        "{} names a file for each object, but no vertex has an object; write the name without {{object}} and {{name}}",
        .0.display()
    )]
    NoObjects(PathBuf),
    /// The file of an object cannot be written.
    #[error(transparent)]
    Output(#[from] OutputFileError),
    /// A file of `zvf-files` cannot be written.
    #[error(transparent)]
    Field(#[from] crate::FileError),
    /// The format cannot hold everything.
    #[error(
        "{} is not written, because it would lack: {}; leave it out with --select, choose another format, or omit --strict",
        path.display(),
        left_out.join("; ")
    )]
    Lossy {
        /// The file.
        path: PathBuf,
        /// Contents that the format cannot hold.
        left_out: Vec<String>,
    },
    /// The zip file cannot be written.
    #[error("npz cannot be written")]
    Zip(#[from] zip::result::ZipError),
    /// The Arrow library returned an error.
    #[cfg(feature = "arrow")]
    #[error("arrow cannot be written")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// The Parquet library returned an error.
    #[cfg(feature = "parquet")]
    #[error("parquet cannot be written")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// An error of writing a file. [`Staged`](crate::Staged) adds the path.
#[derive(Debug)]
pub enum FillError {
    /// The file cannot be written.
    Io(io::Error),
    /// The result cannot be written.
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
