//! Integration tests of plans and coarsening.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod coarsen;
mod geometry;
mod large;
mod objects;
