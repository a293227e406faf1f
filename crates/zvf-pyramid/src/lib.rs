//! Coarser levels of Zarr Vectors stores.
//!
//! [`build_pyramid`] builds levels, [`refresh_pyramid`] builds the parts again that changed, and
//! [`tasks`] divides a level among processes. Programs use them through the crate `zvf`.
#![expect(
    clippy::missing_errors_doc,
    reason = "functions for the façade return a Failure, which documents each cause"
)]

mod pyramid;

pub use pyramid::{
    AutoLevels, LevelDesign, LevelProgress, LevelReport, ObjectSelection, PyramidLevels,
    PyramidOptions, PyramidReport, build_pyramid, plan_level, refresh_pyramid, tasks,
};
