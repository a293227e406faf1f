//! A server on a free port, used over TCP as a browser uses it.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod client;
mod export;
mod export_tasks;
mod faithful;
mod layers;
mod objects;
mod protocol;
mod stores;
