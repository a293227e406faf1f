//! Datasets behind an implementation of the trait `Fetch`.

use core::ops::ControlFlow;

use futures_util::StreamExt;
use zvf::{BatchOptions, ErrorKind, FetchDataset, Query, Store};
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
            let fetch = FromStore {
                dataset: dataset.clone(),
                lists: true,
            };
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
        dataset,
        lists: false,
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
