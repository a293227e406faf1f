//! The `.tet` files of the reference writer, and damaged ones.

use core::ops::Range;

use serde_json::Value;
use zvf_format::tetration::{
    ChunkFault, ChunkIndex, ChunkIndexBuilder, ChunkIndexError as I, ChunkMapError as M,
    DatasetDirectory, DatasetDirectoryBuilder, DatasetFault, DirectoryError as D, FooterError as F,
    FooterVersion, LayoutError as L, RowFault, Superblock, SuperblockError as S, TetLayout,
};
use zvf_testkit::{golden::Golden, hostile, laws, walk};

use crate::golden::report;

/// Directories that our encoder rejects: names that queries would not find.
const REFUSED_NAMES: [&str; 2] = ["name_padding.tet", "duplicate_names.tet"];
/// Files whose reserved fields are not 0, unlike ours.
const RESERVED: [&str; 1] = ["reserved_fields_nonzero.tet"];

const fn dataset(fault: DatasetFault) -> L {
    L::Directory(D::Dataset { dataset: 0, fault })
}

const fn row(row: u64, fault: RowFault) -> L {
    L::Index(I::Row { row, fault })
}

const fn chunk(row: u64, fault: ChunkFault) -> L {
    L::Map(M::Row { row, fault })
}

/// Damaged files, and the expected error.
const REFUSED: [(&str, L); 57] = [
    ("trunc_000.tet", L::Superblock(S::Truncated)),
    ("trunc_016.tet", L::Superblock(S::Truncated)),
    ("trunc_032.tet", L::IndexSpan),
    ("trunc_060.tet", L::IndexSpan),
    ("trunc_index.tet", L::IndexSpan),
    (
        "trunc_payload.tet",
        chunk(
            4,
            ChunkFault::Span {
                start: 1224,
                end: 1272,
            },
        ),
    ),
    (
        "trunc_last_byte.tet",
        chunk(
            8,
            ChunkFault::Span {
                start: 1336,
                end: 1344,
            },
        ),
    ),
    ("trunc_footer_last_byte.tet", L::Footer(F::Magic(*b"\0THS"))),
    ("magic.tet", L::Superblock(S::Magic(*b"TETX"))),
    ("layout_version_2.tet", L::Superblock(S::Version(2))),
    ("layout_version_0.tet", L::Superblock(S::Version(0))),
    ("dataset_count_plus1.tet", L::Superblock(S::Datasets(2))),
    ("dataset_count_zero.tet", L::Superblock(S::Empty)),
    (
        "dataset_count_huge.tet",
        L::Superblock(S::Datasets(u32::MAX)),
    ),
    (
        "dataset_count_minus1.tet",
        L::Directory(D::TrailingBytes(56)),
    ),
    (
        "index_offset_plus8.tet",
        L::Directory(D::BlobLen {
            declared: 56,
            found: 64,
        }),
    ),
    ("index_offset_past_eof.tet", L::IndexSpan),
    ("index_offset_overflow.tet", L::Superblock(S::IndexOverflow)),
    ("index_length_plus104.tet", L::Index(I::TrailingBytes(104))),
    ("index_length_minus1.tet", L::Superblock(S::IndexLen(967))),
    ("index_length_zero.tet", L::Superblock(S::IndexLen(0))),
    (
        "blob_len_plus8.tet",
        L::Directory(D::BlobLen {
            declared: 64,
            found: 56,
        }),
    ),
    (
        "blob_len_huge.tet",
        L::Directory(D::BlobLen {
            declared: u64::MAX,
            found: 56,
        }),
    ),
    ("name_len_huge.tet", dataset(DatasetFault::Truncated)),
    ("name_not_utf8.tet", dataset(DatasetFault::Name)),
    ("dtype_0.tet", dataset(DatasetFault::Dtype(0))),
    ("dtype_11.tet", dataset(DatasetFault::Dtype(11))),
    ("dtype_f32_for_f64.tet", chunk(0, ChunkFault::TileLen(48))),
    ("ndim_0.tet", dataset(DatasetFault::Rank(0))),
    ("ndim_9.tet", dataset(DatasetFault::Rank(9))),
    ("shape_zero.tet", dataset(DatasetFault::Extent { axis: 0 })),
    (
        "shape_huge.tet",
        L::Map(M::Rows {
            rows: 9,
            chunks: None,
        }),
    ),
    ("shape_grown.tet", chunk(6, ChunkFault::TileLen(24))),
    (
        "chunk_shape_zero.tet",
        dataset(DatasetFault::ChunkExtent { axis: 0 }),
    ),
    (
        "chunk_shape_changed.tet",
        L::Map(M::Rows {
            rows: 9,
            chunks: Some(6),
        }),
    ),
    ("tidx_magic.tet", L::Index(I::Magic(*b"TIDY"))),
    ("index_version_2.tet", L::Index(I::Version(2))),
    ("entry_count_plus1.tet", L::Index(I::Rows(10))),
    ("entry_count_huge.tet", L::Index(I::Rows(u64::MAX / 2))),
    (
        "missing_last_row.tet",
        L::Map(M::Rows {
            rows: 8,
            chunks: Some(9),
        }),
    ),
    ("row_dataset_id.tet", chunk(2, ChunkFault::Dataset(7))),
    (
        "row_coord_out_of_grid.tet",
        chunk(2, ChunkFault::Coordinate { axis: 0 }),
    ),
    (
        "row_coord_huge.tet",
        chunk(2, ChunkFault::Coordinate { axis: 0 }),
    ),
    (
        "row_unused_slot_nonzero.tet",
        chunk(2, ChunkFault::UnusedSlot { axis: 5 }),
    ),
    ("row_codec_2.tet", row(0, RowFault::Codec(2))),
    (
        "row_codec_raw_on_zstd.tet",
        row(
            0,
            RowFault::RawLen {
                raw: 48,
                stored: 38,
            },
        ),
    ),
    (
        "row_raw_ne_stored.tet",
        row(
            0,
            RowFault::RawLen {
                raw: 56,
                stored: 48,
            },
        ),
    ),
    ("row_both_lens_short.tet", chunk(0, ChunkFault::TileLen(40))),
    (
        "row_payload_past_eof.tet",
        chunk(
            8,
            ChunkFault::Span {
                start: 1337,
                end: 1345,
            },
        ),
    ),
    ("row_payload_overflow.tet", row(8, RowFault::SpanOverflow)),
    (
        "row_payload_in_header.tet",
        chunk(0, ChunkFault::Span { start: 0, end: 48 }),
    ),
    (
        "row_payload_in_footer.tet",
        chunk(
            1,
            ChunkFault::Span {
                start: 360,
                end: 368,
            },
        ),
    ),
    ("zstd_raw_len_wrong.tet", chunk(8, ChunkFault::TileLen(16))),
    (
        "footer_flag_without_footer.tet",
        L::Footer(F::Magic(*b"\0\0\xf6?")),
    ),
    ("footer_magic.tet", L::Footer(F::Magic(*b"THSX"))),
    ("footer_version_3.tet", L::Footer(F::Version(3))),
    ("footer_json_len_huge.tet", L::Footer(F::JsonLen(1 << 30))),
];

/// Damaged files whose superblock, directory, index and footer frame are nevertheless valid and
/// consistent.
const NOT_OURS: [(&str, &str); 15] = [
    ("name_padding_nonzero.tet", "padding is ignored on read"),
    (
        "footer_flag_cleared.tet",
        "a hidden footer is unreferenced bytes",
    ),
    ("row_payload_at_eof.tet", "healthy: the control case"),
    (
        "row_coord_duplicate.tet",
        "two rows for a tile: takes memory",
    ),
    (
        "row_payload_duplicate.tet",
        "overlapping payloads: takes memory",
    ),
    (
        "row_payload_overlap.tet",
        "overlapping payloads: takes memory",
    ),
    ("raw_bitflip.tet", "payload: undetectable without checksum"),
    ("zstd_bitflip.tet", "payload: the frame decodes"),
    ("zstd_magic.tet", "payload: no frame"),
    ("zstd_short.tet", "payload: the frame is cut"),
    ("zstd_trailing_junk.tet", "payload: junk after the frame"),
    ("row_codec_zstd_on_raw.tet", "payload: no frame"),
    ("footer_json_garbage.tet", "JSON is not parsed"),
    ("footer_v1_tail_on_v2.tet", "spill refs are in the JSON"),
    ("footer_metadata_ref_oob.tet", "spill refs are in the JSON"),
];

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn ints(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(int).collect()
}

/// Compares one file with its expectation; returns the number of rows compared.
fn check_good(name: &str, bytes: &[u8], want: &Value) -> usize {
    let layout = TetLayout::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let superblock = layout.superblock();
    let facts = &want["superblock"];
    assert_eq!(int(&want["byte_len"]), bytes.len() as u64, "{name}");
    assert_eq!(int(&facts["layout_version"]), 1);
    assert_eq!(
        int(&facts["dataset_count"]),
        u64::from(superblock.datasets()),
        "{name}"
    );
    assert_eq!(
        int(&facts["flags"]),
        u64::from(superblock.flags()),
        "{name}"
    );
    let span = superblock.index_span();
    assert_eq!(int(&facts["chunk_index_offset"]), span.start, "{name}");
    assert_eq!(
        int(&facts["chunk_index_length"]),
        span.end - span.start,
        "{name}"
    );
    let (index, facts) = (layout.index(), &want["file_execution"]);
    assert_eq!(
        int(&facts["memory_budget_percent_bps"]),
        u64::from(index.memory_budget_bps())
    );
    assert_eq!(
        int(&facts["memory_budget_bytes"]),
        u64::from(index.memory_budget_bytes())
    );

    let datasets = want["datasets"].as_array().unwrap();
    assert_eq!(layout.directory().iter().len(), datasets.len(), "{name}");
    let mut rows = 0;
    for (dataset, want) in layout.directory().iter().zip(datasets) {
        assert_eq!(dataset.name(), want["name"], "{name}");
        assert_eq!(
            u64::from(dataset.dtype().tag()),
            int(&want["dtype_tag"]),
            "{name}"
        );
        assert_eq!(dataset.dtype().name(), want["dtype"], "{name}");
        assert_eq!(dataset.dtype().size(), int(&want["elem_size"]), "{name}");
        assert!(dataset.shape().iter().eq(ints(&want["shape"])), "{name}");
        assert!(
            dataset.chunk_shape().iter().eq(ints(&want["chunk_shape"])),
            "{name}"
        );
        assert_eq!(
            dataset.byte_len(),
            want["tensor_byte_len"].as_u64(),
            "{name}"
        );
        let chunks = want["chunks"].as_array().unwrap();
        assert_eq!(dataset.chunk_count(), Some(chunks.len() as u64), "{name}");
        let id = int(&want["id"]);
        let stored = index.iter().filter(|row| row.dataset() == id);
        assert_eq!(stored.clone().count(), chunks.len(), "{name}");
        for chunk in chunks {
            let coords = ints(&chunk["coords"]);
            let mut found = stored
                .clone()
                .filter(|row| row.coordinate()[..coords.len()] == coords);
            let row = found
                .next()
                .unwrap_or_else(|| panic!("{name}: no row for {coords:?}"));
            assert!(found.next().is_none(), "{name}");
            assert_eq!(
                row.payload_offset(),
                int(&chunk["payload_offset"]),
                "{name}"
            );
            assert_eq!(row.raw_len(), int(&chunk["raw_byte_len"]), "{name}");
            assert_eq!(row.stored_len(), int(&chunk["stored_byte_len"]), "{name}");
            assert_eq!(
                u64::from(row.codec().number()),
                int(&chunk["codec"]),
                "{name}"
            );
            assert_eq!(
                dataset.tile_byte_len(&coords),
                Some(row.raw_len()),
                "{name}"
            );
            rows += 1;
        }
    }
    assert_eq!(index.len(), rows as u64, "{name}");
    check_footer(name, &layout, &want["footer"]);
    rows
}

fn check_footer(name: &str, layout: &TetLayout<'_>, want: &Value) {
    let Some(footer) = layout.footer() else {
        assert!(want.is_null(), "{name}");
        return;
    };
    assert_eq!(
        footer.tail().json_len(),
        int(&want["history_json_len"]),
        "{name}"
    );
    assert_eq!(
        u64::from(footer.tail().version().number()),
        int(&want["history_version"])
    );
    let json: Value = serde_json::from_slice(footer.json()).unwrap();
    // The spills are contiguous up to the JSON; payloads end before them.
    let spill = |key: &str| json[key]["len"].as_u64().unwrap_or(0);
    assert_eq!(
        spill("zone_maps_ref"),
        want["zone_json_len"].as_u64().unwrap_or(0)
    );
    assert_eq!(
        spill("secondary_index_ref"),
        want["index_json_len"].as_u64().unwrap_or(0)
    );
    let in_v2 = spill("zone_maps_ref") + spill("secondary_index_ref");
    assert!(
        in_v2 == 0 || footer.tail().version() == FooterVersion::V2,
        "{name}"
    );
    let end = layout.payload_end() - in_v2 - spill("metadata_ref");
    assert_eq!(end, int(&want["payload_end"]), "{name}");
    assert_eq!(
        layout.index().check(&layout.directory(), end),
        Ok(()),
        "{name}"
    );
}

/// Re-encodes a directory; `None` if our encoder rejects it.
fn directory_again(directory: &DatasetDirectory<'_>) -> Option<Vec<u8>> {
    let mut builder = DatasetDirectoryBuilder::default();
    for dataset in directory {
        let shape: Vec<_> = dataset.shape().iter().collect();
        let chunk_shape: Vec<_> = dataset.chunk_shape().iter().collect();
        let pushed = builder.push(dataset.name(), dataset.dtype(), &shape, &chunk_shape);
        pushed.ok()?;
    }
    Some(builder.finish())
}

fn index_again(index: &ChunkIndex<'_>) -> Vec<u8> {
    let mut builder = ChunkIndexBuilder::default();
    builder.memory_budget_bps(index.memory_budget_bps());
    builder.memory_budget_bytes(index.memory_budget_bytes());
    for row in index {
        builder.push_row(row).unwrap();
    }
    builder.finish()
}

fn part(bytes: &[u8], span: Range<u64>) -> &[u8] {
    let end = usize::try_from(span.end).unwrap();
    &bytes[usize::try_from(span.start).unwrap()..end]
}

#[test]
fn good_files_are_read_as_expected() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected.json");
    let (mut files, mut datasets, mut rows, mut footers) = (0, 0, 0, 0);
    for want in expected["files"].as_array().unwrap() {
        let name = want["file"].as_str().unwrap();
        let bytes = golden.file(&format!("good/{name}"));
        rows += check_good(name, bytes, want);
        laws::tet_layout(bytes);
        assert!(walk::tet_layout(bytes).is_some());
        let layout = TetLayout::parse(bytes).unwrap();
        datasets += layout.directory().len();
        footers += u32::from(layout.footer().is_some());
        files += 1;
    }
    assert_eq!((files, datasets, rows, footers), (45, 85, 541, 7));
    report(format_args!(
        "tet: {files} good files, {datasets} datasets, {rows} chunk rows, {footers} footers as recorded"
    ));
}

#[test]
fn good_files_are_what_the_encoders_write() {
    let golden = Golden::open("tet");
    let (mut superblocks, mut directories, mut indexes) = (0, 0, 0);
    for (path, bytes) in golden.files() {
        let Some(name) = path.strip_prefix("good/") else {
            continue;
        };
        let layout = TetLayout::parse(bytes).unwrap();
        let superblock = layout.superblock();
        let directory = part(bytes, superblock.directory_span());
        let blob_len = (directory.len() as u64).saturating_sub(8);
        // Flags are preserved, including bits without meaning.
        let again = Superblock::new(
            superblock.datasets(),
            blob_len,
            superblock.rows(),
            superblock.flags(),
        );
        assert_eq!(again.unwrap().encode(), bytes[..32], "{name}");
        superblocks += 1;
        if let Some(footer) = layout.footer() {
            let end = [footer.json(), &footer.tail().encode()].concat();
            assert!(bytes.ends_with(&end), "{name}");
        }
        match directory_again(&layout.directory()) {
            None => assert!(REFUSED_NAMES.contains(&name), "{name}"),
            Some(again) => {
                assert_eq!(again == directory, !RESERVED.contains(&name), "{name}");
                directories += u32::from(again == directory);
            }
        }
        if !layout.directory().is_empty() {
            let index = part(bytes, superblock.index_span());
            let again = index_again(&layout.index());
            assert_eq!(again == index, !RESERVED.contains(&name), "{name}");
            indexes += u32::from(again == index);
        }
    }
    // Of 45: one has no index, two have rejected names, one reserved bits.
    assert_eq!((superblocks, directories, indexes), (45, 42, 43));
    report(format_args!(
        "tet: {superblocks} superblocks, {directories} of 45 directories, {indexes} of 44 indexes \
         re-encoded byte for byte"
    ));
}

#[test]
fn good_files_survive_damage_to_every_byte() {
    let golden = Golden::open("tet");
    for name in ["i32_8d_raw", "footer_v1_history", "noncontig_reversed"] {
        let bytes = golden.file(&format!("good/{name}.tet"));
        hostile::damage(bytes, laws::tet_layout);
    }
}

#[test]
fn bad_files_are_refused_unless_their_fault_is_elsewhere() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected_bad.json");
    let (mut refused, mut passed) = (0, 0);
    for want in expected["files"].as_array().unwrap() {
        let name = want["file"].as_str().unwrap();
        let bytes = golden.file(&format!("bad/{name}"));
        laws::tet_layout(bytes);
        if let Err(error) = TetLayout::parse(bytes) {
            let listed = REFUSED.iter().find(|(listed, _)| *listed == name);
            assert_eq!(Some(&(name, error)), listed, "{}", want["fault"]);
            refused += 1;
        } else {
            let listed = NOT_OURS.iter().any(|(listed, _)| *listed == name);
            assert!(listed, "{name} is taken: {}", want["fault"]);
            passed += 1;
        }
    }
    assert_eq!((refused, passed), (REFUSED.len(), NOT_OURS.len()));
    assert_eq!(refused + passed, 72);
    report(format_args!(
        "tet: {refused} damaged files refused, {passed} with a fault in payload or JSON"
    ));
}
