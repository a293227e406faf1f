//! Test support, never published.
//!
//! * [`walk`]: parse a blob and call every accessor of its view. `no_std` and free of panics, so
//!   the same code drives the probes, the fuzz targets and the damage tests.
//! * [`laws`]: properties that hold for arbitrary bytes; panic on a violation.
//! * [`hostile`]: systematic damage to valid bytes.
//! * [`LeBytes`]: builder for test bytes.
//! * [`MemoryStore`]: a store in memory that records requests.
//! * [`filing`]: placement of links.
//! * [`proxy`]: a proxy that injects faults into responses.
//! * [`corpus`]: damaged stores, and the validation rules that each breaks.
//! * [`golden`]: the archives in `testdata/`, unpacked into memory.
//! * [`web`]: a plain web server without listings.
//! * [`sample`]: number of cases of random tests.
//! * [`stores`]: random stores with known content.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    feature = "std",
    expect(
        clippy::expect_used,
        clippy::panic,
        reason = "a panic is how a test fails"
    )
)]

#[cfg(feature = "std")]
mod bytes;
#[cfg(feature = "std")]
pub mod corpus;
#[cfg(feature = "std")]
pub mod damage;
#[cfg(feature = "std")]
pub mod filing;
#[cfg(feature = "std")]
pub mod golden;
#[cfg(feature = "std")]
pub mod hostile;
#[cfg(feature = "std")]
pub mod laws;
#[cfg(feature = "std")]
mod memory_store;
#[cfg(feature = "std")]
pub mod proxy;
#[cfg(feature = "std")]
pub mod sample;
#[cfg(feature = "std")]
pub mod stores;
pub mod walk;
#[cfg(feature = "std")]
pub mod web;

#[cfg(feature = "std")]
pub use bytes::LeBytes;
#[cfg(feature = "std")]
pub use memory_store::MemoryStore;
