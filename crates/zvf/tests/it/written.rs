//! Stores that were written here, read back.

mod content;
mod random;
mod round_trip;
