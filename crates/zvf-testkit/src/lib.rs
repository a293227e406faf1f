//! Test support, never published.
//!
//! * [`walk`]: parse a blob and touch everything its view offers. `no_std` and
//!   free of panics, so the same code drives the probes, the fuzz targets and
//!   the damage tests.
//! * [`laws`]: what must hold for any bytes whatever; panics when it does not.
//! * [`hostile`]: systematic damage to good bytes.
//! * [`LeBytes`]: test bytes written as a list of numbers.
//! * [`filing`]: where a store files a link.
//! * [`proxy`]: a web server's answers, spoilt on the way.
//! * [`corpus`]: damaged stores, and the validation rules that each breaks.
//! * [`golden`]: the archives in `testdata/`, unpacked into memory.
//! * [`web`]: a plain web server, which cannot list.
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
pub mod proxy;
#[cfg(feature = "std")]
pub mod stores;
pub mod walk;
#[cfg(feature = "std")]
pub mod web;

#[cfg(feature = "std")]
pub use bytes::LeBytes;
