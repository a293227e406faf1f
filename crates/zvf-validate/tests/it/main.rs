//! Rules without a store.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod rules;
mod undelivered;
