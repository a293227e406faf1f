//! Queries on Zarr Vectors stores.
//!
//! A [`Session`] runs a [`Query`]. It combines the metadata of a store with a port to read its cells
//! ([`zvf_model::fetch::Port`]). Queries are async functions over the port: they open nothing
//! themselves and depend on no executor. `zvf::Dataset` opens a session on a real store.
//!
//! | module or type | contents |
//! |---|---|
//! | [`Query`], [`QueryResult`] | the request and its result, for every kind of geometry and every generation |
//! | [`Session`] | runs queries: [`query`](Session::query), [`batches`](Session::batches), [`count`](Session::count), [`explain`](Session::explain); divides queries: [`partitions`](Session::partitions); lists objects, groups and links as stored |
//! | [`geometry`] | exact tests of points, segments and faces against boxes and spheres, clipping, and the k nearest |
//! | [`predicate`] | the language of `--where` and its evaluation |
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod batch;
mod catalog;
mod closest;
mod cores;
mod diagnostics;
mod error;
mod exec;
#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals are passed by value"
)]
mod memory;
mod plan;
mod query;
mod resolve;
mod result;
mod selection;
mod sync;

pub mod geometry;
pub mod predicate;

pub use catalog::cell_rows::check_attribute_cell;
pub use catalog::composite::{CompositeGeometry, CompositeGeometryLinks};
pub use catalog::content::LevelCells;
pub use catalog::headers::Header;
pub use catalog::level::{LevelCache, Session};
pub use catalog::links::{CellLinks, LinkBlobs, LinkCells, StoredLinkFamily, StoredLinks};
pub use catalog::objects::{ChunkOwners, ObjectFragment, ObjectLookup, ObjectSet, StoredManifests};
pub use catalog::parametric::{Coefficient, ParametricGeometry, ParametricObject};
pub use catalog::stored::{PaddedRows, StoredArray};
pub use catalog::tables::{GroupList, ScopedColumns};
pub use closest::closest;
pub use error::{Damage, Fault, QueryError};
pub use plan::explain::{Explanation, OperatorReport, Reads};
pub use plan::partition::{ParsePartitionError, QueryPartition};
pub use plan::run::{Counts, QueryReport};
pub use plan::stream::{BatchSender, BatchStream};
pub use query::{
    BatchOptions, Clip, LevelChoice, NearestTo, Query, Region, Selection, Shape, VertexBudget,
};
pub use result::{
    LevelUse, Links, NO_OBJECT, ObjectGroup, Parts, QueryResult, SEVERAL_OBJECTS, Skipped,
};
pub use zvf_model::column::{Column, ColumnValues, NumericColumn};
