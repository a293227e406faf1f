//! Random queries on random stores, answered by the engine and by going through
//! all there is.

mod ask;
mod clip;
mod columns;
mod compare;
mod expect;
mod filter;

use proptest::prelude::*;
use zvf_query::{Answer, Query};
use zvf_testkit::stores::{Kind, Made, Profile, Random, Recipe, make};

use self::compare::Comparison;
use crate::{
    block_on,
    stores::{open, recipes},
};

/// What the engine answers.
async fn answer(made: &Made, query: &Query) -> Answer {
    let dataset = open(made).await;
    panic!("{}: engine not merged: {query:?}", dataset.address())
}

fn check(made: &Made, query: &Query) {
    let answer = block_on(answer(made, query));
    let expected = expect::expect(&made.truth, query);
    let comparison = Comparison {
        truth: &made.truth,
        query,
        answer: &answer,
    };
    if let Err(fault) = comparison.any(&expected) {
        panic!("{fault}\n{query:#?}\n{:?}", made.truth.recipe);
    }
}

/// Recipes of any profile, half of them of the current one.
fn any_recipe(kinds: impl Fn(Kind) -> bool + 'static) -> impl Strategy<Value = Recipe> {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kinds(*kind)).collect();
    let current = recipes(Profile::V09);
    let any = proptest::sample::select(Profile::ALL.to_vec()).prop_flat_map(recipes);
    let kind = proptest::sample::select(kinds);
    (prop_oneof![current, any], kind).prop_map(|(recipe, kind)| {
        let recipe = Recipe { kind, ..recipe };
        recipe.possible()
    })
}

fn check_some(recipe: &Recipe, seed: u64) {
    let made = make(recipe);
    let mut random = Random::new(seed);
    for _ in 0..4 {
        check(&made, &ask::ask(&made.truth, &mut random));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    #[ignore = "engine not merged"]
    fn all_of_a_store_is_answered(recipe in any_recipe(|_| true)) {
        check(&make(&recipe), &Query::new());
    }

    #[test]
    #[ignore = "engine not merged"]
    fn points_are_answered(recipe in any_recipe(Kind::is_points), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }

    #[test]
    #[ignore = "engine not merged"]
    fn paths_are_answered(recipe in any_recipe(Kind::is_paths), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }

    #[test]
    #[ignore = "engine not merged"]
    fn links_are_answered(recipe in any_recipe(Kind::is_linked), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }
}
