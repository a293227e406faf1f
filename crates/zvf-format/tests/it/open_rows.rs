//! Open rows: consistency of two files.

use proptest::prelude::*;
use zvf_format::{
    groups::GroupMembers,
    open_rows::{OpenRows, OpenRowsError as E, OpenRowsFiles, encode},
};
use zvf_testkit::{LeBytes, hostile, laws, walk};

/// Returns the `groups` of a 0.7 store: [0, 2] and none.
fn groups() -> OpenRowsFiles {
    OpenRowsFiles {
        data: LeBytes::new().i64s([0, 2]).done(),
        offsets: LeBytes::new().i64s([0, 16]).done(),
    }
}

/// Returns both files as input of the walk and the law.
fn packed(files: &OpenRowsFiles) -> Vec<u8> {
    let len = u8::try_from(files.offsets.len()).unwrap();
    [&[len][..], &files.offsets, &files.data].concat()
}

#[track_caller]
fn check_rejects<const N: usize>(data: &[u8], offsets: [i64; N], want: E) {
    let offsets = LeBytes::new().i64s(offsets).done();
    assert_eq!(OpenRows::parse(data, &offsets).unwrap_err(), want);
}

#[test]
fn the_last_row_runs_to_the_end() {
    let files = groups();
    let rows = OpenRows::parse(&files.data, &files.offsets).unwrap();
    assert_eq!(rows.len(), 2);
    let first = GroupMembers::parse_list(rows.get(0).unwrap()).unwrap();
    assert!(first.iter().eq([0, 2]));
    assert_eq!(rows.get(1), Some(&[][..]));
    assert_eq!(rows.get(2), None);
    assert_eq!(encode(&[&files.data[..], &[]]), files);
}

#[test]
fn any_row_may_be_empty() {
    let files = encode(&["", "", "ab", "", "c"]);
    let starts = LeBytes::new().i64s([0, 0, 0, 2, 2]).done();
    assert_eq!((&files.data[..], files.offsets), (&b"abc"[..], starts));
}

#[test]
fn no_row_has_no_data() {
    assert!(OpenRows::parse(&[], &[]).unwrap().is_empty());
    assert_eq!(encode::<[u8; 0]>(&[]), OpenRowsFiles::default());
    check_rejects(b"abc", [], E::Unowned(3));
}

#[test]
fn rejects_each_damaged_offset() {
    check_rejects(b"abc", [1], E::First(1));
    check_rejects(b"abc", [-1], E::First(-1));
    check_rejects(b"abc", [0, 2, 1], E::Descending(2));
    check_rejects(b"abc", [0, -1], E::Descending(1));
    check_rejects(b"abc", [0, i64::MIN, 0], E::Descending(1));
    check_rejects(b"abc", [0, 4], E::PastEnd(4));
    check_rejects(b"abc", [0, 1, i64::MAX], E::PastEnd(i64::MAX));
    check_rejects(b"", [0, 1], E::PastEnd(1));
    let long = OpenRows::parse(b"abc", &[0; 9]).unwrap_err();
    assert_eq!(long, E::Offsets(9));
}

/// `offsets` truncated between two numbers gives the last row more bytes, `data` truncated after
/// the last start gives it fewer: both are valid.
#[test]
fn rejects_prefixes_that_contradict_the_other_file() {
    let files = encode(&["abc", "de", "f"]);
    hostile::prefixes(&files.offsets, |offsets| {
        let rows = OpenRows::parse(&files.data, offsets);
        match offsets.len() {
            0 => assert_eq!(rows, Err(E::Unowned(6))),
            len if len % 8 == 0 => assert_eq!(rows.unwrap().len(), len / 8),
            len => assert_eq!(rows, Err(E::Offsets(len))),
        }
    });
    hostile::prefixes(&files.data, |data| {
        let rows = OpenRows::parse(data, &files.offsets);
        match data.len() {
            0..5 => assert_eq!(rows, Err(E::PastEnd(5))),
            _ => assert_eq!(rows.unwrap().get(2), Some(&data[5..])),
        }
    });
}

#[test]
fn reads_at_every_alignment() {
    let bytes = packed(&encode(&["abc", "", "f"]));
    let want = walk::open_rows(&bytes).unwrap();
    hostile::alignments(&bytes, |moved| {
        assert_eq!(walk::open_rows(moved), Some(want));
    });
}

#[test]
fn survives_damage_to_every_byte() {
    for files in [groups(), encode(&["abc", "de", "f"])] {
        hostile::damage(&packed(&files), laws::open_rows);
    }
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(
        input in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
    ) {
        let files = encode(&input);
        let rows = OpenRows::parse(&files.data, &files.offsets).unwrap();
        prop_assert!(rows.iter().eq(input.iter().map(Vec::as_slice)));
        laws::open_rows(&packed(&files));
    }

    #[test]
    fn any_offsets_obey_the_laws(
        starts in prop::collection::vec(-1..9_i64, 0..5),
        data in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let offsets = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
        laws::open_rows(&packed(&OpenRowsFiles { data, offsets }));
    }
}
