//! vlen-bytes frames: the examples of the format, damage, real stores.

use proptest::prelude::*;
use zvf_format::vlen::{VlenFrame, VlenFrameError as E, encode};
use zvf_testkit::{LeBytes, golden::Golden, hostile, laws, walk};

/// Returns one cell with the float32 values -1, 2, 3.
fn cell() -> Vec<u8> {
    LeBytes::new()
        .raw(&[0x01, 0, 0, 0]) // n
        .raw(&[0x0c, 0, 0, 0]) // length
        .raw(&[0, 0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40])
        .done()
}

/// Returns the `groups` of a store: [0, 1, 2], [5], none, [1, 3].
fn groups() -> Vec<u8> {
    LeBytes::new()
        .u32(4)
        .u32(24)
        .i64s([0, 1, 2])
        .u32(8)
        .i64(5)
        .u32(0)
        .u32(16)
        .i64s([1, 3])
        .done()
}

#[track_caller]
fn check_rejects(mut bytes: Vec<u8>, at: usize, with: u32, want: E) {
    bytes.splice(at..at + 4, with.to_le_bytes());
    assert_eq!(VlenFrame::parse(&bytes).unwrap_err(), want);
}

#[test]
fn a_cell_is_the_only_item() {
    let bytes = cell();
    let frame = VlenFrame::parse(&bytes).unwrap();
    assert_eq!(frame.only(), Some(&bytes[8..]));
    assert_eq!(encode(&[&bytes[8..]]).unwrap(), bytes);
}

#[test]
fn items_may_be_empty() {
    let bytes = groups();
    let frame = VlenFrame::parse(&bytes).unwrap();
    let lengths: Vec<_> = frame.iter().map(<[u8]>::len).collect();
    assert_eq!(lengths, [24, 8, 0, 16]);
    assert_eq!((frame.len(), frame.only()), (4, None));
    assert_eq!(frame.get(3), Some(&bytes[52..]));
    assert_eq!(frame.get(4), None);
}

#[test]
fn no_item_and_one_empty_item_differ() {
    let none = VlenFrame::parse(&[0; 4]).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.only(), None);
    let one = LeBytes::new().u32s([1, 0]).done();
    assert_eq!(VlenFrame::parse(&one).unwrap().only(), Some(&[][..]));
    assert_eq!(encode::<[u8; 0]>(&[]).unwrap(), [0; 4]);
}

#[test]
fn rejects_each_damaged_field() {
    check_rejects(cell(), 0, 0, E::TrailingBytes(16));
    check_rejects(cell(), 0, 2, E::Item(1));
    check_rejects(cell(), 0, 5, E::Count(5));
    check_rejects(cell(), 4, 13, E::Item(0));
    check_rejects(cell(), 4, 11, E::TrailingBytes(1));
    check_rejects(cell(), 4, u32::MAX, E::Item(0));
    check_rejects(groups(), 0, 3, E::TrailingBytes(20));
    check_rejects(groups(), 4, 25, E::Item(1));
    check_rejects(groups(), 48, 17, E::Item(3));
    check_rejects(groups(), 48, 15, E::TrailingBytes(1));
}

#[test]
fn absurd_counts_are_refused_unwalked() {
    for count in [1, 2, u32::MAX] {
        let bytes = count.to_le_bytes();
        assert_eq!(VlenFrame::parse(&bytes).unwrap_err(), E::Count(count));
    }
    let barely = LeBytes::new().u32s([3, 0, 0]).raw(&[0; 3]).done();
    assert_eq!(VlenFrame::parse(&barely).unwrap_err(), E::Count(3));
}

#[test]
fn rejects_every_prefix() {
    for bytes in [cell(), groups()] {
        hostile::prefixes(&bytes, |prefix| {
            let error = VlenFrame::parse(prefix).unwrap_err();
            let header = prefix.len() < 4;
            assert_eq!(error == E::Header, header, "{error}");
            assert!(!matches!(error, E::TrailingBytes(_)), "{error}");
        });
    }
}

#[test]
fn reads_at_every_alignment() {
    let bytes = groups();
    let want = walk::vlen_frame(&bytes).unwrap();
    hostile::alignments(&bytes, |moved| {
        assert_eq!(walk::vlen_frame(moved), Some(want));
    });
}

#[test]
fn survives_damage_to_every_byte() {
    for bytes in [cell(), groups()] {
        hostile::damage(&bytes, laws::vlen_frame);
    }
}

/// Every uncompressed chunk of the 0.9 stores is a frame of one item, and the encoder reproduces
/// the file.
#[test]
fn cells_of_real_stores_are_frames() {
    let golden = Golden::open("zvf-09");
    let mut cells = 0;
    for array in uncompressed(&golden) {
        for (path, bytes) in chunks(&golden, &array) {
            let frame = VlenFrame::parse(bytes);
            let item = frame
                .unwrap_or_else(|error| panic!("{path}: {error}"))
                .only()
                .unwrap_or_else(|| panic!("{path}"));
            assert!(!item.is_empty(), "{path}: left out when empty");
            assert_eq!(encode(&[item]).unwrap(), bytes, "{path}");
            cells += 1;
        }
    }
    assert!(cells > 300, "{cells}");
}

/// Returns the arrays whose chunks are uncompressed vlen-bytes frames.
pub(crate) fn uncompressed(golden: &Golden) -> Vec<String> {
    let nodes = golden
        .files()
        .filter_map(|(path, _)| path.strip_suffix("/zarr.json"));
    let plain = nodes.filter(|node| {
        let codecs = &golden.json(&format!("{node}/zarr.json"))["codecs"];
        let codecs = codecs.as_array().map_or(&[][..], Vec::as_slice);
        codecs.len() == 1 && codecs[0]["name"] == "vlen-bytes"
    });
    plain.map(str::to_owned).collect()
}

/// Returns the chunks of an array with their paths.
pub(crate) fn chunks<'a>(
    golden: &'a Golden,
    array: &str,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let below = format!("{array}/c/");
    golden
        .files()
        .filter(move |(path, _)| path.starts_with(&below))
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_values(
        items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
    ) {
        let bytes = encode(&items).unwrap();
        let frame = VlenFrame::parse(&bytes).unwrap();
        prop_assert!(frame.iter().eq(items.iter().map(Vec::as_slice)));
        laws::vlen_frame(&bytes);
        hostile::prefixes(&bytes, |prefix| assert!(VlenFrame::parse(prefix).is_err()));
    }

    #[test]
    fn any_bytes_obey_the_laws(
        count in 0..6_u32,
        body in prop::collection::vec(prop_oneof![4 => Just(0_u8), 1 => 0..8_u8], 0..60),
    ) {
        laws::vlen_frame(&LeBytes::new().u32(count).raw(&body).done());
    }
}
