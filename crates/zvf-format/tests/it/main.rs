//! Codec tests that see only the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod dictionary;
mod fragment;
mod groups;
mod int64s;
mod links;
mod manifest;
mod numeric;
mod open_rows;
mod path;
mod vlen;
