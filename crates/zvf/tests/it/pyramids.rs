//! Levels that are made: what is in them, against recorded ones, against what they
//! should be by brute force, and however they are made.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "numbers of made-up geometry are small"
)]

mod additive;
mod bins;
mod equal;
mod golden;
mod lines;
mod model;
mod odd;
pub(crate) mod random;
mod refreshed;
mod sharded;
mod sharing;
mod sparse;
mod step;
mod stopped;
mod subset;
mod tasks;
mod values;
