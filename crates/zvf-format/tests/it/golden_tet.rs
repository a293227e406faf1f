//! The `.tet` files of the reference writer, and damaged ones.

use serde_json::Value;
use zvf_format::tetration::{
    ChunkIndexBuilder, DatasetDirectoryBuilder, FooterVersion, Layout, Superblock,
};
use zvf_testkit::{golden::Golden, laws, walk};

/// Directories our encoder refuses: names that queries would not find.
const REFUSED_NAMES: [&str; 2] = ["name_padding.tet", "duplicate_names.tet"];
/// Reserved fields are not 0 there, and ours would be.
const RESERVED: [&str; 1] = ["reserved_fields_nonzero.tet"];

/// Damaged files whose superblock, directory, index and footer frame are
/// nevertheless well-formed and fit each other.
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

/// Compares one file with what is expected of it; the number of rows compared.
fn check_good(name: &str, bytes: &[u8], want: &Value) -> usize {
    let layout = Layout::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
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

fn check_footer(name: &str, layout: &Layout<'_>, want: &Value) {
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

/// Encodes what was read; `None` when the writer would not write it so.
fn reencode(layout: &Layout<'_>) -> Option<[Vec<u8>; 3]> {
    let superblock = layout.superblock();
    let mut datasets = DatasetDirectoryBuilder::default();
    for dataset in &layout.directory() {
        let shape: Vec<_> = dataset.shape().iter().collect();
        let chunk_shape: Vec<_> = dataset.chunk_shape().iter().collect();
        let pushed = datasets.push(dataset.name(), dataset.dtype(), &shape, &chunk_shape);
        pushed.ok()?;
    }
    let mut index = ChunkIndexBuilder::default();
    index.memory_budget_bps(layout.index().memory_budget_bps());
    index.memory_budget_bytes(layout.index().memory_budget_bytes());
    for row in &layout.index() {
        index.push_row(row).unwrap();
    }
    let directory = datasets.finish();
    let index = if datasets.is_empty() {
        vec![]
    } else {
        index.finish()
    };
    let blob_len = (directory.len() as u64).saturating_sub(8);
    let rows = layout.index().len();
    let again = Superblock::new(datasets.len(), blob_len, rows, superblock.flags()).unwrap();
    Some([again.encode().to_vec(), directory, index])
}

#[test]
fn good_files_are_read_as_expected() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected.json");
    let (mut files, mut rows, mut same) = (0, 0, 0);
    for want in expected["files"].as_array().unwrap() {
        let name = want["file"].as_str().unwrap();
        let bytes = golden.file(&format!("good/{name}"));
        rows += check_good(name, bytes, want);
        laws::tet_layout(bytes);
        assert!(walk::tet_layout(bytes).is_some());
        let layout = Layout::parse(bytes).unwrap();
        match reencode(&layout) {
            None => assert!(REFUSED_NAMES.contains(&name), "{name}"),
            Some(parts) => {
                assert!(!REFUSED_NAMES.contains(&name), "{name}");
                let head = bytes.starts_with(&parts.concat());
                assert_eq!(head, !RESERVED.contains(&name), "{name}");
                same += usize::from(head);
            }
        }
        if let Some(footer) = layout.footer() {
            let end = [footer.json(), &footer.tail().encode()].concat();
            assert!(bytes.ends_with(&end), "{name}");
        }
        files += 1;
    }
    assert_eq!((files, rows, same), (45, 541, 42));
}

#[test]
fn bad_files_are_refused_unless_their_fault_is_elsewhere() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected_bad.json");
    let mut refused = 0;
    for want in expected["files"].as_array().unwrap() {
        let name = want["file"].as_str().unwrap();
        let bytes = golden.file(&format!("bad/{name}"));
        let listed = NOT_OURS.iter().find(|(listed, _)| *listed == name);
        match (Layout::parse(bytes), listed) {
            (Err(_), None) => refused += 1,
            (Ok(_), Some(_)) => laws::tet_layout(bytes),
            (Ok(_), None) => panic!("{name} is taken: {}", want["fault"]),
            (Err(error), Some((_, why))) => panic!("{name} is refused: {error:?}, yet: {why}"),
        }
    }
    assert_eq!((refused, NOT_OURS.len()), (57, 15));
}
