//! Why a query cannot be answered.

use core::fmt;

use zvf_format::{
    dictionary::DictionaryCodesError,
    fragment::FragmentIndexError,
    groups::GroupRangeInverted,
    int64s::Int64sError,
    links::{
        CrossChunkCellError, CrossChunkTableError, LinkRowsError, PermutationError,
        RaggedLinksError,
    },
    manifest::ManifestError,
    open_rows::OpenRowsError,
    vlen::VlenFrameError,
};
use zvf_model::{
    fetch::{FetchError, FetchProblem},
    grid::{ChunkCoord, ScaleError},
    key::{Key, KeyError},
    level::LevelId,
    metadata::MetadataError,
};

use crate::{
    closest::closest,
    predicate::{BindError, Scope},
};

/// Why a query cannot be answered. What happened below is the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Something that is read is damaged or missing.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Something cannot be read now.
    #[error(transparent)]
    Fetch(FetchError),
    /// Metadata cannot be understood.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A name in the store cannot be part of a key.
    #[error("{name:?} cannot be part of a key")]
    Name {
        /// The name.
        name: String,
        /// Why.
        source: KeyError,
    },
    /// The store has no such level.
    #[error("there is no level {level}{}", known(declared))]
    NoLevel {
        /// The level.
        level: LevelId,
        /// Levels that the root names.
        declared: Vec<LevelId>,
    },
    /// No level fits what was asked for.
    #[error("no level is as fine: level 0 itself has a larger scale")]
    NoScale,
    /// Every level has more vertices than may be given.
    #[error(
        "what is selected has {vertices} vertices in level {level}, and no level has fewer; \
         the budget is {budget}"
    )]
    OverVertices {
        /// The level with the fewest.
        level: LevelId,
        /// Vertices it has there.
        vertices: u64,
        /// Vertices that may be given.
        budget: u64,
    },
    /// An attribute that levels have in other forms.
    #[error(
        "{0}: has rows of another width in another level, which go into no one column; \
         leave it out, or name a level"
    )]
    Mixed(String),
    /// The level has no object of this id.
    #[error("there is no object {id} in level {level}; keep going to leave it out")]
    NoObject {
        /// The id.
        id: i64,
        /// The level.
        level: LevelId,
    },
    /// The level has no such group.
    #[error("there is no group {id} in level {level}; keep going to leave it out")]
    NoGroup {
        /// The group.
        id: u64,
        /// The level.
        level: LevelId,
    },
    /// Objects are asked for where there are none.
    #[error("level {0} has no objects")]
    NoObjects(LevelId),
    /// An attribute is asked for that is not there.
    #[error("there is no attribute {}{}", scoped(*scope, name), meant(&scoped(*scope, name), there))]
    NoAttribute {
        /// Whose it would be.
        scope: Option<Scope>,
        /// Its name.
        name: String,
        /// Attributes that are there, as far as is known.
        there: Vec<String>,
    },
    /// Which attributes there are, only a listing tells.
    #[error(
        "{}: cannot be listed, so nobody knows which attributes there are; \
         name the attributes to read with their scopes, or none", _0.key
    )]
    Nameless(#[source] FetchError),
    /// There is no further geometry of this name.
    #[error("there is no further geometry {0:?}")]
    NoGeometry(String),
    /// The predicate does not fit the attributes.
    #[error("the predicate cannot be asked of this level")]
    Bind(#[from] BindError),
    /// A part of a predicate looks at columns that have no row in common.
    #[error(
        "{part}: compares {} with {} attributes, which have no row in common; \
         join parts about each of them by and", left.name(), right.name()
    )]
    Scopes {
        /// The part.
        part: String,
        /// One of the scopes.
        left: Scope,
        /// The other.
        right: Scope,
    },
    /// A place or region with another number of axes than the store.
    #[error("{found} axes are given, the store has {expected}")]
    Axes {
        /// Axes of the store.
        expected: usize,
        /// Axes given.
        found: usize,
    },
    /// A chunk key with another number of coordinates than the level has.
    #[error("chunk {chunk} has {found} coordinates, those of level {level} have {expected}")]
    Chunk {
        /// The chunk.
        chunk: ChunkCoord,
        /// The level.
        level: LevelId,
        /// Coordinates it should have.
        expected: usize,
        /// Coordinates it has.
        found: usize,
    },
    /// A value is asked for where chunks are not made by an attribute.
    #[error("level {0} is not chunked by an attribute")]
    NotChunked(LevelId),
    /// What was asked for does not go with something else that was.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Vertices are in a form that is not decoded.
    #[error("{0}: vertices are encoded with Draco, which is not decoded")]
    Draco(Key),
    /// Links that the layout of the store has no place for.
    #[error(
        "{0}/cross_chunk_links: a store of 0.9 with links as generations before it kept them; \
         only early development versions wrote that, and it is not read"
    )]
    LegacyLinks(Key),
    /// The answer takes more memory than allowed.
    #[error(
        "{what} take {bytes} bytes, the memory budget is {budget}; \
         ask for less, or raise the budget"
    )]
    OverBudget {
        /// What.
        what: &'static str,
        /// Bytes they take.
        bytes: u64,
        /// The budget.
        budget: u64,
    },
}

/// What there is instead, as the end of a sentence.
fn known(names: &[impl fmt::Display]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; there is {}", names.join(", ")),
    }
}

/// The same, and which of them was likely meant.
fn meant(name: &str, there: &[String]) -> String {
    let mut text = known(there);
    if let Some(other) = closest(name, there.iter().map(String::as_str)) {
        text.push_str("; did you mean ");
        text.push_str(other);
        text.push('?');
    }
    text
}

fn scoped(scope: Option<Scope>, name: &str) -> String {
    match scope {
        None => name.to_owned(),
        Some(scope) => format!("{}.{name}", scope.name()),
    }
}

impl From<FetchError> for QueryError {
    fn from(error: FetchError) -> Self {
        match error.problem {
            FetchProblem::Damaged => Damage::new(&error.key.clone(), Fault::Fetch(error)).into(),
            _ => Self::Fetch(error),
        }
    }
}

/// Something that cannot be read as it stands.
#[derive(Debug, thiserror::Error)]
#[error("{key}{}", in_chunk(chunk.as_ref()))]
pub struct Damage {
    /// The array or object.
    pub key: Key,
    /// The chunk, where it is one of many.
    pub chunk: Option<ChunkCoord>,
    /// What is wrong.
    #[source]
    pub fault: Fault,
}

fn in_chunk(chunk: Option<&ChunkCoord>) -> String {
    chunk.map_or_else(String::new, |chunk| format!(", chunk {chunk}"))
}

impl Damage {
    pub(crate) fn new(key: &Key, fault: impl Into<Fault>) -> Self {
        Self {
            key: key.clone(),
            chunk: None,
            fault: fault.into(),
        }
    }

    pub(crate) fn in_chunk(key: &Key, chunk: &ChunkCoord, fault: impl Into<Fault>) -> Self {
        Self {
            key: key.clone(),
            chunk: Some(chunk.clone()),
            fault: fault.into(),
        }
    }
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It cannot be read.
    #[error("cannot be read")]
    Fetch(#[source] FetchError),
    /// It is listed, and not there.
    #[error("is listed, but missing")]
    MissingCell,
    /// It is needed, and not there.
    #[error("is missing")]
    Missing,
    /// It does not say which chunks it has.
    #[error("does not list its chunks")]
    Unlisted,
    /// It is another kind of node than it has to be.
    #[error("is not the kind of node it has to be")]
    Kind,
    /// It is no whole number of rows.
    #[error("{bytes} bytes are no whole number of {row} byte rows")]
    Rows {
        /// Bytes there are.
        bytes: u64,
        /// Bytes of a row.
        row: u64,
    },
    /// It has another number of rows than what it belongs to.
    #[error("{bytes} bytes do not make {rows} rows")]
    Uneven {
        /// Bytes there are.
        bytes: u64,
        /// Rows there should be.
        rows: u64,
    },
    /// It names a row that is not there.
    #[error("names row {row} of {rows}")]
    NoRow {
        /// The row.
        row: u64,
        /// How many there are.
        rows: u64,
    },
    /// It names a fragment that is not there.
    #[error("names fragment {fragment} of {fragments}")]
    NoFragment {
        /// The fragment.
        fragment: u32,
        /// How many there are.
        fragments: u32,
    },
    /// It names a chunk that has no vertices.
    #[error("names chunk {0}, which has no vertices")]
    NoChunk(ChunkCoord),
    /// A number beyond what is possible.
    #[error("a number is out of range")]
    Range,
    /// It has another number of values than something else says.
    #[error("has {found} items where {expected} are declared")]
    Count {
        /// Items there are.
        found: u64,
        /// Items there should be.
        expected: u64,
    },
    /// What is wrong with one row of it.
    #[error("row {row}")]
    Row {
        /// The row.
        row: u64,
        /// What is wrong.
        source: Box<Self>,
    },
    /// More of its rows than are told one by one.
    #[error("{0} more of its rows cannot be read")]
    MoreRows(u64),
    /// Two objects of the same id.
    #[error("has the id {0} twice")]
    Twice(i64),
    /// Ids that are declared to ascend and do not.
    #[error("is declared to be sorted, and is not")]
    Order,
    /// A fill value that its type does not have.
    #[error("has a fill value that is not of its type")]
    Fill,
    /// Text that is no UTF-8 or UTF-32.
    #[error("is no text")]
    Text,
    /// No fragment index.
    #[error("is no fragment index")]
    Fragments(#[from] FragmentIndexError),
    /// No manifest.
    #[error("is no manifest")]
    Manifest(#[from] ManifestError),
    /// No frame.
    #[error("is no frame of byte strings")]
    Frame(#[from] VlenFrameError),
    /// No integers.
    #[error("is no list of integers")]
    Int64s(#[from] Int64sError),
    /// A range of group members that goes backwards.
    #[error("is no range of members")]
    GroupRange(#[from] GroupRangeInverted),
    /// Offsets that do not fit.
    #[error("offsets do not fit the data")]
    OpenRows(#[from] OpenRowsError),
    /// No codes.
    #[error("is no column of codes")]
    Codes(#[from] DictionaryCodesError),
    /// No rows of links.
    #[error("are no links")]
    Links(#[from] LinkRowsError),
    /// No groups of links.
    #[error("are no links")]
    RaggedLinks(#[from] RaggedLinksError),
    /// No links between chunks.
    #[error("are no links between chunks")]
    CrossChunkCell(#[from] CrossChunkCellError),
    /// No table of links between chunks.
    #[error("is no table of links between chunks")]
    CrossChunkTable(#[from] CrossChunkTableError),
    /// No permutation.
    #[error("has an order of ends that is none")]
    Permutation(#[from] PermutationError),
    /// Links of another width than others of the same level.
    #[error("holds links of {found} ends, where others have {expected}")]
    Width {
        /// Ends of its links.
        found: usize,
        /// Ends of the others.
        expected: usize,
    },
    /// Chunk keys of another length than those of the level.
    #[error("has chunk keys of {found} numbers, the level has {expected}")]
    Arity {
        /// Numbers of its keys.
        found: usize,
        /// Numbers of the level's.
        expected: usize,
    },
    /// Links of which nothing says how many ends they have.
    #[error("does not say how many ends its links have")]
    NoWidth,
    /// Rows that are no integers.
    #[error("holds no integers, as rows must be")]
    NoIntegers,
    /// Values of another type than the same attribute has elsewhere.
    #[error("has values of another type than the same attribute elsewhere")]
    Values,
    /// A name that stands for no cell of links.
    #[error("is no cell of links")]
    LinkCell,
    /// Chunks of a size that links cannot be followed to.
    #[error("has chunks that links cannot be followed to")]
    Scale(#[from] ScaleError),
}
