//! Stores that were written here, read back.

pub(crate) mod content;
pub(crate) mod random;
mod round_trip;
