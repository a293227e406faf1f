//! Merging of ranges: every requested byte is fetched, and only allowed gaps besides.

use core::ops::Range;

use proptest::prelude::*;
use zvf_store::{MergeLimits, coalesce};

type Pair = (u64, u64);

fn ranges(pairs: &[Pair]) -> Vec<Range<u64>> {
    pairs.iter().map(|&(start, end)| start..end).collect()
}

#[track_caller]
fn check(given: &[Pair], gap: u64, size: u64, want: &[Pair]) {
    let merged = coalesce(&ranges(given), MergeLimits { gap, size });
    assert_eq!(merged.fetches, ranges(want));
}

#[test]
fn nearby_ranges_are_merged() {
    check(&[], 10, 100, &[]);
    check(&[(0, 5), (15, 20)], 10, 100, &[(0, 20)]);
    check(&[(0, 5), (16, 20)], 10, 100, &[(0, 5), (16, 20)]);
    check(&[(15, 20), (0, 5)], 10, 100, &[(0, 20)]);
    check(&[(0, 5), (5, 9)], 0, 100, &[(0, 9)]);
    check(&[(0, 5), (0, 5), (3, 4)], 0, 1, &[(0, 5)]);
}

#[test]
fn a_merged_request_stays_within_its_size_limit() {
    check(&[(0, 60), (60, 120)], 10, 100, &[(0, 60), (60, 120)]);
    check(&[(0, 600), (10, 20)], 10, 100, &[(0, 600)]);
    let all = (0, u64::MAX);
    check(&[all, (1, 2)], u64::MAX, u64::MAX, &[all]);
}

fn any_ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    let near = (0..400_u64, 1..80_u64).prop_map(|(start, len)| start..start + len);
    let far = (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a.min(b)..a.max(b));
    let one = prop_oneof![9 => near, 1 => far];
    prop::collection::vec(one, 0..40)
}

proptest! {
    #[test]
    fn every_byte_is_covered_and_only_allowed_gaps_are_fetched(
        ranges in any_ranges(), gap in 0..60_u64, size in 0..300_u64,
    ) {
        let merged = coalesce(&ranges, MergeLimits { gap, size });
        prop_assert_eq!(merged.fetch_of.len(), ranges.len());
        prop_assert!(merged.fetches.is_sorted_by_key(|fetch| fetch.start));
        for (range, &fetch) in ranges.iter().zip(&merged.fetch_of) {
            let fetch = &merged.fetches[fetch];
            prop_assert!(fetch.start <= range.start && range.end <= fetch.end);
        }
        for (at, fetch) in merged.fetches.iter().enumerate() {
            let mut members: Vec<&Range<u64>> = ranges
                .iter()
                .zip(&merged.fetch_of)
                .filter_map(|(range, &of)| (of == at).then_some(range))
                .collect();
            members.sort_by_key(|range| (range.start, range.end));
            prop_assert!(!members.is_empty(), "a fetch that no read requested");
            prop_assert_eq!(members[0].start, fetch.start);
            let mut end = members[0].end;
            for member in &members {
                prop_assert!(member.start.saturating_sub(end) <= gap);
                end = end.max(member.end);
            }
            prop_assert_eq!(end, fetch.end);
            let longest = members.iter().map(|range| range.end - range.start).max().unwrap();
            prop_assert!(fetch.end - fetch.start <= size.max(longest));
        }
    }

    #[test]
    fn the_order_of_ranges_does_not_matter(ranges in any_ranges(), gap in 0..60_u64, size in 0..300_u64) {
        let limits = MergeLimits { gap, size };
        let reversed: Vec<Range<u64>> = ranges.iter().rev().cloned().collect();
        prop_assert_eq!(coalesce(&ranges, limits).fetches, coalesce(&reversed, limits).fetches);
    }
}
