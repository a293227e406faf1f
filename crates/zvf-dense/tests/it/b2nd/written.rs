//! Arrays written and read back.

use proptest::prelude::*;
use tempfile::TempDir;
use zvf_dense::{
    DenseArray, DenseSink, Hyperslab, NumpyDtype,
    b2nd::{B2nd, B2ndDesign, B2ndWriter},
    blosc::{BloscCodec, BloscFilter, Split},
};

use super::open;

/// Creates elements that are neither random nor constant.
pub(crate) fn sample(len: usize, kind: u8) -> Vec<u8> {
    let byte = |at: usize| match kind {
        0 => 0,
        1 => (at / 37 * at).to_le_bytes()[0],
        2 => (at.wrapping_mul(0x9e37_79b9) >> 7).to_le_bytes()[0],
        _ => [7, 1, 0, 0][at % 4],
    };
    (0..len).map(byte).collect()
}

/// Selects elements of an array in memory one by one.
pub(crate) fn picked(shape: &[u64], size: usize, bytes: &[u8], selection: &Hyperslab) -> Vec<u8> {
    let mut starts = vec![0];
    for (extent, axis) in shape.iter().zip(selection.axes()) {
        let inner = starts
            .into_iter()
            .flat_map(|at: u64| (0..axis.count()).map(move |k| at * extent + axis.position(k)));
        starts = inner.collect();
    }
    let at = |at: u64| usize::try_from(at).unwrap() * size;
    starts
        .into_iter()
        .flat_map(|s| bytes[at(s)..at(s) + size].to_vec())
        .collect()
}

fn filters() -> impl Strategy<Value = Vec<BloscFilter>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![BloscFilter::Shuffle]),
        Just(vec![BloscFilter::BitShuffle]),
        Just(vec![BloscFilter::Delta]),
        Just(vec![BloscFilter::Delta, BloscFilter::Shuffle]),
        Just(vec![BloscFilter::Shuffle, BloscFilter::ByteDelta]),
        Just(vec![
            BloscFilter::Delta,
            BloscFilter::Shuffle,
            BloscFilter::ByteDelta
        ]),
    ]
}

/// Extent, chunk, block, and the start, stop and step of the selection.
type Axis = (u64, u64, u64, [u64; 3]);

prop_compose! {
    /// An axis: extent, chunk, block, and selection.
    fn axis()(extent in 0..14_u64, chunk in 1..16_u64, of_block in 1..16_u64, a in 0..14_u64, b in 0..14_u64, step in 1..5_u64)
        -> Axis
    {
        let (a, b) = (a.min(extent), b.min(extent));
        (extent, chunk, of_block.min(chunk), [a.min(b), a.max(b), step])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(300)))]

    #[test]
    fn any_array_round_trips(
        axes in prop::collection::vec(axis(), 0..4),
        dtype in prop_oneof![Just("<f4"), Just("|u1"), Just(">i2"), Just("<f8"), Just("|S5"), Just("|V300"), Just("[('a', '<i4'), ('b', '<f8')]")],
        codec in prop_oneof![Just(BloscCodec::Lz4), Just(BloscCodec::Zlib), Just(BloscCodec::Zstd)],
        level in prop_oneof![Just(0_u8), Just(1), Just(5)],
        filters in filters(),
        split in prop_oneof![Just(Split::Always), Just(Split::Never), Just(Split::Auto)],
        kind in 0..4_u8,
        caterva: bool,
        sparse: bool,
    ) {
        let list = |f: fn(&Axis) -> u64| axes.iter().map(f).collect::<Vec<_>>();
        let shape = list(|axis| axis.0);
        let (chunk, block) = (list(|axis| axis.1), list(|axis| axis.2));
        let dtype = NumpyDtype::parse(dtype).unwrap();
        let size = usize::try_from(dtype.size()).unwrap();
        let items = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let bytes = sample(items * size, kind);
        let mut design = B2ndDesign::new(&shape, dtype.clone())
            .with_chunks(&chunk, &block)
            .with_codec(codec, level)
            .with_filters(&filters)
            .with_split(split)
            .with_metalayer("mine", b"\x01\x02")
            .with_vlmetalayer("more", &[7; 100]);
        if caterva {
            design = design.for_caterva();
        }
        let frame = B2ndWriter::encode(&design, &bytes).unwrap();
        prop_assert_eq!(&frame, &B2ndWriter::encode(&design, &bytes).unwrap());
        let folder = TempDir::new().unwrap();
        let array = if sparse {
            let path = folder.path().join("array.b2nd");
            let mut writer = Box::new(B2ndWriter::create_directory(&path, &design).unwrap());
            writer.put_all(&bytes).unwrap();
            writer.finish().unwrap();
            B2nd::open(&path).unwrap()
        } else {
            open(frame).unwrap()
        };
        prop_assert_eq!(array.shape(), &shape[..]);
        if !caterva {
            prop_assert_eq!(array.dtype(), &dtype);
        }
        let layers: Vec<_> = array.metalayers().chain(array.vlmetalayers()).collect();
        prop_assert_eq!(layers, [("mine", &b"\x01\x02"[..]), ("more", &[7; 100][..])]);
        let whole = Hyperslab::whole(&shape);
        prop_assert!(array.slice(&whole).unwrap() == bytes);
        let part = |k: usize| axes.iter().map(|axis| axis.3[k]).collect::<Vec<_>>();
        let selection = Hyperslab::new(&part(0), &part(1), Some(&part(2))).unwrap();
        let found = array.slice(&selection).unwrap();
        prop_assert!(found == picked(&shape, size, &bytes, &selection));
    }
}

#[test]
fn parallel_reads_match_sequential_reads() {
    let shape = [70, 90, 33];
    let bytes = sample(70 * 90 * 33 * 4, 1);
    let cuts: [(&[u64], &[u64]); 3] = [
        (&[16, 32, 33], &[8, 8, 8]),
        (&[70, 90, 33], &[3, 90, 5]),
        (&[1, 90, 33], &[1, 9, 33]),
    ];
    for (chunk, block) in cuts {
        let design =
            B2ndDesign::new(&shape, NumpyDtype::parse("<f4").unwrap()).with_chunks(chunk, block);
        let array = open(B2ndWriter::encode(&design, &bytes).unwrap()).unwrap();
        for (stops, steps) in [
            ([70, 90, 33], [1, 1, 1]),
            ([1, 90, 33], [1, 1, 1]),
            ([70, 90, 33], [3, 2, 7]),
        ] {
            let selection = Hyperslab::new(&[0, 0, 0], &stops, Some(&steps)).unwrap();
            let expected = picked(&shape, 4, &bytes, &selection);
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let found = pool.install(|| array.slice(&selection)).unwrap();
                assert!(found == expected, "{chunk:?} {steps:?} {threads}");
            }
        }
    }
}

/// Copies have special cases for row lengths. Planes across wide blocks join only the selected
/// items.
#[test]
fn rows_of_any_length_and_planes_of_wide_blocks_are_read() {
    let shape = [5, 24, 73];
    for (dtype, size) in [("|u1", 1), ("<i2", 2), ("<f4", 4), ("<f8", 8)] {
        let bytes = sample(5 * 24 * 73 * size, 1);
        for width in 1..=73 {
            let design = B2ndDesign::new(&shape, NumpyDtype::parse(dtype).unwrap())
                .with_chunks(&shape, &[5, 24, width]);
            let array = open(B2ndWriter::encode(&design, &bytes).unwrap()).unwrap();
            for (starts, stops) in [
                ([0, 0, 0], [5, 24, 73]),
                ([0, 17, 0], [5, 18, 73]),
                ([2, 0, 0], [3, 24, 73]),
                ([0, 0, 41], [5, 24, 42]),
                ([1, 3, 9], [4, 5, 71]),
            ] {
                let selection = Hyperslab::new(&starts, &stops, None).unwrap();
                let found = array.slice(&selection).unwrap();
                let expected = picked(&shape, size, &bytes, &selection);
                assert!(found == expected, "{dtype} {width} {starts:?}");
            }
        }
    }
}

#[test]
fn files_appear_only_when_all_chunks_are_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("array.b2nd");
    let design = B2ndDesign::new(&[4], NumpyDtype::parse("<i2").unwrap()).with_chunks(&[2], &[2]);
    let mut writer = Box::new(B2ndWriter::create(&path, &design).unwrap());
    let first = Hyperslab::new(&[0], &[2], None).unwrap();
    let second = Hyperslab::new(&[2], &[4], None).unwrap();
    assert!(writer.put_chunk(&second, &[1; 4]).is_err(), "out of order");
    assert!(writer.put_chunk(&first, &[1; 3]).is_err(), "too short");
    writer.put_chunk(&first, &[1; 4]).unwrap();
    assert!(writer.finish().is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
