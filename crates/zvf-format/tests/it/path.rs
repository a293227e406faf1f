//! Path segments: unique spelling, in both directions.

use proptest::prelude::*;
use zvf_format::{
    links::LinkWidth,
    path::{
        CellKey, ChunkCoords, ChunkKey, Delta, NumberFault, OffsetCoords, Offsets,
        SegmentError as E,
    },
};
use zvf_testkit::laws;

const EDGE: LinkWidth = LinkWidth::EDGE;
const TRIANGLE: LinkWidth = LinkWidth::TRIANGLE;

#[test]
fn deltas_carry_their_sign() {
    for (text, levels) in [
        ("0", 0),
        ("+1", 1),
        ("-1", -1),
        ("+12", 12),
        ("-2147483648", i32::MIN),
    ] {
        assert_eq!(Delta::parse(text), Ok(Delta::new(levels)));
        assert_eq!(Delta::new(levels).to_string(), text);
    }
    for text in [
        "", "1", "+0", "-0", "+", "-", "+01", "++1", "+1 ", " +1", "+1.0", "self", "０",
    ] {
        assert_eq!(Delta::parse(text), Err(NumberFault::Spelling), "{text:?}");
    }
    assert_eq!(Delta::parse("+2147483648"), Err(NumberFault::Range));
    assert_eq!(
        Delta::parse("-99999999999999999999"),
        Err(NumberFault::Range)
    );
}

#[test]
fn chunk_keys_have_no_plus_and_no_padding() {
    let key = ChunkKey::parse("-1.0.2", 3).unwrap();
    assert!(key.coords().eq([-1, 0, 2]));
    assert_eq!(key.as_str(), "-1.0.2");
    let min = ChunkKey::parse("-9223372036854775808", 1).unwrap();
    assert!(min.coords().eq([i64::MIN]));
    let spelling = |at| E::Number {
        at,
        fault: NumberFault::Spelling,
    };
    for (text, want) in [
        ("", spelling(0)),
        ("0.+1.0", spelling(1)),
        ("0.01.0", spelling(1)),
        ("0.-0.0", spelling(1)),
        ("0..0", spelling(1)),
        ("0.0.", spelling(2)),
        (".0.0", spelling(0)),
        ("zarr.json", spelling(0)),
        ("__shard_000001", spelling(0)),
        (
            "0.0",
            E::Numbers {
                expected: 3,
                found: 2,
            },
        ),
        (
            "0.0.0.0",
            E::Numbers {
                expected: 3,
                found: 4,
            },
        ),
        (
            "9223372036854775808.0.0",
            E::Number {
                at: 0,
                fault: NumberFault::Range,
            },
        ),
    ] {
        assert_eq!(ChunkKey::parse(text, 3), Err(want), "{text:?}");
    }
}

#[test]
fn cell_keys_are_chunks_in_a_row() {
    let key = CellKey::parse("-2.3.9.-1.0.10", EDGE, 3).unwrap();
    assert!(key.chunk(0).unwrap().eq([-2, 3, 9]));
    assert!(key.chunk(1).unwrap().eq([-1, 0, 10]));
    assert!(key.chunk(2).is_none());
    assert!(key.is_canonical());
    let canonical = |text, width| CellKey::parse(text, width, 1).unwrap().is_canonical();
    assert!(canonical("9.10", EDGE) && !canonical("10.9", EDGE));
    assert!(canonical("0.0.1", TRIANGLE) && !canonical("0.1.0", TRIANGLE));
    let error = CellKey::parse("0.0.0.1.0", EDGE, 3).unwrap_err();
    assert_eq!(
        error,
        E::Numbers {
            expected: 6,
            found: 5
        }
    );
    assert!(CellKey::parse("0.0", EDGE, usize::MAX).is_err());
}

#[test]
fn offsets_name_every_endpoint_but_the_first() {
    let edge = Offsets::parse("+1.0.-2", EDGE, 3).unwrap();
    assert!(edge.get(1).unwrap().eq([1, 0, -2]));
    assert!(edge.get(0).is_none() && edge.get(2).is_none());
    assert!(edge.is_canonical() && !edge.is_zero());
    let triangle = Offsets::parse("0.0.0_+1.0.0", TRIANGLE, 3).unwrap();
    assert!(triangle.get(2).unwrap().eq([1, 0, 0]));
    assert!(
        Offsets::parse("0.0.0_0.0.0", TRIANGLE, 3)
            .unwrap()
            .is_zero()
    );
    let alone = LinkWidth::new(1).unwrap();
    let own = Offsets::parse("self", alone, 3).unwrap();
    assert!(own.is_zero() && own.is_canonical() && own.iter().count() == 0);
}

#[test]
fn canonical_offsets_go_forward_and_do_not_descend() {
    let canonical = |text| Offsets::parse(text, TRIANGLE, 2).unwrap().is_canonical();
    assert!(canonical("0.0_0.0") && canonical("0.0_0.+1") && canonical("+1.-3_+1.-3"));
    assert!(!canonical("-1.0_0.0") && !canonical("0.-1_+1.0"));
    assert!(!canonical("+1.0_0.+1"));
}

#[test]
fn offsets_reject_other_spellings() {
    let alone = LinkWidth::new(1).unwrap();
    let count = |expected, found| Err(E::Offsets { expected, found });
    assert_eq!(Offsets::parse("self", EDGE, 3), count(1, 0));
    assert_eq!(Offsets::parse("0.0.0", alone, 3), count(0, 1));
    assert_eq!(Offsets::parse("0.0.0", TRIANGLE, 3), count(2, 1));
    assert_eq!(Offsets::parse("0_0_0", TRIANGLE, 1), count(2, 3));
    for text in ["1.0.0", "+1.0", "+1.0.0.0", "", "+1.0.0 ", "0.0.-0", "Self"] {
        assert!(Offsets::parse(text, EDGE, 3).is_err(), "{text:?}");
    }
}

#[test]
fn numbers_display_as_segments() {
    assert_eq!(
        ChunkCoords(&[i64::MIN, 0, i64::MAX]).to_string(),
        "-9223372036854775808.0.9223372036854775807"
    );
    assert_eq!(OffsetCoords::<[i64; 3]>(&[]).to_string(), "self");
    assert_eq!(OffsetCoords(&[[0, 0], [1, -2]]).to_string(), "0.0_+1.-2");
}

proptest! {
    #[test]
    fn formatted_segments_parse_back(
        levels in any::<i32>(),
        chunks in prop::collection::vec(prop::array::uniform2(prop_oneof![any::<i64>(), -3..3_i64]), 1..=8),
    ) {
        let delta = Delta::new(levels);
        prop_assert_eq!(Delta::parse(&delta.to_string()), Ok(delta));
        let width = LinkWidth::new(chunks.len() as u64).unwrap();
        let text = ChunkCoords(chunks.as_flattened()).to_string();
        let key = CellKey::parse(&text, width, 2).unwrap();
        let slots: Vec<Vec<i64>> = (0..chunks.len()).map(|slot| key.chunk(slot).unwrap().collect()).collect();
        prop_assert_eq!(&slots, &chunks);
        let text = OffsetCoords(&chunks[1..]).to_string();
        let offsets = Offsets::parse(&text, width, 2).unwrap();
        let numbers: Vec<Vec<i64>> = offsets.iter().map(Iterator::collect).collect();
        prop_assert_eq!(&numbers, &chunks[1..]);
    }

    #[test]
    fn any_text_obeys_the_laws(
        head in 1..=8_u8,
        sid_ndim in 0..5_u8,
        text in "(self|[-+0-9._]{0,24}|[+-]?[0-9]{1,20}([._][+-]?[0-9]{1,3}){0,8}|\\PC{0,8})",
    ) {
        laws::path_segment(&[&[head, sid_ndim], text.as_bytes()].concat());
    }
}
