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
