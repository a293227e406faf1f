//! Queries on Zarr Vectors stores.
//!
//! A [`Session`] runs a [`Query`] on a [`Catalog`](zvf_catalog::Catalog), which opens the levels of a
//! store over a port ([`zvf_model::fetch::Port`]). Queries are async functions over the port: they
//! depend on no executor. `zvf::Dataset` opens a session on a real store.
//!
//! | module or type | contents |
//! |---|---|
//! | [`Query`], [`QueryResult`] | the request and its result, for every kind of geometry and every generation |
//! | [`Session`] | runs queries: [`query`](Session::query), [`batches`](Session::batches), [`count`](Session::count), [`explain`](Session::explain); divides queries: [`partitions`](Session::partitions) |
//! | [`geometry`] | exact tests of points, segments and faces against boxes and spheres, clipping, and the k nearest |
//! | [`predicate`] | the language of `--where` and its evaluation |
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod batch;
mod error;
mod exec;
mod plan;
mod query;
mod resolve;
mod result;
mod session;
mod sync;

pub mod geometry;
pub mod predicate;

pub use error::QueryError;
pub use plan::explain::{Explanation, OperatorReport, Reads};
pub use plan::partition::{ParsePartitionError, QueryPartition};
pub use plan::run::{Counts, QueryReport};
pub use plan::stream::{BatchSender, BatchStream};
pub use query::{BatchOptions, Clip, LevelChoice, NearestTo, Query, Region, Shape, VertexBudget};
pub use result::{LevelUse, Links, Parts, QueryResult};
pub use session::Session;
pub use zvf_catalog::{ObjectGroup, Selection, Skipped};
pub use zvf_model::column::{Column, ColumnValues, NumericColumn};
