//! Lengths of fragments: one encoding for each list of ranges, and the limits.

use proptest::prelude::*;
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder},
    fragment_lengths::{self, FragmentLengths, FragmentLengthsError},
};
use zvf_testkit::{hostile, laws, walk};

const MOST: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];

fn encoded(lengths: &[u64]) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    let mut start = 0;
    for length in lengths {
        builder.push_range(start..start + length).unwrap();
        start += length;
    }
    let index = builder.finish();
    fragment_lengths::encode(&FragmentIndex::parse(&index).unwrap()).unwrap()
}

#[test]
fn lengths_are_varints() {
    let bytes = encoded(&[0, 127, 128, 16_384]);
    assert_eq!(bytes, [0, 127, 0x80, 1, 0x80, 0x80, 1]);
    let lengths = FragmentLengths::parse(&bytes).unwrap();
    assert!(lengths.ranges().eq([0..0, 0..127, 127..255, 255..16_639]));
    assert_eq!(lengths.extent(), 16_639);
    assert_eq!(FragmentLengths::parse(&[]).unwrap().ranges().count(), 0);
}

#[test]
fn fragments_that_do_not_follow_one_another_have_no_lengths() {
    let encode = |build: &dyn Fn(&mut FragmentIndexBuilder)| {
        let mut builder = FragmentIndexBuilder::default();
        build(&mut builder);
        let index = builder.finish();
        fragment_lengths::encode(&FragmentIndex::parse(&index).unwrap())
    };
    assert_eq!(encode(&|_| ()), Some(Vec::new()));
    assert_eq!(encode(&|index| drop(index.push_range(1..2))), None);
    assert_eq!(encode(&|index| drop(index.push_list(&[0, 2]))), None);
    let overlap = |index: &mut FragmentIndexBuilder| {
        index.push_range(0..3).unwrap().push_range(2..4).unwrap();
    };
    assert_eq!(encode(&overlap), None);
}

/// A prefix that ends between two lengths is a shorter list. The inventory, which has the size, tells.
#[test]
fn damaged_lengths_are_rejected() {
    let error = |bytes: &[u8]| FragmentLengths::parse(bytes).unwrap_err();
    assert_eq!(error(&[3, 0x80]), FragmentLengthsError::Truncated);
    assert_eq!(error(&[0x80, 0]), FragmentLengthsError::Padded);
    assert_eq!(error(&[0xff; 10]), FragmentLengthsError::Extent);
    assert!(FragmentLengths::parse(&MOST).is_ok());
    assert_eq!(
        error(&[&MOST[..], &[1]].concat()),
        FragmentLengthsError::Extent
    );
}

#[test]
fn lengths_are_read_at_each_alignment_and_with_each_byte_damaged() {
    let bytes = encoded(&[3, 200, 0, 70_000]);
    let ranges: Vec<_> = FragmentLengths::parse(&bytes).unwrap().ranges().collect();
    hostile::alignments(&bytes, |moved| {
        let lengths = FragmentLengths::parse(moved).unwrap();
        assert!(lengths.ranges().eq(ranges.iter().cloned()));
    });
    hostile::damage(&bytes, laws::fragment_lengths);
    hostile::prefixes(&bytes, laws::fragment_lengths);
}

proptest! {
    #[test]
    fn every_list_of_lengths_is_read_as_it_was_written(
        lengths in prop::collection::vec(prop_oneof![0..200_u64, 0..1_u64 << 40], 0..40),
    ) {
        let bytes = encoded(&lengths);
        let ranges = FragmentLengths::parse(&bytes).unwrap().ranges();
        let read: Vec<u64> = ranges.map(|rows| rows.end - rows.start).collect();
        prop_assert_eq!(read, lengths);
        laws::fragment_lengths(&bytes);
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        walk::fragment_lengths(&bytes);
        laws::fragment_lengths(&bytes);
    }
}
