//! Generated stores of every kind, generation and cell form break no rule of L3.

use zvf_testkit::stores::{
    Cells, PyramidLinks, Recipe, RecipeProfile, RecordPolicy, StoreKind, make, pyramid,
};

use crate::cells::{found, lines};

/// Returns recipes of every kind, generation and form.
fn recipes() -> impl Iterator<Item = Recipe> {
    let kinds = StoreKind::ALL.into_iter();
    let all = kinds
        .flat_map(|kind| RecipeProfile::ALL.map(|profile| (kind, profile)))
        .flat_map(|(kind, profile)| Cells::ALL.map(|cells| (kind, profile, cells)));
    // The position is the seed, and selects the remaining options.
    (0_usize..)
        .zip(all)
        .map(|(number, (kind, profile, cells))| Recipe {
            seed: number as u64,
            kind,
            profile,
            cells,
            axes: 2 + number % 2,
            double: number % 5 == 0,
            policy: RecordPolicy::ALL[number % 3],
            chunked: number % 7 == 2,
            shuffled: number % 9 == 3,
            ..Recipe::default()
        })
}

/// Points without an object are generated on purpose, and noted.
fn is_expected(recipe: &Recipe, line: &str) -> bool {
    recipe.kind == StoreKind::ObjectPoints && line.starts_with("ZV-L3-052")
}

#[test]
fn generated_stores_have_no_findings() {
    for recipe in recipes() {
        let recipe = recipe.possible();
        let mut found = lines(&found(&make(&recipe).files));
        found.retain(|line| !is_expected(&recipe, line));
        assert!(found.is_empty(), "{recipe:?}: {found:#?}");
    }
}

#[test]
fn generated_pyramids_have_no_findings() {
    for profile in [RecipeProfile::V09, RecipeProfile::V10, RecipeProfile::V080] {
        for kind in StoreKind::ALL {
            for seed in 0..2 {
                let recipe = Recipe {
                    seed,
                    kind,
                    profile,
                    ..Recipe::default()
                }
                .possible();
                let made = pyramid(&recipe, PyramidLinks::Explicit);
                let mut found = lines(&found(&made.fine.files));
                found.retain(|line| !is_expected(&recipe, line));
                assert!(found.is_empty(), "{recipe:?}: {found:#?}");
            }
        }
    }
}
