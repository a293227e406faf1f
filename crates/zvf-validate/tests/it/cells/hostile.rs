//! Small files that name the same things time and again: findings, memory and time stay small. A check
//! of quadratic time does not end within the time of a test run.

use serde_json::{Value, json};
use zvf_testkit::{
    damage::apply,
    golden::{Files, Golden},
};
use zvf_validate::ValidateOptions;

use super::{
    found, lines,
    small::{cell, put, ranges, remove, set, small},
};
use crate::memory::{self, report};

/// Sets a field of a node.
fn edit(files: &mut Files, file: &str, path: &[&str], value: &Value) {
    let edit = json!({"op": "set", "file": file, "path": path, "value": value});
    apply(files, &edit);
}

#[test]
fn one_fix_corrects_a_list_of_chunks_with_many_faults() {
    let mut files = small();
    let file = "0/vertex_attributes/w/zarr.json";
    edit(&mut files, file, &["shape"], &json!([100_000, 1]));
    let names: Vec<String> = (0..100_000)
        .chain([0; 1000])
        .map(|number| format!("{number}.0"))
        .collect();
    set(&mut files, file, &["nonempty_chunks"], json!(names));
    let report = report(&files, &ValidateOptions::default());
    let faults = report
        .findings
        .iter()
        .filter(|finding| finding.rule.code == "ZV-L3-005");
    assert_eq!(faults.clone().count(), 1000);
    assert_eq!(faults.filter(|finding| finding.fix.is_some()).count(), 1);
}

#[test]
fn a_shard_without_its_index_is_one_finding_and_one_for_each_listed_cell() {
    let mut files = Golden::open("zvf-09").store("points_shard_store/store.zarrvectors");
    let node = "0/vertices/zarr.json";
    let shard = json!([64, 64, 64]);
    edit(&mut files, node, &["shape"], &shard);
    let path = ["chunk_grid", "configuration", "chunk_shape"];
    edit(&mut files, node, &path, &shard);
    remove(&mut files, "0/vertices/c/1/0/0");
    put(&mut files, "0/vertices/c/0/0/0", vec![0]);
    let mut lines = lines(&found(&files));
    lines.retain(|line| line.contains(" 0/vertices "));
    assert_eq!(
        lines,
        [
            "ZV-L3-002 0/vertices 0/vertices/c/0/0/0",
            "ZV-L3-002 0/vertices chunk -1.0.0",
            "ZV-L3-002 0/vertices chunk -2.0.0",
            "ZV-L3-002 0/vertices chunk 0.0.0",
            "ZV-L3-002 0/vertices chunk 1.0.0",
            "ZV-L3-002 0/vertices chunk 2.0.0",
        ]
    );
}

#[test]
fn overlapping_fragments_are_not_followed() {
    let mut files = Golden::open("zvf-09").store("skeleton_2d/store.zarrvectors");
    let count: u32 = 20_000;
    cell(&mut files, "0/vertices/c/2/1", |payload| {
        *payload = vec![0; 20_000 * 8];
    });
    let named = vec![(0, u64::from(count)); 20_000];
    cell(&mut files, "0/vertex_fragments/c/2/1", |payload| {
        *payload = ranges(&named);
    });
    let found = memory::lines(&files);
    let expected = "ZV-L4-000 0 - fragments name too many rows to visit each";
    let others = found.iter().filter(|line| line.starts_with("ZV-L4"));
    assert_eq!(others.collect::<Vec<_>>(), [expected]);
}

#[test]
fn lists_of_missing_parts_take_linear_time() {
    let mut files = small();
    let names: Vec<String> = (0..300_000).map(|number| format!("x{number}")).collect();
    let path = ["zarr_vectors_level", "arrays_present"];
    set(&mut files, "0/zarr.json", &path, json!(names));
    let found = memory::lines(&files);
    let codes = memory::codes(&found);
    assert!(codes.contains("ZV-L1-020") && codes.contains("ZV-L1-021"));
}

#[test]
fn types_of_parametric_objects_are_looked_up() {
    let mut files = Golden::open("zvf-09").store("parametric/store.zarrvectors");
    let count: u32 = 30_000;
    let types = (0..count).map(|number| {
        let known = json!({"name": format!("t{number}"), "coefficients": ["c"]});
        (number.to_string(), known)
    });
    let types: Value = Value::Object(types.collect());
    let root = "parametric/zarr.json";
    set(&mut files, root, &["parametric_types"], types);
    remove(&mut files, "parametric/names");
    let node = "parametric/objects/zarr.json";
    edit(&mut files, node, &["shape"], &json!([count, 2]));
    let path = ["chunk_grid", "configuration", "chunk_shape"];
    edit(&mut files, node, &path, &json!([count, 2]));
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    edit(&mut files, node, &["codecs"], &codecs);
    set(&mut files, node, &["num_objects"], json!(count));
    set(&mut files, node, &["max_row_length"], json!(2));
    // The last object has no type.
    let numbers = (1..=count).map(|row| [f64::from(row), 0.5]);
    let bytes = numbers.flatten().flat_map(f64::to_le_bytes);
    put(&mut files, "parametric/objects/c/0/0", bytes.collect());
    let all = lines(&found(&files));
    let lines: Vec<&String> = all.iter().filter(|l| l.starts_with("ZV-L3-07")).collect();
    assert_eq!(lines, ["ZV-L3-070 parametric/objects row 29999"]);
}
