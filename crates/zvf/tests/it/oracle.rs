//! Random queries on random stores, run by the engine and by exhaustive search.

mod clip;
mod columns;
mod compare;
mod expect;
mod filter;
mod levels;
mod partitions;
mod pieces;
mod random_query;
mod render;

use proptest::prelude::*;
use zvf_catalog::Selection;
use zvf_query::{
    Clip, Query, QueryError, QueryResult,
    geometry::{Bbox, Mode, Sphere},
    predicate::Predicate,
};
use zvf_testkit::sample::cases;
use zvf_testkit::stores::{Made, Random, Recipe, RecipeProfile, StoreKind, make};

use self::{compare::Comparison, random_query::random_query};
use crate::{
    block_on,
    stores::{open, recipes},
};

/// Runs the query; `None` if the engine reports it as unsupported, which is only allowed for
/// `nearest` combined with certain other selections.
async fn result(made: &Made, query: &Query) -> Option<QueryResult> {
    match open(made).await.query(query).await {
        Ok(result) => Some(result),
        Err(error)
            if matches!(error.cause(), Some(QueryError::Unsupported(_)))
                && is_nearest_of_some(query) =>
        {
            None
        }
        Err(error) => panic!("{error:?}\n{query:?}\n{:?}", made.truth.recipe),
    }
}

fn is_nearest_of_some(query: &Query) -> bool {
    let by_object = query.objects.is_some() || query.groups.is_some();
    query.nearest.is_some() && (by_object || query.region.is_some() || query.filter.is_some())
}

fn check(made: &Made, query: &Query) {
    let Some(result) = block_on(result(made, query)) else {
        return;
    };
    let verdict = verdict(made, query, &result).and_then(|()| {
        block_on(async {
            let counts = open(made)
                .await
                .count(query)
                .await
                .map_err(|error| format!("counting: {error:?}"))?;
            pieces::counts(&result, &counts)?;
            let budget = 4096 << (made.truth.recipe.seed % 3);
            pieces::batches(made, query, &result, budget).await?;
            partitions::check(made, query, &result).await
        })
    });
    if let Err(fault) = verdict {
        panic!("{fault}\n{query:?}\n{:?}", made.truth.recipe);
    }
}

/// Queries objects of which some are missing.
fn check_without(made: &Made, mut query: Query, known: Vec<i64>) {
    query.owners = true;
    let strict = block_on(async { open(made).await.query(&query).await });
    let is_absent =
        matches!(&strict, Err(error) if matches!(error.cause(), Some(QueryError::NoObject { .. })));
    assert!(is_absent, "{strict:?}\n{query:?}\n{:?}", made.truth.recipe);
    let going = query.clone().keep_going(true);
    let mut result = block_on(result(made, &going)).unwrap();
    let missing: Vec<&str> = result.skipped.iter().map(|m| m.reason.as_str()).collect();
    let names = |id: &str| missing.iter().any(|reason| reason.contains(id));
    assert!(result.skipped.iter().all(|part| part.is_absent));
    let both = missing.len() == 2 && names("-7") && names(&(1_i64 << 60).to_string());
    assert!(both, "{missing:?}\n{query:?}\n{:?}", made.truth.recipe);
    result.skipped.clear();
    query.objects = Some(known);
    if let Err(fault) = verdict(made, &query, &result) {
        panic!("{fault}\n{query:?}\n{:?}", made.truth.recipe);
    }
}

/// Returns recipes of any profile, half of them of the current one.
fn any_recipe(kinds: impl Fn(StoreKind) -> bool + 'static) -> impl Strategy<Value = Recipe> {
    let kinds: Vec<StoreKind> = StoreKind::ALL
        .into_iter()
        .filter(|kind| kinds(*kind))
        .collect();
    let current = recipes(RecipeProfile::V09);
    let any = proptest::sample::select(RecipeProfile::ALL.to_vec()).prop_flat_map(recipes);
    let kind = proptest::sample::select(kinds);
    (prop_oneof![current, any], kind).prop_map(|(recipe, kind)| {
        let recipe = Recipe { kind, ..recipe };
        recipe.possible()
    })
}

/// Returns queries on a store, each with a result rendered from the expected content.
fn rendered(made: &Made, seed: u64) -> Vec<(Query, QueryResult)> {
    let mut random = Random::new(seed);
    let queries = (0..4).map(|_| {
        let query = random_query(&made.truth, &mut random);
        let expected = expect::expect(&made.truth, &query);
        let result = render::render(&made.truth, &query, &expected);
        (query, result)
    });
    queries.collect()
}

fn verdict(made: &Made, query: &Query, result: &QueryResult) -> Result<(), String> {
    let truth = &made.truth;
    let expected = expect::expect(truth, query);
    let comparison = Comparison {
        truth,
        query,
        result,
    };
    comparison.with(&expected)
}

/// Returns whether the query clips geometry, for which several results are correct.
fn is_cut(query: &Query) -> bool {
    query.mode == Mode::Clip && query.region.is_some() && query.clip == Clip::Split
}

fn check_some(recipe: &Recipe, seed: u64) {
    let made = make(recipe);
    let mut random = Random::new(seed);
    for _ in 0..4 {
        check(&made, &random_query(&made.truth, &mut random));
    }
}

/// Returns a number of cases that takes about a minute.
fn config() -> ProptestConfig {
    ProptestConfig::with_cases(cases(64))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_expected_result_is_accepted(recipe in any_recipe(|_| true), seed in any::<u64>()) {
        let made = make(&recipe);
        for (query, result) in rendered(&made, seed) {
            if !(is_cut(&query) && recipe.kind.is_linked()) {
                verdict(&made, &query, &result).unwrap_or_else(|fault| panic!("{fault}\n{query:?}"));
            }
        }
    }

    /// Each damage is rejected: a bit of a position or value, a reversed link, a missing path.
    #[test]
    fn damaged_results_are_rejected(recipe in any_recipe(|_| true), seed in any::<u64>()) {
        let made = make(&recipe);
        for (query, result) in rendered(&made, seed) {
            if is_cut(&query) {
                continue;
            }
            for wrong in render::damaged(&result, &mut Random::new(seed)) {
                let fault = verdict(&made, &query, &wrong);
                assert!(fault.is_err(), "{query:?}\n{result:?}\n{wrong:?}");
            }
        }
    }

    #[test]
    fn queries_of_everything_are_answered(recipe in any_recipe(|_| true)) {
        check(&make(&recipe), &Query::new());
    }

    #[test]
    fn points_are_answered(recipe in any_recipe(StoreKind::is_points), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }

    #[test]
    fn paths_are_answered(recipe in any_recipe(StoreKind::is_paths), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }

    /// Missing objects fail a strict query; with `keep_going` they are reported as skipped and the
    /// others are returned.
    #[test]
    fn missing_objects_are_reported(
        recipe in any_recipe(|_| true),
        seed in any::<u64>(),
    ) {
        let made = make(&recipe);
        let mut random = Random::new(seed);
        let mut query = random_query(&made.truth, &mut random);
        if made.truth.objects.is_some() && query.nearest.is_none() {
            let ids = query.objects.get_or_insert_default();
            let known: Vec<i64> = ids.clone();
            for id in [-7, 1 << 60] {
                ids.insert(random.below(ids.len() + 1), id);
            }
            check_without(&made, query, known);
        }
    }

    #[test]
    fn links_are_answered(recipe in any_recipe(StoreKind::is_linked), seed in any::<u64>()) {
        check_some(&recipe, seed);
    }
}

/// Nothing in an old store declares the number of channels of a link attribute without values near
/// the selected links.
#[test]
fn link_attributes_without_values_have_unknown_channels() {
    let made = make(&Recipe {
        seed: 5_361_853_626_081_567_481,
        kind: StoreKind::Skeleton,
        profile: RecipeProfile::V06,
        axes: 1,
        size: 52,
        double: true,
        shuffled: true,
        ..Recipe::default()
    });
    let sphere = Sphere::new(&[-0.2], 0.1).unwrap();
    let filter = Predicate::parse("link.flow[1] not in (3, 0)").unwrap();
    let query = Query::new().region(sphere).mode(Mode::Within);
    check(&made, &query.filter(filter));
}

/// A level whose fragments tile its chunks is read without the fragment rows; selected objects need
/// them.
#[test]
fn objects_of_tiled_links_are_found_by_their_fragments() {
    for seed in [2, 4, 6] {
        let kind = StoreKind::Triangles;
        let made = make(&Recipe {
            seed,
            kind,
            ..Recipe::default()
        });
        let ids = made.truth.objects.iter().flatten().map(|object| object.id);
        let query = Query::new()
            .objects(ids.collect::<Vec<i64>>())
            .columns(Selection::none())
            .owners(false);
        check(&made, &query);
    }
}

/// The predicate splits a path before the region is tested: a part may lie within a box that other
/// vertices of the path leave.
#[test]
fn parts_that_a_predicate_leaves_are_found_within_a_box() {
    let made = make(&Recipe {
        seed: 14_770_387_825_209_586_844,
        kind: StoreKind::Lines,
        profile: RecipeProfile::V080,
        size: 3,
        ..Recipe::default()
    });
    let bbox = Bbox::new(&[30.0, -0.149_723_962_182_179_1, 0.0], &[30.0, 2.0, 1.0]).unwrap();
    let filter = "not soma and (soma or rgb[0] < 185)";
    let mut query = Query::new()
        .region(bbox)
        .filter(Predicate::parse(filter).unwrap());
    query.mode = Mode::Within;
    query.predicate_mode = Mode::Clip;
    query.clip = Clip::Drop;
    check(&made, &query);
}

/// Guards against vacuous tests: random queries must often select a proper subset of a store.
#[test]
fn random_queries_select_some_of_a_store() {
    let mut random = Random::new(1);
    for kind in StoreKind::ALL {
        let mut some = 0;
        for seed in 0..cases(20) {
            let made = make(&Recipe {
                seed,
                kind,
                ..Recipe::default()
            });
            for _ in 0..5 {
                let query = random_query(&made.truth, &mut random);
                let expected = expect::expect(&made.truth, &query);
                let rows = expected.rows.len();
                some += usize::from((1..made.truth.vertices.len()).contains(&rows));
            }
        }
        assert!(some > 30, "{some} of 100 queries on {kind:?}");
    }
}
