//! Codec tests that see only the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod fragment;
mod golden_tet;
mod tetration;
