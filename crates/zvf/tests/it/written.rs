//! Stores that were written here, read back.

pub(crate) mod content;
mod edits;
mod large;
pub(crate) mod random;
mod round_trip;
mod weaknesses;
