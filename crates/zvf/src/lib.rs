//! Zarr Vectors stores of generations 0.6 to 0.9: opened, recognised, counted and
//! queried, wherever they are.
//!
//! [`Dataset::open`] takes the address of a store: a folder, a `.zip` file, and
//! behind the features `http`, `aws`, `gcp` and `azure` a web server or bucket.
//! It reads the metadata, decides from structure which generation the store is,
//! and gives back what the store says about itself. [`Dataset::info`] counts what
//! is really there, [`Dataset::query`] answers a [`Query`]. [`create`] makes a store of
//! geometry, [`Editor`] changes one, each change in one transaction, and [`migrate`] writes
//! one anew as a store of another generation.
//!
//! ```
//! use zvf::Dataset;
//!
//! # async fn demo() -> Result<(), zvf::Error> {
//! let dataset = Dataset::open("tracts.zv").await?;
//! for level in dataset.info().await?.levels {
//!     println!("level {}: {} chunks, {:?} vertices", level.level, level.chunks, level.vertices);
//! }
//! let answer = dataset.query(&zvf::Query::new().objects([17])).await?;
//! println!("{} vertices of object 17", answer.positions.len());
//! # Ok(()) }
//! ```

mod attribute;
mod dataset;
mod editor;
mod error;
mod geometry;
mod location;
mod migrate;
mod nodes;
mod pyramid;
mod repair;
mod run_task;
mod stale;
mod task_runner;
mod validate;
mod writer;

pub use attribute::{
    AttributeReport, AttributeSpec, ObjectReduction, VertexFn, write_object_attribute,
    write_vertex_attribute,
};
pub use dataset::Dataset;
pub use dataset::{LevelInfo, StoreInfo};
pub use editor::{ChangeSummary, Editor};
pub use error::Error;
pub use geometry::IntoGeometry;
pub use location::Location;
pub use migrate::{MigrateOptions, MigrateReport, migrate};
pub use pyramid::{
    AutoLevels, CrossLevel, LevelDesign, LevelProgress, LevelReport, MethodKind, ObjectSelection,
    PyramidLevels, PyramidOptions, PyramidReport, build_pyramid, refresh_pyramid,
};
pub use repair::{RepairReport, repair};
pub use run_task::run_task;
pub use task_runner::TaskRunner;
pub use validate::validate;
pub use writer::{
    CreateOptions, GeometrySource, Progress, WriteReport, create, create_from_plan,
    create_from_source,
};
pub use zvf_build as build;
pub use zvf_format as format;
pub use zvf_model as model;
pub use zvf_query::{self as query, Query, QueryResult};
pub use zvf_store::{CommitError, CreateError, OpenError, OpenOptions, Read, Store};
pub use zvf_validate as validation;

/// The guide's page on this library, whose programs have to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
