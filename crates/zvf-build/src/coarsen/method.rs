//! What can be asked for.

use super::{
    Topology, VertexBlock, VertexMerge, bins, bins::Placement, collapse, simplify, stride, subset,
};

/// How vertices of a chunk become fewer.
#[derive(Clone, Debug, PartialEq)]
pub enum CoarsenMethod {
    /// All vertices of an object in a cell of this extent become one; those of several
    /// objects too where `share` is said, as paths always do. Of trees only what is
    /// connected does, so that they stay trees. Axes without an extent are not cut.
    Bins {
        /// Extent of a cell; chunks are whole numbers of them.
        cell: Vec<f64>,
        /// Where the one is.
        placing: Placement,
        /// Whether objects share it.
        share: bool,
    },
    /// Of the points of an object in a cell of this extent, those that come first by a
    /// number drawn from the seed and where they are; at least one. Subsets of subsets with the
    /// same seed are nested. Others become the nearest of their cell that stays and has
    /// the same owner, or none.
    Subset {
        /// Extent of a cell.
        cell: Vec<f64>,
        /// How many of a cell stay.
        keep: u32,
        /// What numbers are drawn from.
        seed: u64,
        /// Leaves out those that stay in cells of this extent too: the next level, of
        /// several that hold each point once, has them. Chunks are whole numbers of
        /// these cells as well.
        without: Option<Vec<f64>>,
    },
    /// Paths, and the limbs of trees, keep what they need to be nowhere farther from
    /// the old than this (Douglas-Peucker). Trees keep roots, branch points and ends;
    /// paths their ends and vertices where others meet or leave them; of a ring of a
    /// graph a vertex is left at least.
    Simplify {
        /// The distance.
        tolerance: f64,
    },
    /// Every so many vertices of a path or limb are kept, and its ends.
    Stride {
        /// How many.
        step: u32,
    },
    /// Edges of a mesh are collapsed where that changes its shape least (quadric
    /// error), boundaries kept.
    Collapse {
        /// The share of vertices that stays.
        keep: f64,
        /// How far the surface may move; `f64::INFINITY` when only the share counts.
        tolerance: f64,
        /// Whether connected pieces below this many faces that lie in the chunk as a
        /// whole are dropped; 0 keeps all.
        cull: u32,
    },
}

impl CoarsenMethod {
    /// Whether it is for geometry of this topology. Faces have no lines to simplify, and
    /// what links or paths join is no matter of chance.
    pub fn suits(&self, topology: Topology) -> bool {
        match self {
            Self::Bins { .. } => true,
            Self::Subset { .. } => topology == Topology::Points,
            Self::Simplify { .. } | Self::Stride { .. } => {
                matches!(
                    topology,
                    Topology::Paths | Topology::Trees | Topology::Graphs
                )
            }
            Self::Collapse { .. } => topology == Topology::Faces,
        }
    }

    /// Which vertices of a block become one. A block that the method does not
    /// [suit](Self::suits) stays as it is.
    pub fn merge(&self, block: &VertexBlock) -> VertexMerge {
        if !self.suits(block.topology) {
            return VertexMerge::unchanged(block);
        }
        match self {
            Self::Bins {
                cell,
                placing,
                share,
            } => bins::merge(block, cell, *placing, *share),
            Self::Subset {
                cell,
                keep,
                seed,
                without: None,
            } => subset::merge(block, cell, *keep, *seed),
            Self::Subset {
                cell,
                keep,
                seed,
                without: Some(next),
            } => subset::merge_without(block, (cell, next), *keep, *seed),
            Self::Simplify { tolerance } => simplify::merge(block, *tolerance),
            Self::Stride { step } => stride::merge(block, *step),
            Self::Collapse {
                keep,
                tolerance,
                cull,
            } => collapse::merge(block, *keep, *tolerance, *cull),
        }
    }
}

impl CoarsenMethod {
    /// As `coarsening_method` has it.
    pub fn in_metadata(&self) -> &'static str {
        match self {
            // What the reference calls it.
            Self::Bins { .. } => "per_object",
            _ => self.name(),
        }
    }

    /// As the command line has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bins { .. } => "bins",
            Self::Subset { .. } => "subset",
            Self::Simplify { .. } => "simplify",
            Self::Stride { .. } => "stride",
            Self::Collapse { .. } => "collapse",
        }
    }

    /// The extent of its cells, where it has any.
    pub fn cell(&self) -> Option<&[f64]> {
        match self {
            Self::Bins { cell, .. } | Self::Subset { cell, .. } => Some(cell),
            _ => None,
        }
    }

    /// All extents of cells, of each of which chunks are a whole number.
    pub fn cells(&self) -> impl Iterator<Item = &[f64]> {
        let next = match self {
            Self::Subset { without, .. } => without.as_deref(),
            _ => None,
        };
        self.cell().into_iter().chain(next)
    }

    /// How far lines may move, where it says.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Simplify { tolerance } => Some(*tolerance),
            _ => None,
        }
    }

    /// Whether objects may share vertices where they did not before.
    pub fn shares(&self) -> bool {
        matches!(self, Self::Bins { share: true, .. })
    }

    /// The same, with vertices of each object apart.
    #[must_use]
    pub fn without_sharing(&self) -> Self {
        let mut method = self.clone();
        if let Self::Bins { share, .. } = &mut method {
            *share = false;
        }
        method
    }

    /// Whether vertices of the coarser level are some of the finer one.
    pub fn keeps_vertices(&self) -> bool {
        match self {
            Self::Bins { placing, .. } => *placing == Placement::Medoid,
            Self::Subset { .. } | Self::Simplify { .. } | Self::Stride { .. } => true,
            Self::Collapse { .. } => false,
        }
    }

    /// Whether it has to know which vertices have links that leave the chunk.
    pub fn needs_ties(&self) -> bool {
        matches!(
            self,
            Self::Simplify { .. } | Self::Stride { .. } | Self::Collapse { .. }
        )
    }
}
