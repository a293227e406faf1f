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

pub mod dictionary;
pub mod fragment;
pub mod groups;
pub mod int64s;
pub mod links;
pub mod manifest;
pub mod numeric;
pub mod open_rows;
pub mod path;
pub mod ragged;
pub mod vlen;
