//! Error of changing a level.

use core::fmt;

use zvf_model::{
    grid::ChunkCoord,
    key::{Key, KeyError},
    layout::AddressError,
};

use crate::error::BuildError;

/// Error of changing a level.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The added geometry is invalid.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The store uses a feature that edits do not support.
    #[error("{0}; such stores can be read but not edited")]
    Unsupported(&'static str),
    /// Data that the change needs is damaged.
    #[error("{node}{} is damaged: {why}", in_chunk(chunk.as_ref()))]
    Damaged {
        /// The node.
        node: Key,
        /// The chunk, if the damage is in one.
        chunk: Option<ChunkCoord>,
        /// Description of the damage.
        why: String,
    },
    /// A required node or cell is missing.
    #[error("{node}{} is missing", in_chunk(chunk.as_ref()))]
    Missing {
        /// The node.
        node: Key,
        /// The chunk of a missing cell.
        chunk: Option<ChunkCoord>,
    },
    /// An object to change does not exist.
    #[error("there is no object {0}")]
    UnknownObject(i64),
    /// An object to add exists.
    #[error("object {0} exists already; replace it or choose another id")]
    ObjectExists(i64),
    /// The added geometry is of another kind than the store.
    #[error("the store holds {expected}, not {found}")]
    Kind {
        /// Kind of the store.
        expected: &'static str,
        /// Kind of the addition.
        found: &'static str,
    },
    /// The addition lacks an attribute of the store.
    #[error("the store has the {what} {name:?}, which the addition lacks")]
    MissingAttribute {
        /// Role of the attribute.
        what: &'static str,
        /// Name of the attribute.
        name: String,
    },
    /// The addition has an attribute that the store lacks.
    #[error("the store has no {what} {name:?}, so its rows would lack a value")]
    UnknownAttribute {
        /// Role of the attribute.
        what: &'static str,
        /// Name of the attribute.
        name: String,
    },
    /// An attribute has another type.
    #[error("the {what} {name:?} is {expected} in the store, but {found} in the addition")]
    AttributeType {
        /// Role of the attribute.
        what: &'static str,
        /// Name of the attribute.
        name: String,
        /// Type in the store.
        expected: String,
        /// Type of the addition.
        found: String,
    },
    /// An attribute has more words than its code type can distinguish.
    #[error("the {what} {name:?} has more words than {dtype} codes can distinguish")]
    TextType {
        /// Role of the attribute.
        what: &'static str,
        /// Name of the attribute.
        name: String,
        /// Type of the codes.
        dtype: String,
    },
    /// Links have another number of ends.
    #[error("added links have {found} ends, but links of the store have {expected}")]
    LinkWidth {
        /// Number of ends in the store.
        expected: usize,
        /// Number of ends in the addition.
        found: usize,
    },
    /// A vertex lies below the first chunk of the grid, which can grow upwards only because cells
    /// keep their index.
    #[error(
        "the addition reaches chunk {chunk} on axis {axis}, but the grid starts at chunk {first}; \
         rewrite the store with lower bounds"
    )]
    ChunkBelowGrid {
        /// Axis.
        axis: usize,
        /// Chunk coordinate.
        chunk: i64,
        /// First chunk coordinate of the grid.
        first: i64,
    },
    /// Vertices of this kind of geometry cannot be removed one by one: their order has a meaning.
    #[error("vertices of {0} cannot be removed one by one; remove whole objects")]
    PathVertices(&'static str),
    /// A row to change does not exist.
    #[error(
        "there is no row {row} in chunk {chunk}; row ids are outdated by each change of the store, \
         so query them again"
    )]
    UnknownRow {
        /// Chunk coordinates, or the rank of a chunk that does not exist.
        chunk: String,
        /// Row in the chunk.
        row: u64,
    },
    /// Some vertices have no value of a new attribute whose type has none for them.
    #[error(
        "{rows} vertices have no value of {name:?}; give one for each vertex, or use floats, which \
         have NaN"
    )]
    MissingRows {
        /// Name of the attribute.
        name: String,
        /// Number of vertices.
        rows: u64,
    },
    /// The replacing geometry names no object.
    #[error("the replacing geometry names no object: no vertex or path has an object id")]
    Unnamed,
    /// Replacing the objects would drop links to other objects.
    #[error(
        "{links} links to other objects would be lost; name the objects at their other ends as well"
    )]
    Severed {
        /// Number of links that would be dropped.
        links: usize,
    },
    /// A vertex to change does not exist.
    #[error("object {object} has no vertex {vertex}, only {vertices} vertices")]
    UnknownVertex {
        /// Object id.
        object: i64,
        /// Index of the vertex in the object.
        vertex: usize,
        /// Number of vertices of the object.
        vertices: usize,
    },
}

impl EditError {
    /// Returns the node that the error is about, if it is about the store.
    pub fn node(&self) -> Option<&Key> {
        match self {
            Self::Damaged { node, .. } | Self::Missing { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Names the chunk of damage.
    pub(super) fn in_chunk(mut self, coords: &[i64]) -> Self {
        if let Self::Damaged { chunk, .. } | Self::Missing { chunk, .. } = &mut self {
            *chunk = Some(ChunkCoord::new(coords));
        }
        self
    }
}

impl From<AddressError> for EditError {
    fn from(error: AddressError) -> Self {
        Self::Build(error.into())
    }
}

impl From<KeyError> for EditError {
    fn from(error: KeyError) -> Self {
        Self::Build(error.into())
    }
}

/// Returns the error for damaged data of a node.
pub(super) fn damaged(node: &Key, why: impl fmt::Display) -> EditError {
    EditError::Damaged {
        node: node.clone(),
        chunk: None,
        why: why.to_string(),
    }
}

/// Returns the error for a missing node, or for a missing cell of it.
pub(super) fn missing(node: &Key) -> EditError {
    EditError::Missing {
        node: node.clone(),
        chunk: None,
    }
}

fn in_chunk(chunk: Option<&ChunkCoord>) -> String {
    chunk.map_or_else(String::new, |chunk| format!(", chunk {chunk}"))
}
