//! Stale levels: levels not updated since the store changed.

use serde_json::{Value as Json, json};
use zvf::Query;
use zvf_model::level::LevelId;
use zvf_query::{LevelChoice, VertexBudget};
use zvf_testkit::stores::{Layers, Recipe, StoreKind, layers};

use super::run;
use crate::{block_on, stores::open};

/// Marks levels of the store as stale.
fn behind(mut made: Layers, levels: &Json) -> Layers {
    for (key, bytes) in &mut made.fine.files {
        if key == "zarr.json" {
            let mut root: Json = serde_json::from_slice(bytes).unwrap();
            root["attributes"]["zvf_stale_levels"] = levels.clone();
            *bytes = serde_json::to_vec(&root).unwrap();
        }
    }
    made
}

fn made(kind: StoreKind, additive: bool, levels: &Json) -> Layers {
    let recipe = Recipe {
        seed: 1,
        kind,
        ..Recipe::default()
    };
    behind(layers(&recipe, 3, additive), levels)
}

/// Returns the level that a query reads, and its notes.
fn read(made: &Layers, choice: impl Into<LevelChoice>) -> (u32, Vec<String>) {
    let dataset = block_on(open(&made.fine));
    let query = Query::new().level(choice);
    let result = run(&dataset, &query);
    let explained = block_on(dataset.explain(&query)).unwrap();
    assert_eq!(explained.notes, result.notes);
    (result.level.number(), result.notes)
}

fn passed(level: u32) -> String {
    format!("level {level} is outdated and was skipped")
}

#[test]
fn stale_levels_are_skipped() {
    for kind in [StoreKind::Points, StoreKind::Polylines] {
        let made = made(kind, false, &json!([1, 2]));
        let top = super::total(&made, 3, false);
        let [one, two] = [1, 2].map(|level| super::total(&made, level, false));
        let notes = vec![passed(1), passed(2)];
        if kind == StoreKind::Points {
            assert_eq!(read(&made, VertexBudget::new(top)).1, notes);
            let dataset = block_on(open(&made.fine));
            let result = run(
                &dataset,
                &Query::new().level(VertexBudget::new(one.max(two))),
            );
            let levels = result.levels.iter().map(|used| used.level.number());
            assert!(levels.into_iter().all(|level| [0, 3].contains(&level)));
        }
        assert_eq!(read(&made, VertexBudget::new(u64::MAX)), (0, notes));
        assert_eq!(read(&made, LevelChoice::Scale(4.0)), (0, vec![passed(2)]));
        assert_eq!(read(&made, LevelChoice::Scale(9.0)), (3, Vec::new()));
        let one = rule_size(&made, 1);
        assert_eq!(
            read(&made, LevelChoice::Vertices(one)),
            (3, vec![passed(1)])
        );
    }
}

/// Returns the size that the level declares.
fn rule_size(made: &Layers, level: u32) -> u64 {
    super::rule::level(made, level).vertices.len() as u64
}

#[test]
fn a_stale_level_named_by_number_is_read_with_a_note() {
    let made = made(StoreKind::Points, false, &json!([2]));
    let named = |level| read(&made, LevelChoice::Number(LevelId::new(level)));
    let note = "level 2 is outdated: later changes are not in it";
    assert_eq!(named(2), (2, vec![note.to_owned()]));
    assert_eq!(named(3), (3, Vec::new()));
    assert_eq!(named(0), (0, Vec::new()));
}

/// A result that includes a stale additive level is stale.
#[test]
fn additive_levels_are_stale_if_one_of_them_is() {
    let made = made(StoreKind::Points, true, &json!([2]));
    let (level, notes) = read(&made, LevelChoice::Number(LevelId::new(1)));
    let note = "level 2 is outdated: later changes are not in it";
    assert_eq!((level, notes), (1, vec![note.to_owned()]));
    let level = |budget| read(&made, VertexBudget::new(budget)).0;
    assert_eq!(level(super::total(&made, 1, true)), 0);
    let few = block_on(open(&made.fine));
    let max = super::total(&made, 3, true);
    let result = run(&few, &Query::new().level(VertexBudget::new(max)));
    let levels = result.levels.iter().map(|used| used.level.number());
    assert!(levels.into_iter().all(|level| [0, 3].contains(&level)));
}

/// A malformed list of stale levels is ignored.
#[test]
fn malformed_lists_of_stale_levels_are_ignored() {
    for levels in [
        json!("1"),
        json!({"1": true}),
        json!([-1, "1", 1.5, null, 5_000_000_000_u64]),
    ] {
        let made = made(StoreKind::Points, false, &levels);
        assert_eq!(read(&made, LevelChoice::Scale(9.0)), (3, Vec::new()));
    }
}
