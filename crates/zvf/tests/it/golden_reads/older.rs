//! Reads of the older archives, which do not record their arguments.

use serde_json::{Value as Json, json};

use super::call::Call;

/// Returns the recorded reads of a store of generation 0.6 to 0.8.
pub(super) fn calls(store: &str, reads: &Json) -> Vec<Call> {
    let stem = store
        .rsplit('/')
        .next()
        .unwrap()
        .strip_suffix(".zv")
        .unwrap();
    let reads = reads.as_object().into_iter().flatten();
    let calls = reads.map(|(read, expected)| Call {
        name: name(read, expected).to_owned(),
        args: args(stem, read),
        expected: Some(expected.clone()),
    });
    calls.collect()
}

fn name(read: &str, expected: &Json) -> &'static str {
    match read {
        "composite" => return "read_composite",
        "parametric" => return "read_parametric_objects",
        "header_trk" => return "read_header",
        "first_new" => return "append",
        "tuple_1_0" => return "read_cross_chunk_links",
        "object_id" | "vec" => return "read_fragment_attribute",
        _ => {}
    }
    let has = |field| expected.get(field).is_some();
    match (
        has("polylines"),
        has("endpoints"),
        has("faces"),
        has("edges"),
    ) {
        (true, ..) => "read_polylines",
        (_, true, ..) => "read_lines",
        (_, _, true, _) => "read_mesh",
        (_, _, _, true) => "read_graph",
        _ => "read_points",
    }
}

/// Returns the arguments in the script that made the stores.
fn args(store: &str, read: &str) -> Json {
    match (store, read) {
        ("lines", "ids") => json!({"object_ids": [1, 3]}),
        ("lines", "bbox") => json!({"bbox": [[0, 0, 0], [2, 2, 2]]}),
        ("streamlines", "ids") => json!({"object_ids": [0]}),
        ("streamlines", "chunks") => json!({"chunks": [[0, 0, 0]]}),
        ("streamlines", "bbox") => json!({"bbox": [[10, 0, 0], [19, 9, 9]]}),
        ("graph", "chunks") => json!({"chunks": [[0, 0, 0], [1, 0, 0]]}),
        ("graph", "bbox") => json!({"bbox": [[0, 0, 0], [11.5, 9, 9]]}),
        ("mesh_tri", "bbox") => json!({"bbox": [[0, 0, 0], [9.5, 9.5, 9.5]]}),
        ("points_bins", "bbox") => json!({"bbox": [[0, 0, 0], [9.5, 4, 4]]}),
        ("points_bins", "chunks") => json!({"chunks": [[1, 0, 0]]}),
        ("points_by_attribute", "gene_A") => json!({"attribute_filter": {"gene": "A"}}),
        ("points_objects", "group_0") => json!({"group_ids": [0]}),
        (_, "object_2") => json!({"object_ids": [2]}),
        ("fragment_attrs", name) => json!({"name": name}),
        (_, "level0") => json!({"level": 0}),
        (_, "level1") => json!({"level": 1}),
        (_, "level2") => json!({"level": 2}),
        (_, "all" | "composite" | "parametric" | "header_trk" | "first_new" | "tuple_1_0") => {
            json!({})
        }
        other => panic!("{other:?}"),
    }
}
