//! Stores that were written here, read back.

mod content;
mod edits;
mod random;
mod round_trip;
