//! Levels that do not form one pyramid.

use serde_json::json;

use super::made::{Made, recorded, set};

const LEVEL: &str = "zarr_vectors_level";

/// Returns three levels of polylines, linked in both directions.
fn pyramid() -> Made {
    recorded("zvf-09", "pyramid_polylines_depth2/store.zarrvectors")
}

/// Asserts the findings on levels and between levels that the recorded store does not have.
#[track_caller]
fn breaks(damaged: &Made, expected: &[&str]) {
    let before = pyramid().codes();
    let codes = damaged.codes();
    let new: Vec<&str> = codes.difference(&before).map(|code| &code[3..]).collect();
    assert_eq!(new, expected);
}

/// Returns the first cell of the links of a delta.
fn first_cell(made: &Made, folder: &str) -> String {
    let mut cells = made.0.iter().map(|(path, _)| path);
    let cell = cells.find(|path| path.starts_with(folder) && path.contains("/c/"));
    cell.unwrap().clone()
}

#[test]
fn links_up_must_mirror_links_down() {
    breaks(&pyramid(), &[]);
    let cell = first_cell(&pyramid(), "1/links/-1/");
    let other = pyramid().cell(&cell, |payload| {
        let at = 1 + payload[0] as usize;
        let row = i64::from_le_bytes(payload[at * 8..at * 8 + 8].try_into().unwrap());
        set(payload, at, i64::from(row == 0));
    });
    breaks(&other, &["L3-118"]);
    for lost in ["1/links/-1", "0/links/+1"] {
        let codes = pyramid().remove(lost).codes();
        assert!(codes.contains("ZV-L3-118"), "{lost}: {codes:?}");
    }
}

#[test]
fn every_vertex_must_have_a_parent() {
    let cell = first_cell(&pyramid(), "0/links/+1/");
    let orphan = pyramid().cell(&cell, |payload| {
        let at = 1 + payload[0] as usize;
        let next = i64::from_le_bytes(payload[at * 8 + 16..at * 8 + 24].try_into().unwrap());
        set(payload, at, next);
    });
    breaks(&orphan, &["L3-118", "L4-057"]);
    let codes = pyramid().remove("1/links/+1").codes();
    assert!(codes.contains("ZV-L4-058"), "{codes:?}");
}

#[test]
fn a_coarser_level_must_be_smaller() {
    let datasets = "multiscales.0.datasets.1.coordinateTransformations";
    let finer = json!([
        {"type": "scale", "scale": [0.5, 0.5, 0.5]},
        {"type": "translation", "translation": [0.25, 0.25, 0.25]},
    ]);
    let made = pyramid();
    let root = made.0.iter().find(|(path, _)| path == "zarr.json").unwrap();
    let mut root: serde_json::Value = serde_json::from_slice(&root.1).unwrap();
    let place = format!("/attributes/{}", datasets.replace('.', "/"));
    *root.pointer_mut(&place).unwrap() = finer;
    let bins = made.bytes("zarr.json", |bytes| {
        *bytes = serde_json::to_vec(&root).unwrap();
    });
    assert!(bins.codes().contains("ZV-L4-052"), "{:?}", bins.codes());
    // Swaps the first two levels.
    let swapped = pyramid().rename("0", "x").rename("1", "0").rename("x", "1");
    assert!(
        swapped.codes().contains("ZV-L4-051"),
        "{:?}",
        swapped.codes()
    );
}

#[test]
fn objects_must_match_those_of_the_parent() {
    let share = pyramid().set("1", &format!("{LEVEL}.object_sparsity"), &json!(0.01));
    breaks(&share, &["L4-053"]);
    let emptied = pyramid().remove("0/object_index/manifests/c/0");
    assert!(
        emptied.codes().contains("ZV-L4-056"),
        "{:?}",
        emptied.codes()
    );
}

#[test]
fn stale_levels_are_not_compared() {
    let stale = pyramid().set("", "zvf_stale_levels", &json!([1, 2]));
    breaks(&stale, &["L4-059"]);
}
