//! Creation, changes and attributes of Zarr Vectors stores.
//!
//! | module | contents |
//! |---|---|
//! | [`writer`] | creation of stores; [`CellWriter`](writer::cell_writer::CellWriter), the writer of nodes and cells that all operations share |
//! | [`editor`] | changes in transactions, repeated after conflicts |
//! | [`attribute`] | attributes of vertices and objects, computed in batches |
//! | [`geometry`] | query results as geometry |
//! | [`job`], [`task_runner`] | work of several processes |
//! | [`commit`], [`form`], [`stale`] | the end of a transaction; the form of new cells; levels that no longer match |
//!
//! `zvf-pyramid` and `zvf-migrate` are built on it. Programs use all of them through the crate `zvf`.
#![expect(
    clippy::missing_errors_doc,
    reason = "functions for the crates above return a Failure, which documents each cause"
)]

pub mod attribute;
pub mod commit;
pub mod editor;
pub mod form;
pub mod geometry;
pub mod job;
pub mod stale;
pub mod task_runner;
pub mod writer;
