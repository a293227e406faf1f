//! Codec tests that see only the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod b2nd;
mod fragment;
mod golden_b2nd;
mod golden_tet;
mod tetration;
