//! Coarsening of levels, chunk by chunk.
//!
//! A [`VertexBlock`] holds the geometry of a level within one chunk of the next. A
//! [`CoarsenMethod`] maps each vertex of the block to a vertex of the coarser level: a
//! [`VertexMerge`]. Everything else follows from that map for every kind of geometry: links and
//! paths follow their vertices and degenerate ones are dropped ([`contract_links`],
//! [`contract_path`]); attributes are copied from a kept vertex or aggregated ([`aggregate`],
//! [`Aggregation`]). [`Sparsity`] selects the objects of a level first.
//!
//! Chunks are independent, so levels can be built anywhere and in any order, and a change rebuilds
//! its own chunks only. This is sound because a vertex of the coarser level lies in the chunk of
//! the vertices that it replaces.

use rayon::prelude::*;

use crate::coordinates::BLOCK;

mod aggregate;
mod aggregation;
mod bins;
mod cells;
mod coarsener;
mod collapse;
mod contract;
mod distance;
mod input;
mod lines;
mod make;
mod measure;
mod members;
mod method;
mod nearest;
mod number;
mod order;
mod sparsity;
mod subset;

pub use aggregate::{AggregateError, aggregate};
pub use aggregation::{Aggregation, ParseAggregationError};
pub use bins::Placement;
pub use coarsener::{AggregatedAttribute, Coarsener, Ownership};
pub use contract::{contract_links, contract_path};
pub use input::{CoarsenError, CoarsenInput, FineChunk, FineLinks, FragmentReference};
pub use make::CoarseChunk;
pub use measure::{HausdorffDistance, Simplices, hausdorff_one_sided};
pub use method::{CoarsenMethod, MethodKind, MethodOptions, MethodScale, NO_POINTS, NO_TOLERANCE};
pub use sparsity::{Amount, ObjectFacts, Sparsity, SparsityError, Strategy};

/// Parent of a vertex that has no vertex in the coarser level.
pub const NO_VERTEX: u32 = u32::MAX;
/// Owner of a vertex without an object.
pub const NO_OBJECT: u32 = crate::vertex_layout::NO_OBJECT;

/// Structure that connects the vertices of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Unconnected vertices.
    #[default]
    Points,
    /// Paths.
    Paths,
    /// Unconnected vertices, listed by objects that may share them.
    SharedPoints,
    /// Trees with links (child, parent).
    Trees,
    /// Graphs with undirected links of two ends.
    Graphs,
    /// Meshes with faces as links.
    Faces,
}

/// Geometry of a level within one chunk of the next level. Indices are in range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexBlock {
    /// Structure of the vertices.
    pub topology: Topology,
    /// Number of axes.
    pub axes: usize,
    /// Positions, row by row, including vertices that nothing references.
    pub positions: Vec<f64>,
    /// Lower corner of the chunk of the coarser level.
    pub lower: Vec<f64>,
    /// Upper corner, exclusive.
    pub upper: Vec<f64>,
    /// Object row of each vertex or [`NO_OBJECT`]. Empty without objects, and for paths.
    pub owners: Vec<u32>,
    /// Runs of paths inside the chunk, or the shared points of objects. A vertex may be in several
    /// runs. Runs of dropped objects are excluded.
    pub paths: Vec<PathRun>,
    /// Number of ends of a link.
    pub width: usize,
    /// Links with all ends in the block, `width` vertices each. Links of skeletons are (child,
    /// parent) and include those implied by row order.
    pub links: Vec<u32>,
    /// Vertices at which a link leaves the chunk, as a flag for each vertex. Empty if there are none.
    pub tied: Vec<bool>,
}

/// Run of a path inside a chunk, or the points of an object in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRun {
    /// Row of the object.
    pub object: u32,
    /// Vertices.
    pub rows: Vec<u32>,
}

/// Map from the vertices of a block to vertices of the coarser level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexMerge {
    /// Coarser vertex of each vertex, or [`NO_VERTEX`]. Every number below the count occurs.
    pub parent: Vec<u32>,
    /// Positions of the coarser vertices.
    pub positions: MergedPositions,
    /// Distance that the geometry moves; `None` if the method gives none. Of meshes it covers both
    /// directions, old surface to new and new to old; otherwise it is an upper bound on the distance
    /// of any point of the old geometry from the new.
    pub error: Option<f64>,
    /// Number of connected pieces of meshes that are not part of the coarser level.
    pub dropped_pieces: u64,
}

/// Positions of vertices of the coarser level.
#[derive(Clone, Debug, PartialEq)]
pub enum MergedPositions {
    /// Vertices of the block, whose position and values are kept.
    Source(Vec<u32>),
    /// Computed coordinates.
    Computed(Vec<f64>),
}

impl Default for MergedPositions {
    fn default() -> Self {
        Self::Source(Vec::new())
    }
}

impl VertexBlock {
    /// Returns whether a path or an object lists each vertex, in blocks of paths and shared points.
    /// The others belong to dropped objects.
    fn listed(&self) -> Vec<bool> {
        let mut is_listed = vec![false; self.len()];
        for row in self.paths.iter().flat_map(|path| &path.rows) {
            is_listed[*row as usize] = true;
        }
        is_listed
    }

    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.positions.len() / self.axes.max(1)
    }

    /// Returns whether the block has no vertices.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the position of a vertex.
    pub fn position(&self, vertex: usize) -> &[f64] {
        &self.positions[vertex * self.axes..(vertex + 1) * self.axes]
    }

    /// Returns whether a link that leaves the chunk ends at a vertex.
    pub fn is_tied(&self, vertex: usize) -> bool {
        self.tied.get(vertex).copied().unwrap_or(false)
    }

    /// Returns the object row of a vertex.
    pub fn owner(&self, vertex: usize) -> u32 {
        self.owners.get(vertex).copied().unwrap_or(NO_OBJECT)
    }

    /// Returns the corners of the box around vertices; infinities without any.
    fn extent_of(
        &self,
        vertices: impl IndexedParallelIterator<Item = usize>,
    ) -> (Vec<f64>, Vec<f64>) {
        let none = || {
            let lower = vec![f64::INFINITY; self.axes];
            (lower, vec![f64::NEG_INFINITY; self.axes])
        };
        let reach = |(mut lower, mut upper): (Vec<f64>, Vec<f64>), low: &[f64], high: &[f64]| {
            let sides = lower.iter_mut().zip(&mut upper).zip(low.iter().zip(high));
            for ((lower, upper), (low, high)) in sides {
                *lower = lower.min(*low);
                *upper = upper.max(*high);
            }
            (lower, upper)
        };
        let parts = vertices.fold(none, |extent, vertex| {
            let position = self.position(vertex);
            reach(extent, position, position)
        });
        parts.reduce(none, |extent, (lower, upper)| reach(extent, &lower, &upper))
    }
}

impl VertexMerge {
    /// Maps every vertex to itself. Vertices that no path or object lists have no parent.
    pub fn unchanged(block: &VertexBlock) -> Self {
        Self::kept(block, (0..block.len() as u32).collect(), Some(0.0))
    }

    /// Keeps some vertices: `into` gives the kept row or [`NO_VERTEX`] for each vertex. New
    /// vertices are numbered in the order in which paths visit them, else by row.
    fn kept(block: &VertexBlock, into: Vec<u32>, error: Option<f64>) -> Self {
        let mut numbers = vec![NO_VERTEX; into.len()];
        let mut rows = Vec::new();
        let mut visit = |row: u32| {
            if row != NO_VERTEX && numbers[row as usize] == NO_VERTEX {
                numbers[row as usize] = rows.len() as u32;
                rows.push(row);
            }
        };
        match block.topology {
            Topology::Paths | Topology::SharedPoints => {
                let named = block.paths.iter().flat_map(|path| &path.rows);
                named.for_each(|row| visit(into[*row as usize]));
            }
            _ => (0..).zip(&into).for_each(|(row, into)| {
                if row == *into {
                    visit(row);
                }
            }),
        }
        let mut parent = into;
        for row in &mut parent {
            *row = numbers.get(*row as usize).copied().unwrap_or(NO_VERTEX);
        }
        Self {
            parent,
            positions: MergedPositions::Source(rows),
            error,
            dropped_pieces: 0,
        }
    }

    /// Returns the largest distance of a vertex from its coarser vertex.
    fn farthest(&self, block: &VertexBlock) -> f64 {
        let axes = block.axes;
        let pairs = self
            .parent
            .par_iter()
            .with_min_len(BLOCK)
            .enumerate()
            .filter(|(_, parent)| **parent != NO_VERTEX);
        let far = pairs.map(|(vertex, parent)| {
            let parent = *parent as usize;
            let position = match &self.positions {
                MergedPositions::Source(rows) => block.position(rows[parent] as usize),
                MergedPositions::Computed(positions) => {
                    &positions[parent * axes..(parent + 1) * axes]
                }
            };
            distance::square(position, block.position(vertex))
        });
        far.reduce(|| 0.0, f64::max).sqrt()
    }

    /// Returns the number of vertices of the coarser level.
    pub fn len(&self, axes: usize) -> usize {
        match &self.positions {
            MergedPositions::Source(rows) => rows.len(),
            MergedPositions::Computed(positions) => positions.len() / axes.max(1),
        }
    }
}
