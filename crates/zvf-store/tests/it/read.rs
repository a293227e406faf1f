//! Results of reads, in memory and on disk.

use bytes::Bytes;
use proptest::prelude::*;
use zvf_store::{ByteRange, MergeLimits, OpenOptions, Read, ReadError, Store};

use crate::support::{block_on, bounded, full, key, log, numbered, part};

/// Returns stores with the given objects, in memory and on disk.
fn stores(objects: &[(&str, Vec<u8>)]) -> (Vec<Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (key, bytes) in objects {
        let path = folder.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let memory = Store::from_memory(objects.iter().cloned()).unwrap();
    let files = Store::open(folder.path().to_str().unwrap()).unwrap();
    (vec![memory, files], folder)
}

fn objects() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("0/vertices/c/0/0/0", numbered(1000)),
        ("0/links/+1/a b%20c~", numbered(10)),
        ("empty", Vec::new()),
    ]
}

const CELL: &str = "0/vertices/c/0/0/0";

#[track_caller]
fn check(key: &str, range: &ByteRange, want: Option<&[u8]>) {
    let (stores, _folder) = stores(&objects());
    for store in stores {
        let read = part(key, range.clone());
        let got = block_on(store.read_one(read)).unwrap();
        assert_eq!(got.as_deref(), want, "{store} {key} {range}");
    }
}

#[track_caller]
fn check_truncated(key: &str, range: &ByteRange) {
    let (stores, _folder) = stores(&objects());
    for store in stores {
        let error = block_on(store.read_one(part(key, range.clone()))).unwrap_err();
        let ReadError::Truncated {
            key: of, wanted, ..
        } = &error
        else {
            panic!("{store} {range}: {error:?}");
        };
        assert_eq!((of.as_str(), wanted), (key, range), "{store}");
        assert!(!error.is_transient());
    }
}

#[test]
fn every_kind_of_range_is_read() {
    let all = numbered(1000);
    let (stores, _folder) = stores(&objects());
    for store in stores {
        let reads = [
            (ByteRange::Full, 0..1000),
            (ByteRange::Bounded(10..20), 10..20),
            (ByteRange::Bounded(999..1000), 999..1000),
            (ByteRange::Bounded(0..1000), 0..1000),
            (ByteRange::From(0), 0..1000),
            (ByteRange::From(999), 999..1000),
            (ByteRange::Suffix(1000), 0..1000),
            (ByteRange::Suffix(7), 993..1000),
        ];
        for (range, want) in reads {
            let got = block_on(store.read_one(part(CELL, range.clone())));
            assert_eq!(got.unwrap().unwrap(), all[want], "{store} {range}");
        }
    }
}

#[test]
fn keys_with_special_characters_are_not_escaped() {
    let (stores, _folder) = stores(&objects());
    for store in stores {
        let got = block_on(store.read_one(full("0/links/+1/a b%20c~"))).unwrap();
        assert_eq!(got.unwrap(), numbered(10), "{store}");
        let listing = block_on(store.list(&key("0/links/+1"), 10)).unwrap();
        assert_eq!(listing.files[0].name, "a b%20c~", "{store}");
    }
}

#[test]
fn an_absent_object_is_none() {
    for range in [
        ByteRange::Full,
        ByteRange::Bounded(0..8),
        ByteRange::From(3),
        ByteRange::Suffix(4),
    ] {
        check("0/nothing", &range, None);
        // A key below an object, and a key that is a folder on disk.
        check("empty/below", &range, None);
        check("0/vertices", &range, None);
    }
}

#[test]
fn an_empty_object_is_not_absent() {
    let (stores, _folder) = stores(&objects());
    for store in stores {
        for range in [ByteRange::Full, ByteRange::From(0)] {
            let got = block_on(store.read_one(part("empty", range))).unwrap();
            assert_eq!(got.unwrap(), Bytes::new());
        }
    }
    check_truncated("empty", &ByteRange::Bounded(0..1));
    check_truncated("empty", &ByteRange::Suffix(1));
}

#[test]
fn an_empty_range_makes_no_request() {
    let store = Store::from_memory(objects()).unwrap();
    for range in [ByteRange::Bounded(5..5), ByteRange::Suffix(0)] {
        let got = block_on(store.read_one(part("nothing", range))).unwrap();
        assert_eq!(got.unwrap(), Bytes::new());
    }
    assert_eq!(store.activity().requests, 0);
}

#[test]
fn a_range_past_the_end_is_an_error() {
    check_truncated(CELL, &ByteRange::Bounded(999..1001));
    check_truncated(CELL, &ByteRange::Bounded(1000..1001));
    check_truncated(CELL, &ByteRange::Bounded(5000..6000));
    check_truncated(CELL, &ByteRange::From(1000));
    check_truncated(CELL, &ByteRange::From(1001));
    check_truncated(CELL, &ByteRange::Suffix(1001));
}

#[track_caller]
fn check_over_budget(store: &Store, reads: &[Read]) {
    let error = block_on(store.read(reads)).unwrap_err();
    assert!(matches!(error, ReadError::OverBudget { .. }), "{error:?}");
    assert_eq!(store.activity().bytes_read, 0);
}

#[test]
fn reads_over_the_budget_are_rejected() {
    let store = |budget| {
        let options = OpenOptions::default().budget(budget);
        options.from_memory(objects()).unwrap()
    };
    check_over_budget(&store(999), &[full(CELL)]);
    check_over_budget(&store(999), &[part(CELL, ByteRange::From(0))]);
    check_over_budget(&store(99), &[part(CELL, ByteRange::Suffix(100))]);
    check_over_budget(&store(99), &[bounded(CELL, 0..100)]);
    let absurd = store(u64::MAX - 1);
    check_over_budget(&absurd, &[bounded(CELL, 0..u64::MAX)]);
    // The ranges alone exceed the budget, so nothing is requested.
    assert_eq!(absurd.activity().requests, 0);
    let exact = store(1000);
    assert!(block_on(exact.read_one(full(CELL))).is_ok());
    assert!(block_on(exact.read_one(full(CELL))).is_ok(), "per call");
}

#[test]
fn reads_within_the_budget_succeed_when_others_exceed_it() {
    let options = OpenOptions::default()
        .budget(100)
        .record_requests(true)
        .merge_limits(MergeLimits { gap: 0, size: 0 });
    let store = options.from_memory(objects()).unwrap();
    let reads = [
        bounded(CELL, 0..60),
        bounded(CELL, 500..560),
        bounded(CELL, 900..940),
    ];
    let got = block_on(store.read_each(&reads));
    let [Ok(Some(first)), Err(error), Ok(Some(last))] = &got[..] else {
        panic!("{got:?}");
    };
    assert_eq!((first.len(), last.len()), (60, 40));
    assert!(
        matches!(
            error,
            ReadError::OverBudget {
                size: 60,
                budget: 100,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        log(&store),
        [
            "0/vertices/c/0/0/0 bytes 0..60",
            "0/vertices/c/0/0/0 bytes 900..940"
        ]
    );
}

#[test]
fn a_range_past_the_end_does_not_affect_its_neighbours() {
    let (stores, _folder) = stores(&objects());
    for store in stores {
        let reads = [
            bounded(CELL, 980..990),
            bounded(CELL, 995..1005),
            bounded(CELL, 1010..1020),
        ];
        let got = block_on(store.read_each(&reads));
        assert_eq!(store.activity().requests, 1);
        let [Ok(Some(first)), Err(second), Err(third)] = &got[..] else {
            panic!("{got:?}");
        };
        assert_eq!(first, &numbered(1000)[980..990]);
        for (error, range) in [(second, 995..1005), (third, 1010..1020)] {
            let ReadError::Truncated { wanted, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!(wanted, &ByteRange::Bounded(range), "{store}");
        }
    }
}

#[test]
fn results_share_the_fetched_buffer() {
    let store = Store::from_memory(objects()).unwrap();
    let reads = [bounded(CELL, 0..10), bounded(CELL, 20..30)];
    let got = block_on(store.read(&reads)).unwrap();
    let [Some(first), Some(second)] = &got[..] else {
        panic!("{got:?}");
    };
    let apart = second.as_ptr().addr() - first.as_ptr().addr();
    assert_eq!(apart, 20);
}

fn any_range() -> impl Strategy<Value = ByteRange> {
    prop_oneof![
        Just(ByteRange::Full),
        (0..300_u64, 0..100_u64).prop_map(|(start, len)| ByteRange::Bounded(start..start + len)),
        (0..300_u64).prop_map(ByteRange::From),
        (0..300_u64).prop_map(ByteRange::Suffix),
    ]
}

/// Returns the documented result of a read, computed from the whole object.
fn model(object: Option<&[u8]>, range: &ByteRange) -> Result<Option<Vec<u8>>, ()> {
    if range.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let Some(object) = object else {
        return Ok(None);
    };
    let len = object.len();
    let at = |n: u64| usize::try_from(n).unwrap();
    let wanted = match range {
        ByteRange::Full | ByteRange::From(0) => 0..len,
        ByteRange::Bounded(range) => at(range.start)..at(range.end),
        ByteRange::From(start) if at(*start) < len => at(*start)..len,
        ByteRange::From(_) => return Err(()),
        ByteRange::Suffix(n) => len.checked_sub(at(*n)).ok_or(())?..len,
    };
    let part = object.get(wanted).ok_or(())?;
    Ok(Some(part.to_vec()))
}

proptest! {
    #[test]
    fn a_batch_returns_what_single_reads_return(
        len in 0..260_usize,
        ranges in prop::collection::vec((any_range(), 0..3_usize), 0..20),
        gap in 0..50_u64,
    ) {
        let object = numbered(len);
        let options = OpenOptions::default().merge_limits(MergeLimits { gap, size: 128 });
        let names = ["a", "b", "absent"];
        let store = options.from_memory([("a", object.clone()), ("b", object.clone())]).unwrap();
        let reads: Vec<Read> = ranges
            .iter()
            .map(|(range, name)| part(names[*name], range.clone()))
            .collect();
        let want: Result<Vec<_>, ()> = reads
            .iter()
            .map(|read| model((read.key.as_str() != "absent").then_some(&object[..]), &read.range))
            .collect();
        let each = block_on(store.read_each(&reads));
        for (read, got) in reads.iter().zip(each) {
            let object = (read.key.as_str() != "absent").then_some(&object[..]);
            match (got, model(object, &read.range)) {
                (Ok(got), Ok(want)) => prop_assert_eq!(got.map(|b| b.to_vec()), want),
                (Err(ReadError::Truncated { wanted, .. }), Err(())) => {
                    prop_assert_eq!(&wanted, &read.range);
                }
                (got, want) => prop_assert!(false, "{read:?}: {got:?} but {want:?}"),
            }
        }
        let got = block_on(store.read(&reads));
        match (got, want) {
            (Ok(got), Ok(want)) => {
                let got: Vec<_> = got.into_iter().map(|b| b.map(|b| b.to_vec())).collect();
                prop_assert_eq!(got, want);
            }
            (Err(ReadError::Truncated { .. }), Err(())) => {}
            (got, want) => prop_assert!(false, "{got:?} but {want:?}"),
        }
    }
}
