//! Errors of queries.

use zvf_catalog::{CatalogError, Damage, Scope};
use zvf_model::{
    error_kind::ErrorKind, fetch::FetchError, grid::ChunkCoord, level::LevelId,
    metadata::MetadataError,
};

use crate::predicate::BindError;

/// Reason that a query fails. The cause is the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The level cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A jump between levels leads beyond level 0.
    #[error("there is no level {levels} finer than level {level}; level 0 is the finest")]
    NoFinerLevel {
        /// The level where the jump starts.
        level: LevelId,
        /// The number of levels.
        levels: u32,
    },
    /// No level matches the request.
    #[error("no level has so small a scale: the scale of level 0 is larger already")]
    NoScale,
    /// The links between two levels name the vertices that the finer one had before it changed.
    #[error(
        "level {0} was built before a finer level changed, so the links between them are outdated; \
         refresh the coarser levels"
    )]
    OutdatedLinks(LevelId),
    /// Every level has more vertices than the budget.
    #[error(
        "the selection has {vertices} vertices on level {level}, and no {} has fewer, but the \
         budget is {budget}{}",
        if outdated.is_empty() { "level" } else { "current level" },
        outdated_levels(outdated)
    )]
    OverVertices {
        /// The level with the fewest vertices.
        level: LevelId,
        /// Number of selected vertices in it.
        vertices: u64,
        /// The budget of vertices.
        budget: u64,
        /// Levels that were not counted, because a finer level changed since they were built.
        outdated: Vec<LevelId>,
    },
    /// An attribute has different forms on different levels.
    #[error(
        "{0}: has a different number of channels on another level, so its rows do not form one \
         column; leave it out, or name a level"
    )]
    Mixed(String),
    /// The level has no object of this id.
    #[error("level {level} has no object {id}; keep going to skip it")]
    NoObject {
        /// The id.
        id: i64,
        /// The level.
        level: LevelId,
    },
    /// The level has no such group.
    #[error("level {level} has no group {id}; keep going to skip it")]
    NoGroup {
        /// The group.
        id: u64,
        /// The level.
        level: LevelId,
    },
    /// The level has no group of this name.
    #[error(
        "level {level} has no group named {name:?}{}",
        .closest.as_ref().map_or_else(String::new, |other| format!("; did you mean {other:?}?"))
    )]
    NoGroupName {
        /// The name.
        name: String,
        /// The level.
        level: LevelId,
        /// The name that was likely meant.
        closest: Option<String>,
    },
    /// There is no additional geometry of this name.
    #[error("there is no additional geometry {0:?}")]
    NoGeometry(String),
    /// The predicate does not match the attributes.
    #[error("the predicate does not match the attributes of this level")]
    Bind(#[from] BindError),
    /// A part of a predicate combines columns that have no row in common.
    #[error(
        "{part}: compares {} attributes with {} attributes, whose rows do not correspond; \
         write a condition for each of them and join both with `and`", left.name(), right.name()
    )]
    Scopes {
        /// The part.
        part: String,
        /// One of the scopes.
        left: Scope,
        /// The other.
        right: Scope,
    },
    /// A position or region has another number of axes than the store.
    #[error("{found} axes are given, but the store has {expected}")]
    Axes {
        /// Axes of the store.
        expected: usize,
        /// Axes given.
        found: usize,
    },
    /// A position so far away that squares of distances to it overflow.
    #[error(
        "distances to coordinates beyond 1e150 overflow: name a position in the bounds of the store"
    )]
    Far,
    /// A chunk key with another number of coordinates than the level has.
    #[error("chunk {chunk} has {found} coordinates, but chunks of level {level} have {expected}")]
    Chunk {
        /// The chunk.
        chunk: ChunkCoord,
        /// The level.
        level: LevelId,
        /// Number of coordinates of the level.
        expected: usize,
        /// Number of coordinates given.
        found: usize,
    },
    /// The query selects by a chunking value, but the level is not chunked by an attribute.
    #[error("level {0} is not chunked by an attribute")]
    NotChunked(LevelId),
    /// The combination of options is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl QueryError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Catalog(error) => error.kind(),
            Self::NoFinerLevel { .. }
            | Self::NoObject { .. }
            | Self::NoGroup { .. }
            | Self::NoGroupName { .. }
            | Self::NoGeometry(_) => ErrorKind::NotFound,
            Self::OutdatedLinks(_) => ErrorKind::Conflict,
            Self::OverVertices { .. } => ErrorKind::OverBudget,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::NoScale
            | Self::Mixed(_)
            | Self::Bind(_)
            | Self::Scopes { .. }
            | Self::Axes { .. }
            | Self::Far
            | Self::Chunk { .. }
            | Self::NotChunked(_) => ErrorKind::InvalidInput,
        }
    }
}

impl From<FetchError> for QueryError {
    fn from(error: FetchError) -> Self {
        Self::Catalog(error.into())
    }
}

impl From<Damage> for QueryError {
    fn from(damage: Damage) -> Self {
        Self::Catalog(damage.into())
    }
}

impl From<MetadataError> for QueryError {
    fn from(error: MetadataError) -> Self {
        Self::Catalog(error.into())
    }
}

/// Returns the end of a message about levels that were not considered.
fn outdated_levels(levels: &[LevelId]) -> String {
    let names: Vec<String> = levels.iter().map(LevelId::to_string).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("; level {one} is outdated: refresh it"),
        many => format!("; levels {} are outdated: refresh them", many.join(", ")),
    }
}
