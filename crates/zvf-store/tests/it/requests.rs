//! The requests that a batch of reads makes.

use zvf_store::{ByteRange, MergeLimits, OpenOptions, Read, Store};

use crate::support::{block_on, bounded, full, log, numbered, part, recorded};

#[track_caller]
fn check(reads: &[Read], want: &[&str]) {
    let store = recorded(&[("a", numbered(100_000)), ("b", numbered(100_000))]);
    let bytes = |read: &Read| block_on(store.read_one(read.clone())).unwrap();
    let singly: Vec<_> = reads.iter().map(bytes).collect();
    store.take_request_log();
    let before = store.activity().requests;
    assert_eq!(block_on(store.read(reads)).unwrap(), singly);
    assert_eq!(log(&store), want);
    let requests = store.activity().requests - before;
    assert_eq!(requests, u64::try_from(want.len()).unwrap());
}

#[test]
fn ranges_within_the_gap_limit_share_a_request() {
    let reads: Vec<Read> = (0..10)
        .map(|n| bounded("a", n * 1000..n * 1000 + 10))
        .collect();
    check(&reads, &["a bytes 0..9010"]);
}

#[test]
fn ranges_beyond_the_gap_limit_take_two_requests() {
    let reads = [bounded("a", 50_000..50_010), bounded("a", 0..10)];
    check(&reads, &["a bytes 0..10", "a bytes 50000..50010"]);
}

#[test]
fn equal_reads_are_fetched_once() {
    check(&[full("a"), full("a")], &["a all bytes"]);
    let suffix = part("a", ByteRange::Suffix(9));
    let shorter = part("a", ByteRange::Suffix(4));
    check(&[shorter, suffix.clone(), suffix], &["a the last 9 bytes"]);
}

#[test]
fn a_suffix_is_read_without_requesting_the_size() {
    let suffix = part("a", ByteRange::Suffix(16));
    check(&[suffix], &["a the last 16 bytes"]);
}

#[test]
fn a_full_read_serves_ranges_of_the_object() {
    let reads = [
        bounded("a", 5..9),
        part("a", ByteRange::Suffix(3)),
        full("a"),
        full("b"),
    ];
    check(&reads, &["a all bytes", "b all bytes"]);
}

#[test]
fn an_open_range_serves_ranges_that_start_after_it() {
    let reads = [
        part("a", ByteRange::From(90_000)),
        part("a", ByteRange::From(80_000)),
        bounded("a", 95_000..96_000),
        bounded("a", 10..20),
    ];
    check(&reads, &["a bytes 10..20", "a bytes 80000.."]);
}

#[test]
fn merge_limits_are_configurable() {
    let options = OpenOptions::default()
        .record_requests(true)
        .merge_limits(MergeLimits { gap: 0, size: 20 });
    let store = options.from_memory([("a", numbered(100))]).unwrap();
    let reads: Vec<Read> = (0..10).map(|n| bounded("a", n * 10..n * 10 + 10)).collect();
    block_on(store.read(&reads)).unwrap();
    assert_eq!(store.activity().requests, 5);
    assert_eq!(store.activity().bytes_read, 100);
}

#[test]
fn requests_are_not_logged_by_default() {
    let store = Store::from_memory([("a", numbered(10))]).unwrap();
    block_on(store.read_one(full("a"))).unwrap();
    assert_eq!(store.activity().requests, 1);
    assert!(store.take_request_log().is_empty());
}
