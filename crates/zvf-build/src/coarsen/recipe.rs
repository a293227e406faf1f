//! How chunks of a level are made of those of the finer one.

use zvf_format::numeric::{Dtype, Kind};
use zvf_model::grid::Bins;

use super::CoarsenMethod;

/// What all chunks of a level have in common.
#[derive(Clone, Debug)]
pub struct Coarsener {
    /// Which vertices become one.
    pub method: CoarsenMethod,
    /// Numbers of a position.
    pub axes: usize,
    /// What a coordinate is stored as.
    pub positions: Dtype,
    /// How vertices and objects hang together.
    pub shape: Ownership,
    /// Whether there are objects.
    pub has_objects: bool,
    /// Which of them the level keeps, by row; all when `None`.
    pub kept: Option<Vec<bool>>,
    /// The bins that vertices without objects are sorted by.
    pub bins: Option<Bins>,
    /// Ends of a link, where there are links.
    pub width: Option<usize>,
    /// Whether the order of ends is data.
    pub directed: bool,
    /// Attributes of vertices.
    pub vertex: Vec<AggregatedAttribute>,
    /// Attributes of fragments.
    pub fragment: Vec<AggregatedAttribute>,
    /// Attributes of links.
    pub link: Vec<AggregatedAttribute>,
}

/// How vertices and objects hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Objects name vertices in an order, and may share them: paths.
    Shared,
    /// A vertex has one object, or there are none.
    Exclusive,
    /// The same, and links are those of trees: (child, parent), and from each row of a
    /// fragment to the one before where nothing else is said.
    Trees,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatedAttribute {
    /// Its name.
    pub name: String,
    /// What its values are stored as.
    pub dtype: Dtype,
    /// Values of a row; what the cell has when `None`.
    pub columns: Option<usize>,
    /// What becomes of the values of vertices that become one.
    pub rule: super::Aggregation,
    /// The code that stands for no word, where values are codes.
    pub missing: Option<i64>,
}

impl AggregatedAttribute {
    /// What values of the coarser level are stored as: counts are no values of the type.
    pub fn made(&self) -> Dtype {
        match self.rule {
            super::Aggregation::Count => Dtype::new(Kind::UInt32, self.dtype.order()),
            _ => self.dtype,
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
            Self::Bins { placing, .. } => *placing == super::Placement::Medoid,
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
