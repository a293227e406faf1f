//! Open levels of a store: their arrays, objects, links and tables.
//!
//! Modules here know metadata and cells, but neither queries nor results of their execution. A
//! [`Level`](level::Level) caches open nodes; modules above it add their own caches with
//! [`Level::extension`](level::Level::extension).

pub(crate) mod cell_rows;
pub(crate) mod chunk;
pub(crate) mod chunked_array;
pub(crate) mod composite;
pub(crate) mod content;
pub(crate) mod coordinates;
pub(crate) mod fragments;
pub(crate) mod headers;
pub(crate) mod level;
pub(crate) mod links;
pub(crate) mod listing;
pub(crate) mod objects;
pub(crate) mod parametric;
pub(crate) mod schema;
pub(crate) mod stored;
pub(crate) mod tables;
