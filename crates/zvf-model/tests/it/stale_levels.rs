//! The record of stale levels.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf_model::{grid::ChunkCoord, level::LevelId, stale_levels::StaleLevels};

const COARSER: [LevelId; 2] = [LevelId::new(1), LevelId::new(2)];

#[track_caller]
fn check(stale: &StaleLevels, expected: &Value) {
    let mut document = json!({"zvf_stale_levels": [7], "zvf_stale_chunks": {"6": []}, "a": 1});
    let root = document.as_object_mut().unwrap();
    stale.write(root);
    root.remove("a").unwrap();
    assert_eq!(Value::from(root.clone()), *expected);
    assert_eq!(StaleLevels::parse(root), *stale);
}

fn chunks(names: &[[i64; 2]]) -> impl Iterator<Item = ChunkCoord> {
    names.iter().copied().map(ChunkCoord::new)
}

#[test]
fn changed_chunks_are_listed_while_all_changes_are_known() {
    let mut stale = StaleLevels::default();
    stale.add_chunks(&[], chunks(&[[1, 1]]));
    check(&stale, &json!({}));
    stale.add_chunks(&COARSER, chunks(&[[9, 0], [-1, 2]]));
    stale.add_chunks(&COARSER, chunks(&[[10, 0], [9, 0]]));
    let listed = json!(["-1.2", "10.0", "9.0"]);
    check(
        &stale,
        &json!({"zvf_stale_levels": [1, 2], "zvf_stale_chunks": {"0": listed}}),
    );
    assert_eq!(stale.first(), Some(LevelId::new(1)));

    let none = BTreeSet::new();
    stale.rebuilt(LevelId::new(1), Some(&none));
    check(
        &stale,
        &json!({"zvf_stale_levels": [2], "zvf_stale_chunks": {"1": []}}),
    );
    stale.rebuilt(LevelId::new(2), None);
    check(&stale, &json!({}));

    stale.add(LevelId::FULL, &COARSER);
    stale.add_chunks(&COARSER, chunks(&[[1, 1]]));
    check(&stale, &json!({"zvf_stale_levels": [1, 2]}));
    assert_eq!(stale.changed_chunks(LevelId::FULL), None);
    stale.remove_from(LevelId::new(2));
    check(&stale, &json!({"zvf_stale_levels": [1]}));
}

#[test]
fn lists_of_other_things_than_chunks_are_ignored() {
    let root = json!({
        "zvf_stale_levels": [1, "2", -1],
        "zvf_stale_chunks": {"0": ["0.0", 1], "1": ["x"], "a": [], "2": ["3.1"]},
    });
    let stale = StaleLevels::parse(root.as_object().unwrap());
    check(
        &stale,
        &json!({"zvf_stale_levels": [1], "zvf_stale_chunks": {"2": ["3.1"]}}),
    );
}
