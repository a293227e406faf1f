//! Byte-level codecs of the Zarr Vectors Format.
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::std_instead_of_core,
    clippy::alloc_instead_of_core,
    clippy::string_slice
)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod bits;
mod cursor;
mod run;

pub mod b2nd;
pub mod fragment;
pub mod tetration;
