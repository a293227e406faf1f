//! Group members: both forms, their limits, and comparison by content.

use proptest::prelude::*;
use zvf_format::{
    groups::{GroupMembers, GroupRangeInverted, encode_list},
    int64s::Int64sError,
    vlen::VlenFrame,
};
use zvf_testkit::{LeBytes, hostile, laws, walk};

/// Returns a list as input of the walk and the law.
fn packed_list(ids: &[i64]) -> Vec<u8> {
    [&[0][..], &encode_list(ids)].concat()
}

/// Returns a range as input of the walk and the law.
fn packed_range(start: i64, stop: i64) -> Vec<u8> {
    LeBytes::new().u8(1).i64s([start, stop]).done()
}

#[test]
fn items_of_a_store_are_lists() {
    let bytes = LeBytes::new()
        .u32s([4, 24])
        .i64s([0, 1, 2])
        .u32(8)
        .i64(5)
        .u32s([0, 16])
        .i64s([1, 3])
        .done();
    let items = VlenFrame::parse(&bytes).unwrap();
    let groups = items.iter().map(|item| {
        let members = GroupMembers::parse_list(item).unwrap();
        members.iter().collect::<Vec<_>>()
    });
    let want: [&[i64]; 4] = [&[0, 1, 2], &[5], &[], &[1, 3]];
    assert!(groups.eq(want.map(<[i64]>::to_vec)));
}

#[test]
fn a_list_keeps_order_repetition_and_any_id() {
    let ids = [3, 1, 3, -1, i64::MIN, i64::MAX];
    let bytes = encode_list(&ids);
    let members = GroupMembers::parse_list(&bytes).unwrap();
    assert!(members.iter().eq(ids));
    assert_eq!((members.len(), members.get(2)), (6, Some(3)));
    assert_eq!(members.get(6), None);
    assert!(members.contains(-1) && !members.contains(2));
    assert!(members.as_list().is_some() && members.as_range().is_none());
}

#[test]
fn a_range_excludes_its_stop() {
    let members = GroupMembers::from_range(0, 50).unwrap();
    assert_eq!((members.len(), members.iter().count()), (50, 50));
    assert_eq!((members.get(49), members.get(50)), (Some(49), None));
    assert!(members.contains(0) && members.contains(49));
    assert!(!members.contains(-1) && !members.contains(50));
    assert_eq!(members.as_range(), Some(0..50));
    assert!(members.as_list().is_none());
}

#[test]
fn the_longest_range_is_counted() {
    let members = GroupMembers::from_range(i64::MIN, i64::MAX).unwrap();
    assert_eq!(members.len(), u64::MAX);
    assert_eq!(members.get(u64::MAX - 1), Some(i64::MAX - 1));
    assert_eq!(members.get(u64::MAX), None);
    assert!(!members.contains(i64::MAX));
    assert_eq!(members, members.clone(), "compared without walking it");
    laws::group_members(&packed_range(i64::MIN, i64::MAX));
}

#[test]
fn equality_compares_members_not_forms() {
    let bytes = encode_list(&[4, 5, 6]);
    let list = GroupMembers::parse_list(&bytes).unwrap();
    let range = |start, stop| GroupMembers::from_range(start, stop).unwrap();
    assert_eq!(list, range(4, 7));
    assert_ne!(list, range(5, 8));
    assert_ne!(range(4, 7), range(5, 8));
    assert_eq!(range(4, 4), range(9, 9));
    assert_eq!(range(4, 4), GroupMembers::parse_list(&[]).unwrap());
    let turned = encode_list(&[4, 6, 5]);
    assert_ne!(list, GroupMembers::parse_list(&turned).unwrap());
}

#[test]
fn rejects_an_inverted_range_and_half_an_id() {
    let inverted = GroupMembers::from_range(2, 1).unwrap_err();
    assert_eq!(inverted, GroupRangeInverted { start: 2, stop: 1 });
    let half = GroupMembers::parse_list(&[0; 12]).unwrap_err();
    assert_eq!(half, Int64sError::Length(12));
}

/// A list truncated between two ids is a valid shorter list.
#[test]
fn rejects_prefixes_that_cut_an_id() {
    hostile::prefixes(&encode_list(&[3, 1]), |prefix| {
        let whole = prefix.len().is_multiple_of(8);
        assert_eq!(GroupMembers::parse_list(prefix).is_ok(), whole);
    });
}

#[test]
fn reads_at_every_alignment() {
    let bytes = packed_list(&[3, -1, 2]);
    let want = walk::group_members(&bytes).unwrap();
    hostile::alignments(&bytes, |moved| {
        assert_eq!(walk::group_members(moved), Some(want));
    });
}

#[test]
fn survives_damage_to_every_byte() {
    hostile::damage(&packed_list(&[3, -1, 2]), laws::group_members);
    hostile::damage(&packed_range(3, 9), laws::group_members);
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(ids in prop::collection::vec(any::<i64>(), 0..20)) {
        let bytes = encode_list(&ids);
        let members = GroupMembers::parse_list(&bytes).unwrap();
        prop_assert!(members.iter().eq(ids.iter().copied()));
        laws::group_members(&packed_list(&ids));
    }

    #[test]
    fn a_range_has_the_members_of_its_list(start in -9..9_i64, len in 0..9_i64) {
        let ids: Vec<_> = (start..start + len).collect();
        let bytes = encode_list(&ids);
        let range = GroupMembers::from_range(start, start + len).unwrap();
        prop_assert_eq!(range, GroupMembers::parse_list(&bytes).unwrap());
        laws::group_members(&packed_range(start, start + len));
    }
}
