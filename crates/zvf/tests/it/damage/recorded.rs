//! The recorded damaged stores: the outcome of every query, case by case.

use serde_json::Value as Json;
use zvf_model::error_chain::error_chain;
use zvf_testkit::{damage::apply, golden::Golden};

use super::{expected::Intact, files, is_same, open, run};
use crate::block_on;

/// The expected outcome of queries.
#[derive(Clone, Copy)]
enum ExpectedOutcome {
    /// An error whose message contains this text.
    Error(&'static str),
    /// The result of the undamaged store.
    Equal,
    /// Another result, with this number of vertices and the reason.
    Differs(usize, &'static str),
}
use ExpectedOutcome::{Differs, Equal, Error};

/// Names of queries and their outcome.
type Row = (&'static [&'static str], ExpectedOutcome);

/// All queries not named earlier.
const REST: &[&str] = &[];
/// Opening the store.
const OPENING: &[&str] = &["opening"];
/// Queries that read fragments as bins. Other queries do not, because the level declares that its
/// fragments are all rows in order.
const BY_BIN: &[&str] = &["box", "clip"];
/// Queries that read no links.
const NO_LINKS: &[&str] = &["points", "paths"];

const TWO: &str = "the cell is a valid one of two vertices where five were";

const SAME: &[Row] = &[(REST, Equal)];

const fn opening(error: &'static str) -> [Row; 1] {
    [(OPENING, Error(error))]
}

const fn by_bin(error: &'static str) -> [Row; 2] {
    [(BY_BIN, Error(error)), (REST, Equal)]
}

const fn with_links(error: &'static str) -> [Row; 2] {
    [(NO_LINKS, Equal), (REST, Error(error))]
}

/// Every case and its outcome. Damage visible in metadata alone, such as an unknown convention, is
/// noted when the store is opened.
const CASES: &[(&str, &[Row])] = &[
    (
        "no_zarr_vectors_block",
        &opening(".: attributes.zarr_vectors: missing"),
    ),
    ("no_ome_block", SAME),
    ("no_zv_version", SAME),
    ("old_zv_version", &opening("zv_version 0.5.0")),
    (
        "future_zv_version",
        &opening("format version 9.9.9 is unknown"),
    ),
    (
        "no_chunk_shape",
        &opening(".: attributes.zarr_vectors.chunk_shape: missing"),
    ),
    (
        "no_bounds",
        &opening(".: attributes.zarr_vectors.bounds: missing"),
    ),
    (
        "no_multiscales",
        &opening(".: attributes.multiscales: missing"),
    ),
    (
        "chunk_shape_rank",
        &opening(".: attributes.zarr_vectors.chunk_shape: 3 values, not 2"),
    ),
    (
        "chunk_shape_zero",
        &opening(".: attributes.zarr_vectors.chunk_shape[0]: 0 is not greater than 0"),
    ),
    ("bounds_rank", SAME),
    ("links_convention", SAME),
    ("objidx_convention", SAME),
    ("cross_chunk_strategy", SAME),
    ("unknown_capability", SAME),
    ("geometry_types_empty", SAME),
    ("geometry_type_unknown", SAME),
    ("bin_not_dividing", SAME),
    ("bin_rank", SAME),
    ("level_meta_missing", SAME),
    ("level_no_vertex_count", SAME),
    ("no_vertices", &[(REST, Error("0/vertices: is missing"))]),
    (
        "no_vertex_fragments",
        &by_bin("0/vertex_fragments: is missing"),
    ),
    ("no_level", &opening("memory: has no level")),
    // Its chunks are taken from the store.
    ("nonempty_chunks_missing", SAME),
    (
        "cell_file_missing",
        &[(
            REST,
            Error("0/vertices, chunk 0.-1: is listed, but missing"),
        )],
    ),
    (
        "fragment_cell_missing",
        &by_bin("0/vertex_fragments, chunk 0.-1: is listed, but missing"),
    ),
    (
        "vertices_ragged_length",
        &[
            (
                BY_BIN,
                Error(
                    "0/vertices, chunk 0.-1: cannot be read: 0/vertices: is damaged: 0/vertices/c/1/1: bytes 24..32 of a payload of 13",
                ),
            ),
            (
                REST,
                Error("0/vertices, chunk 0.-1: 13 bytes are not a whole number of rows of 8 bytes"),
            ),
        ],
    ),
    (
        "vertices_nan",
        &[(BY_BIN, Differs(9, TWO)), (REST, Differs(27, TWO))],
    ),
    (
        "vertices_out_of_bin",
        &[(BY_BIN, Differs(8, TWO)), (REST, Differs(27, TWO))],
    ),
    (
        "too_many_fragments",
        &[(BY_BIN, Differs(10, TWO)), (REST, Differs(27, TWO))],
    ),
    (
        "tile_claim_false",
        &[(BY_BIN, Differs(9, TWO)), (REST, Differs(27, TWO))],
    ),
    (
        "fragment_range_past_end",
        &[
            (
                BY_BIN,
                Error("0/vertex_fragments, chunk 0.-1: names row 2 of 2"),
            ),
            (REST, Differs(27, TWO)),
        ],
    ),
    (
        "zvfg_bad_magic",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: magic is [00, 00, 00, 00], not \"GFVZ\"",
        ),
    ),
    (
        "zvfg_bad_version",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: version 2 is not supported, only 1 is",
        ),
    ),
    (
        "zvfg_bad_flags",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: reserved flags 0x0001 are set",
        ),
    ),
    (
        "zvfg_r_gt_f",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: range count contradicts the fragment count or the bitmap",
        ),
    ),
    (
        "zvfg_truncated",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: bytes end inside the range table",
        ),
    ),
    (
        "zvfg_short",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: bytes end inside the header",
        ),
    ),
    (
        "zvfg_trailing",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: 2 bytes left after the last part",
        ),
    ),
    (
        "zvfg_bitmap_popcount",
        &by_bin(
            "0/vertex_fragments, chunk 0.-1: is not a fragment index: range count contradicts the fragment count or the bitmap",
        ),
    ),
    (
        "vlen_frame_truncated",
        &[
            (
                BY_BIN,
                Error(
                    "0/vertices, chunk 0.-1: cannot be read: 0/vertices: is damaged: 0/vertices/c/1/1: the object ends before bytes 32..40",
                ),
            ),
            (
                REST,
                Error(
                    "0/vertices, chunk 0.-1: cannot be read: 0/vertices: is damaged: 0/vertices/c/1/1: is not a frame of items: bytes end inside item 0",
                ),
            ),
        ],
    ),
    ("graph_convention", SAME),
    ("graph_physical_records", SAME),
    (
        "links_segment_malformed",
        &with_links(
            "0/links/0/1.0: attributes.offsets: \"1.0\": number 0: not a number in canonical form",
        ),
    ),
    (
        "links_segment_negative",
        &with_links("0/links/0/-1.0: attributes.offsets: [[1,0]] disagrees with the array's path"),
    ),
    (
        "links_family_meta_missing",
        &with_links("0/links/0: does not declare the number of ends of its links"),
    ),
    (
        "links_missing_chunk",
        &[
            (
                &["vertices alone"],
                Error("0/links/0/+1.0.0: names chunk 1.0.0, which has no vertices"),
            ),
            (
                BY_BIN,
                Error("0/vertices: names chunk 1.0.0, which has no vertices"),
            ),
            (
                REST,
                Error("0/object_index: names chunk 1.0.0, which has no vertices"),
            ),
        ],
    ),
    (
        "objidx_layout_unknown",
        &[(
            REST,
            Error("0/object_index: attributes.layout: \"flat\" is not a layout of manifests"),
        )],
    ),
    ("objidx_ids_missing", SAME),
    (
        "mesh_link_width",
        &with_links("0/links/0/+1.0_+1.+1: attributes.offsets: \"+1.0_+1.+1\": 2 offsets, not 1"),
    ),
    (
        "levels_not_contiguous",
        &[(&["coarser"], Error("there is no level 1")), (REST, Equal)],
    ),
    ("level_chunk_shape_not_multiple", SAME),
    (
        "level_larger_than_parent",
        &[
            (&["coarser"], Equal),
            (REST, Error("0/vertices, chunk 1.0: is listed, but missing")),
        ],
    ),
];

#[test]
fn every_recorded_case_has_the_expected_outcome() {
    let golden = Golden::open("zvf-09");
    let recorded = golden.json("invalid_cases.json");
    let cases = recorded.as_array().unwrap();
    let names = cases.iter().map(|case| case["name"].as_str().unwrap());
    assert!(names.eq(CASES.iter().map(|(name, _)| *name)));
    for (case, (name, rows)) in cases.iter().zip(CASES) {
        block_on(check(&golden, case, name, rows));
    }
}

async fn check(golden: &Golden, case: &Json, name: &str, rows: &[Row]) {
    let base = format!("{}/store.zarrvectors", case["base"].as_str().unwrap());
    let intact = Intact::of(files(golden, &base)).await;
    let mut damaged = intact.files.clone();
    for edit in case["edits"].as_array().unwrap() {
        apply(&mut damaged, edit);
    }
    let outcome = |query: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|(queries, _)| queries.is_empty() || queries.contains(&query));
        row.map(|(_, outcome)| *outcome)
    };
    let dataset = match (open(&damaged).await, outcome("opening")) {
        (Err(error), Some(Error(message))) => {
            let error = error_chain(&error);
            assert!(error.contains(message), "{name}: {error}");
            return;
        }
        (dataset, _) => dataset.unwrap_or_else(|error| panic!("{name}: {}", error_chain(&error))),
    };
    assert!(intact.results.len() >= 7, "{name}");
    for expected in &intact.results {
        let at = format!("{name}, {}", expected.name);
        match (
            run(&dataset, &expected.query).await,
            outcome(expected.name).unwrap(),
        ) {
            (Err(error), Error(message)) => assert!(error.contains(message), "{at}: {error}"),
            (Ok(result), Equal) => assert!(is_same(&result, &expected.result), "{at}"),
            (Ok(result), Differs(rows, reason)) => {
                assert!(!is_same(&result, &expected.result), "{at}: {reason}");
                assert_eq!(result.positions.len(), rows, "{at}: {reason}");
            }
            (Err(error), _) => panic!("{at}: {error}"),
            (Ok(result), Error(message)) => {
                panic!("{at}: {} vertices, not {message}", result.positions.len())
            }
        }
    }
}
