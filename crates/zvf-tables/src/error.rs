//! Errors: the file, the place in it, and the fault.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use zip::result::ZipError;
use zvf::{BuildError, ErrorKind, numeric::Kind};
use zvf_model::{base64::Base64Error, closest::closest, metadata::MetadataError};

use crate::{
    axis_unit_error::AxisUnitError,
    display::shell_word,
    source_error::{kind_of_batch, kind_of_io, kind_of_reading, kind_of_zip},
    table_error::{ColumnError, CsvError, NpyReadError},
};

/// A file that cannot be read or written, or a result that no such file can hold.
#[derive(Debug)]
pub struct FileError {
    /// The file; empty for a fault of the result that was to be written.
    pub path: PathBuf,
    /// The place in the file.
    pub place: FilePlace,
    /// The cause.
    pub fault: FileFault,
}

impl FileError {
    /// Returns the kind of the cause.
    pub fn kind(&self) -> ErrorKind {
        self.fault.kind()
    }

    /// Returns the error of a batch, which most sources of geometry return as a file error.
    pub fn of_batch(error: Box<dyn Error + Send + Sync>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let fault = error
            .downcast::<FileFault>()
            .map(|fault| *fault)
            .or_else(|error| error.downcast().map(FileFault::Geometry));
        fault.unwrap_or_else(FileFault::Batch).of_result()
    }

    /// Returns the error of a file that a library or the operating system cannot read.
    pub(crate) fn unreadable(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        FileFault::Read(source.into()).of(path)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.as_os_str().is_empty() {
            return self.fault.fmt(f);
        }
        if matches!(self.fault, FileFault::Rename { .. }) {
            f.write_str("--rename: ")?;
        }
        let join = if self.fault.is_predicate() { "" } else { ":" };
        let (path, place, fault) = (self.path.display(), &self.place, &self.fault);
        write!(f, "{path}{place}{join} {fault}")
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.fault.source()
    }
}

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePlace {
    /// The file as a whole.
    #[default]
    Whole,
    /// An offset in bytes.
    Byte(u64),
    /// A line, counted from 1.
    Line(u64),
    /// A member of an archive or a folder.
    Member(String),
    /// A column of a table, or an array.
    Column(String),
    /// An array of an npz file.
    Array(String),
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Byte(at) => write!(f, ", byte {at}"),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Member(name) => write!(f, ", member {name:?}"),
            Self::Column(name) => write!(f, ": {name}"),
            Self::Array(name) => write!(f, ": array {name}"),
        }
    }
}

/// The cause of a [`FileError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The operating system reports an error.
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    /// The bytes end inside an item.
    #[error("{what} needs {needed} bytes, but {left} are left; the file is cut off or damaged")]
    Truncated {
        /// The item.
        what: &'static str,
        /// Bytes that the item needs.
        needed: u64,
        /// Bytes left in the file.
        left: u64,
    },
    /// A library or the operating system cannot read a table.
    #[error("cannot be read")]
    Read(#[source] Box<dyn Error + Send + Sync>),
    /// The operating system reports an error for a file that is written.
    #[error("cannot be written")]
    Write(#[source] io::Error),
    /// A source of geometry fails.
    #[error(transparent)]
    Batch(Box<dyn Error + Send + Sync>),
    /// The columns of geometry disagree.
    #[error(transparent)]
    Geometry(Box<BuildError>),
    /// The unit of the coordinates is contradictory.
    #[error(transparent)]
    AxisUnit(Box<AxisUnitError>),
    /// Bytes follow the end of the data.
    #[error(
        "{0} bytes follow the end of the data; remove them, or repair the counts of the header"
    )]
    Trailing(u64),
    /// A field has a value that the format does not allow.
    #[error("{field} is {found}; {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The allowed values, and the remedy.
        expected: &'static str,
    },
    /// Two numbers of a file contradict each other.
    #[error("{what}: {found} found, {expected} declared; the file is damaged")]
    Count {
        /// The items.
        what: &'static str,
        /// Number found.
        found: u64,
        /// Number declared.
        expected: u64,
    },
    /// A file with values of vertices belongs to another surface.
    #[error(
        "has values of {found} vertices, but the surface has {vertices}; name the file of this surface"
    )]
    OtherSurface {
        /// Number of values.
        found: u64,
        /// Vertices of the surface.
        vertices: u64,
    },
    /// An element of XML lacks an attribute.
    #[error("an element has no attribute {attribute}; the file is damaged")]
    Absent {
        /// The attribute.
        attribute: &'static str,
    },
    /// An edge ends in a node that does not exist.
    #[error("an edge ends in the node {0:?}, which is not declared; the file is damaged")]
    UnknownNode(String),
    /// The nodes of a graph have no attributes with coordinates.
    #[error(
        "no attributes {} with coordinates; the nodes have {}; name the attributes with coordinates as axes",
        list(axes),
        list(present)
    )]
    NoCoordinates {
        /// The expected attributes.
        axes: Vec<String>,
        /// Names of the attributes of nodes.
        present: Vec<String>,
    },
    /// A node of a graph has no coordinate.
    #[error("the node {node:?} has no number {axis}; every vertex of a store has coordinates")]
    Unplaced {
        /// Id of the node.
        node: String,
        /// The attribute with the coordinate.
        axis: String,
    },
    /// A coordinate is NaN or infinite.
    #[error("a coordinate is {0}; stores hold finite coordinates only")]
    NotFinite(f64),
    /// A coordinate exceeds the 32-bit floats of the format.
    #[error("{format} holds coordinates of 32 bits, but one is {value:e}; write csv or npz")]
    CoordinateRange {
        /// The format.
        format: &'static str,
        /// The coordinate, in the units of the file.
        value: f64,
    },
    /// Text that is not a number.
    #[error("{text:?} is not a number; expected {what}")]
    Number {
        /// The expected item.
        what: &'static str,
        /// The text, or the start of a long one.
        text: String,
    },
    /// Two entries have one name.
    #[error("{0:?} occurs twice; rename one of the two")]
    Twice(String),
    /// An attribute to rename does not exist.
    #[error("has no attribute {name}; it has {}", list(present))]
    NoAttribute {
        /// The name.
        name: String,
        /// Names of the attributes, with their scopes.
        present: Vec<String>,
    },
    /// A part of the format that is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The file unpacks to more than the limit.
    #[error("unpacks to more than {limit} bytes; unpack it first, or raise the limit")]
    Unpacked {
        /// The limit.
        limit: u64,
    },
    /// A file has no vertices.
    #[error("holds no vertices, and a store without vertices cannot be created")]
    Empty,
    /// No format is known for a name.
    #[error("this command has no format with this extension; use {0}")]
    Extension(String),
    /// This build lacks the format.
    #[error("this build does not support {0}; build it with the feature `{0}`")]
    NotBuilt(&'static str),
    /// The file cannot be read as geometry of the requested kind.
    #[error("{format} holds {holds}, not {requested}; leave out the kind")]
    Kind {
        /// The format.
        format: &'static str,
        /// The kinds in the file.
        holds: &'static str,
        /// The requested kind.
        requested: &'static str,
    },
    /// A result that the format cannot hold.
    #[error("{format} holds {holds} only; {remedy}")]
    Result {
        /// The format.
        format: &'static str,
        /// The data that it holds.
        holds: &'static str,
        /// Another format, or a selection.
        remedy: &'static str,
    },
    /// Coordinates of a type without a conversion.
    #[error("coordinates of kind {} cannot be written", .0.name())]
    Coordinates(Kind),
    /// The result contradicts itself.
    #[error("the result is inconsistent: {0}")]
    Broken(&'static str),
    /// The archive is damaged.
    #[error("the archive cannot be read or written")]
    Zip(#[source] Box<ZipError>),
    /// JSON that cannot be parsed.
    #[error("is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// Metadata of a Zarr array that cannot be used.
    #[error("the metadata of the array cannot be used")]
    Metadata(#[source] Box<MetadataError>),
    /// A library cannot decode or encode a part of the file.
    #[error("{part}")]
    Library {
        /// The kind of the fault.
        kind: ErrorKind,
        /// The part, and its fault.
        part: &'static str,
        /// The error of the library.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A folder without precomputed geometry.
    #[error(
        "holds no precomputed skeletons, annotations or meshes; name the folder whose info document \
         has such a type"
    )]
    NoLayer,
    /// A folder with several sources.
    #[error("holds several layers, in the folders {0}; name one of them")]
    SeveralLayers(String),
    /// Parts of paths need ids that do not exist.
    #[error("paths have several parts, but no object id is left above the largest")]
    ObjectIds,
    /// The description of the store is damaged.
    #[error("the description of the store is damaged: {0}; correct or remove it")]
    Description(String),
    /// The file is not a zip file, or is damaged. The error of the library is no source, because this
    /// message says enough.
    #[error("is not an npz file, or is truncated or damaged")]
    NotNpz(Box<ZipError>),
    /// An array of an npz file cannot be read.
    #[error(transparent)]
    Npy(Box<NpyReadError>),
    /// An array has an unknown name.
    #[error(
        "{0:?} is not a known array; name attributes vertex.NAME, link.NAME, object.NAME or fragment.NAME, or remove it"
    )]
    UnknownArray(String),
    /// A line of text cannot be read.
    #[error(transparent)]
    Csv(CsvError),
    /// A column or array is invalid.
    #[error(transparent)]
    Column(ColumnError),
    /// The file has no positions; it has these arrays.
    #[error(
        "has no array named positions, with one row for each vertex; it has {}",
        or_nothing(.0)
    )]
    NoPositions(Vec<String>),
    /// None of these columns is an axis.
    #[error(
        "no columns are recognised as axes; name them, for example --axes {}; the columns are {}",
        example(.0), .0.join(", ")
    )]
    NoAxes(Vec<String>),
    /// An attribute that a command renames does not exist.
    #[error("has no attribute {name}; it has {}{}", present.join(", "), suggestion(name, present))]
    Rename {
        /// The name.
        name: String,
        /// Names of the attributes.
        present: Vec<String>,
    },
    /// The file holds geometry, not a table.
    #[error("is not a table; use .csv, .npz, .arrow or .parquet")]
    NoTable,
    /// A column does not exist.
    #[error("has no column {column}; it has {}{}", columns.join(", "), suggestion(column, columns))]
    NoColumn {
        /// The column.
        column: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A table of links with these columns names no ends.
    #[error(
        "has no columns links[0] and links[1], the rows of the ends of each link, from 0; it has {}",
        or_nothing(.0)
    )]
    NoEnds(Vec<String>),
    /// A file of links exists beside the file, but this kind of geometry has no links.
    #[error("contains links, which {0} cannot have; choose another --kind, or move the file away")]
    Links(&'static str),
    /// A file of links is given for an npz file, which contains its links.
    #[error("already contains its links; --links applies to csv, arrow and parquet files")]
    LinksInside,
    /// A library that decodes the format failed without an error of its own.
    #[error("is damaged: its decoder stopped unexpectedly")]
    Undecodable,
    /// The table exceeds the memory limit.
    #[error(
        "the table takes at least {found} bytes of memory, but --memory allows {max}; raise --memory, or create a store of profile 0.9 from a part and append the rest"
    )]
    Memory {
        /// Minimum size of the table in bytes.
        found: u64,
        /// Memory limit in bytes.
        max: u64,
    },
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
    InexactCoordinates {
        /// The format.
        format: &'static str,
        /// Type of the coordinates.
        kind: &'static str,
    },
    /// A number of items exceeds the limit of the format.
    #[error("{format} cannot hold {what}; write csv, npz or arrow")]
    Beyond {
        /// The format.
        format: &'static str,
        /// The items.
        what: String,
    },
    /// A name with a placeholder for objects, and a result without objects.
    #[error(
        "names a file for each object, but no vertex has an object; write the name without {{object}} and {{name}}"
    )]
    NoObjects,
    /// The file of an object cannot be written.
    #[error(transparent)]
    Target(Box<dyn Error + Send + Sync>),
    /// The format cannot hold everything; it would lack this.
    #[error(
        "is not written, because it would lack: {}; {}choose another format, or omit --strict",
        .0.join("; "), omission(.0)
    )]
    Lossy(Vec<String>),
}

/// Returns how the result can be without these parts, if it can: attributes are selected, ids are not.
fn omission(parts: &[String]) -> &'static str {
    // Their names have a scope, as in `vertex.fa: not supported by tck`.
    let is_attribute = |part: &String| {
        let mut words = part.split([':', ' ']);
        words.next().is_some_and(|name| name.contains('.'))
    };
    if parts.iter().any(is_attribute) {
        "leave attributes out with --select, "
    } else {
        ""
    }
}

impl From<ZipError> for FileFault {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => Self::Io(error),
            error => Self::Zip(Box::new(error)),
        }
    }
}

impl From<MetadataError> for FileFault {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(Box::new(error))
    }
}

#[cfg(feature = "geoparquet")]
impl From<parquet::errors::ParquetError> for FileFault {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match crate::source_error::io_of_parquet(error) {
            Ok(error) => Self::Io(error),
            Err(error) => Self::library(
                ErrorKind::Damaged,
                "the table cannot be read or written",
                error,
            ),
        }
    }
}

#[cfg(feature = "geoparquet")]
impl From<arrow_schema::ArrowError> for FileFault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => Self::Io(error),
            error => Self::library(
                ErrorKind::Damaged,
                "the columns cannot be read or written",
                error,
            ),
        }
    }
}

#[cfg(feature = "geoparquet")]
impl From<zvf_arrow::ConversionError> for FileFault {
    fn from(error: zvf_arrow::ConversionError) -> Self {
        Self::library(
            ErrorKind::Unsupported,
            "a column cannot be converted",
            error,
        )
    }
}

/// Lists names; `none` without any.
fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// Lists names; `nothing` without any.
fn or_nothing(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names => names.join(", "),
    }
}

/// Suggests the column that a misspelt name likely means.
fn suggestion(name: &str, columns: &[String]) -> String {
    let other = closest(name, columns.iter().map(String::as_str));
    other.map_or_else(String::new, |other| format!("; did you mean {other}?"))
}

/// Returns an example for `--axes`: the first three columns.
fn example(columns: &[String]) -> String {
    let first: Vec<&str> = columns.iter().take(3).map(String::as_str).collect();
    shell_word(&first.join(","))
}

impl FileFault {
    /// Returns the kind of the fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io(error) | Self::Write(error) => kind_of_io(error),
            Self::Read(error) => kind_of_reading(error.as_ref()),
            Self::Library { kind, .. } => *kind,
            Self::Batch(error) => kind_of_batch(error.as_ref()),
            Self::Zip(error) | Self::NotNpz(error) => kind_of_zip(error),
            Self::Npy(error) => error.kind(),
            Self::Csv(error) => error.kind(),
            Self::Column(error) => error.kind(),
            Self::Truncated { .. }
            | Self::Trailing(_)
            | Self::Field { .. }
            | Self::Count { .. }
            | Self::Absent { .. }
            | Self::UnknownNode(_)
            | Self::NotFinite(_)
            | Self::Number { .. }
            | Self::Twice(_)
            | Self::Json(_)
            | Self::Metadata(_)
            | Self::Description(_)
            | Self::Undecodable => ErrorKind::Damaged,
            Self::Unsupported(_)
            | Self::Extension(_)
            | Self::NotBuilt(_)
            | Self::Coordinates(_)
            | Self::CoordinateRange { .. }
            | Self::InexactCoordinates { .. }
            | Self::Result { .. }
            | Self::Beyond { .. }
            | Self::Name(_)
            | Self::Text { .. }
            | Self::Words(_)
            | Self::Channels(_)
            | Self::Axes(_)
            | Self::Lossy(_) => ErrorKind::Unsupported,
            Self::Unpacked { .. } | Self::Memory { .. } => ErrorKind::OverBudget,
            Self::NoAttribute { .. }
            | Self::Rename { .. }
            | Self::NoColumn { .. }
            | Self::NoLayer => ErrorKind::NotFound,
            Self::OtherSurface { .. }
            | Self::NoCoordinates { .. }
            | Self::Unplaced { .. }
            | Self::Empty
            | Self::Kind { .. }
            | Self::Broken(_)
            | Self::SeveralLayers(_)
            | Self::ObjectIds
            | Self::UnknownArray(_)
            | Self::NoPositions(_)
            | Self::NoAxes(_)
            | Self::NoTable
            | Self::NoEnds(_)
            | Self::Links(_)
            | Self::LinksInside
            | Self::Rows { .. }
            | Self::TwoColumns(_)
            | Self::NoObjects
            | Self::Geometry(_)
            | Self::AxisUnit(_)
            | Self::Target(_) => ErrorKind::InvalidInput,
        }
    }

    /// Returns whether the message continues a sentence that starts with the name of the file.
    fn is_predicate(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::Write(_)
                | Self::NotNpz(_)
                | Self::NoPositions(_)
                | Self::Rename { .. }
                | Self::NoTable
                | Self::NoColumn { .. }
                | Self::NoEnds(_)
                | Self::Links(_)
                | Self::LinksInside
                | Self::Undecodable
                | Self::NoObjects
                | Self::Lossy(_)
        )
    }

    /// Returns the error of a field.
    pub fn field(field: &'static str, found: impl fmt::Display, expected: &'static str) -> Self {
        Self::Field {
            field,
            found: found.to_string(),
            expected,
        }
    }

    /// Returns the error of a library that cannot decode or encode a part of the file.
    pub fn library(
        kind: ErrorKind,
        part: &'static str,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        let source = Box::new(source);
        Self::Library { kind, part, source }
    }

    /// Returns the error of text that is not base64.
    pub fn base64(found: Base64Error) -> Self {
        let expected = "the text is damaged; write the file again";
        Self::field("base64 text", found, expected)
    }

    /// Returns the error of a result, independent of the file.
    pub fn of_result(self) -> FileError {
        self.of(Path::new(""))
    }

    /// Returns the error of writing a result to a file, which is named if it is at fault.
    pub fn of_target(self, path: &Path) -> FileError {
        match self {
            Self::Io(source) => Self::Write(source).of(path),
            fault => fault.of_result(),
        }
    }

    /// Adds the path of the file.
    pub fn of(self, path: &Path) -> FileError {
        self.at(path, FilePlace::Whole)
    }

    /// Adds the path of the file and the place.
    pub fn at(self, path: &Path, place: FilePlace) -> FileError {
        FileError {
            path: path.to_path_buf(),
            place,
            fault: self,
        }
    }
}

#[cfg(test)]
mod tests {
    use zvf::StateError;
    use zvf_model::error_chain::error_chain;

    use super::*;

    #[test]
    fn messages_are_sentences_about_the_file_or_name_a_place_in_it() {
        let path = Path::new("a.csv");
        let column = || FilePlace::Column("vertex.fa".to_owned());
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let names = || vec!["vertex.fa".to_owned()];
        for (error, kind, expected) in [
            (
                FileError::unreadable(path, gone()),
                ErrorKind::NotFound,
                "a.csv cannot be read: entity not found",
            ),
            (
                FileFault::from(io::Error::from(io::ErrorKind::StorageFull)).of_target(path),
                ErrorKind::Unavailable,
                "a.csv cannot be written: no storage space",
            ),
            (
                FileFault::Io(gone()).of(path),
                ErrorKind::NotFound,
                "a.csv: cannot be read or written: entity not found",
            ),
            (
                FileFault::Column(ColumnError::Twice).at(path, column()),
                ErrorKind::InvalidInput,
                "a.csv: vertex.fa: occurs twice",
            ),
            (
                FileFault::Csv(CsvError::Unclosed).at(path, FilePlace::Line(3)),
                ErrorKind::Damaged,
                "a.csv, line 3: a quoted field is not closed",
            ),
            (
                FileFault::Rename {
                    name: "fb".to_owned(),
                    present: names(),
                }
                .of(path),
                ErrorKind::NotFound,
                "--rename: a.csv has no attribute fb; it has vertex.fa",
            ),
            (
                FileFault::Lossy(names()).of(path),
                ErrorKind::Unsupported,
                "a.csv is not written, because it would lack: vertex.fa; leave attributes out with \
                 --select, choose another format, or omit --strict",
            ),
            (
                FileFault::Lossy(vec!["object_id: not supported by obj".to_owned()]).of(path),
                ErrorKind::Unsupported,
                "a.csv is not written, because it would lack: object_id: not supported by obj; choose another format, or \
                 omit --strict",
            ),
            (
                FileFault::TwoColumns("fa".to_owned()).of_target(path),
                ErrorKind::InvalidInput,
                "two columns are named \"fa\"; exclude one with --select",
            ),
            (
                FileError::of_batch(Box::new(FileFault::Empty.of(path))),
                ErrorKind::InvalidInput,
                "a.csv: holds no vertices, and a store without vertices cannot be created",
            ),
            (
                FileError::of_batch(Box::new(FileFault::Broken("links without ends"))),
                ErrorKind::InvalidInput,
                "the result is inconsistent: links without ends",
            ),
            (
                FileError::of_batch(Box::new(gone())),
                ErrorKind::NotFound,
                "entity not found",
            ),
            (
                FileError::of_batch(Box::new(zvf::Error::from(StateError::Unfinished {
                    address: "a.zv".to_owned(),
                }))),
                ErrorKind::Conflict,
                "a.zv is not complete: its creation is in progress or was interrupted",
            ),
            (
                FileError::of_batch("no more rows".into()),
                ErrorKind::Interrupted,
                "no more rows",
            ),
        ] {
            assert_eq!(error_chain(&error), expected);
            assert_eq!(error.kind(), kind, "{expected}");
        }
    }

    #[test]
    fn kinds_tell_damage_from_input_and_from_the_disk() {
        let io = io::Error::from;
        let unpacked = || ZipError::Io(io(io::ErrorKind::StorageFull));
        let npy = |error: NpyReadError| FileFault::Npy(Box::new(error));
        for (fault, kind) in [
            (
                FileFault::Io(io(io::ErrorKind::UnexpectedEof)),
                ErrorKind::Damaged,
            ),
            (
                FileFault::Read(Box::new(io(io::ErrorKind::InvalidData))),
                ErrorKind::Damaged,
            ),
            (
                FileFault::Read(Box::new(unpacked())),
                ErrorKind::Unavailable,
            ),
            (FileFault::from(unpacked()), ErrorKind::Unavailable),
            (FileFault::from(ZipError::FileNotFound), ErrorKind::Damaged),
            (
                FileFault::from(ZipError::UnsupportedArchive("encrypted")),
                ErrorKind::Unsupported,
            ),
            (npy(NpyReadError::Object), ErrorKind::Unsupported),
            (npy(NpyReadError::Memory(9)), ErrorKind::OverBudget),
            (npy(NpyReadError::Truncated), ErrorKind::Damaged),
            (npy(NpyReadError::Zip(unpacked())), ErrorKind::Unavailable),
            (
                npy(NpyReadError::Io(io(io::ErrorKind::PermissionDenied))),
                ErrorKind::Unavailable,
            ),
            (
                FileFault::Csv(CsvError::Separator(';')),
                ErrorKind::InvalidInput,
            ),
            (
                FileFault::Column(ColumnError::Missing(0)),
                ErrorKind::InvalidInput,
            ),
            (
                FileFault::Column(ColumnError::Kind("date32".to_owned())),
                ErrorKind::Unsupported,
            ),
        ] {
            assert_eq!(fault.kind(), kind, "{fault:?}");
        }
    }

    #[cfg(feature = "geoparquet")]
    #[test]
    fn full_disks_are_no_damage_of_tables() {
        use arrow_schema::ArrowError;
        use parquet::errors::ParquetError;

        let full = || io::Error::from(io::ErrorKind::StorageFull);
        for fault in [
            FileFault::from(ParquetError::from(full())),
            FileFault::from(ArrowError::from(full())),
        ] {
            assert!(matches!(fault, FileFault::Io(_)), "{fault:?}");
        }
        let general = ParquetError::General("no footer".to_owned());
        assert_eq!(FileFault::from(general).kind(), ErrorKind::Damaged);
    }
}
