//! Requests for files in an object store.

use std::sync::Arc;

use zvf_dense::{
    ByteSource, DenseArray, Hyperslab, StoreSource,
    tet::{TetFile, TetOptions, verify},
};
use zvf_store::Store;
use zvf_testkit::golden::Golden;

#[test]
fn many_adjacent_tiles_take_one_request() {
    let golden = Golden::open("tet");
    let bytes = golden.file("good/f64_2d_edges_zstd.tet");
    let store = Store::from_memory([("in/a.tet", bytes.to_vec())]).unwrap();
    let name = "memory/in/a.tet".to_owned();
    let source = Arc::new(StoreSource::of(store.clone(), "in/a.tet", name).unwrap());
    assert_eq!(source.len(), bytes.len() as u64);
    let before = store.activity().requests;
    let file = TetFile::open(source.clone(), TetOptions::default()).unwrap();
    assert_eq!(
        store.activity().requests - before,
        2,
        "the head, and directory with index"
    );
    let array = file.dataset_at(0).unwrap();
    let before = store.activity().requests;
    let whole = array.slice(&Hyperslab::whole(array.shape())).unwrap();
    // Nine adjacent tiles take one request.
    assert_eq!(store.activity().requests - before, 1);
    let local = super::tet_of(bytes).dataset_at(0).unwrap();
    assert!(whole == local.slice(&Hyperslab::whole(local.shape())).unwrap());
    assert!(verify(source, TetOptions::default(), true).unwrap().is_ok());
}

#[test]
fn missing_files_and_ranges_are_errors() {
    let store = Store::from_memory([("a.tet", vec![0_u8; 4])]).unwrap();
    assert!(StoreSource::of(store.clone(), "b.tet", "b".to_owned()).is_err());
    let source = StoreSource::of(store, "a.tet", "a".to_owned()).unwrap();
    assert!(source.read(2..5).is_err() && source.read_into(3, &mut [0; 2]).is_err());
    assert_eq!(source.read_ranges(&[1..1, 0..2]).unwrap().len(), 2);
}
