//! Datasets behind an implementation of the trait `Fetch`.

use core::ops::ControlFlow;

use futures_util::StreamExt;
use zvf::{
    BatchOptions, Bbox, CreateOptions, Dataset, Design, ErrorKind, FetchDataset, FetchOptions,
    Geometry, GeometryKind, NumericColumn, Query, Store,
};
use zvf_store::CellReader;
use zvf_testkit::golden::Golden;

use crate::{
    block_on,
    fetch::FromStore,
    golden::{open, stores},
};

#[test]
fn queries_answer_as_those_of_stores() {
    for archive in ["zvf-06", "zvf-07", "zvf-08", "zvf-09"] {
        let golden = Golden::open(archive);
        for (name, _) in stores(&golden) {
            let dataset = open(&golden, &name);
            let fetch = FromStore::new(dataset.clone());
            let behind = block_on(FetchDataset::open(fetch)).unwrap();
            assert_eq!(behind.detection(), dataset.detection(), "{archive} {name}");
            let query = Query::new();
            let expected = block_on(dataset.query(&query));
            let found = block_on(behind.query(&query));
            let same = match (&expected, &found) {
                (Ok(expected), Ok(found)) => expected == found,
                (Err(expected), Err(found)) => expected.to_string() == found.to_string(),
                _ => false,
            };
            assert!(same, "{archive} {name}: {expected:?} {found:?}");
            let Ok(expected) = expected else { continue };
            let counts = block_on(behind.count(&query)).unwrap();
            assert_eq!(counts, block_on(dataset.count(&query)).unwrap());
            let options = BatchOptions::new().rows(100);
            let stream = behind.stream(&query, options).map(Result::unwrap);
            let batches: Vec<_> = block_on(stream.collect());
            let vertices: usize = batches.iter().map(|batch| batch.positions.len()).sum();
            assert_eq!(vertices, expected.positions.len(), "{archive} {name}");
            let mut once = 0;
            let count = |_| {
                once += 1;
                ControlFlow::Break(())
            };
            block_on(behind.batches(&query, count)).unwrap();
            assert!(once <= 1, "{archive} {name}");
        }
    }
}

#[test]
fn stores_that_need_listings_are_named() {
    let golden = Golden::open("zvf-06");
    let (name, _) = stores(&golden).into_iter().next().unwrap();
    let dataset = open(&golden, &name);
    let fetch = FromStore {
        lists: false,
        ..FromStore::new(dataset)
    };
    let error = block_on(FetchDataset::open(fetch)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("cannot be listed"), "{error}");
}

#[test]
fn a_missing_root_is_an_error() {
    let empty = CellReader::new(Store::from_memory::<&str, Vec<u8>>([]).unwrap());
    let error = block_on(FetchDataset::open(empty)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

/// A store of points in several chunks, behind an implementation that counts requests.
fn counted() -> FromStore {
    let store = Store::create("memory:").unwrap();
    let positions = (0..300).map(|at| [f64::from(at), 0.0, 0.0]);
    let points = Geometry::new(NumericColumn::from(positions.collect::<Vec<_>>()));
    let design = Design::new(GeometryKind::Points).chunk_shape([50.0; 3]);
    let options = CreateOptions::new();
    block_on(zvf::create(store.clone(), &points, design, &options)).unwrap();
    FromStore::new(block_on(Dataset::open(store)).unwrap())
}

#[test]
fn cells_are_read_once_unless_the_cache_is_off() {
    let query = Query::new().region(Bbox::parse("0,0,0,120,1,1").unwrap());
    for (bytes, is_cached) in [(1 << 20, true), (0, false)] {
        let options = FetchOptions::new().cache(bytes);
        let dataset = block_on(FetchDataset::open_with(counted(), &options)).unwrap();
        let first = block_on(dataset.query(&query)).unwrap();
        assert_eq!(first.positions.len(), 121);
        let (_, cells) = dataset.fetch().take_requested();
        assert!(cells >= 3, "{cells}");
        assert_eq!(block_on(dataset.query(&query)).unwrap(), first);
        let (_, again) = dataset.fetch().take_requested();
        assert_eq!(again, if is_cached { 0 } else { cells });
    }
}

#[test]
fn nodes_come_from_the_copy_in_the_root_unless_it_is_off() {
    let query = Query::new();
    let read = |node_copy| {
        let options = FetchOptions::new().node_copy(node_copy);
        let dataset = block_on(FetchDataset::open_with(counted(), &options)).unwrap();
        let result = block_on(dataset.query(&query)).unwrap();
        (result, dataset.fetch().take_requested().0)
    };
    let (expected, all) = read(false);
    let (found, nodes) = read(true);
    assert_eq!(found, expected);
    assert_eq!(nodes, 1, "only the root");
    assert!(all > 2, "{all}");
}
