//! Zarr Vectors stores of generations 0.6 to 0.10, in folders, zip files, web servers and buckets.
//!
//! | task | entry point |
//! |---|---|
//! | open a store, query it, count its contents | [`Dataset::open`], [`Dataset::query`], [`Dataset::info`] |
//! | create a store | [`create`], [`create_from_source`] for geometry that exceeds memory |
//! | change objects, one transaction per call | [`Editor`] |
//! | build coarser levels | [`build_pyramid`], [`refresh_pyramid`] after changes |
//! | check a store | [`validate`], [`repair`] |
//! | rewrite a store in another generation | [`migrate`] |
//!
//! ```
//! use zvf::{
//!     Bbox, CreateOptions, Dataset, Design, Editor, Geometry, GeometryKind, MigrateOptions,
//!     NumericColumn, OutOfBounds, Profile, PyramidOptions, Query, ValidateOptions,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = |name: &str| folder.path().join(name).display().to_string();
//! # let (points, older) = (path("points.zv"), path("older.zv"));
//! // Create a store of two points.
//! let geometry = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
//! let design = Design::new(GeometryKind::Points);
//! zvf::create(&points, &geometry, design, &CreateOptions::new()).await?;
//!
//! // Open it and query a box.
//! let dataset = Dataset::open(&points).await?;
//! let query = Query::new().region(Bbox::parse("0,0,0,5,5,5")?);
//! assert_eq!(dataset.query(&query).await?.positions.len(), 1);
//!
//! // Append two points, then build coarser levels.
//! Editor::open(&points).await?.append(&geometry, OutOfBounds::Reject).await?;
//! zvf::build_pyramid(&points, &PyramidOptions::new()).await?;
//!
//! // Check the result, and rewrite it as a store of 0.8.
//! assert!(zvf::validate(&points, &ValidateOptions::default()).await?.is_ok());
//! zvf::migrate(&points, &older, &MigrateOptions::new(Profile::V08)).await?;
//! # Ok(()) }
//! ```
//!
//! Functions accept an address or an open [`Store`], see [`Location`]. Options are structs with
//! setters. Every operation returns [`Error`]. The crate contains no runtime: any executor can poll
//! its futures, except that buckets require tokio.
//!
//! Operations are re-exported from `zvf-dataset`, `zvf-write`, `zvf-pyramid` and `zvf-migrate`; the types
//! of geometry, queries and findings from `zvf-build`, `zvf-query`, `zvf-catalog`, `zvf-validate`,
//! `zvf-store`, `zvf-model` and `zvf-format`. Use these crates directly for items that are not
//! re-exported, or to have fewer dependencies.

pub mod blocking;
mod plan;
mod plan_file;
#[cfg(all(feature = "validate", feature = "write"))]
mod repair;
#[cfg(feature = "write")]
mod row_tables;
#[cfg(feature = "write")]
mod run_task;
#[cfg(feature = "write")]
mod seal;
#[cfg(feature = "pyramid")]
mod task_plan;
#[cfg(feature = "validate")]
mod validate;
#[cfg(all(feature = "validate", feature = "pyramid"))]
mod validation_plan;

// Opening and queries.
pub use zvf_catalog::{ObjectGroup, Scope, Selection, Skipped};
pub use zvf_dataset::{
    AttributeInfo, Dataset, FetchDataset, FetchOptions, LevelInfo, LinkInfo, Location,
    NearestObject, StoreInfo, ValueRange,
};
pub use zvf_model::{
    column::{Column, ColumnValues, NumericColumn},
    error_kind::ErrorKind,
    generation::Generation,
    geometry_kind::GeometryKind,
    json::{HeaderError, Headers, Json, JsonError},
    level::LevelId,
    object_ids::{ObjectIds, Owner},
    root::{AttributeDeclarations, CrossLevel, WindingOrder},
    word::Word,
};
pub use zvf_query::{
    BatchOptions, BatchStream, Clip, Counts, Explanation, LevelChoice, LevelUse, Links, NearestTo,
    OperatorReport, Parts, Query, QueryPartition, QueryReport, QueryResult, Region, Shape,
    VertexBudget,
    geometry::{Bbox, Mode, Position, Sphere},
    predicate::Predicate,
};
pub use zvf_store::{Follow, OpenOptions, Store};

// Creating and changing.
#[cfg(feature = "write")]
pub use run_task::run_task;
#[cfg(feature = "write")]
pub use seal::seal;
#[cfg(feature = "migrate")]
pub use task_plan::plan_migrate;
#[cfg(feature = "pyramid")]
pub use task_plan::{
    StoreWork, TaskKind, TaskPhase, TaskPlan, plan_create, plan_object_attribute, plan_pyramid,
    plan_shares, plan_vertex_attribute,
};
#[cfg(feature = "write")]
pub use zvf_build::{
    AxisSpec, BuildError, CellChecksums, CellCompression, Design, Geometry, GeometryBuilder,
    LinkEnds, LinkNumbering, ManifestForm, OutOfBounds, PlanSummary, Profile, Purpose,
    ShardingPolicy, StepLinks, VertexOwners,
};
#[cfg(feature = "write")]
pub use zvf_write::{
    attribute::{
        AttributeReport, AttributeSpec, ObjectReduction, TableOptions, VertexFn,
        write_object_attribute, write_vertex_attribute,
    },
    editor::{ChangeSummary, Editor},
    geometry::IntoGeometry,
    task_runner::TaskRunner,
    writer::{
        CreateOptions, GeometryBatches, GeometrySource, PlanCheck, WriteReport, create,
        create_from_plan, create_from_source,
    },
};

// Pyramids.
#[cfg(feature = "pyramid")]
pub use zvf_build::coarsen::MethodKind;
#[cfg(feature = "pyramid")]
pub use zvf_pyramid::{
    AutoLevels, LevelDesign, LevelProgress, LevelReport, ObjectSelection, PyramidLevels,
    PyramidOptions, PyramidReport, build_pyramid, refresh_pyramid,
};

// Validation and migration.
#[cfg(all(feature = "validate", feature = "write"))]
pub use repair::{RepairReport, repair, repair_trusting_files};
#[cfg(all(feature = "validate", feature = "write"))]
pub use seal::seal_validated;
#[cfg(feature = "validate")]
pub use validate::{validate, validate_with_progress};
#[cfg(all(feature = "validate", feature = "pyramid"))]
pub use validation_plan::{ValidationPlan, ValidationWork, plan_validation};
#[cfg(feature = "migrate")]
pub use zvf_build::migrate::MigrationNote;
pub use zvf_dataset::Progress;
#[cfg(feature = "migrate")]
pub use zvf_migrate::{MigrateOptions, MigrateReport, migrate, migrate_dataset};
#[cfg(feature = "validate")]
pub use zvf_validate::{Depth, Finding, Remedy, Rule, Severity, ValidateOptions, ValidationReport};

pub use plan::{Plan, TaskPlanOptions, TaskStatus, Work};
pub use plan_file::{PlanCause, PlanError};
pub use zvf_dataset::{Error, StateError, TaskPlanError};

/// Methods that reduce vertices, for the [levels](LevelDesign) of a pyramid.
#[cfg(feature = "pyramid")]
pub mod coarsen {
    pub use zvf_build::coarsen::{
        Aggregation, Amount, CoarsenMethod, Placement, Sparsity, Strategy,
    };
}

/// Element types and elements of columns.
pub mod numeric {
    pub use zvf_format::numeric::{Kind, Value};
}

/// The page of the repository; its program is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide's page on this library; its programs are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
