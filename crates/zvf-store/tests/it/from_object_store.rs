//! Stores on an `object_store::ObjectStore` of the caller.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use zvf_store::{OpenError, OpenOptions, Store};

use crate::support::{block_on, full, key};

#[test]
fn objects_below_the_prefix_are_read_written_and_listed() {
    let objects = Arc::new(InMemory::new());
    let beside = Path::from("data/other.zv/zarr.json");
    block_on(objects.put(&beside, "other".into())).unwrap();
    let store = Store::from_object_store(objects.clone(), "data/own.zv").unwrap();
    assert_eq!(store.to_string(), "InMemory/data/own.zv");
    let objects_of_ours = ["zarr.json", "0/zarr.json"].map(|at| (key(at), Bytes::from("own")));
    block_on(store.put_many(objects_of_ours.to_vec())).unwrap();

    let again = Store::from_object_store(objects.clone(), "data/own.zv").unwrap();
    assert_eq!(
        block_on(again.read_one(full("0/zarr.json")))
            .unwrap()
            .unwrap(),
        "own"
    );
    let written = block_on(objects.get(&Path::from("data/own.zv/zarr.json"))).unwrap();
    assert_eq!(block_on(written.bytes()).unwrap(), "own");
    let untouched = block_on(objects.get(&beside)).unwrap();
    assert_eq!(block_on(untouched.bytes()).unwrap(), "other");
}

#[test]
fn reads_are_merged_as_those_of_buckets() {
    let objects = Arc::new(InMemory::new());
    let store = Store::from_object_store(objects.clone(), "").unwrap();
    assert_eq!(store.merge_limits().gap, 1 << 20);
    assert!(store.uses_node_copy());
    let without = OpenOptions::new().node_copy(false);
    let store = without.from_object_store(objects, "").unwrap();
    assert!(!store.uses_node_copy());
}

#[test]
fn an_invalid_prefix_is_rejected() {
    let opened = Store::from_object_store(Arc::new(InMemory::new()), "a//b");
    assert!(
        matches!(opened, Err(OpenError::Configuration { .. })),
        "{opened:?}"
    );
}
