//! Methods of coarsening.

use super::{Topology, VertexBlock, VertexMerge, bins, bins::Placement, collapse, lines, subset};

/// Method that reduces the vertices of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum CoarsenMethod {
    /// Merges all vertices of an object in a cell; with `share`, and for paths, those of all
    /// objects. In trees only connected vertices merge, so that trees remain trees. Axes beyond the
    /// length of `cell` are not divided.
    Bins {
        /// Extent of a cell, which divides chunks evenly.
        cell: Vec<f64>,
        /// Position of the merged vertex.
        placement: Placement,
        /// `true` if objects share merged vertices.
        share: bool,
    },
    /// Keeps, for each object and cell, the points with the smallest hashes of seed and position; at
    /// least one. Points that objects share are sampled together. Subsets with equal seeds are
    /// nested. Dropped points map to the nearest kept point of their cell and owner.
    Subset {
        /// Extent of a cell.
        cell: Vec<f64>,
        /// Number of points kept in a cell.
        keep: u32,
        /// Seed of the hashes.
        seed: u64,
        /// Excludes points that are kept in cells of this extent: for levels that hold each point
        /// once, the next level has them. These cells divide chunks evenly too.
        without: Option<Vec<f64>>,
    },
    /// Keeps the vertices needed so that paths and limbs stay within the tolerance of the old ones
    /// (Douglas-Peucker). Roots, branch points, ends, and vertices where paths meet or part are
    /// kept, and at least one vertex of a ring.
    Simplify {
        /// Maximum distance.
        tolerance: f64,
    },
    /// Keeps every `step`-th vertex of a path or limb, and its ends.
    Stride {
        /// Distance between kept vertices, in vertices.
        step: u32,
    },
    /// Collapses mesh edges in the order of quadric error and keeps boundaries.
    Collapse {
        /// Fraction of vertices kept.
        keep: f64,
        /// Maximum distance that the surface moves; `f64::INFINITY` removes the limit.
        tolerance: f64,
        /// Connected pieces with fewer faces that lie within the chunk are dropped; 0 keeps all.
        /// Vertices without a face are always dropped.
        cull: u32,
    },
}

impl CoarsenMethod {
    /// Returns whether the method supports this topology. Faces have no lines to simplify, and
    /// points on links or paths cannot be sampled independently.
    #[doc(hidden)]
    pub fn suits(&self, topology: Topology) -> bool {
        match self {
            Self::Bins { .. } => true,
            Self::Subset { .. } => {
                matches!(topology, Topology::Points | Topology::SharedPoints)
            }
            Self::Simplify { .. } | Self::Stride { .. } => {
                matches!(
                    topology,
                    Topology::Paths | Topology::Trees | Topology::Graphs
                )
            }
            Self::Collapse { .. } => topology == Topology::Faces,
        }
    }

    /// Maps the vertices of a block. A block with an [unsupported](Self::suits) topology keeps its
    /// vertices, as [`VertexMerge::unchanged`] does.
    pub fn merge(&self, block: &VertexBlock) -> VertexMerge {
        if !self.suits(block.topology) {
            return VertexMerge::unchanged(block);
        }
        match self {
            Self::Bins {
                cell,
                placement,
                share,
            } => bins::merge(block, cell, *placement, *share),
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
            } => subset::merge_without(block, cell, next, *keep, *seed),
            Self::Simplify { tolerance } => lines::simplify(block, *tolerance),
            Self::Stride { step } => lines::decimate(block, *step),
            Self::Collapse {
                keep,
                tolerance,
                cull,
            } => collapse::merge(block, *keep, *tolerance, *cull),
        }
    }
}

impl CoarsenMethod {
    /// Returns the value of `coarsening_method` in the level metadata.
    #[doc(hidden)]
    pub fn in_metadata(&self) -> &'static str {
        match self {
            // The name in the reference implementation.
            Self::Bins { .. } => "per_object",
            _ => self.name(),
        }
    }

    /// Returns the name used on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bins { .. } => "bins",
            Self::Subset { .. } => "subset",
            Self::Simplify { .. } => "simplify",
            Self::Stride { .. } => "stride",
            Self::Collapse { .. } => "collapse",
        }
    }

    /// Returns the extent of cells, if the method has cells.
    pub fn cell(&self) -> Option<&[f64]> {
        match self {
            Self::Bins { cell, .. } | Self::Subset { cell, .. } => Some(cell),
            _ => None,
        }
    }

    /// Returns all cell extents that must divide chunks evenly.
    pub fn cells(&self) -> impl Iterator<Item = &[f64]> {
        let next = match self {
            Self::Subset { without, .. } => without.as_deref(),
            _ => None,
        };
        self.cell().into_iter().chain(next)
    }

    /// Returns the tolerance of lines, if the method has one.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Simplify { tolerance } => Some(*tolerance),
            _ => None,
        }
    }

    /// Returns whether objects may come to share vertices.
    #[doc(hidden)]
    pub fn shares(&self) -> bool {
        matches!(self, Self::Bins { share: true, .. })
    }

    /// Returns the method without sharing of vertices between objects.
    #[must_use]
    #[doc(hidden)]
    pub fn without_sharing(&self) -> Self {
        let mut method = self.clone();
        if let Self::Bins { share, .. } = &mut method {
            *share = false;
        }
        method
    }

    /// Returns whether coarser vertices are a subset of the finer ones.
    #[doc(hidden)]
    pub fn keeps_vertices(&self) -> bool {
        match self {
            Self::Bins { placement, .. } => *placement == Placement::Medoid,
            Self::Subset { .. } | Self::Simplify { .. } | Self::Stride { .. } => true,
            Self::Collapse { .. } => false,
        }
    }

    /// Returns whether the method needs to know which vertices have links that leave the chunk.
    #[doc(hidden)]
    pub fn needs_ties(&self) -> bool {
        matches!(
            self,
            Self::Simplify { .. } | Self::Stride { .. } | Self::Collapse { .. }
        )
    }
}
