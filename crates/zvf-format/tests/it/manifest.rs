//! Object manifests: hex dumps of the reference, modes, limits, damage.

use proptest::prelude::*;
use zvf_format::manifest::{
    Block, BlockFault, FragmentRef, ManifestError as E, ManifestLimit, ObjectManifest,
    ObjectManifestBuilder,
};
use zvf_testkit::{LeBytes, hostile, laws, walk};

/// Returns a block in each mode, then an empty list.
fn all_modes() -> Vec<u8> {
    LeBytes::new()
        .u32(4)
        .i64s([0, 0, 0])
        .u8(0)
        .i64(2)
        .i64s([1, -2, 3])
        .u8(1)
        .i64s([4, 3])
        .i64s([1, 0, 0])
        .u8(2)
        .u32(3)
        .i64s([5, 0, 5])
        .i64s([0, 0, 0])
        .u8(2)
        .u32(0)
        .done()
}

/// Prepends `sid_ndim` to the blob, as the walks and laws require.
fn with_ndim(sid_ndim: u8, blob: &[u8]) -> Vec<u8> {
    [&[sid_ndim], blob].concat()
}

fn pieces(manifest: ObjectManifest<'_>) -> Vec<(Vec<i64>, Vec<u32>)> {
    let piece = |block: Block<'_>| {
        (
            block.chunk.iter().collect(),
            block.fragments.iter().collect(),
        )
    };
    manifest.iter().map(piece).collect()
}

#[track_caller]
fn check_rejects(bytes: &[u8], want: E) {
    assert_eq!(ObjectManifest::parse(bytes, 3).unwrap_err(), want);
}

#[track_caller]
fn check_block(bytes: &[u8], block: u32, fault: BlockFault) {
    check_rejects(bytes, E::Block { block, fault });
}

#[test]
fn reads_all_modes_in_order() {
    let bytes = all_modes();
    let manifest = ObjectManifest::parse(&bytes, 3).unwrap();
    assert_eq!((manifest.len(), manifest.is_empty()), (4, false));
    assert_eq!(
        pieces(manifest),
        [
            (vec![0, 0, 0], vec![2]),
            (vec![1, -2, 3], vec![4, 5, 6]),
            (vec![1, 0, 0], vec![5, 0, 5]),
            (vec![0, 0, 0], vec![]),
        ]
    );
    let blocks: Vec<_> = manifest.iter().map(|block| block.fragments).collect();
    assert_eq!(blocks[0], FragmentRef::Single(2));
    assert_eq!(blocks[1], FragmentRef::Range(4..7));
    assert!(matches!(&blocks[2], FragmentRef::List(list) if list.get(0) == Some(5)));
}

#[test]
fn encoder_writes_the_same_bytes() {
    let mut builder = ObjectManifestBuilder::new(3);
    builder.push_single(&[0, 0, 0], 2).unwrap();
    builder.push_range(&[1, -2, 3], 4..7).unwrap();
    builder.push_list(&[1, 0, 0], &[5, 0, 5]).unwrap();
    builder.push_list(&[0, 0, 0], &[]).unwrap();
    assert_eq!(builder.finish(), all_modes());
}

#[test]
fn lists_that_are_runs_become_ranges() {
    let mut builder = ObjectManifestBuilder::new(1);
    builder.push_list(&[0], &[7]).unwrap();
    builder.push_list(&[0], &[3, 4, 5]).unwrap();
    builder.push_list(&[0], &[u32::MAX]).unwrap();
    let bytes = builder.finish();
    let manifest = ObjectManifest::parse(&bytes, 1).unwrap();
    let blocks: Vec<_> = manifest.iter().map(|block| block.fragments).collect();
    assert_eq!(
        blocks[..2],
        [FragmentRef::Range(7..8), FragmentRef::Range(3..6)]
    );
    // One past it is not a fragment number, so it cannot be a range.
    assert!(matches!(&blocks[2], FragmentRef::List(list) if list.get(0) == Some(u32::MAX)));
}

#[test]
fn an_empty_object_is_not_an_absent_one() {
    assert!(ObjectManifest::parse(&[0; 4], 3).unwrap().is_empty());
    check_rejects(&[], E::TruncatedHeader);
    let no_fragment = LeBytes::new()
        .u32(1)
        .i64s([0, 0, 0])
        .u8(1)
        .i64s([4, 0])
        .done();
    assert!(ObjectManifest::parse(&no_fragment, 3).unwrap().is_empty());
}

#[test]
fn works_without_axes_and_with_many() {
    let none = LeBytes::new().u32(1).u8(0).i64(9).done();
    assert_eq!(
        pieces(ObjectManifest::parse(&none, 0).unwrap()),
        [(vec![], vec![9])]
    );
    let many = LeBytes::new().u32(1).i64s([-1; 9]).u8(0).i64(9).done();
    assert_eq!(
        pieces(ObjectManifest::parse(&many, 9).unwrap()),
        [(vec![-1; 9], vec![9])]
    );
    assert!(ObjectManifest::parse(&many, usize::MAX).is_err());
}

#[test]
fn rejects_each_damaged_field() {
    let block = |mode: u8| LeBytes::new().u32(1).i64s([0, 0, 0]).u8(mode);
    check_block(&block(3).i64(0).done(), 0, BlockFault::Mode(3));
    check_block(&block(0).i64(-1).done(), 0, BlockFault::Fragment(-1));
    let past = i64::from(u32::MAX) + 1;
    check_block(&block(0).i64(past).done(), 0, BlockFault::Fragment(past));
    check_block(&block(1).i64s([-1, 2]).done(), 0, BlockFault::Fragment(-1));
    check_block(&block(1).i64s([2, -1]).done(), 0, BlockFault::Count(-1));
    check_block(
        &block(1).i64s([1, past - 1]).done(),
        0,
        BlockFault::Fragment(past),
    );
    let overflow = block(1).i64s([1, i64::MAX]).done();
    check_block(&overflow, 0, BlockFault::Fragment(i64::MAX));
    let listed = block(2).u32(2).i64s([0, -7]).done();
    check_block(&listed, 0, BlockFault::Fragment(-7));
    let mut trailing = all_modes();
    trailing.push(0);
    check_rejects(&trailing, E::TrailingBytes(1));
    let mut fewer = all_modes();
    fewer[0] = 3;
    check_rejects(&fewer, E::TrailingBytes(29));
    let mut more = all_modes();
    more[0] = 5;
    check_block(&more, 4, BlockFault::Truncated);
}

#[test]
fn rejects_every_prefix() {
    hostile::prefixes(&all_modes(), |prefix| {
        let error = ObjectManifest::parse(prefix, 3).unwrap_err();
        let truncated = matches!(
            error,
            E::TruncatedHeader
                | E::Block {
                    fault: BlockFault::Truncated,
                    ..
                }
        );
        assert!(truncated, "{error}");
    });
}

#[test]
fn reads_at_every_alignment() {
    let bytes = with_ndim(3, &all_modes());
    let want = walk::object_manifest(&bytes);
    assert!(want.is_some());
    hostile::alignments(&bytes, |moved| {
        assert_eq!(walk::object_manifest(moved), want);
    });
}

#[test]
fn survives_damage_to_every_byte() {
    hostile::damage(&with_ndim(3, &all_modes()), laws::object_manifest);
}

#[test]
fn absurd_counts_are_refused_from_the_header_alone() {
    let blocks = LeBytes::new().u32(u32::MAX).done();
    check_block(&blocks, 0, BlockFault::Truncated);
    let listed = LeBytes::new()
        .u32(1)
        .i64s([0; 3])
        .u8(2)
        .u32(u32::MAX)
        .done();
    check_block(&listed, 0, BlockFault::Truncated);
}

#[test]
fn encoder_rejects_values_beyond_the_format() {
    let mut builder = ObjectManifestBuilder::new(3);
    let limit = ManifestLimit::Coordinates {
        expected: 3,
        found: 2,
    };
    assert_eq!(builder.push_single(&[0, 0], 1).unwrap_err(), limit);
    #[expect(clippy::reversed_empty_ranges, reason = "the case under test")]
    let inverted = builder.push_range(&[0, 0, 0], 2..1).unwrap_err();
    assert_eq!(inverted, ManifestLimit::Inverted { start: 2, end: 1 });
    assert_eq!(builder.finish(), [0; 4], "a refused block leaves no trace");
}

#[derive(Clone, Debug)]
enum Piece {
    Single(u32),
    Range(u32, u32),
    List(Vec<u32>),
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(
        (sid_ndim, blocks) in (0..5_usize).prop_flat_map(|sid_ndim| {
            let piece = prop_oneof![
                any::<u32>().prop_map(Piece::Single),
                (0..1_000_u32, 0..40_u32).prop_map(|(start, count)| Piece::Range(start, count)),
                prop::collection::vec(0..1_000_u32, 0..6).prop_map(Piece::List),
            ];
            let chunk = prop::collection::vec(any::<i64>(), sid_ndim);
            (Just(sid_ndim), prop::collection::vec((chunk, piece), 0..8))
        })
    ) {
        let mut builder = ObjectManifestBuilder::new(sid_ndim);
        let mut want = Vec::new();
        for (chunk, piece) in blocks {
            let fragments: Vec<u32> = match &piece {
                Piece::Single(fragment) => vec![*fragment],
                Piece::Range(start, count) => (*start..start + count).collect(),
                Piece::List(list) => list.clone(),
            };
            match &piece {
                Piece::Single(fragment) => builder.push_single(&chunk, *fragment),
                Piece::Range(start, count) => builder.push_range(&chunk, *start..start + count),
                Piece::List(list) => builder.push_list(&chunk, list),
            }.unwrap();
            want.push((chunk, fragments));
        }
        let bytes = builder.finish();
        prop_assert_eq!(pieces(ObjectManifest::parse(&bytes, sid_ndim).unwrap()), want);
        laws::object_manifest(&with_ndim(u8::try_from(sid_ndim).unwrap(), &bytes));
    }

    #[test]
    fn any_bytes_obey_the_laws(
        sid_ndim in 0..4_u8,
        blocks in 0..4_u32,
        body in prop::collection::vec(prop_oneof![5 => Just(0_u8), 1 => 0..3_u8, 1 => any::<u8>()], 0..160),
    ) {
        laws::object_manifest(&LeBytes::new().u8(sid_ndim).u32(blocks).raw(&body).done());
    }
}
