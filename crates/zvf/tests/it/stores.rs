//! Random stores with known content: each opens and contains what was written.

use proptest::prelude::*;
use zvf::{Dataset, OpenOptions};
use zvf_testkit::stores::{Cells, Made, Recipe, RecipeProfile, RecordPolicy, StoreKind, make};

use crate::block_on;

/// Opens a generated store.
pub(crate) async fn open(made: &Made) -> Dataset {
    let files = made.files.iter().cloned();
    let store = OpenOptions::default().from_memory(files).unwrap();
    let dataset = Dataset::open(store).await;
    dataset.unwrap_or_else(|error| panic!("{error:?}"))
}

/// Returns recipes of a profile.
pub(crate) fn recipes(profile: RecipeProfile) -> impl Strategy<Value = Recipe> {
    let shape = (
        proptest::sample::select(StoreKind::ALL.to_vec()),
        1_usize..=5,
        1_usize..120,
        any::<bool>(),
    );
    let form = (
        proptest::sample::select(Cells::ALL.to_vec()),
        proptest::sample::select(RecordPolicy::ALL.to_vec()),
        proptest::bool::weighted(0.25),
        proptest::bool::weighted(0.25),
        proptest::bool::weighted(0.8),
    );
    (any::<u64>(), shape, form).prop_map(move |(seed, shape, form)| {
        let (kind, axes, size, double) = shape;
        let (cells, policy, chunked, shuffled, attributes) = form;
        let recipe = Recipe {
            seed,
            kind,
            profile,
            axes,
            size,
            double,
            cells,
            policy,
            chunked,
            shuffled,
            attributes,
        };
        recipe.possible()
    })
}

fn check(recipe: &Recipe) {
    let made = make(recipe);
    assert_eq!(made.files, make(recipe).files);
    let info = block_on(async { open(&made).await.info().await })
        .unwrap_or_else(|error| panic!("{error:?}"));
    let truth = &made.truth;
    assert_eq!(info.profile, recipe.profile.name());
    assert_eq!(info.axes, truth.axes);
    let is_preview = recipe.profile == RecipeProfile::V10;
    let of_preview = |note: &String| note.starts_with("generation 0.10 is a preview");
    assert_eq!(info.notes.len(), usize::from(is_preview));
    assert!(info.notes.iter().all(of_preview), "{:?}", info.notes);
    let [level] = info.levels.as_slice() else {
        panic!("{info:?}")
    };
    assert_eq!(level.vertices, Some(truth.vertices.len() as u64));
    assert_eq!(level.chunks, truth.chunks().len() as u64);
    let stored = truth.links.iter().filter(|link| link.stored).count() as u64;
    assert_eq!(level.links, Some(stored));
    let present = truth.objects.as_ref().map(|objects| {
        let present = objects.iter().filter(|object| !object.fragments.is_empty());
        present.count() as u64
    });
    assert_eq!(level.objects, present);
    let mut order = truth.link_order.clone();
    order.sort_unstable();
    let all = truth
        .links
        .iter()
        .enumerate()
        .filter(|(_, link)| link.stored)
        .map(|(number, _)| number);
    assert!(order.into_iter().eq(all));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(96)))]

    #[test]
    fn generated_stores_of_010_are_counted(recipe in recipes(RecipeProfile::V10)) {
        check(&recipe);
    }

    #[test]
    fn generated_stores_of_09_are_counted(recipe in recipes(RecipeProfile::V09)) {
        check(&recipe);
    }

    #[test]
    fn generated_stores_of_081_are_counted(recipe in recipes(RecipeProfile::V081)) {
        check(&recipe);
    }

    #[test]
    fn generated_stores_of_080_are_counted(recipe in recipes(RecipeProfile::V080)) {
        check(&recipe);
    }

    #[test]
    fn generated_padded_stores_are_counted(recipe in recipes(RecipeProfile::Padded)) {
        check(&recipe);
    }

    #[test]
    fn generated_stores_of_07_are_counted(recipe in recipes(RecipeProfile::V07)) {
        check(&recipe);
    }

    #[test]
    fn generated_stores_of_06_are_counted(recipe in recipes(RecipeProfile::V06)) {
        check(&recipe);
    }
}
