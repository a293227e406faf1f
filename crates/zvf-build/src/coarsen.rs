//! Coarser levels, chunk by chunk: which vertices become one, and where it is.
//!
//! A [`VertexBlock`] is what of a level lies in one chunk of the next. A method says, for
//! each vertex of it, which vertex of the coarser level it becomes: that is a
//! [`VertexMerge`]. All else follows from it, in the same way for every kind of geometry:
//! links and paths go where their vertices go, and what fell together is dropped
//! ([`contract_links`], [`contract_path`]); attributes are those of a vertex that
//! was kept, or made of all that it stands for ([`aggregate`], [`Aggregation`]).
//!
//! Before all that, [`Sparsity`] says which objects a level keeps.
//!
//! Chunks do not know of each other, so levels can be made anywhere, in any order,
//! and a change makes only the chunks anew that it is in. What makes that right is
//! that a vertex of the coarser level lies in the chunk of those it stands for.

mod aggregate;
mod bins;
mod cells;
mod collapse;
mod contract;
mod distance;
mod draw;
mod input;
mod limbs;
mod make;
mod measure;
mod method;
mod nearest;
mod number;
mod order;
mod recipe;
mod rule;
mod simplify;
mod sparsity;
mod stride;
mod subset;

pub use aggregate::{AggregateError, aggregate};
pub use bins::Placement;
pub use contract::{contract_links, contract_path};
pub use input::{CoarsenError, CoarsenInput, FineChunk, FineLinks, FragmentReference};
pub use make::CoarseChunk;
pub use measure::{HausdorffDistance, Simplices, hausdorff_one_sided};
pub use method::CoarsenMethod;
pub use recipe::{AggregatedAttribute, Coarsener, Ownership};
pub use rule::{Aggregation, ParseAggregationError};
pub use sparsity::{Amount, ObjectFacts, Sparsity, SparsityError, Strategy};

/// No vertex of the coarser level.
pub const NO_VERTEX: u32 = u32::MAX;
/// No object.
pub const NO_OBJECT: u32 = crate::vertex_layout::NO_OBJECT;

/// What vertices are parts of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Nothing.
    #[default]
    Points,
    /// Paths.
    Paths,
    /// Trees: links are (child, parent).
    Trees,
    /// Graphs: links have two ends and no direction.
    Graphs,
    /// Meshes: links are faces.
    Faces,
}

/// What of a level lies in one chunk of the next. What is named by its number is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexBlock {
    /// What its vertices are parts of.
    pub topology: Topology,
    /// Numbers of a position.
    pub axes: usize,
    /// Positions, row by row. Vertices that nothing names are among them.
    pub positions: Vec<f64>,
    /// The least corner of the chunk of the coarser level.
    pub lower: Vec<f64>,
    /// The greatest, which is of the next chunk already.
    pub upper: Vec<f64>,
    /// The row of the object of each vertex, [`NO_OBJECT`] where it has none. Empty where
    /// there are no objects, and for paths.
    pub owners: Vec<u32>,
    /// Stretches of paths that are in the chunk: vertices in their order. A vertex may
    /// be in several. Those of objects that are not kept are not among them.
    pub paths: Vec<PathSegment>,
    /// Ends of a link.
    pub width: usize,
    /// Links of which all ends are here: vertices, `width` each. Those of skeletons are
    /// (child, parent), those that the order of rows implies among them.
    pub links: Vec<u32>,
    /// Vertices at which something outside hangs: ends of links that leave the chunk.
    /// By vertex, or empty when there are none.
    pub tied: Vec<bool>,
}

/// A stretch of a path inside a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSegment {
    /// The row of its object.
    pub object: u32,
    /// Its vertices.
    pub rows: Vec<u32>,
}

/// Which vertices become one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexMerge {
    /// The vertex of the coarser level that each becomes, or [`NO_VERTEX`]. All numbers
    /// below the number of those there are occur.
    pub parent: Vec<u32>,
    /// Where they are.
    pub places: MergedPositions,
    /// How far geometry moved at most: no point of the old is farther from the new
    /// than this. `None` where the method does not say.
    pub error: Option<f64>,
}

/// Where vertices of the coarser level are.
#[derive(Clone, Debug, PartialEq)]
pub enum MergedPositions {
    /// Where a vertex of the block is, which it keeps the values of.
    Source(Vec<u32>),
    /// Somewhere else: coordinates.
    Computed(Vec<f64>),
}

impl Default for MergedPositions {
    fn default() -> Self {
        Self::Source(Vec::new())
    }
}

impl VertexBlock {
    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.positions.len() / self.axes.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Where a vertex is.
    pub fn position(&self, vertex: usize) -> &[f64] {
        &self.positions[vertex * self.axes..(vertex + 1) * self.axes]
    }

    /// Whether something outside hangs at a vertex.
    pub fn is_tied(&self, vertex: usize) -> bool {
        self.tied.get(vertex).copied().unwrap_or(false)
    }

    /// The row of the object of a vertex.
    pub fn owner(&self, vertex: usize) -> u32 {
        self.owners.get(vertex).copied().unwrap_or(NO_OBJECT)
    }
}

impl VertexMerge {
    /// Every vertex stays what it is.
    pub fn unchanged(block: &VertexBlock) -> Self {
        let rows: Vec<u32> = (0..block.len() as u32).collect();
        Self {
            parent: rows.clone(),
            places: MergedPositions::Source(rows),
            error: Some(0.0),
        }
    }

    /// Some vertices stay, and each becomes one of these or [`NO_VERTEX`]: `into` has its row.
    /// The new ones are in the order in which paths visit them, else in that of rows.
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
            Topology::Paths => {
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
            places: MergedPositions::Source(rows),
            error,
        }
    }

    /// How far a vertex is at most from the one that it becomes.
    fn farthest(&self, block: &VertexBlock) -> f64 {
        let axes = block.axes;
        let pairs = self.parent.iter().enumerate();
        let pairs = pairs.filter(|(_, parent)| **parent != NO_VERTEX);
        let far = pairs.map(|(vertex, parent)| {
            let parent = *parent as usize;
            let place = match &self.places {
                MergedPositions::Source(rows) => block.position(rows[parent] as usize),
                MergedPositions::Computed(places) => &places[parent * axes..(parent + 1) * axes],
            };
            distance::square(place, block.position(vertex))
        });
        far.fold(0.0, f64::max).sqrt()
    }

    /// Number of vertices of the coarser level.
    pub fn len(&self, axes: usize) -> usize {
        match &self.places {
            MergedPositions::Source(rows) => rows.len(),
            MergedPositions::Computed(positions) => positions.len() / axes.max(1),
        }
    }
}
