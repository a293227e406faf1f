//! Stores written by this library and read back.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of made-up geometry are small"
)]

mod bins;
pub(crate) mod content;
pub(crate) mod edits;
mod flat_values;
mod formulas;
mod groups;
mod large;
mod nulls;
mod other_writers;
mod query_results;
pub(crate) mod random;
mod round_trip;
mod steps;
mod weaknesses;
mod words;
