//! Planning and encoding of Zarr Vectors stores, without I/O.
//!
//! [`Geometry`] is the input, whose columns a [`GeometryBuilder`] has checked, and [`Design`] says how
//! to store it. [`WritePlan::new`] validates both before anything is written, decides the chunk, row
//! and fragment of every vertex, and splits the work into tasks that run in any order on any machine:
//! [`WritePlan::run`] encodes the cells of a task, [`WritePlan::rest`] everything that belongs to no
//! chunk.
//!
//! ```
//! use zvf_build::{Design, Geometry, GeometryKind, NumericColumn, Output, WritePlan};
//!
//! let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 1.0, 1.0]);
//! let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 3]);
//! let plan = WritePlan::new(Geometry::new(positions), design)?;
//! assert_eq!(plan.summary().chunks, 2);
//! let cells = plan.run(0)?;
//! assert!(matches!(&cells[0], Output::Cell { array, .. } if array.as_str() == "0/vertices"));
//! # Ok::<(), zvf_build::BuildError>(())
//! ```
//!
//! # Order of stored data
//!
//! Vertices of paths keep their order. Other vertices are ordered by chunk, then by bin or object,
//! then as in the input; links by array and cell, then as in the input, with their ends in order;
//! objects by id. The format cannot store any other order.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers of vertices, fragments and links are below 2^32, which `check` makes sure of"
)]

mod bounds;
mod check;
#[cfg(feature = "coarsen")]
pub mod coarsen;
mod column_check;
mod coordinates;
mod design;
pub mod edit;
mod error;
mod fragment_column;
mod geometry;
pub mod large;
mod link_placement;
mod metadata;
pub mod migrate;
mod objects;
mod output;
mod parametric;
mod plan;
mod rounding;
mod sharding;
mod sizing;
mod spatial_layout;
mod stored_column;
mod tables;
mod vertex_layout;

pub use design::{
    AxisSpec, CellChecksums, Design, ManifestForm, OutOfBounds, Profile, Purpose, ShardingPolicy,
    StepLinks,
};
pub use error::BuildError;
pub use geometry::{Geometry, GeometryBuilder, LinkEnds, LinkNumbering, VertexOwners};
pub use output::Output;
pub use parametric::{Formula, FormulaSet};
pub use plan::{PlanEstimate, PlanSummary, WritePlan};
pub use rounding::{Rounding, RoundingError};
pub use sharding::added_array;
pub use spatial_layout::SpatialLayout;
pub use zvf_model::column::{Column, ColumnValues, NumericColumn};
pub use zvf_model::geometry_kind::GeometryKind;
pub use zvf_model::zarr::CellCompression;
