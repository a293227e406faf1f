//! What all metadata have in common: places in JSON, errors and notes.

use core::fmt;

use serde_json::{Map, Value};
use zvf_format::{
    links::LinkWidthError,
    numeric::DtypeError,
    path::{NumberFault, SegmentError},
};

use crate::{
    grid::{BinsError, GridError, ScaleError},
    key::{Key, KeyError},
};

mod fields;

pub use crate::excerpt::Excerpt;
pub(crate) use fields::{Fields, JsonField, Noter};

/// An attribute object, as parsed and preserved.
pub type Attributes = Map<String, Value>;

/// Metadata that cannot be read: which file, where in it, what is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: {path}: {fault}")]
pub struct MetadataError {
    /// The node or file.
    pub key: Key,
    /// The place in its JSON.
    pub path: JsonPath,
    /// What is wrong there.
    pub fault: MetadataFault,
}

/// Metadata that are wrong and were read past.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataNote {
    /// The place in the JSON of the node.
    pub path: JsonPath,
    /// What was found there.
    pub fault: MetadataFault,
    /// What the reader went on with.
    pub assumed: Assumed,
}

impl fmt::Display for MetadataNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.path, self.fault, self.assumed)
    }
}

/// What a reader goes on with where metadata are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assumed {
    /// The value as it was found.
    AsFound,
    /// The default the format gives for an absent field.
    Default,
    /// No value at all.
    Nothing,
    /// What the node's own name says.
    FromPath,
    /// What the structure of the store says.
    FromStructure,
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsFound => "taken as it is",
            Self::Default => "the default is used",
            Self::Nothing => "ignored",
            Self::FromPath => "the node's name is used",
            Self::FromStructure => "the structure of the store decides",
        })
    }
}

/// A value, and what was wrong around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted<T> {
    /// What was read.
    pub value: T,
    /// What was read past.
    pub notes: Vec<MetadataNote>,
}

/// A place in a JSON document: `attributes.zarr_vectors.bounds[0][1]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPath(Box<str>);

impl JsonPath {
    /// The path as text; empty for the whole document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JsonPath {
    /// The whole document shows as `$`.
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
    /// The kind of `value`.
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

/// What is wrong at one place of metadata.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// More bytes than the limit allows to parse.
    #[error("{bytes} bytes, more than the limit of {limit}")]
    Size {
        /// How many there are.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// No JSON, or nested too deeply.
    #[error("no JSON: line {line}, column {column}")]
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
        /// What the field must be.
        expected: JsonKind,
        /// What it is.
        found: JsonKind,
    },
    /// A number that must be whole and within limits.
    #[error("{found} is no whole number from {least} to {most}")]
    Integer {
        /// The number as written.
        found: Excerpt,
        /// The least allowed.
        least: i64,
        /// The most allowed.
        most: u64,
    },
    /// A number outside what makes sense for the field.
    #[error("{found} is not {expected}")]
    Range {
        /// The number.
        found: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A list of another length.
    #[error("{found} values, not {expected}")]
    Length {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// More dimensions than any array has.
    #[error("{found} dimensions, more than {limit}")]
    Rank {
        /// How many there are.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A product of extents that does not fit 64 bits.
    #[error("the extents multiply to more than 64 bits hold")]
    Product,
    /// A chunk that is not a whole number of inner chunks.
    #[error("an inner chunk of {inner} does not divide a chunk of {outer}")]
    InnerChunk {
        /// Extent of the inner chunk.
        inner: u64,
        /// Extent of the outer chunk.
        outer: u64,
    },
    /// A word that is none of those the field takes.
    #[error("\"{found}\" is not {expected}")]
    Word {
        /// The word.
        found: Excerpt,
        /// What it should be.
        expected: &'static str,
    },
    /// A field that Zarr demands to be understood, and is not.
    #[error("\"{0}\" must be understood to read the array, and is not")]
    Extension(Excerpt),
    /// A dtype that stands for no number.
    #[error("\"{found}\": {error}")]
    Dtype {
        /// The dtype.
        found: Excerpt,
        /// Why it is none.
        error: DtypeError,
    },
    /// A chunk key or link offset that is malformed.
    #[error("\"{found}\": {error}")]
    Segment {
        /// The text.
        found: Excerpt,
        /// Why it is none.
        error: SegmentError,
    },
    /// A level difference that is malformed.
    #[error("\"{found}\": {error}")]
    Delta {
        /// The text.
        found: Excerpt,
        /// Why it is none.
        error: NumberFault,
    },
    /// A link width out of range.
    #[error(transparent)]
    LinkWidth(#[from] LinkWidthError),
    /// A name that cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A value that may stand once only.
    #[error("\"{0}\" stands there twice")]
    Twice(Excerpt),
    /// Two parts of the metadata that must agree and do not.
    #[error("{found} disagrees with {with}")]
    Disagrees {
        /// The value here.
        found: Excerpt,
        /// What it must agree with.
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
    /// A chunk outside an array, or an array that is no grid of chunks.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A level's chunk shape that is no multiple of the root's.
    #[error(transparent)]
    Scale(#[from] ScaleError),
}
