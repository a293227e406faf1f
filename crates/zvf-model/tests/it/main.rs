//! Public API of the crate, and every recorded store.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod arrays;
mod column;
mod convention;
#[cfg(feature = "draco")]
mod draco;
mod generation;
mod golden_cells;
mod golden_damage;
mod golden_detection;
mod golden_grid;
mod golden_metadata;
mod golden_nodes;
mod grid;
mod hostile;
mod json;
mod key;
mod layout;
mod node_copy;
mod port;
mod root;
mod stale_levels;
mod store;
mod writes;
mod zarr;
