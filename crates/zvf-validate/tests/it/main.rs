//! Rules, and what they find in recorded, generated and damaged stores.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod cells;
mod corpus;
mod generated;
mod memory;
mod recorded;
mod repeated;
mod rules;
mod shares;
mod undelivered;
