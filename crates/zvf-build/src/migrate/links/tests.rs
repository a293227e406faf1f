//! Tests of link placement by profile and policy.

use zvf_format::fragment::FragmentIndexBuilder;

use super::*;
use crate::CellCompression;
use crate::design::{CellChecksums, Profile};

fn links(profile: Profile, delta: i32, (directed, duplicate): (bool, bool)) -> LinkTarget {
    let form = MigrationTarget::new(profile, CellCompression::None, CellChecksums::Auto)
        .unwrap_or_else(|_| unreachable!());
    let policy = LinkRecordPolicy {
        directed,
        duplicate,
    };
    let scales = vec![AxisScales::EQUAL; 1];
    form.links(
        LevelId::FULL,
        Delta::new(delta),
        LinkWidth::EDGE,
        policy,
        scales,
    )
}

/// Links between chunks 0, 1 and 2 of one axis, and where they come to be.
#[track_caller]
fn check(form: &LinkTarget, ends: &[(u32, u64)], expected: &[(&str, &[i64], &[u8])]) {
    let chunks: [&[i64]; 3] = [&[0], &[1], &[2]];
    let all: Vec<usize> = (0..ends.len() / 2).collect();
    let placed_links = form.file(&chunks, ends, &all);
    let (placed, _) = placed_links.ok().flatten().unwrap_or_default();
    let found: Vec<(String, Vec<i64>, Vec<u8>)> = placed
        .iter()
        .map(|((array_key, at), links)| {
            (
                form.key(array_key).unwrap().to_string(),
                at.clone(),
                links.payload(),
            )
        })
        .map(|(path, at, payload)| {
            let numbers = payload.chunks_exact(8).map(|number| number[0]);
            (path, at, numbers.collect())
        })
        .collect();
    let found: Vec<(&str, &[i64], &[u8])> = found
        .iter()
        .map(|(path, at, numbers)| (path.as_str(), at.as_slice(), numbers.as_slice()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn links_are_placed_by_generation() {
    let ends = [(1, 4), (0, 2), (0, 1), (1, 0)];
    let sorted: &[u8] = &[1, 0, 1, 2, 4, 0, 1, 0];
    let current = links(Profile::V09, 0, (false, false));
    check(&current, &ends, &[("0/links/0/+1", &[0], sorted)]);
    let older = links(Profile::V08, 0, (false, false));
    let cell: &[u8] = &[2, 0, 24, 1, 2, 4, 0, 1, 0];
    check(&older, &ends, &[("0/cross_chunk_links/0", &[0, 1], cell)]);
    let directed = links(Profile::V09, 0, (true, false));
    let ways: &[(&str, &[i64], &[u8])] = &[
        ("0/links/0/+1", &[0], &[1, 0, 1, 0]),
        ("0/links/0/-1", &[1], &[1, 0, 4, 2]),
    ];
    check(&directed, &ends, ways);
}

#[test]
fn links_between_levels_keep_their_end_order() {
    let ends = [(2, 4), (0, 2)];
    let up = links(Profile::V09, 1, (false, false));
    check(&up, &ends, &[("0/links/+1/-2", &[2], &[1, 0, 4, 2])]);
}

#[test]
fn duplicates_are_removed_and_missing_copies_counted() {
    let form = links(Profile::V09, 0, (false, true));
    let (a, b) = ([(0, 1), (1, 2)], [(1, 5), (0, 6)]);
    let ends = [a, b, a, b].concat();
    assert_eq!(form.without_copies(&ends, &[0, 0, 1, 1]), (vec![0, 1], 0));
    assert_eq!(form.without_copies(&ends[..6], &[0, 0, 1]), (vec![0, 1], 1));
    assert_eq!(form.without_copies(&ends[2..6], &[0, 1]), (vec![0, 1], 2));
    assert_eq!(
        form.without_copies(&[a, a, a, a].concat(), &[0, 0, 1, 1]),
        (vec![0, 1], 0)
    );
}

#[test]
fn links_within_a_chunk_are_appended_to_it() {
    let form = links(Profile::V09, 0, (false, false));
    let chunks: [&[i64]; 1] = [&[3]];
    let placed_links = form.file(&chunks, &[(0, 7), (0, 8)], &[0]);
    let (placed, beside) = placed_links.ok().flatten().unwrap_or_default();
    assert!(placed.is_empty());
    let more = &beside[&vec![3]];
    let own: Vec<u8> = [1_u64, 2]
        .iter()
        .flat_map(|row| row.to_le_bytes())
        .collect();
    let payload = form.aligned_payload(&own, more);
    assert_eq!(payload.map(|bytes| bytes.len()), Ok(32));
    let groups = more.groups(None, 1).unwrap_or_default();
    let index = FragmentIndex::parse(&groups);
    assert_eq!(index.map(|index| (index.len(), index.extent())), Ok((1, 2)));
    let mut one = FragmentIndexBuilder::default();
    one.push_range(0..1).unwrap();
    let groups = more.groups(Some(&one.finish()), 1).unwrap_or_default();
    let index = FragmentIndex::parse(&groups);
    assert_eq!(index.map(|index| (index.len(), index.extent())), Ok((2, 2)));
    let up = links(Profile::V09, 1, (false, false));
    let grouped = ragged::encode(&[&own[..], &[]]);
    let payload = up.aligned_payload(&grouped, more).unwrap_or_default();
    let groups = RaggedBlob::parse(&payload).map(|blob| blob.len());
    assert_eq!((groups, up.count(&payload)), (Ok(3), 2));
}
