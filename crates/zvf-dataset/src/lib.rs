//! Zarr Vectors stores as open datasets.
//!
//! A [`Location`] is an address or an open [`Store`](zvf_store::Store). A [`Dataset`] is a store whose
//! generation is known and whose levels are open on first use; it runs queries and counts. Operations
//! that write are in the crates above, which use the same locations and the same [`Error`], and read
//! nodes through [`nodes`]. Programs use all of them through the crate `zvf`.
#![expect(
    clippy::missing_errors_doc,
    reason = "functions for the crates above return a Failure, which documents each cause"
)]

pub mod base;
mod dataset;
mod error;
mod failure;
mod fetch_dataset;
mod location;
pub mod nodes;
mod progress;
mod state_error;
mod task_plan_error;

pub use dataset::{
    AttributeInfo, Dataset, LevelInfo, LinkInfo, NearestObject, StoreInfo, ValueRange, opening,
};
pub use error::{Error, boxed};
pub use failure::Failure;
pub use fetch_dataset::{FetchDataset, FetchOptions};
pub use location::Location;
pub use progress::Progress;
pub use state_error::StateError;
pub use task_plan_error::TaskPlanError;
