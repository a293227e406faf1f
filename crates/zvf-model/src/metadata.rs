//! Common parts of all metadata: JSON paths, errors and notes.

use core::fmt;

use serde_json::{Map, Value};
use zvf_format::{
    links::LinkWidthError,
    numeric::DtypeError,
    path::{NumberFault, SegmentError},
};

use crate::{
    error_kind::ErrorKind,
    grid::{BinsError, GridError, ScaleError},
    key::{Key, KeyError},
};

pub(crate) mod dialect;
mod fields;
mod members;
mod parse;
mod places;

pub use crate::excerpt::Excerpt;
pub(crate) use fields::{Fields, JsonField, Noter};
pub(crate) use members::JsonMembers;
pub(crate) use parse::Document;

/// An attribute object, as parsed and preserved.
pub type Attributes = Map<String, Value>;

/// Unusable metadata: file, path and fault.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: {path}: {fault}")]
pub struct MetadataError {
    /// The node or file.
    pub key: Key,
    /// The path in its JSON.
    pub path: JsonPath,
    /// The fault.
    pub fault: MetadataFault,
}

/// A tolerated fault of metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataNote {
    /// The path in the JSON of the node.
    pub path: JsonPath,
    /// The fault.
    pub fault: MetadataFault,
    /// The value assumed by the reader.
    pub assumed: Assumed,
}

impl MetadataError {
    /// Returns the class of the error: [`ErrorKind::Damaged`], unless a newer version reads the
    /// store.
    pub fn kind(&self) -> ErrorKind {
        match self.fault {
            MetadataFault::Capabilities(_)
            | MetadataFault::Convention(_)
            | MetadataFault::OctreeChunks
            | MetadataFault::ManifestBlocks(_) => ErrorKind::Unsupported,
            _ => ErrorKind::Damaged,
        }
    }
}

impl MetadataNote {
    /// Returns the note of a member that occurs twice in its object.
    pub(crate) fn repeated(path: &str) -> Self {
        let name = path.rsplit('.').next().unwrap_or(path);
        Self {
            path: JsonPath(path.into()),
            fault: MetadataFault::Twice(Excerpt::of(name)),
            assumed: Assumed::Last,
        }
    }
}

impl fmt::Display for MetadataNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.path, self.fault, self.assumed)
    }
}

/// Value that a reader assumes in place of invalid metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assumed {
    /// The value found.
    AsFound,
    /// The last of several.
    Last,
    /// The default of the format for an absent field.
    Default,
    /// No value at all.
    Nothing,
    /// The value in the name of the node.
    FromPath,
    /// The value derived from the structure of the store.
    FromStructure,
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsFound => "used unchanged",
            Self::Last => "the last one is used",
            Self::Default => "the default is used",
            Self::Nothing => "ignored",
            Self::FromPath => "the node's name is used",
            Self::FromStructure => "the structure of the store decides",
        })
    }
}

/// A value, and the faults tolerated while reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted<T> {
    /// The value.
    pub value: T,
    /// Tolerated faults.
    pub notes: Vec<MetadataNote>,
}

/// A path in a JSON document: `attributes.zarr_vectors.bounds[0][1]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPath(Box<str>);

impl JsonPath {
    /// Returns the path as text; empty for the whole document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JsonPath {
    /// Formats the whole document as `$`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "$" } else { &self.0 })
    }
}

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "JSON's names say it")]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

impl JsonKind {
    /// Returns the kind of `value`.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// Fault at one path of metadata.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// The bytes exceed the limit for parsing.
    #[error("{bytes} bytes, more than the limit of {limit}")]
    Size {
        /// Their number.
        bytes: usize,
        /// Maximum number.
        limit: usize,
    },
    /// Invalid JSON, or nested too deeply.
    #[error("not valid JSON: line {line}, column {column}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A required field is absent or null.
    #[error("missing")]
    Missing,
    /// Another kind of value.
    #[error("{found}, not {expected}")]
    Kind {
        /// Required kind.
        expected: JsonKind,
        /// Actual kind.
        found: JsonKind,
    },
    /// A number that must be whole and within limits.
    #[error("{found} is not a whole number from {min} to {max}")]
    Integer {
        /// The number as written.
        found: Excerpt,
        /// The least allowed.
        min: i64,
        /// The most allowed.
        max: u64,
    },
    /// A number outside the range of the field.
    #[error("{found} is not {expected}")]
    Range {
        /// The number.
        found: f64,
        /// Required range.
        expected: &'static str,
    },
    /// A list of another length.
    #[error("{found} values, not {expected}")]
    Length {
        /// Expected number.
        expected: usize,
        /// Their number.
        found: usize,
    },
    /// Too many dimensions.
    #[error("{found} dimensions, more than {limit}")]
    Rank {
        /// Their number.
        found: usize,
        /// Maximum number.
        limit: usize,
    },
    /// A product of extents that does not fit 64 bits.
    #[error("the product of the extents exceeds 64 bits")]
    Product,
    /// A chunk that is not a whole number of inner chunks.
    #[error("an inner chunk of {inner} does not divide a chunk of {outer}")]
    InnerChunk {
        /// Extent of the inner chunk.
        inner: u64,
        /// Extent of the outer chunk.
        outer: u64,
    },
    /// A word that is not valid for the field.
    #[error("\"{found}\" is not {expected}")]
    Word {
        /// The word.
        found: Excerpt,
        /// Valid words.
        expected: &'static str,
    },
    /// A field with `must_understand` that is not supported.
    #[error("\"{0}\" must be understood to read the array, but is not supported")]
    Extension(Excerpt),
    /// Capabilities that a reader has to implement, and this one does not.
    #[error("the store requires {0}, which this version does not implement; use a newer version")]
    Capabilities(Excerpt),
    /// A convention that a reader has to implement, and this one does not.
    #[error(
        "the node requires the convention {0}, which this version does not implement; use a newer version"
    )]
    Convention(Excerpt),
    /// Chunks that are the leaves of octrees.
    #[error(
        "the chunks of the level are leaves of octrees, which this version does not read: a query of a box would miss vertices; rewrite the level with uniform chunks, or use a newer version"
    )]
    OctreeChunks,
    /// Blocks of a dense object index that are not of 64-bit integers.
    #[error(
        "blocks of manifests of type {0} are not supported; rewrite the object index with blocks of int64, or use a newer version"
    )]
    ManifestBlocks(Excerpt),
    /// A dtype that is not numeric.
    #[error("\"{found}\": {error}")]
    Dtype {
        /// The dtype.
        found: Excerpt,
        /// Reason that it is invalid.
        error: DtypeError,
    },
    /// A chunk key or link offset that is malformed.
    #[error("\"{found}\": {error}")]
    Segment {
        /// The text.
        found: Excerpt,
        /// Reason that it is invalid.
        error: SegmentError,
    },
    /// A level difference that is malformed.
    #[error("\"{found}\": {error}")]
    Delta {
        /// The text.
        found: Excerpt,
        /// Reason that it is invalid.
        error: NumberFault,
    },
    /// A link width out of range.
    #[error(transparent)]
    LinkWidth(#[from] LinkWidthError),
    /// A name that cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A duplicate of a value that must be unique.
    #[error("\"{0}\" occurs twice")]
    Twice(Excerpt),
    /// Two parts of the metadata that contradict each other.
    #[error("{found} disagrees with {with}")]
    Disagrees {
        /// The value here.
        found: Excerpt,
        /// The part that it contradicts.
        with: &'static str,
    },
    /// A range that ends before it starts.
    #[error("a range from {start} to {stop}")]
    Inverted {
        /// First of the range.
        start: i64,
        /// One after its last.
        stop: i64,
    },
    /// Bins that do not fill a chunk.
    #[error(transparent)]
    Bins(#[from] BinsError),
    /// A chunk outside an array, or an array that is not a grid of chunks.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A level's chunk shape that is not a multiple of the root's.
    #[error(transparent)]
    Scale(#[from] ScaleError),
}
