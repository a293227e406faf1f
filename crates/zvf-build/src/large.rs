//! Geometry larger than memory: read twice in batches and partitioned by chunk into pieces that
//! fit.
//!
//! 1. A [`GeometrySurvey`] sees all batches and says how large things are; from it comes an
//!    [`Outline`]: all that is decided before a vertex is written.
//! 2. A [`Partitioner`] sees them again and gives rows to parts. What belongs to one
//!    chunk, or to chunks that share objects of a store, is in one part.
//! 3. [`Outline::part`] makes the cells of a part. Parts do not know of each other:
//!    they can be made in any order, on any machine, and again.
//! 4. [`Partitioner::finish`] takes what came of the parts, and gives a [`WritePlan`] whose
//!    [`rest`](WritePlan::rest) and root complete the store.
//!
//! Points and paths only: links of graphs and meshes may reference vertices of any partition.

mod json;
mod outline;
mod part;
mod piece;
mod splitter;
mod survey;

pub use outline::Outline;
pub use part::{Partition, PartitionResult};
pub use splitter::Partitioner;
pub use survey::GeometrySurvey;

#[cfg(doc)]
use crate::plan::WritePlan;
