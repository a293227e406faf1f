//! Queries on Zarr Vectors stores: what they mean, what they need, what they
//! select.
//!
//! A [`Query`] is asked of a [`Session`]: metadata, and a way to read
//! ([`zvf_model::fetch::Port`]). The plans in here ask through it and wait; they
//! open nothing themselves and know no executor. `zvf::Dataset` puts a session
//! over a real store.
//!
//! | module or type | answers |
//! |---|---|
//! | [`Query`], [`QueryResult`] | what is selected, and what comes back, for every kind of geometry and every generation |
//! | [`Session`] | asks: [`query`](Session::query), [`batches`](Session::batches), [`count`](Session::count), [`explain`](Session::explain); lists objects, groups and links as stored |
//! | [`geometry`] | does this point, segment, triangle or face come into the box or sphere, lie within it, and which part of it does? which are the k nearest? |
//! | [`predicate`] | what does `--where` say, and does a row satisfy it? |
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
    reason = "JSON is written where it is used"
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

pub use catalog::composite::{CompositeGeometry, CompositeGeometryLinks};
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
pub use plan::run::{Counts, QueryReport};
pub use query::{Clip, LevelChoice, NearestTo, Query, Region, Selection, Shape, VertexBudget};
pub use result::{
    LevelUse, Links, NO_OBJECT, ObjectGroup, Parts, QueryResult, SEVERAL_OBJECTS, Skipped,
};
pub use zvf_model::column::{Column, ColumnValues, NumericColumn};
