//! A level as a catalog opens it for a change: its typed nodes, and its tables in memory.
//!
//! The catalog of queries opens levels and knows what readers refuse; edits change them and know
//! what they can write. This type is what the one hands to the other, so that a document has one
//! meaning.

use std::sync::Arc;

use bytes::Bytes;
use zvf_format::numeric::Dtype;

use crate::{
    array::{CellAttribute, LinkArray, LinkFamily, ObjectIndex, Vertices},
    column::Column,
    grid::{ChunkCoord, Grid},
    key::Key,
    level::LevelMetadata,
    zarr::Array,
};

/// The nodes and tables of a level, without the cells of its chunks.
#[derive(Clone, Debug)]
pub struct LevelContent {
    /// Metadata of the level.
    pub metadata: LevelMetadata,
    /// Arrays with one cell for each chunk.
    pub arrays: Vec<ChunkArray>,
    /// The family of links inside the level; `None` without links.
    pub links: Option<LinkFamily>,
    /// The object index; `None` without objects.
    pub objects: Option<ObjectContent>,
    /// Attributes of objects.
    pub object_attributes: Vec<TableContent>,
    /// Members of each group.
    pub groups: Vec<Vec<i64>>,
    /// Attributes of groups.
    pub group_attributes: Vec<TableContent>,
}

/// An array with one cell for each chunk.
#[derive(Clone, Debug)]
pub struct ChunkArray {
    /// Key of the array.
    pub node: Key,
    /// Box of chunks in the array.
    pub grid: Grid,
    /// Chunks that have a cell, ascending.
    pub chunks: Vec<ChunkCoord>,
    /// Contents of a cell.
    pub cells: CellContent,
}

/// Contents of the cells of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum CellContent {
    /// Positions of vertices.
    Vertices(Vertices),
    /// Fragment indexes of vertices or links.
    Fragments,
    /// Values of an attribute of vertices, fragments or links.
    Attribute(CellAttribute),
    /// Links with equal offsets between the chunks of their ends.
    Links(LinkArray),
}

impl CellContent {
    /// Returns the type of a number; `None` for fragment indexes.
    pub fn dtype(&self) -> Option<Dtype> {
        match self {
            Self::Vertices(vertices) => Some(vertices.dtype),
            Self::Fragments => None,
            Self::Attribute(attribute) => Some(attribute.dtype),
            Self::Links(links) => Some(links.dtype),
        }
    }
}

/// The object index of a level.
#[derive(Clone, Debug)]
pub struct ObjectContent {
    /// Metadata of the index.
    pub index: ObjectIndex,
    /// Id of each object.
    pub ids: Vec<i64>,
    /// Encoded manifest of each object.
    pub manifests: Vec<Bytes>,
}

/// An attribute of objects or groups.
#[derive(Clone, Debug)]
pub struct TableContent {
    /// Key of the array.
    pub node: Key,
    /// Metadata of the array.
    pub array: Arc<Array>,
    /// Values of all stored rows.
    pub column: Column,
    /// `true` if rows that equal the fill value are null.
    pub fill_is_null: bool,
}
