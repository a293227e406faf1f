//! Faults of columns, lines and arrays.

use std::io;

use zvf::ErrorKind;

use crate::source_error::{kind_of_io, kind_of_zip};

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

impl ColumnError {
    /// Returns the kind of the error.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Kind(_) | Self::Wide => ErrorKind::Unsupported,
            Self::Order(_)
            | Self::Repeated(_)
            | Self::Text
            | Self::TextAt { .. }
            | Self::NotIntegers(_)
            | Self::TooLarge { .. }
            | Self::Negative(_)
            | Self::Columns { .. }
            | Self::Dimensions { .. }
            | Self::Rows { .. }
            | Self::Missing(_)
            | Self::Inexact(_)
            | Self::Twice
            | Self::OfPaths(_)
            | Self::Elsewhere(_)
            | Self::Mask
            | Self::Group(_) => ErrorKind::InvalidInput,
        }
    }
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

impl CsvError {
    /// Returns the kind of the error.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Fields { .. } | Self::Unclosed | Self::Behind => ErrorKind::Damaged,
            Self::Empty
            | Self::Separator(_)
            | Self::NoNames(_)
            | Self::Unnamed(_)
            | Self::Encoding
            | Self::Missing { .. } => ErrorKind::InvalidInput,
            Self::Long => ErrorKind::Unsupported,
            Self::Changed => ErrorKind::Conflict,
            Self::Io(error) => kind_of_io(error),
        }
    }
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

impl NpyReadError {
    /// Returns the kind of the error.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Version(..)
            | Self::HeaderLength(_)
            | Self::Object
            | Self::Records
            | Self::Dtype(_)
            | Self::NoWidth
            | Self::NoDimension
            | Self::NoColumns
            | Self::TextColumns
            | Self::Packing => ErrorKind::Unsupported,
            Self::Magic
            | Self::Header
            | Self::Shape
            | Self::Size { .. }
            | Self::Truncated
            | Self::Characters(_)
            | Self::Packed { .. } => ErrorKind::Damaged,
            Self::Memory(_) => ErrorKind::OverBudget,
            Self::Io(error) => kind_of_io(error),
            Self::Zip(error) => kind_of_zip(error),
        }
    }
}
