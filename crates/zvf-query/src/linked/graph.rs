//! Chunks and links that were read and may be selected.

use std::collections::BTreeMap;

use zvf_model::grid::ChunkCoord;

use crate::{chunk::Chunk, coordinates::Coordinates, schema::Schema, vertices::Entry};

/// Chunks that were read; `None` is one that could not be.
pub(super) struct Graph {
    pub(super) chunks: BTreeMap<ChunkCoord, Option<Node>>,
}

/// A chunk and which of its vertices are selected.
pub(super) struct Node {
    pub(super) chunk: Chunk,
    pub(super) coordinates: Coordinates,
    /// Whether all its rows were read.
    pub(super) is_whole: bool,
    pub(super) entries: Vec<Entry>,
    /// By place: whether a fragment that is looked at has it.
    pub(super) there: Vec<bool>,
    /// By place: whether the filter holds.
    pub(super) holds: Vec<bool>,
    /// By place: whether it is in the region.
    pub(super) inside: Option<Vec<bool>>,
}

impl Node {
    pub(super) fn new<A>(chunk: Chunk, schema: &Schema<A>, is_whole: bool) -> Self {
        Self {
            coordinates: schema.coordinates(&chunk),
            chunk,
            is_whole,
            entries: Vec::new(),
            there: Vec::new(),
            holds: Vec::new(),
            inside: None,
        }
    }

    pub(super) fn position(&self, row: u64) -> Option<&[f64]> {
        let place = self.chunk.held.place(row)?;
        Some(self.coordinates.at(place))
    }

    pub(super) fn is_selected(&self, place: usize) -> bool {
        self.holds.get(place) == Some(&true)
            && self
                .inside
                .as_ref()
                .is_none_or(|inside| inside.get(place) == Some(&true))
    }
}

/// A link that is selected: its ends, and which record it is; `None` is one that
/// a fragment implies.
pub(super) struct Link {
    pub(super) ends: Vec<(ChunkCoord, usize)>,
    pub(super) record: Option<(usize, usize)>,
}
