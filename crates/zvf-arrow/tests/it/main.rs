//! Conversions between results and record batches.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod columns;
mod results;
