//! Integration tests of the public API.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

#[cfg(feature = "blosc")]
mod blosc;
mod chain;

use serde_json::Value as Json;
use zvf_model::{
    key::Key,
    zarr::{Array, Node},
};

/// Returns bytes that count from 0 modulo 251. The period is not a power of two, so that ranges at the
/// wrong offset are noticed.
fn numbered(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// Parses the metadata of an array.
#[track_caller]
fn array(json: &Json) -> Array {
    let key = Key::parse("a/zarr.json").unwrap();
    let node = Node::parse(&key, json.to_string().as_bytes()).unwrap();
    node.as_array().unwrap().clone()
}
