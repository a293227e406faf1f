//! Tetration: one real file written out by hand, limits, damage, properties.

use proptest::prelude::*;
use zvf_format::tetration::{
    ChunkFault, ChunkIndex, ChunkIndexBuilder, ChunkIndexError, ChunkMapError, ChunkRowLimit,
    DatasetDirectory, DatasetDirectoryBuilder, DatasetFault, DatasetLimit, DirectoryError,
    FLAG_FOOTER, Footer, FooterError, FooterTail, FooterVersion, LayoutError, Payload, RowFault,
    Superblock, SuperblockError, TetCodec, TetDtype, TetLayout,
};
use zvf_testkit::{LeBytes, golden::Golden, hostile, laws, walk};

const JSON: &[u8] = br#"{"history":[{"op":"convert","source":"h5","at":"1700000000"}]}"#;

/// Returns an f32 array of 2 by 3 in tiles of 2 by 2, raw, with a footer: the file of the
/// reference, byte for byte.
fn real_file() -> Vec<u8> {
    LeBytes::new()
        .raw(b"TETR") // 0x000 magic
        .u32s([1, 1, 1]) // 0x004 version, datasets, flags
        .u64s([96, 240]) // 0x010 index offset and length
        .u64(56) // 0x020 blob length
        .u32s([1, 1, 2, 0]) // 0x028 name length, f32, rank, reserved
        .raw(b"a\0\0\0\0\0\0\0") // 0x038 name, padding
        .u64s([2, 3]) // 0x040 shape
        .u64s([2, 2]) // 0x050 chunk shape
        .raw(b"TIDX") // 0x060
        .u32(1) // 0x064 version
        .u64(2) // 0x068 rows
        .u16(0) // 0x070 budget, basis points
        .u16(0) // 0x072 reserved
        .u32(0) // 0x074 budget, bytes
        .u64(0) // 0x078 reserved
        .u64s([0, 0, 0, 0, 0, 0, 0, 0, 0]) // 0x080 row 0: dataset, coordinate
        .u64s([336, 16, 16]) // 0x0c8 offset, raw and stored length
        .u32s([0, 0]) // 0x0e0 codec, reserved
        .u64s([0, 0, 1, 0, 0, 0, 0, 0, 0]) // 0x0e8 row 1
        .u64s([352, 8, 8]) // 0x130
        .u32s([0, 0]) // 0x148
        .f32s([-3.0, -2.5, -1.5, -1.0]) // 0x150 tile 0,0
        .f32s([-2.0, -0.5]) // 0x160 tile 0,1: cut off
        .raw(JSON) // 0x168
        .u64(62) // 0x1a6 JSON length
        .u32(1) // 0x1ae version
        .raw(b"THST") // 0x1b2
        .done()
}

/// Returns the directory as input of `walk` and `laws`: the number of datasets first.
fn counted(datasets: u32, region: &[u8]) -> Vec<u8> {
    [&datasets.to_le_bytes(), region].concat()
}

/// Returns three datasets of rank 1, 3 and 8, with names of several lengths.
fn directory() -> DatasetDirectoryBuilder {
    let mut builder = DatasetDirectoryBuilder::default();
    builder.push("t", TetDtype::U8, &[10], &[4]).unwrap();
    builder
        .push("gruppe/größe", TetDtype::F64, &[3, 4, 5], &[2, 2, 3])
        .unwrap();
    let shape = [2, 1, 2, 1, 2, 1, 2, 3];
    builder
        .push("eight ax", TetDtype::I16, &shape, &[2; 8])
        .unwrap();
    builder
}

/// Returns one zstd row and two raw rows, with budgets.
fn index() -> Vec<u8> {
    let mut builder = ChunkIndexBuilder::default();
    builder.memory_budget_bps(4000).memory_budget_bytes(1 << 20);
    let zstd = Payload::Zstd {
        offset: 1000,
        stored_len: 33,
        raw_len: 32,
    };
    builder.push(0, &[7], zstd).unwrap();
    builder
        .push(
            1,
            &[1, 2, 3],
            Payload::Raw {
                offset: 1033,
                len: 8,
            },
        )
        .unwrap();
    builder
        .push(2, &[1; 8], Payload::Raw { offset: 3, len: 0 })
        .unwrap();
    builder.finish()
}

#[track_caller]
fn check_file(at: usize, with: &[u8], want: impl Into<LayoutError>) {
    let mut bytes = real_file();
    bytes.splice(at..at + with.len(), with.iter().copied());
    assert_eq!(TetLayout::parse(&bytes).unwrap_err(), want.into());
    // The laws and walks accept arbitrary bytes.
    laws::tet_layout(&bytes);
    assert_eq!(walk::tet_layout(&bytes), None);
}

fn dataset(fault: DatasetFault) -> DirectoryError {
    DirectoryError::Dataset { dataset: 0, fault }
}

fn row(row: u64, fault: RowFault) -> ChunkIndexError {
    ChunkIndexError::Row { row, fault }
}

fn chunk(row: u64, fault: ChunkFault) -> ChunkMapError {
    ChunkMapError::Row { row, fault }
}

#[test]
fn real_file_is_read_as_annotated() {
    let bytes = real_file();
    assert_eq!(
        bytes,
        Golden::open("tet").file("good/footer_v1_history.tet")
    );
    let layout = TetLayout::parse(&bytes).unwrap();
    let superblock = layout.superblock();
    assert_eq!((superblock.datasets(), superblock.rows()), (1, 2));
    assert_eq!(superblock.directory_span(), 32..96);
    assert_eq!(superblock.index_span(), 96..336);
    let (id, dataset) = layout.directory().find("a").unwrap();
    assert_eq!((id, dataset.dtype(), dataset.rank()), (0, TetDtype::F32, 2));
    assert!(dataset.shape().iter().eq([2, 3]));
    assert!(dataset.chunk_shape().iter().eq([2, 2]));
    assert!(dataset.grid().eq([1, 2]));
    assert_eq!(dataset.tile_byte_len(&[0, 0]), Some(16));
    assert_eq!(dataset.tile_byte_len(&[0, 1]), Some(8));
    assert_eq!(dataset.tile_byte_len(&[0, 2]), None);
    assert_eq!(dataset.tile_byte_len(&[0]), None);
    let edge = layout.index().get(1).unwrap();
    assert_eq!(edge.coordinate(), [0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(edge.payload_span(), 352..360);
    assert_eq!((edge.raw_len(), edge.codec()), (8, TetCodec::Raw));
    let footer = layout.footer().unwrap();
    assert_eq!(footer.json(), JSON);
    assert_eq!(footer.tail().version(), FooterVersion::V1);
    assert_eq!(layout.payload_end(), 360);
    laws::tet_layout(&bytes);
}

#[test]
fn real_file_is_what_the_encoders_write() {
    let mut datasets = DatasetDirectoryBuilder::default();
    datasets.push("a", TetDtype::F32, &[2, 3], &[2, 2]).unwrap();
    let mut index = ChunkIndexBuilder::default();
    index
        .push(
            0,
            &[0, 0],
            Payload::Raw {
                offset: 336,
                len: 16,
            },
        )
        .unwrap();
    index
        .push(
            0,
            &[0, 1],
            Payload::Raw {
                offset: 352,
                len: 8,
            },
        )
        .unwrap();
    let superblock = Superblock::new(1, 56, 2, FLAG_FOOTER).unwrap();
    let tail = FooterTail::new(FooterVersion::V1, 62).unwrap();
    let values = LeBytes::new().f32s([-3.0, -2.5, -1.5, -1.0, -2.0, -0.5]);
    let parts = [
        &superblock.encode()[..],
        &datasets.finish(),
        &index.finish(),
        &values.done(),
        JSON,
        &tail.encode(),
    ];
    assert_eq!(parts.concat(), real_file());
}

#[test]
fn a_file_without_datasets_is_its_superblock() {
    let superblock = Superblock::new(0, 0, 0, 0).unwrap();
    let bytes = superblock.encode();
    assert_eq!(
        bytes,
        LeBytes::new()
            .raw(b"TETR")
            .u32s([1, 0, 0])
            .u64s([32, 0])
            .done()[..]
    );
    let layout = TetLayout::parse(&bytes).unwrap();
    assert!(layout.directory().is_empty() && layout.index().is_empty());
    assert_eq!(superblock.index_span(), 32..32);
    assert!(DatasetDirectoryBuilder::default().finish().is_empty());
    for (at, value) in [(16, 40), (24, 32)] {
        let mut bytes = bytes;
        bytes[at] = value;
        assert_eq!(
            Superblock::parse(&bytes).unwrap_err(),
            SuperblockError::Empty
        );
    }
}

#[test]
fn rejects_each_damaged_field_of_the_superblock() {
    use SuperblockError as E;
    check_file(0, b"TETX", E::Magic(*b"TETX"));
    check_file(4, &[2], E::Version(2));
    check_file(8, &[0], E::Empty);
    check_file(8, &[2], E::Datasets(2));
    check_file(8, &[0xff; 4], E::Datasets(u32::MAX));
    check_file(16, &[0x5f], E::IndexOffset(95));
    check_file(16, &[24], E::IndexOffset(24));
    check_file(16, &[0xff; 8], E::IndexOverflow);
    check_file(24, &[0xef], E::IndexLen(239));
    check_file(24, &[0], E::IndexLen(0));
    check_file(20, &[1], LayoutError::IndexSpan);
    check_file(28, &[1], E::IndexLen(240 + (1 << 32)));
}

#[test]
fn rejects_each_damaged_field_of_the_directory() {
    use DatasetFault as F;
    let blob_len = |declared, found| DirectoryError::BlobLen { declared, found };
    check_file(0x20, &[57], blob_len(57, 56));
    check_file(0x20, &[0xff; 8], blob_len(u64::MAX, 56));
    check_file(0x10, &[0x58], blob_len(56, 48));
    check_file(0x28, &[9], dataset(F::Truncated));
    check_file(0x28, &[0xff; 4], dataset(F::Truncated));
    check_file(0x2c, &[0], dataset(F::Dtype(0)));
    check_file(0x2c, &[11], dataset(F::Dtype(11)));
    check_file(0x2f, &[1], dataset(F::Dtype(1 | 1 << 24)));
    check_file(0x30, &[0], dataset(F::Rank(0)));
    check_file(0x30, &[1], DirectoryError::TrailingBytes(16));
    check_file(0x30, &[3], dataset(F::Truncated));
    check_file(0x30, &[9], dataset(F::Rank(9)));
    check_file(0x30, &[0xff; 4], dataset(F::Rank(u32::MAX)));
    check_file(0x38, &[0xff], dataset(F::Name));
    check_file(0x48, &[0], dataset(F::Extent { axis: 1 }));
    check_file(0x50, &[0], dataset(F::ChunkExtent { axis: 0 }));
}

#[test]
fn rejects_each_damaged_field_of_the_index() {
    use ChunkIndexError as E;
    check_file(0x60, b"TIDY", E::Magic(*b"TIDY"));
    check_file(0x64, &[2], E::Version(2));
    check_file(0x68, &[3], E::Rows(3));
    check_file(0x68, &[0xff; 8], E::Rows(u64::MAX));
    check_file(0x68, &[1], E::TrailingBytes(104));
    check_file(0xc8, &[0xff; 8], row(0, RowFault::SpanOverflow));
    check_file(
        0xd0,
        &[15],
        row(
            0,
            RowFault::RawLen {
                raw: 15,
                stored: 16,
            },
        ),
    );
    check_file(0x140, &[9], row(1, RowFault::RawLen { raw: 8, stored: 9 }));
    check_file(0xe0, &[2], row(0, RowFault::Codec(2)));
    check_file(0x148, &[0xff; 4], row(1, RowFault::Codec(u32::MAX)));
}

#[test]
fn rejects_each_row_that_does_not_fit_directory_or_file() {
    use ChunkFault as F;
    let span = |start, end| F::Span { start, end };
    check_file(0x80, &[1], chunk(0, F::Dataset(1)));
    check_file(0xe8, &[0xff; 8], chunk(1, F::Dataset(u64::MAX)));
    check_file(0xf0, &[1], chunk(1, F::Coordinate { axis: 0 }));
    check_file(0xf8, &[2], chunk(1, F::Coordinate { axis: 1 }));
    check_file(0xf8, &[0xff; 8], chunk(1, F::Coordinate { axis: 1 }));
    check_file(0x100, &[1], chunk(1, F::UnusedSlot { axis: 2 }));
    check_file(0x128, &[1], chunk(1, F::UnusedSlot { axis: 7 }));
    check_file(0xf8, &[0], chunk(1, F::TileLen(8)));
    check_file(0x130, &[0x61], chunk(1, span(353, 361)));
    check_file(0xc8, &[0x4f], chunk(0, span(335, 351)));
    check_file(0xc8, &[0, 0], chunk(0, span(0, 16)));
    // The shapes determine the number of rows and the length of their tiles.
    let rows = |chunks| ChunkMapError::Rows { rows: 2, chunks };
    check_file(0x48, &[5], rows(Some(3)));
    check_file(0x40, &[0xff; 8], rows(None));
    check_file(0x58, &[3], rows(Some(1)));
    check_file(0x48, &[4], chunk(1, F::TileLen(8)));
    check_file(0x2c, &[2], chunk(0, F::TileLen(16)));
}

#[test]
fn rejects_each_damaged_field_of_the_footer() {
    use FooterError as E;
    check_file(0x1b2, b"THSX", E::Magic(*b"THSX"));
    check_file(0x1ae, &[3], E::Version(3));
    check_file(0x1ae, &[0], E::Version(0));
    check_file(0x1a6, &[87], E::JsonLen(87));
    check_file(0x1a6, &[0xff; 8], E::JsonLen(u64::MAX));
    // The JSON must not overlap the payloads.
    let over = ChunkFault::Span {
        start: 352,
        end: 360,
    };
    check_file(0x1a6, &[63], chunk(1, over));
    // Without the flag, the footer is unreferenced bytes.
    let mut hidden = real_file();
    hidden[12] = 0;
    let layout = TetLayout::parse(&hidden).unwrap();
    assert_eq!((layout.footer(), layout.payload_end()), (None, 438));
    let mut bare = real_file();
    bare.truncate(360);
    assert!(matches!(
        TetLayout::parse(&bare),
        Err(LayoutError::Footer(E::Magic(_)))
    ));
}

#[test]
fn ignores_reserved_fields_and_padding_on_read_and_zeroes_them_on_write() {
    let mut bytes = real_file();
    for at in [0x0d, 0x34, 0x39, 0x3f, 0x72, 0x78, 0xe4, 0x14c] {
        bytes[at] = 0xee;
    }
    let layout = TetLayout::parse(&bytes).unwrap();
    assert_eq!(layout.superblock().flags(), 0xee01);
    assert_eq!(layout.directory().get(0).unwrap().reserved(), 0xee);
    assert_eq!(layout.index().get(1).unwrap().reserved(), 0xee);
    let good = real_file();
    let same = TetLayout::parse(&good).unwrap();
    assert_eq!(layout.directory(), same.directory());
    assert_eq!(layout.index(), same.index());
    laws::tet_layout(&bytes);
}

#[test]
fn rejects_every_prefix() {
    let bytes = real_file();
    hostile::prefixes(&bytes, |prefix| {
        assert!(TetLayout::parse(prefix).is_err());
        assert_eq!(Footer::parse(prefix).is_err(), prefix.len() != bytes.len());
    });
    let region = directory().finish();
    hostile::prefixes(&region, |prefix| {
        let error = DatasetDirectory::parse(prefix, 3).unwrap_err();
        let want = match prefix.len() {
            0..8 => DirectoryError::Truncated,
            len => DirectoryError::BlobLen {
                declared: region.len() as u64 - 8,
                found: len as u64 - 8,
            },
        };
        assert_eq!(error, want);
    });
    // The same with a matching blob length.
    hostile::prefixes(&region[8..], |prefix| {
        let len = prefix.len() as u64;
        let region = LeBytes::new().u64(len).raw(prefix).done();
        let error = DatasetDirectory::parse(&region, 3).unwrap_err();
        match (len, error) {
            (0..96, DirectoryError::Datasets(3)) => (),
            (_, DirectoryError::Dataset { fault, .. }) => {
                assert_eq!(fault, DatasetFault::Truncated);
            }
            (len, other) => panic!("{len} bytes: {other}"),
        }
    });
    hostile::prefixes(&index(), |prefix| {
        let want = match prefix.len() {
            0..32 => ChunkIndexError::Truncated,
            _ => ChunkIndexError::Rows(3),
        };
        assert_eq!(ChunkIndex::parse(prefix).unwrap_err(), want);
    });
    hostile::prefixes(&bytes[..32], |prefix| {
        assert_eq!(
            Superblock::parse(prefix).unwrap_err(),
            SuperblockError::Truncated
        );
    });
    let tail = FooterTail::new(FooterVersion::V2, 0).unwrap().encode();
    hostile::prefixes(&tail, |prefix| {
        assert_eq!(
            FooterTail::parse(prefix).unwrap_err(),
            FooterError::Truncated
        );
    });
    assert!(Footer::parse(&tail).unwrap().json().is_empty());
}

#[test]
fn reads_at_every_alignment() {
    fn check(bytes: &[u8], walk: fn(&[u8]) -> Option<u64>) {
        let want = walk(bytes).unwrap();
        hostile::alignments(bytes, |moved| assert_eq!(walk(moved), Some(want)));
    }
    let file = real_file();
    check(&file, walk::tet_superblock);
    check(&file, walk::tet_footer);
    check(&file, walk::tet_layout);
    check(&counted(3, &directory().finish()), walk::tet_directory);
    check(&index(), walk::tet_index);
}

#[test]
fn survives_damage_to_every_byte() {
    let file = real_file();
    hostile::damage(&file, laws::tet_layout);
    hostile::damage(&file, laws::tet_footer);
    hostile::damage(&counted(3, &directory().finish()), laws::tet_directory);
    hostile::damage(&index(), laws::tet_index);
}

#[test]
fn absurd_counts_are_refused_before_anything_is_walked() {
    let region = LeBytes::new().u64(32).raw(&[0; 32]).done();
    let error = DatasetDirectory::parse(&region, u32::MAX).unwrap_err();
    assert_eq!(error, DirectoryError::Datasets(u32::MAX));
    for rows in [1, u64::MAX / 104, u64::MAX / 2, u64::MAX] {
        let bytes = LeBytes::new().raw(b"TIDX").u32(1).u64s([rows, 0, 0]).done();
        assert_eq!(
            ChunkIndex::parse(&bytes).unwrap_err(),
            ChunkIndexError::Rows(rows)
        );
    }
    let error = DatasetDirectory::parse(&[0], 0).unwrap_err();
    assert_eq!(error, DirectoryError::TrailingBytes(1));
}

#[test]
fn geometry_at_the_end_of_64_bits() {
    let max = u64::MAX;
    let mut builder = DatasetDirectoryBuilder::default();
    builder
        .push("wide", TetDtype::U8, &[max, max], &[1, max])
        .unwrap();
    builder
        .push("long", TetDtype::F64, &[max], &[max - 1])
        .unwrap();
    let region = builder.finish();
    let directory = DatasetDirectory::parse(&region, 2).unwrap();
    let wide = directory.get(0).unwrap();
    assert!(wide.grid().eq([max, 1]));
    assert_eq!(wide.chunk_count(), Some(max));
    assert_eq!(wide.byte_len(), None);
    assert_eq!(wide.tile_extent(0, max - 1), Some(1));
    assert_eq!(wide.tile_extent(0, max), None);
    assert_eq!(wide.tile_byte_len(&[max - 1, 0]), Some(max));
    let long = directory.get(1).unwrap();
    assert!(long.grid().eq([2]));
    assert_eq!(long.tile_byte_len(&[0]), None, "8 times too many");
    assert_eq!(long.tile_byte_len(&[1]), Some(8));
    assert_eq!(long.tile_extent(1, 0), None);
    laws::tet_directory(&counted(2, &region));
}

#[test]
fn rows_may_come_in_any_order() {
    let mut datasets = DatasetDirectoryBuilder::default();
    for name in ["a", "b", "c"] {
        datasets.push(name, TetDtype::U8, &[2], &[1]).unwrap();
    }
    let region = datasets.finish();
    let directory = DatasetDirectory::parse(&region, 3).unwrap();
    let mut builder = ChunkIndexBuilder::default();
    for (dataset, at) in [(2, 0), (0, 1), (1, 1), (2, 1), (1, 0), (0, 0)] {
        let payload = Payload::Raw {
            offset: 2000,
            len: 1,
        };
        builder.push(dataset, &[at], payload).unwrap();
    }
    let bytes = builder.finish();
    let index = ChunkIndex::parse(&bytes).unwrap();
    assert_eq!(index.check(&directory, 2001), Ok(()));
    let error = index.check(&directory, 2000).unwrap_err();
    let span = ChunkFault::Span {
        start: 2000,
        end: 2001,
    };
    assert_eq!(error, chunk(0, span));
}

/// More datasets than marks for searches, each of another size, so that comparing a row with the
/// wrong dataset fails.
#[test]
fn rows_find_their_dataset_among_many() {
    let mut datasets = DatasetDirectoryBuilder::default();
    for size in 1..=300_u64 {
        let name = "x".repeat(usize::try_from(size % 11).unwrap() + 1);
        let (name, shape) = (format!("{name}{size}"), [size]);
        datasets.push(&name, TetDtype::U8, &shape, &shape).unwrap();
    }
    let region = datasets.finish();
    let directory = DatasetDirectory::parse(&region, 300).unwrap();
    for stride in [1, 7, 97, 299] {
        let mut builder = ChunkIndexBuilder::default();
        for dataset in (0..300).map(|at| at * stride % 300) {
            let (offset, len) = (1 << 20, dataset + 1);
            let payload = Payload::Raw { offset, len };
            builder.push(dataset, &[0], payload).unwrap();
        }
        let bytes = builder.finish();
        let index = ChunkIndex::parse(&bytes).unwrap();
        assert_eq!(index.check(&directory, 2 << 20), Ok(()), "stride {stride}");
    }
}

#[test]
fn encoders_reject_values_beyond_the_format() {
    use DatasetLimit as E;
    let mut builder = directory();
    let before = builder.finish();
    let mut check = |name, shape: &[u64], chunk_shape: &[u64], want| {
        let error = builder
            .push(name, TetDtype::U8, shape, chunk_shape)
            .unwrap_err();
        assert_eq!(error, want);
        assert_eq!(
            builder.finish(),
            before,
            "a refused dataset leaves no trace"
        );
    };
    let rank = |shape, chunk_shape| E::Rank { shape, chunk_shape };
    check("", &[1], &[1], E::EmptyName);
    check("t", &[1], &[1], E::DuplicateName);
    check("n", &[], &[], rank(0, 0));
    check("n", &[1; 9], &[1; 9], rank(9, 9));
    check("n", &[1], &[1; 2], rank(1, 2));
    check("n", &[1, 0], &[1, 1], E::Extent { axis: 1 });
    check("n", &[1, 1], &[0, 1], E::Extent { axis: 0 });

    let mut builder = ChunkIndexBuilder::default();
    let before = builder.finish();
    let raw = Payload::Raw {
        offset: u64::MAX,
        len: 0,
    };
    assert_eq!(
        builder.push(0, &[0; 9], raw).unwrap_err(),
        ChunkRowLimit::Rank(9)
    );
    let past = Payload::Raw {
        offset: u64::MAX,
        len: 1,
    };
    assert_eq!(
        builder.push(0, &[0], past).unwrap_err(),
        ChunkRowLimit::SpanOverflow
    );
    assert_eq!(builder.finish(), before, "a refused row leaves no trace");

    let error = Superblock::new(1, 56, u64::MAX, 0).unwrap_err();
    assert_eq!(error, SuperblockError::IndexOverflow);
    let error = Superblock::new(2, 56, 2, 0).unwrap_err();
    assert_eq!(error, SuperblockError::Datasets(2));
    let error = FooterTail::new(FooterVersion::V1, u64::MAX - 15).unwrap_err();
    assert_eq!(error, FooterError::JsonLen(u64::MAX - 15));
}

#[test]
fn dtypes_have_the_tags_of_the_format() {
    for (tag, dtype) in (1..).zip(TetDtype::ALL) {
        assert_eq!((dtype.tag(), TetDtype::from_tag(tag)), (tag, Some(dtype)));
    }
    assert_eq!(
        (TetDtype::from_tag(0), TetDtype::from_tag(11)),
        (None, None)
    );
}

#[derive(Clone, Debug)]
struct Dataset {
    name: String,
    dtype: TetDtype,
    axes: Vec<(u64, u64)>,
}

fn datasets() -> impl Strategy<Value = Vec<Dataset>> {
    let axis = (1..7_u64, 1..5_u64);
    let dtype = prop::sample::select(&TetDtype::ALL[..]);
    let one = ("[a-zé/]{0,9}", dtype, prop::collection::vec(axis, 1..4));
    let many = prop::collection::vec(one, 0..5);
    many.prop_map(|many| {
        let number = |(id, (name, dtype, axes))| Dataset {
            name: format!("{name}{id}"),
            dtype,
            axes,
        };
        many.into_iter().enumerate().map(number).collect()
    })
}

/// Returns all coordinates of a grid, last axis fastest.
fn coordinates(grid: &[u64]) -> Vec<Vec<u64>> {
    let Some((last, head)) = grid.split_last() else {
        return vec![vec![]];
    };
    let heads = coordinates(head);
    let with = |head: &Vec<u64>, at| [&head[..], &[at]].concat();
    heads
        .iter()
        .flat_map(|head| (0..*last).map(move |at| with(head, at)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: zvf_testkit::sample::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn decoding_returns_the_encoded_values(
        input in datasets(),
        zstd in any::<bool>(),
        footer in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
    ) {
        let mut builder = DatasetDirectoryBuilder::default();
        for Dataset { name, dtype, axes } in &input {
            let (shape, chunk_shape): (Vec<_>, Vec<_>) = axes.iter().copied().unzip();
            builder.push(name, *dtype, &shape, &chunk_shape).unwrap();
        }
        let region = builder.finish();
        let directory = DatasetDirectory::parse(&region, builder.len()).unwrap();
        prop_assert_eq!(directory.len() as usize, input.len());
        let tiles: Vec<_> = (0..).zip(&directory).flat_map(|(id, dataset)| {
            let grid: Vec<_> = dataset.grid().collect();
            let tile = move |at: Vec<u64>| (id, dataset.tile_byte_len(&at).unwrap(), at);
            coordinates(&grid).into_iter().map(tile)
        }).collect();
        let rows = tiles.len() as u64;
        let whole: u64 = directory.iter().map(|dataset| dataset.byte_len().unwrap()).sum();
        let tiled: u64 = tiles.iter().map(|(_, len, _)| len).sum();
        prop_assert_eq!(whole, tiled, "the tiles are the whole array");
        let flags = footer.iter().fold(0, |_, _| FLAG_FOOTER);
        let blob_len = (region.len() as u64).saturating_sub(8);
        let superblock = Superblock::new(builder.len(), blob_len, rows, flags).unwrap();
        let mut index = ChunkIndexBuilder::default();
        let mut offset = superblock.index_span().end;
        for (id, len, at) in &tiles {
            let (payload, stored_len) = if zstd {
                (Payload::Zstd { offset, stored_len: 5, raw_len: *len }, 5)
            } else {
                (Payload::Raw { offset, len: *len }, *len)
            };
            offset += stored_len;
            index.push(*id, at, payload).unwrap();
        }
        let mut file = [&superblock.encode()[..], &region].concat();
        if !input.is_empty() {
            file.extend(index.finish());
        }
        file.resize(usize::try_from(offset).unwrap(), 0x5a);
        if let Some(json) = &footer {
            let tail = FooterTail::new(FooterVersion::V2, json.len() as u64).unwrap();
            file.extend([&json[..], &tail.encode()].concat());
        }
        let layout = TetLayout::parse(&file).unwrap();
        prop_assert_eq!(layout.payload_end(), offset);
        prop_assert_eq!(layout.footer().map(|footer| footer.json().to_vec()), footer);
        for (dataset, want) in layout.directory().iter().zip(&input) {
            prop_assert_eq!(dataset.name(), &want.name);
            prop_assert_eq!(dataset.dtype(), want.dtype);
            let axes = dataset.shape().iter().zip(dataset.chunk_shape().iter());
            prop_assert!(axes.eq(want.axes.iter().copied()));
        }
        for (row, (id, len, at)) in layout.index().iter().zip(&tiles) {
            prop_assert_eq!((row.dataset(), row.raw_len()), (*id, *len));
            prop_assert_eq!(&row.coordinate()[..at.len()], &at[..]);
        }
        laws::tet_layout(&file);
    }

    #[test]
    fn any_records_obey_the_laws(
        datasets in 0..4_u32,
        body in prop::collection::vec(
            prop_oneof![6 => Just(0_u8), 2 => 1..4_u8, 1 => any::<u8>()],
            0..160,
        ),
    ) {
        let len = body.len() as u64;
        laws::tet_directory(&LeBytes::new().u32(datasets).u64(len).raw(&body).done());
    }

    #[test]
    fn any_rows_obey_the_laws(
        rows in 0..4_usize,
        body in prop::collection::vec(prop_oneof![9 => Just(0_u8), 1 => any::<u8>()], 1..9),
        slack in 0..2_usize,
    ) {
        let len = 16 + rows * 104 + slack;
        let rest: Vec<_> = body.iter().copied().cycle().take(len).collect();
        let index = LeBytes::new().raw(b"TIDX").u32(1).u64(rows as u64).raw(&rest);
        laws::tet_index(&index.done());
    }
}
