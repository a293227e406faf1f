//! Nothing is found in stores that are as they should be.

use zvf::{CreateOptions, Editor, Store, validate_store, validation::ValidateOptions};
use zvf_build::{GeometryKind, OutOfBounds, Profile, WritePlan};
use zvf_testkit::stores::{self, Cells, CrossLevel, Kind, Policy, Recipe, make, pyramid};

use super::{found, lines};
use crate::{block_on, written::random};

/// Recipes of every kind, generation and form.
fn recipes() -> impl Iterator<Item = Recipe> {
    let kinds = Kind::ALL.into_iter();
    let all = kinds.flat_map(|kind| stores::Profile::ALL.map(|profile| (kind, profile)));
    let all = all.flat_map(|(kind, profile)| Cells::ALL.map(|cells| (kind, profile, cells)));
    // Each has another seed, and all that goes with it.
    (0_usize..)
        .zip(all)
        .map(|(number, (kind, profile, cells))| Recipe {
            seed: number as u64,
            kind,
            profile,
            cells,
            axes: 2 + number % 2,
            double: number % 5 == 0,
            policy: Policy::ALL[number % 3],
            chunked: number % 7 == 2,
            shuffled: number % 9 == 3,
            ..Recipe::default()
        })
}

#[test]
fn made_stores_are_healthy() {
    for recipe in recipes() {
        let recipe = recipe.possible();
        let mut found = lines(&found(&make(&recipe).files));
        // Points of no object are made, and noted.
        found.retain(|line| recipe.kind != Kind::ObjectPoints || !line.starts_with("ZV-L3-052"));
        assert!(found.is_empty(), "{recipe:?}: {found:#?}");
    }
}

#[test]
fn levels_are_healthy() {
    for profile in [stores::Profile::V09, stores::Profile::V080] {
        for kind in Kind::ALL {
            for seed in 0..2 {
                let recipe = Recipe {
                    seed,
                    kind,
                    profile,
                    ..Recipe::default()
                };
                let recipe = recipe.possible();
                let made = pyramid(&recipe, CrossLevel::Explicit);
                let mut found = lines(&found(&made.fine.files));
                found.retain(|line| {
                    recipe.kind != Kind::ObjectPoints || !line.starts_with("ZV-L3-052")
                });
                assert!(found.is_empty(), "{recipe:?}: {found:#?}");
            }
        }
    }
}

async fn found_in(store: &Store) -> Vec<String> {
    let report = validate_store(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings.into_iter();
    let own = findings.filter(|finding| finding.rule.code.starts_with("ZV-L3-0"));
    own.map(|finding| format!("{} {}", finding.rule.code, finding.message))
        .collect()
}

async fn created(plan: WritePlan) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let options = CreateOptions::default();
    zvf::create_in(&store, plan, &options).await.unwrap();
    store
}

#[test]
fn created_stores_are_healthy() {
    for profile in Profile::ALL {
        for kind in GeometryKind::ALL {
            for seed in 0..4 {
                let case = random::case(seed, kind, profile);
                let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
                let plan = WritePlan::new(case.geometry, case.design).unwrap();
                let found = block_on(async { found_in(&created(plan).await).await });
                assert!(found.is_empty(), "{about}: {found:#?}");
            }
        }
    }
}

#[test]
fn changed_stores_are_healthy() {
    for kind in GeometryKind::ALL {
        for seed in 0..4 {
            let mut case = random::case(seed, kind, Profile::V09);
            let axes = case.geometry.axes();
            case.design.bounds = Some((vec![-200.0; axes], vec![200.0; axes]));
            let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
            let mut random = stores::Random::new(seed);
            let plan = WritePlan::new(case.geometry.clone(), case.design.clone()).unwrap();
            block_on(async {
                let store = created(plan).await;
                let editor = Editor::of(store.clone()).await.unwrap();
                let more = case.more(&mut random, 30, 1_000_000);
                let appended = editor.append(&more, OutOfBounds::Reject).await;
                let appended = appended.is_ok();
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "{appended} {about}: {found_now:#?}");
                let _ = editor.remove(&[1_000_000, 0]).await;
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "removed, {about}: {found_now:#?}");
                editor.compact().await.unwrap();
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "compacted, {about}: {found_now:#?}");
            });
        }
    }
}
