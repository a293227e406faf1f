//! The contract of `Fetch`, and queries through the cache.

use std::sync::atomic::Ordering::Relaxed;

use fetch::Cached;
use pollster::block_on;
use zvf::{Bbox, FetchDataset, Query, Store};
use zvf_model::fetch::contract;
use zvf_store::CellReader;

fn cached<K: AsRef<str>>(objects: impl IntoIterator<Item = (K, Vec<u8>)>) -> Cached<CellReader> {
    let inner = CellReader::new(Store::from_memory(objects).unwrap());
    Cached { inner, cells: Default::default(), requested: Default::default() }
}

#[test]
fn the_contract_is_fulfilled() {
    let fetch = cached(contract::objects());
    assert!(block_on(contract::verify(&fetch)).unwrap().lists);
    // A second time, most cells come from the cache.
    block_on(contract::verify(&fetch)).unwrap();
}

#[test]
fn the_second_query_requests_no_cells() {
    let mut image: &[u8] = include_bytes!("../../decoder/tests/fibres.tar");
    let mut objects = Vec::new();
    while image[0] != 0 {
        let (header, rest) = image.split_at(512);
        let text = |range| str::from_utf8(&header[range]).unwrap().trim_end_matches('\0');
        let size = usize::from_str_radix(text(124..135), 8).unwrap();
        if size > 0 {
            let name = text(0..100).trim_start_matches("./").to_owned();
            objects.push((name, rest[..size].to_vec()));
        }
        image = &rest[size.next_multiple_of(512)..];
    }
    let fibres = block_on(FetchDataset::open(cached(objects))).unwrap();
    let query = Query::new().region(Bbox::parse("11,1,1,18,4,4").unwrap());
    let first = block_on(fibres.query(&query)).unwrap();
    assert!(!first.positions.is_empty());
    let requested = fibres.fetch().requested.load(Relaxed);
    assert!(requested > 0);
    assert_eq!(block_on(fibres.query(&query)).unwrap(), first);
    assert_eq!(fibres.fetch().requested.load(Relaxed), requested);
}
