//! What several tests share.

use core::future::Future;
use core::ops::Range;

use serde_json::Value as Json;
use zvf_model::{
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{ByteRange, OpenOptions, Read, Store};

/// Runs async code to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// The numbers from 0, modulo 251, so that no two stretches are equal.
pub(crate) fn numbered(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// A store in memory that keeps a log.
pub(crate) fn recorded(objects: &[(&str, Vec<u8>)]) -> Store {
    let options = OpenOptions::default().record(true);
    options.from_memory(objects.iter().cloned()).unwrap()
}

/// The log as text, a line for each request.
pub(crate) fn log(store: &Store) -> Vec<String> {
    let line = |read: Read| format!("{} {}", read.key, read.range);
    store.take_log().into_iter().map(line).collect()
}

/// A key; the root when empty.
#[track_caller]
pub(crate) fn key(text: &str) -> Key {
    match text {
        "" => Key::root(),
        _ => Key::parse(text).unwrap(),
    }
}

pub(crate) fn full(text: &str) -> Read {
    Read::full(key(text))
}

pub(crate) fn bounded(text: &str, range: Range<u64>) -> Read {
    Read::bounded(key(text), range)
}

pub(crate) fn part(text: &str, range: ByteRange) -> Read {
    Read::new(key(text), range)
}

/// The array that a `zarr.json` describes.
#[track_caller]
pub(crate) fn array(metadata: Json) -> Array {
    match Node::from_json(&key("zarr.json"), metadata).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("a group"),
    }
}
