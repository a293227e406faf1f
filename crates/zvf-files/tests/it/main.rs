//! Tests of the formats: files through stores and back, and damaged files.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod batches;
mod damage;
mod graphs;
mod las;
mod laws;
mod meshes;
mod precomputed;
mod properties;
mod round_trip;
mod samples;
mod surfaces;
#[cfg(feature = "geoparquet")]
mod tables;
mod units;
mod voxel_grids;
