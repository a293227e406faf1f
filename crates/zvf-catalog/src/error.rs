//! Errors of open levels.

use core::fmt;

use zvf_format::{
    dictionary::DictionaryCodesError,
    fragment::FragmentIndexError,
    fragment_lengths::FragmentLengthsError,
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
    closest::closest,
    draco::DracoError,
    error_kind::ErrorKind,
    fetch::{FetchError, FetchProblem},
    grid::{ChunkCoord, ScaleError},
    key::{Key, KeyError},
    level::LevelId,
    metadata::MetadataError,
    scope::Scope,
};

/// Reason that a level cannot be read. The cause is the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The data read is damaged or missing.
    #[error(transparent)]
    Damaged(Damage),
    /// The data is not damaged but cannot be read: not delivered, over the memory budget, or in an
    /// encoding that is not decoded here.
    #[error(transparent)]
    Fetch(FetchError),
    /// Metadata is invalid.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A name in the store cannot be part of a key.
    #[error("{name:?} cannot be part of a key")]
    Name {
        /// The name.
        name: String,
        /// The fault of the name.
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
    /// The level is being built.
    #[error(
        "{0}: the level is being built, and its arrays do not list their chunks yet; \
         read it when its writer has finished"
    )]
    Unfinished(Key),
    /// The level has no objects.
    #[error("level {0} has no objects")]
    NoObjects(LevelId),
    /// An attribute does not exist.
    #[error("there is no attribute {}{}", scoped(*scope, name), names_and_suggestion(*scope, name, present))]
    NoAttribute {
        /// The requested scope.
        scope: Option<Scope>,
        /// Its name.
        name: String,
        /// Known attributes.
        present: Vec<String>,
    },
    /// Only a listing reveals the existing attributes.
    #[error(
        "{}: cannot be listed, so its attributes are unknown; \
         name the attributes to read with their scopes, or select none", _0.key
    )]
    Nameless(#[source] FetchError),
    /// The level has a form that is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The encoding of vertices is not supported.
    #[error("{node}: vertices have the unknown encoding {encoding:?}")]
    Encoding {
        /// The array of the vertices.
        node: Key,
        /// The encoding.
        encoding: String,
    },
    /// The store has links in a form that its layout does not define.
    #[error(
        "{0}/cross_chunk_links: a store of 0.9 has links in the form of older generations, which \
         only early development versions wrote; this form cannot be read"
    )]
    LegacyLinks(Key),
    /// The data exceeds the memory budget.
    #[error(
        "{what} take {bytes} bytes, but the memory budget is {budget}; \
         select less, or raise the budget"
    )]
    OverBudget {
        /// The data, in the plural.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// The budget.
        budget: u64,
    },
}

/// Formats the existing names as the end of a sentence.
fn known(names: &[impl fmt::Display]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; there is {}", names.join(", "))
    }
}

impl CatalogError {
    /// Returns whether the message says what an unknown name is likely to mean.
    pub fn has_suggestion(&self) -> bool {
        match self {
            Self::NoAttribute {
                scope,
                name,
                present,
            } => suggestion(*scope, name, present).is_some(),
            _ => false,
        }
    }
}

/// Formats the existing names and the likely intended one.
fn names_and_suggestion(scope: Option<Scope>, name: &str, present: &[String]) -> String {
    let suggestion = suggestion(scope, name, present).unwrap_or_default();
    format!("{}{suggestion}", known(present))
}

/// Returns what a name that does not exist is likely to mean.
fn suggestion(scope: Option<Scope>, name: &str, present: &[String]) -> Option<String> {
    if scope.is_none() && name.eq_ignore_ascii_case("nan") {
        let text = "; NaN is null, which equals nothing: write `is null` or `is not null`";
        return Some(text.to_owned());
    }
    let with_scope = scoped(scope, name);
    let names = || present.iter().map(String::as_str);
    // Names may be listed with scopes where none is requested.
    let other = closest(&with_scope, names()).or_else(|| {
        let other = closest(name, names().map(without_scope))?;
        names().find(|name| without_scope(name) == other)
    });
    if let Some((channel, attribute)) = channel_of(name, present) {
        return Some(format!(
            "; {name} is channel {channel} of {attribute}, in a predicate {attribute}[{channel}]"
        ));
    }
    other.map(|other| format!("; did you mean {other}?"))
}

/// Returns a name without its scope.
fn without_scope(name: &str) -> &str {
    let scope = Scope::ALL.into_iter().find_map(|scope| {
        let rest = name.strip_prefix(scope.name())?;
        rest.strip_prefix('.')
    });
    scope.unwrap_or(name)
}

/// Names of the channels of attributes, in files that have a column for each.
const CHANNELS: [(&str, &[&str]); 3] = [
    ("rgba", &["red", "green", "blue", "alpha"]),
    ("rgb", &["red", "green", "blue"]),
    ("normal", &["nx", "ny", "nz"]),
];

/// Returns the channel that a name means in other programs, and the attribute that has it.
fn channel_of<'a>(name: &str, present: &'a [String]) -> Option<(usize, &'a str)> {
    CHANNELS.into_iter().find_map(|(attribute, channels)| {
        let channel = channels.iter().position(|channel| *channel == name)?;
        let mut present = present.iter();
        let found = present.find(|other| without_scope(other) == attribute)?;
        Some((channel, found.as_str()))
    })
}

fn scoped(scope: Option<Scope>, name: &str) -> String {
    match scope {
        None => name.to_owned(),
        Some(scope) => format!("{}.{name}", scope.name()),
    }
}

impl CatalogError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged(damage) => damage.kind(),
            Self::Fetch(error) => error.kind(),
            Self::Metadata(error) => error.kind(),
            Self::Name { .. } => ErrorKind::Damaged,
            Self::NoLevel { .. } | Self::NoAttribute { .. } => ErrorKind::NotFound,
            Self::Unfinished(_) => ErrorKind::Conflict,
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            Self::Nameless(_)
            | Self::Unsupported(_)
            | Self::Encoding { .. }
            | Self::LegacyLinks(_) => ErrorKind::Unsupported,
            Self::NoObjects(_) => ErrorKind::InvalidInput,
        }
    }
}

impl CatalogError {
    /// Returns whether data does not fit into the memory budget, so that less of it at a time may.
    pub fn is_over_budget(&self) -> bool {
        let problem = match self {
            Self::OverBudget { .. } => return true,
            Self::Fetch(error)
            | Self::Damaged(Damage {
                fault: Fault::Fetch(error),
                ..
            }) => Some(error.problem),
            _ => None,
        };
        problem == Some(FetchProblem::OverBudget)
    }
}

impl From<FetchError> for CatalogError {
    fn from(error: FetchError) -> Self {
        match error.problem {
            FetchProblem::Damaged => Damage::new(&error.key.clone(), Fault::Fetch(error)).into(),
            _ => Self::Fetch(error),
        }
    }
}

/// A budget that is too small or a codec that is not built in is not damage.
impl From<Damage> for CatalogError {
    fn from(damage: Damage) -> Self {
        match damage {
            Damage {
                fault: Fault::Fetch(error),
                ..
            } if error.kind() != ErrorKind::Damaged && error.kind() != ErrorKind::Unavailable => {
                Self::Fetch(error)
            }
            damage => Self::Damaged(damage),
        }
    }
}

/// Data that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{key}{}", in_chunk(chunk.as_ref()))]
pub struct Damage {
    /// The array or object.
    pub key: Key,
    /// The chunk, if there are several.
    pub chunk: Option<ChunkCoord>,
    /// The fault.
    #[source]
    pub fault: Fault,
}

fn in_chunk(chunk: Option<&ChunkCoord>) -> String {
    chunk.map_or_else(String::new, |chunk| format!(", chunk {chunk}"))
}

impl Damage {
    /// Returns the class of the fault: [`ErrorKind::Damaged`], unless the data was not delivered.
    pub fn kind(&self) -> ErrorKind {
        let mut fault = &self.fault;
        while let Fault::Row { source, .. } = fault {
            fault = source;
        }
        match fault {
            Fault::Fetch(error) => error.kind(),
            Fault::Draco(DracoError::Disabled) => ErrorKind::Unsupported,
            Fault::Draco(DracoError::TooLarge(_)) => ErrorKind::OverBudget,
            _ => ErrorKind::Damaged,
        }
    }

    /// Creates the damage of an array or object.
    pub fn new(key: &Key, fault: impl Into<Fault>) -> Self {
        Self {
            key: key.clone(),
            chunk: None,
            fault: fault.into(),
        }
    }

    /// Creates the damage of a chunk of an array.
    pub fn in_chunk(key: &Key, chunk: &ChunkCoord, fault: impl Into<Fault>) -> Self {
        Self {
            key: key.clone(),
            chunk: Some(chunk.clone()),
            fault: fault.into(),
        }
    }
}

/// Fault of damaged data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It cannot be read.
    #[error("cannot be read")]
    Fetch(#[source] FetchError),
    /// The cell is listed but missing.
    #[error("is listed, but missing")]
    MissingCell,
    /// It is required but missing.
    #[error("is missing")]
    Missing,
    /// It does not list its chunks, and the store cannot be listed.
    #[error(
        "does not list its chunks, and they cannot be found without a listing; open a copy in a folder"
    )]
    Unlisted,
    /// It is the wrong kind of node.
    #[error("is a node of the wrong kind")]
    Kind,
    /// Its length is not a whole number of rows.
    #[error("{bytes} bytes are not a whole number of rows of {row} bytes")]
    Rows {
        /// Its length in bytes.
        bytes: u64,
        /// Length of a row in bytes.
        row: u64,
    },
    /// Its number of rows differs from that of related data.
    #[error("{bytes} bytes do not divide into {rows} rows")]
    Uneven {
        /// Its length in bytes.
        bytes: u64,
        /// Expected number of rows.
        rows: u64,
    },
    /// Its vertices cannot be decoded.
    #[error(transparent)]
    Draco(#[from] DracoError),
    /// It is in the order of rows of the writer, but the vertices are in another.
    #[error("refers to an order of vertices that their Draco stream has not kept")]
    OrderLost,
    /// It names a missing row.
    #[error("names row {row} of {rows}")]
    NoRow {
        /// The row.
        row: u64,
        /// Number of rows.
        rows: u64,
    },
    /// It names a missing fragment.
    #[error("names fragment {fragment} of {fragments}")]
    NoFragment {
        /// The fragment.
        fragment: u32,
        /// Number of fragments.
        fragments: u32,
    },
    /// It names a chunk that has no vertices.
    #[error("names chunk {0}, which has no vertices")]
    NoChunk(ChunkCoord),
    /// A level that holds the rest of an additive level does not exist.
    #[error("does not exist, but holds the rest of level {0}, which is additive")]
    NoRest(LevelId),
    /// An additive level in a store that does not declare additive levels.
    #[error(
        "is additive, but the root does not list the capability additive_levels, so that readers \
         disagree about its content"
    )]
    UndeclaredAdditive,
    /// A number is out of range.
    #[error("a number is out of range")]
    Range,
    /// Its number of values differs from the declared number.
    #[error("has {found} items where {expected} are declared")]
    Count {
        /// Number of items found.
        found: u64,
        /// Expected number of items.
        expected: u64,
    },
    /// A fault of one of its rows.
    #[error("row {row}")]
    Row {
        /// The row.
        row: u64,
        /// The fault.
        source: Box<Self>,
    },
    /// More of its rows have faults than are reported one by one.
    #[error("{0} more rows cannot be read")]
    MoreRows(u64),
    /// Two objects have the same id.
    #[error("contains the id {0} twice")]
    Twice(i64),
    /// Ids are declared to ascend but do not.
    #[error("is declared as sorted, but is not")]
    Order,
    /// A fill value that its type cannot represent.
    #[error("has a fill value of another type")]
    Fill,
    /// Text that is not valid UTF-8 or UTF-32.
    #[error("is not valid text")]
    Text,
    /// Invalid fragment index.
    #[error("is not a fragment index")]
    Fragments(#[from] FragmentIndexError),
    /// Invalid lengths of fragments in the inventory of the store.
    #[error("has other bytes than lengths of fragments in the inventory of the store")]
    FragmentLengths(#[from] FragmentLengthsError),
    /// Invalid manifest.
    #[error("is not a manifest")]
    Manifest(#[from] ManifestError),
    /// Invalid frame.
    #[error("is not a frame of byte strings")]
    Frame(#[from] VlenFrameError),
    /// Invalid integers.
    #[error("is not a list of integers")]
    Int64s(#[from] Int64sError),
    /// A range of group members with its end before its start.
    #[error("is not a range of members")]
    GroupRange(#[from] GroupRangeInverted),
    /// Invalid offsets.
    #[error("offsets do not fit the data")]
    OpenRows(#[from] OpenRowsError),
    /// Invalid dictionary codes.
    #[error("is not a column of codes")]
    Codes(#[from] DictionaryCodesError),
    /// Invalid rows of links.
    #[error("is not a cell of links")]
    Links(#[from] LinkRowsError),
    /// Invalid groups of links.
    #[error("is not a cell of groups of links")]
    RaggedLinks(#[from] RaggedLinksError),
    /// Invalid cross-chunk links.
    #[error("is not a cell of links between chunks")]
    CrossChunkCell(#[from] CrossChunkCellError),
    /// Invalid table of cross-chunk links.
    #[error("is not a table of links between chunks")]
    CrossChunkTable(#[from] CrossChunkTableError),
    /// Invalid permutation.
    #[error("has an invalid order of ends")]
    Permutation(#[from] PermutationError),
    /// The width of links differs from that of others on the same level.
    #[error("holds links of {found} ends, but others have {expected}")]
    Width {
        /// Width of its links.
        found: usize,
        /// Width of the others.
        expected: usize,
    },
    /// The length of its chunk keys differs from that of the level.
    #[error("has chunk keys of {found} numbers, but the level has {expected}")]
    Arity {
        /// Length of its keys.
        found: usize,
        /// Length of the level's keys.
        expected: usize,
    },
    /// Links without a declared number of ends.
    #[error("does not declare the number of ends of its links")]
    NoWidth,
    /// Rows that are not integers.
    #[error("holds values that are not integers, but rows of links are integers")]
    NoIntegers,
    /// The type of values differs from that of the same attribute elsewhere.
    #[error("has values of another type than other parts of the attribute")]
    Values,
    /// A name that is not a cell of links.
    #[error("is not the name of a cell of links")]
    LinkCell,
    /// Chunks of a size that links cannot refer to.
    #[error("has a chunk size that links cannot refer to")]
    Scale(#[from] ScaleError),
}
