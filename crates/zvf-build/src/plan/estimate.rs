//! Expected size of a store, known before any cell is encoded.

use crate::{
    design::{Design, Profile},
    plan::WritePlan,
    spatial_layout::SpatialLayout,
};

/// Bytes that a cell takes beside its values: its frame, checksum, and fragment index.
const CELL_OVERHEAD: u64 = 48;
/// Bytes that a vertex takes in the layout of a plan.
const LAYOUT_BYTES: u64 = 16;
/// Bytes of an end of a link.
const LINK_END_BYTES: u64 = 8;

/// Expected size of a store.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PlanEstimate {
    /// Number of vertices.
    pub vertices: u64,
    /// Number of chunks with vertices.
    pub chunks: u64,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Vec<f64>,
    /// Number of files, or objects of a bucket, without those of tables.
    pub files: u64,
    /// Bytes of cells before compression.
    pub bytes: u64,
    /// Bytes of memory that the geometry takes.
    pub memory: u64,
    /// True if many cells share a file.
    pub is_sharded: bool,
}

/// Numbers of arrays, cells and bytes.
pub(crate) struct CellCounts {
    pub(crate) vertices: u64,
    pub(crate) chunks: u64,
    /// Groups of chunks that share a file: shards, or single chunks.
    pub(crate) shards: u64,
    /// Arrays with a cell for each chunk.
    pub(crate) arrays: u64,
    /// Cells of links and of their attributes.
    pub(crate) link_cells: u64,
    /// Bytes of a vertex in all arrays.
    pub(crate) row: u64,
    pub(crate) link_bytes: u64,
}

impl CellCounts {
    pub(crate) fn estimate(self, design: &Design, space: &SpatialLayout) -> PlanEstimate {
        let cells = self
            .chunks
            .saturating_mul(self.arrays)
            .saturating_add(self.link_cells);
        // Cells of links share files as cells of vertices do.
        let link_files = self
            .link_cells
            .saturating_mul(self.shards)
            .div_ceil(self.chunks.max(1));
        let files = self
            .shards
            .saturating_mul(self.arrays)
            .saturating_add(link_files);
        let data = self
            .vertices
            .saturating_mul(self.row)
            .saturating_add(self.link_bytes);
        let layout = self.vertices.saturating_mul(LAYOUT_BYTES);
        PlanEstimate {
            vertices: self.vertices,
            chunks: self.chunks,
            chunk_shape: space.chunk.extents().to_vec(),
            files: match design.profile {
                // Each cell is an array with a node of its own.
                Profile::V08 => files.saturating_mul(2),
                _ => files,
            },
            bytes: data.saturating_add(cells.saturating_mul(CELL_OVERHEAD)),
            memory: data.saturating_add(layout),
            is_sharded: self.shards < self.chunks,
        }
    }
}

impl WritePlan {
    /// Estimates the size of the store.
    pub fn estimate(&self) -> PlanEstimate {
        let chunks = self.layout.chunks.len() as u64;
        let shards = match self.shard {
            // Each shard is a task.
            Some(_) => self.tasks.len() as u64,
            None => chunks,
        };
        let columns = self.vertex.iter().map(|column| column.numbers.row_size());
        let row = self.geometry.positions.row_size() + columns.sum::<usize>();
        let links = self.links.as_ref();
        let own = self.link.len() as u64;
        let (inside, between) =
            links.map_or((0, 0), |links| (links.inside.len(), links.between.len()));
        // Links inside a chunk have a fragment index too.
        let inside = (inside as u64).saturating_mul(own.saturating_add(2));
        let between = (between as u64).saturating_mul(own.saturating_add(1));
        let ends = links.map_or(0, |links| links.physical() * links.width.get());
        let counts = CellCounts {
            vertices: self.vertices,
            chunks,
            shards,
            arrays: (2 + self.vertex.len() + self.fragment.len()) as u64,
            link_cells: inside.saturating_add(between),
            row: row as u64,
            link_bytes: (ends as u64).saturating_mul(LINK_END_BYTES),
        };
        counts.estimate(&self.design, &self.space)
    }
}
