//! Packed i64 numbers at any address.

use proptest::prelude::*;
use zvf_format::int64s::{Int64s, Int64sError};
use zvf_testkit::{LeBytes, hostile};

#[test]
fn extremes_are_numbers_like_any_other() {
    let want = [i64::MIN, -1, 0, 1, i64::MAX];
    let bytes = LeBytes::new().i64s(want).done();
    let numbers = Int64s::parse(&bytes).unwrap();
    assert!(numbers.iter().eq(want));
    assert_eq!((numbers.len(), numbers.iter().len()), (5, 5));
    assert_eq!(
        (numbers.get(4), numbers.get(5)),
        (Some(i64::MAX), None::<i64>)
    );
    assert_eq!(numbers.as_bytes(), bytes);
    assert_eq!(format!("{numbers:?}"), format!("{want:?}"));
}

#[test]
fn no_bytes_are_no_numbers() {
    let numbers = Int64s::parse(&[]).unwrap();
    assert!(numbers.is_empty());
    assert_eq!(numbers, Int64s::default());
}

/// A blob truncated between two numbers is a valid shorter blob.
#[test]
fn rejects_prefixes_that_cut_a_number() {
    let bytes = LeBytes::new().i64s([1, 2, 3]).done();
    hostile::prefixes(&bytes, |prefix| match Int64s::parse(prefix) {
        Ok(numbers) => assert_eq!(numbers.len() * 8, prefix.len()),
        Err(error) => {
            assert!(!prefix.len().is_multiple_of(8));
            assert_eq!(error, Int64sError::Length(prefix.len()));
        }
    });
}

proptest! {
    #[test]
    fn reads_at_every_alignment(want in prop::collection::vec(any::<i64>(), 0..20)) {
        let bytes: Vec<u8> = want.iter().flat_map(|number| number.to_le_bytes()).collect();
        hostile::alignments(&bytes, |moved| {
            assert!(Int64s::parse(moved).unwrap().iter().eq(want.iter().copied()));
        });
    }
}
