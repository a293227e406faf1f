//! Migration of Zarr Vectors stores to another generation.
//!
//! [`migrate`] rewrites a store, [`migrate_dataset`] that of an open dataset, and [`tasks`] divides the
//! work among processes. Programs use them through the crate `zvf`.
#![expect(
    clippy::missing_errors_doc,
    reason = "functions for the façade return a Failure, which documents each cause"
)]

mod migrate;

pub use migrate::{MigrateOptions, MigrateReport, migrate, migrate_dataset, tasks};
