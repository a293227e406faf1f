//! Parameters shared by all chunks of a level.

use zvf_format::numeric::{Dtype, Kind};
use zvf_model::grid::Bins;

use super::{CoarsenMethod, Topology};

/// Builder of the chunks of a level.
#[derive(Clone, Debug)]
pub struct Coarsener {
    /// Method.
    pub method: CoarsenMethod,
    /// Number of axes.
    pub axes: usize,
    /// Stored type of coordinates.
    pub positions: Dtype,
    /// Relation of vertices and objects.
    pub shape: Ownership,
    /// `true` if the level has objects.
    pub has_objects: bool,
    /// Kept objects, as a flag for each row; `None` keeps all.
    pub kept: Option<Vec<bool>>,
    /// Bins for vertices without objects.
    pub bins: Option<Bins>,
    /// Number of ends of a link, if there are links.
    pub width: Option<usize>,
    /// `true` if the order of link ends is significant.
    pub directed: bool,
    /// Vertex attributes.
    pub vertex: Vec<AggregatedAttribute>,
    /// Fragment attributes.
    pub fragment: Vec<AggregatedAttribute>,
    /// Link attributes.
    pub link: Vec<AggregatedAttribute>,
}

/// Relation of vertices and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Objects list vertices in order and may share them: paths.
    Shared,
    /// Objects list points and may share them. Points have no order, so that an object has each of
    /// them once.
    SharedPoints,
    /// Each vertex has at most one object.
    Exclusive,
    /// Like `Exclusive`, with links (child, parent) of trees; each row of a fragment is implicitly
    /// the child of the row before it unless a link says otherwise.
    Trees,
}

impl Ownership {
    /// Returns whether objects list vertices, so that they may share them.
    #[doc(hidden)]
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::SharedPoints)
    }

    /// Returns the structure of a block with links of `width` ends; `None` if there are no links.
    #[doc(hidden)]
    pub fn topology(self, width: Option<usize>) -> Topology {
        match (self, width) {
            (Self::Shared, _) => Topology::Paths,
            (Self::SharedPoints, _) => Topology::SharedPoints,
            (Self::Trees, _) => Topology::Trees,
            (Self::Exclusive, None) => Topology::Points,
            (Self::Exclusive, Some(..=2)) => Topology::Graphs,
            (Self::Exclusive, Some(_)) => Topology::Faces,
        }
    }
}

/// Attribute of a level and the rule that aggregates it.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatedAttribute {
    /// Name.
    pub name: String,
    /// Stored type.
    pub dtype: Dtype,
    /// Number of values in a row; `None` takes it from the cell.
    pub columns: Option<usize>,
    /// Aggregation of merged values.
    pub rule: super::Aggregation,
    /// Dictionary code of missing text.
    pub missing: Option<i64>,
}

impl AggregatedAttribute {
    /// Returns the stored type on the coarser level; counts are `uint32`.
    pub fn made(&self) -> Dtype {
        match self.rule {
            super::Aggregation::Count => Dtype::new(Kind::UInt32, self.dtype.order()),
            _ => self.dtype,
        }
    }
}
