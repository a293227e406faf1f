//! Errors: the file, the place in it, and the fault.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use zvf::numeric::Kind;
use zvf_model::{base64::Base64Error, metadata::MetadataError};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}{place}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The place in the file.
    pub place: FilePlace,
    /// The cause.
    #[source]
    pub fault: FileFault,
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
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Byte(at) => write!(f, ", byte {at}"),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Member(name) => write!(f, ", member {name:?}"),
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
    Zip(#[from] zip::result::ZipError),
    /// JSON that cannot be parsed.
    #[error("is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// Metadata of a Zarr array that cannot be used.
    #[error("the metadata of the array cannot be used")]
    Metadata(#[source] Box<MetadataError>),
    /// A Parquet file that cannot be read or written.
    #[cfg(feature = "geoparquet")]
    #[error("the table cannot be read or written")]
    Parquet(#[source] Box<parquet::errors::ParquetError>),
    /// Columns that have no form in a table.
    #[cfg(feature = "geoparquet")]
    #[error("the columns cannot be read or written")]
    Arrow(#[source] Box<arrow_schema::ArrowError>),
    /// A column that has no form in a table.
    #[cfg(feature = "geoparquet")]
    #[error("a column cannot be converted")]
    Conversion(#[source] Box<zvf_arrow::ConversionError>),
    /// A library cannot decode or encode a part of the file.
    #[error("{part}")]
    Library {
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
}

impl From<MetadataError> for FileFault {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(Box::new(error))
    }
}

#[cfg(feature = "geoparquet")]
impl From<parquet::errors::ParquetError> for FileFault {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Parquet(Box::new(error))
    }
}

#[cfg(feature = "geoparquet")]
impl From<arrow_schema::ArrowError> for FileFault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Arrow(Box::new(error))
    }
}

#[cfg(feature = "geoparquet")]
impl From<zvf_arrow::ConversionError> for FileFault {
    fn from(error: zvf_arrow::ConversionError) -> Self {
        Self::Conversion(Box::new(error))
    }
}

/// Lists names; `none` without any.
fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

impl FileFault {
    /// Returns the error of a field.
    pub fn field(field: &'static str, found: impl fmt::Display, expected: &'static str) -> Self {
        Self::Field {
            field,
            found: found.to_string(),
            expected,
        }
    }

    /// Returns the error of a library that cannot decode or encode a part of the file.
    pub fn library(part: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Box::new(source);
        Self::Library { part, source }
    }

    /// Returns the error of text that is not base64.
    pub fn base64(found: Base64Error) -> Self {
        let expected = "the text is damaged; write the file again";
        Self::field("base64 text", found, expected)
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
