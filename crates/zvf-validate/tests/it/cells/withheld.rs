//! Damage beside which values that follow from other data are not corrected.

use serde_json::{Value, json};
use zvf_testkit::golden::{Files, Golden};
use zvf_validate::{Finding, ValidateOptions};

use super::small::{bytes, cell, get, int64s, items, manifest, numbers, put, remove, set, small};
use crate::memory::report;

const INDEX: &str = "0/object_index/zarr.json";
const MANIFESTS: &str = "0/object_index/manifests/c/0";

/// Returns the findings of a rule in a damaged store.
fn of(code: &str, files: &Files) -> Vec<Finding> {
    let findings = report(files, &ValidateOptions::default())
        .findings
        .into_iter()
        .filter(|f| f.rule.code == code);
    findings.collect()
}

/// Checks that a store has findings of a rule, and that none of them has a fix.
#[track_caller]
fn no_fix(code: &str, obstacle: Option<&str>, damage: impl FnOnce(&mut Files)) {
    let mut files = small();
    damage(&mut files);
    let found = of(code, &files);
    assert!(!found.is_empty(), "no {code}");
    for finding in found {
        assert_eq!(finding.fix, None, "{finding:?}");
        assert_eq!(finding.obstacle(), obstacle, "{finding:?}");
    }
}

#[track_caller]
fn has_fix(code: &str, damage: impl FnOnce(&mut Files)) {
    let mut files = small();
    damage(&mut files);
    let found = of(code, &files);
    let fixes = found.iter().filter(|finding| finding.fix.is_some());
    assert_eq!(fixes.count(), 1, "{found:?}");
}

fn move_vertex(files: &mut Files) {
    cell(files, "0/vertices/c/0/0", |payload| {
        payload[..4].copy_from_slice(&1e30_f32.to_le_bytes());
    });
}

#[test]
fn a_vertex_outside_its_chunk_does_not_extend_the_bounds() {
    no_fix("ZV-L3-013", Some("ZV-L3-012 of 0/vertices"), move_vertex);
    // A sound vertex does.
    has_fix("ZV-L3-013", |files| {
        let bounds = json!([[1.0, 1.0], [19.5, 9.5]]);
        set(files, "zarr.json", &["zarr_vectors", "bounds"], bounds);
    });
}

#[test]
fn counts_do_not_follow_from_the_cell_of_another_chunk() {
    let exchange = |files: &mut Files| {
        let other = get(files, "0/vertices/c/1/0");
        put(files, "0/vertices/c/0/0", other);
    };
    let rows = "ZV-L3-032 of 0/vertex_attributes/part";
    no_fix("ZV-L3-017", Some(rows), exchange);
    // The tag of a node does not follow from cells.
    has_fix("ZV-L2-043", |files| {
        exchange(files);
        set(
            files,
            "0/vertices/zarr.json",
            &["zv_array"],
            json!("groups"),
        );
    });
}

#[test]
fn lists_of_chunks_are_repaired_beside_other_damage() {
    has_fix("ZV-L3-006", |files| {
        items(files, MANIFESTS, |items| items[1].truncate(9));
        set(
            files,
            "0/vertex_attributes/w/zarr.json",
            &["nonempty_chunks"],
            json!(["0.0"]),
        );
    });
}

#[test]
fn a_grid_that_is_too_small_removes_no_chunk_from_a_list() {
    let file = "0/vertex_attributes/w/zarr.json";
    let edit = |files: &mut Files, value: Value| {
        let edit = json!({"op": "set", "file": file, "path": ["shape"], "value": value});
        zvf_testkit::damage::apply(files, &edit);
    };
    let obstacle = "ZV-L3-007 of 0/vertex_attributes/w";
    no_fix("ZV-L3-005", Some(obstacle), |files| {
        edit(files, json!([1, 1]));
    });
    // The origin gives other chunks to the files, so that one is not listed.
    no_fix("ZV-L3-005", None, |files| {
        set(files, file, &["chunk_grid_origin"], json!([1, 0]));
    });
    no_fix(
        "ZV-L3-006",
        Some("ZV-L3-005 of 0/vertex_attributes/w"),
        |files| {
            set(files, file, &["chunk_grid_origin"], json!([1, 0]));
        },
    );
}

#[test]
fn a_grid_that_ends_within_a_shard_removes_no_chunk_from_a_list() {
    let mut files = Golden::open("zvf-09").store("points_shard_store/store.zarrvectors");
    let edit = json!({
        "op": "set", "file": "0/vertices/zarr.json", "path": ["shape"], "value": [1, 1, 1],
    });
    zvf_testkit::damage::apply(&mut files, &edit);
    let found = of("ZV-L3-005", &files);
    assert!(!found.is_empty());
    assert!(found.iter().all(|f| f.fix.is_none()), "{found:?}");
}

#[test]
fn manifests_that_are_missing_change_no_counts_and_no_owners() {
    for code in ["ZV-L3-035", "ZV-L3-046"] {
        no_fix(code, None, |files| {
            items(files, MANIFESTS, |items| items[1].clear());
        });
        no_fix(code, None, |files| remove(files, MANIFESTS));
    }
    no_fix("ZV-L3-035", Some("ZV-L1-019 of 0/object_index"), |files| {
        remove(files, "0/object_index/object_ids");
    });
    no_fix("ZV-L3-035", None, |files| {
        remove(files, "0/object_index/object_ids/c");
    });
    no_fix("ZV-L3-035", Some("ZV-L3-044 of 0/object_index"), |files| {
        let more = manifest(&[([0, 0], 9)]);
        items(files, MANIFESTS, |items| items[1] = more);
        cell(files, "0/fragment_attributes/object_id/c/1/0", |payload| {
            *payload = int64s(&[7]);
        });
    });
}

/// Queries report an error for such a store.
#[test]
fn an_index_of_present_objects_without_manifests_is_an_error() {
    let lost = |change: &dyn Fn(&mut Files)| {
        let mut files = small();
        change(&mut files);
        let found = of("ZV-L3-001", &files);
        let lines = found.iter().map(|f| format!("{}: {}", f.path, f.message));
        lines.collect::<Vec<String>>()
    };
    let of_manifests = "0/object_index/manifests: all of them, but num_present is 2";
    assert_eq!(lost(&|files| remove(files, MANIFESTS)), [of_manifests]);
    let unknown = lost(&|files| {
        remove(files, MANIFESTS);
        let path = ["attributes", "num_present"];
        let edit = json!({"op": "del", "file": INDEX, "path": path});
        zvf_testkit::damage::apply(files, &edit);
    });
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    let none = lost(&|files| {
        remove(files, MANIFESTS);
        set(files, INDEX, &["num_present"], json!(0));
    });
    assert_eq!(none, [""; 0]);
    let dense = |files: &mut Files| {
        remove(files, "0/object_index/manifests");
        set(files, INDEX, &["layout"], json!("dense_manifests_v1"));
        for (name, shape, values) in [
            ("manifest_spans", [2, 2], vec![0, 2, 2, 1]),
            ("manifest_blocks", [3, 3], vec![0, 0, 0, 1, 0, 0, 0, 0, 1]),
        ] {
            let path = format!("0/object_index/{name}");
            numbers(files, &path, json!({}), ("int64", 6), int64s(&values));
            remove(files, &format!("{path}/c"));
            put(files, &format!("{path}/c/0/0"), int64s(&values));
            let file = format!("{path}/zarr.json");
            let grid = ["chunk_grid", "configuration", "chunk_shape"];
            for place in [["shape"].as_slice(), &grid] {
                let edit = json!({"op": "set", "file": file, "path": place, "value": shape});
                zvf_testkit::damage::apply(files, &edit);
            }
        }
    };
    assert_eq!(lost(&dense), [""; 0]);
    let spans = lost(&|files| {
        dense(files);
        remove(files, "0/object_index/manifest_spans/c");
    });
    assert_eq!(
        spans,
        ["0/object_index/manifest_spans: all of them, but num_present is 2"]
    );
}

#[test]
fn an_unreadable_table_says_nothing_about_others() {
    let mut files = small();
    let says = json!({
        "zv_array": "object_attribute", "name": "later", "dtype": "float32", "shape": [2],
        "fill_sentinel_meaning": "absent",
    });
    let values = bytes(&[1.0, 2.0]);
    numbers(
        &mut files,
        "0/object_attributes/zzz",
        says,
        ("float32", 2),
        values,
    );
    assert_eq!(of("ZV-L1-009", &files), []);
    remove(&mut files, "0/object_attributes/score/zarr.json");
    assert_eq!(of("ZV-L1-009", &files), []);
    assert_eq!(of("ZV-L1-010", &files).len(), 1);
}

#[test]
fn shapes_of_tables_are_printed_as_lists() {
    let mut files = small();
    set(
        &mut files,
        "0/object_attributes/score/zarr.json",
        &["shape"],
        json!([9]),
    );
    let found = of("ZV-L2-062", &files);
    assert_eq!(found[0].message, "[9], but the array has [2]");
}

/// The copy may be the only record of a node that was lost.
#[test]
fn a_node_that_differs_from_its_copy_is_not_copied() {
    let copied = |nodes: Value| {
        let mut files = small();
        let forms = json!([{"zarr_format": 3, "node_type": "group"}]);
        let copy = json!({"transaction": 0, "forms": forms, "nodes": nodes});
        set(&mut files, "zarr.json", &["zvf_nodes"], copy);
        of("ZV-L2-069", &files)
    };
    // Without other differences, the copy is completed.
    let found = copied(json!({}));
    assert_eq!(found.len(), 1);
    assert!(found[0].fix.is_some(), "{found:?}");
    let found = copied(json!({"0": [0], "0/elsewhere": null}));
    let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["", "0", "0/elsewhere"]);
    assert!(found.iter().all(|f| f.fix.is_none()), "{found:?}");
    assert_eq!(found[0].obstacle(), Some("ZV-L2-069 of 0"));
}
