//! Tests of the public API.
#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a panic is how a test fails, and numbers are chosen to be exact"
)]

mod bbox;
mod clip;
mod distance;
mod evaluate;
mod grazing;
mod number;
mod oracle;
mod parse;
mod predicates;
mod rows;
mod touch;
mod truths;
mod zone;
