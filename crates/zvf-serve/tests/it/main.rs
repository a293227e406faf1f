//! A server on a free port, asked over TCP as a browser asks.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod client;
mod export;
mod layers;
mod protocol;
mod stores;
