//! Integration tests of the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod cancelled;
mod cell;
mod coalesce;
mod contract;
mod crashes;
mod creation;
mod encode;
#[cfg(feature = "object_store")]
mod from_object_store;
#[cfg(feature = "blosc")]
mod golden;
mod held_up;
#[cfg(feature = "http")]
mod http;
mod kept;
mod list;
mod open;
mod port;
#[cfg(target_os = "linux")]
mod power_cut;
mod read;
mod requests;
mod sealed;
mod sizes;
mod support;
mod transactions;
#[cfg(feature = "http")]
mod unlistable;
mod write;
#[cfg(feature = "zarrs")]
mod zarrs;
#[cfg(feature = "zip")]
mod zip;
