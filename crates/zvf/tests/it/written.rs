//! Stores that were written here, read back.

mod content;
mod edits;
mod large;
mod random;
mod round_trip;
mod weaknesses;
