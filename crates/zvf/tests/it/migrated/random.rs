//! Random stores of every kind and generation.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zvf::{
    CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn, OpenOptions,
    Profile as Target, Query, Store,
};
use zvf_build::WritePlan;
use zvf_format::path::Delta;
use zvf_model::grid::ChunkCoord;
use zvf_testkit::stores::{ExpectedStore, PyramidLinks, Recipe, RecipeProfile, pyramid};

use super::{
    content::{Content, Record, renamed, same},
    migrated,
};
use crate::{block_on, stores::recipes};

/// Checks that a migrated store has the content of its source, and that a second migration is
/// idempotent.
async fn check(source: &Dataset, truth: &ExpectedStore, target: Target, at: &str) {
    let mut expected = Content::of(source).await;
    let (made, report) = migrated(source, target).await.unwrap();
    let found = Content::of(&made).await;
    // Padded cells are longer than their used part.
    let is_padded = source.layout().profile() == "0.8-padded";
    if report
        .repaired
        .iter()
        .any(|found| found.what.contains("pieces of paths"))
    {
        // Up to 0.7 every record names row 0.
        let records = links(truth);
        expected
            .levels
            .get_mut(&0)
            .unwrap()
            .links
            .insert((Delta::INTRA, 2), records);
    }
    if !is_padded {
        same(&renamed(found.clone()), &expected, at);
    }
    let (again, _) = migrated(&made, target).await.unwrap();
    same(&Content::of(&again).await, &found, at);
    let other = match target {
        Target::V09 => Target::V08,
        _ => Target::V09,
    };
    let (across, _) = migrated(&made, other).await.unwrap();
    let across = Content::of(&across).await;
    same(&renamed(across), &renamed(found), at);
}

/// Returns the expected links of a store without link attributes.
fn links(truth: &ExpectedStore) -> BTreeMap<Record, usize> {
    assert!(truth.recipe.kind.is_paths());
    let mut records = BTreeMap::new();
    for link in truth.links.iter().filter(|link| link.stored) {
        let ends = link.ends.iter().map(|end| {
            let vertex = &truth.vertices[*end];
            (ChunkCoord::new(vertex.chunk.clone()), vertex.row)
        });
        *records
            .entry((ends.collect(), BTreeMap::new()))
            .or_default() += 1;
    }
    records
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    proptest::sample::select(RecipeProfile::ALL.to_vec()).prop_flat_map(recipes)
}

fn any_target() -> impl Strategy<Value = Target> {
    proptest::sample::select(vec![Target::V09, Target::V10, Target::V08])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: zvf_testkit::sample::cases(12), ..ProptestConfig::default() })]

    #[test]
    fn random_stores_keep_their_content(recipe in any_recipe(), target in any_target()) {
        let made = zvf_testkit::stores::make(&recipe);
        block_on(async {
            let source = crate::stores::open(&made).await;
            check(&source, &made.truth, target, &format!("{recipe:?}")).await;
        });
    }

    #[test]
    fn levels_and_cross_level_links_are_kept(
        recipe in proptest::sample::select(vec![RecipeProfile::V09, RecipeProfile::V10, RecipeProfile::V080])
            .prop_flat_map(recipes),
        target in any_target(),
        both in any::<bool>(),
    ) {
        let links = if both { PyramidLinks::Explicit } else { PyramidLinks::Implicit };
        let made = pyramid(&recipe, links).fine;
        block_on(async {
            let source = crate::stores::open(&made).await;
            check(&source, &made.truth, target, &format!("{recipe:?}")).await;
        });
    }
}

/// The inventory of the source lists other files.
#[test]
fn stores_without_a_seal_have_no_inventory() {
    let places = NumericColumn::float32(2, [1.0, 1.0, 14.0, 2.0]);
    let geometry = Geometry::builder(places).build().unwrap();
    let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 2]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry, design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let source = Dataset::open(store).await.unwrap();
        for target in [Target::V09, Target::V08] {
            let (made, _) = migrated(&source, target).await.unwrap();
            let found = made.query(&Query::new()).await.unwrap();
            assert_eq!(found.positions.len(), 2, "{target:?}");
        }
    });
}

#[test]
fn unknown_files_and_attributes_are_copied() {
    let made = zvf_testkit::stores::make(&Recipe::default());
    let mut files = made.files.clone();
    let mine = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"mine": 1}}"#;
    for key in [
        "mine/zarr.json",
        "0/mine/zarr.json",
        "headers/trk/zarr.json",
    ] {
        files.push((key.to_owned(), mine.to_vec()));
    }
    files.push(("0/mine/c/0".to_owned(), vec![1, 2, 3]));
    files.push(("README.md".to_owned(), b"read me".to_vec()));
    block_on(async {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let source = Dataset::open(store).await.unwrap();
        let (older, _) = migrated(&source, Target::V08).await.unwrap();
        let (back, _) = migrated(&older, Target::V09).await.unwrap();
        for dataset in [older, back] {
            for (key, expected) in [
                ("mine/zarr.json", &mine[..]),
                ("0/mine/zarr.json", &mine[..]),
                ("headers/trk/zarr.json", &mine[..]),
                ("0/mine/c/0", &[1, 2, 3]),
                ("README.md", b"read me"),
            ] {
                let read = zvf_store::Read::full(zvf_model::key::Key::parse(key).unwrap());
                let found = dataset.store().read_one(read).await.unwrap();
                assert_eq!(found.as_deref(), Some(expected), "{key}");
            }
        }
    });
}
