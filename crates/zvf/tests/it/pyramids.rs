//! Pyramid levels: compared with recorded ones and with brute-force results, and equal however they
//! are built.
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
mod interrupted;
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
