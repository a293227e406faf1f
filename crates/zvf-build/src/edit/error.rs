//! Why a level cannot be changed.

use crate::error::BuildError;

/// Why a level cannot be changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// What is to be added does not fit together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The store has something that is not changed yet.
    #[error("{0}; such stores are read, but not changed")]
    Unsupported(&'static str),
    /// A part of the store that a change needs is damaged.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The node, and the chunk where there is one.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A node that the level cannot be without.
    #[error("{0} is missing")]
    NotLoaded(String),
    /// An object that is to be changed is not there.
    #[error("there is no object {0}")]
    UnknownObject(i64),
    /// An object that is to be added is there.
    #[error("object {0} is there already; replace it, or add it under another id")]
    ObjectExists(i64),
    /// Another kind of thing than the store holds.
    #[error("the store holds {expected}, not {found}")]
    Kind {
        /// What the store holds.
        expected: &'static str,
        /// What is to be added.
        found: &'static str,
    },
    /// An attribute that all rows of the store have.
    #[error("the store has the {what} {name:?}, and what is added must have it too")]
    MissingAttribute {
        /// What kind of attribute.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An attribute that the store's rows do not have.
    #[error("the store has no {what} {name:?}, and its rows would have no value")]
    UnknownAttribute {
        /// What kind of attribute.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An attribute of another type.
    #[error("the {what} {name:?} is {expected} in the store and {found} in what is added")]
    AttributeType {
        /// What kind of attribute.
        what: &'static str,
        /// Its name.
        name: String,
        /// What the store has.
        expected: String,
        /// What is added.
        found: String,
    },
    /// More words than the codes of an attribute can tell apart.
    #[error("the {what} {name:?} has codes of {dtype}, too few for all words")]
    TextType {
        /// What kind of attribute.
        what: &'static str,
        /// Its name.
        name: String,
        /// What codes are.
        dtype: String,
    },
    /// Links of another width.
    #[error("links of {found} ends in a store whose links have {expected}")]
    LinkWidth {
        /// Ends of the store's links.
        expected: usize,
        /// Ends of those that are added.
        found: usize,
    },
    /// Below the first chunk: cells keep their places, so room is made above only.
    #[error(
        "what is added reaches chunk {chunk} on axis {axis}, and the store has room from chunk {first} on; \
         write it anew with lower bounds"
    )]
    ChunkBelowGrid {
        /// The axis.
        axis: usize,
        /// The chunk.
        chunk: i64,
        /// The first there is room for.
        first: i64,
    },
    /// A vertex that is not there.
    #[error("object {object} has no vertex {vertex}; it has {vertices}")]
    UnknownVertex {
        /// The object.
        object: i64,
        /// The number in the object.
        vertex: usize,
        /// How many it has.
        vertices: usize,
    },
}

/// A part of a store that is damaged.
pub(super) fn damaged(path: &str, why: impl core::fmt::Display) -> EditError {
    EditError::Damaged {
        path: path.to_owned(),
        why: why.to_string(),
    }
}
