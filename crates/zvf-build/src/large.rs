//! Geometry larger than memory: read twice in batches and partitioned by chunk into pieces that
//! fit.
//!
//! 1. A [`GeometrySurvey`] reads all batches and collects sizes, extent and attributes. It gives an
//!    [`Outline`]: the decisions that precede writing.
//! 2. A [`Partitioner`] reads the batches again and assigns rows to partitions. All rows of a
//!    chunk, and all chunks of a shard, are in one partition.
//! 3. [`Outline::part`] encodes the cells of a partition. Partitions are independent: they can be
//!    encoded in any order, on any machine, and more than once.
//! 4. [`Partitioner::finish`] combines the results of the partitions in a [`WritePlan`] whose
//!    [`rest`](WritePlan::rest) and root complete the store, with the cells of a [`PathIndex`] if
//!    the geometry is paths.
//!
//! Paths are in a log, which [`Partitioner::take_paths`] returns piece by piece, so that a file can
//! keep it: neither ids nor fragments nor attributes of objects that come with the batches are held
//! in memory, as long as ids ascend.
//!
//! The input may come in shares that different processes read. Each share has a survey and a
//! partitioner of its own; [`GeometrySurvey::append`] and [`Partitioner::append`] combine them in
//! the order of the shares, as one process would have read them.
//!
//! Links of graphs and meshes refer to vertices of any share by their numbers in the whole input.
//! Each tree of a skeleton is in one batch. The rows of vertices are known when all shares are
//! combined: [`LinkBatch`] then finds the ends of links in the tables of
//! [`Partitioner::take_linked`], and [`LinkDivider`] assigns the links to the partitions that store
//! them.

mod json;
mod link_batch;
mod linked_rows;
mod outline;
mod part;
mod path_index;
mod path_log;
mod piece;
mod spill;
mod splitter;
mod state;
mod survey;

pub use link_batch::{DividedLinks, LinkBatch, LinkDivider};
pub use linked_rows::LinkedRows;
pub use outline::Outline;
pub use part::{Partition, PartitionResult};
pub use path_index::PathIndex;
pub use piece::PieceShift;
pub use spill::{decode_batch, encode_batch};
pub use splitter::Partitioner;
pub use state::{design_from_json, design_to_json};
pub use survey::GeometrySurvey;

#[cfg(doc)]
use crate::plan::WritePlan;
