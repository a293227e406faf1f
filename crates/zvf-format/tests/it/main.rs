//! Codec tests of the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod b2nd;
mod dictionary;
mod fragment;
mod fragment_lengths;
mod golden;
mod golden_b2nd;
mod golden_tet;
mod golden_zvf_09;
mod golden_zvf_old;
mod groups;
mod int64s;
mod links;
mod manifest;
mod numeric;
mod open_rows;
mod path;
mod recorded;
mod tetration;
mod vlen;
