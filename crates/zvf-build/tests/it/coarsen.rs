//! Coarsening kernels compared with brute-force implementations.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    clippy::panic,
    reason = "blocks are small, and numbers that are the same are equal"
)]

mod aggregate;
mod bins;
mod blocks;
mod collapse;
mod contract;
mod limits;
mod lines;
mod measure;
mod meshes;
mod sparsity;
mod subset;
