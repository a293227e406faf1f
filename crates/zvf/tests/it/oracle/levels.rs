//! Stores of two levels: level choice, and cross-level links.

use std::collections::BTreeSet;

use proptest::prelude::*;
use zvf_catalog::Selection;
use zvf_model::level::LevelId;
use zvf_query::{Clip, LevelChoice, Query, QueryResult};
use zvf_testkit::stores::{
    ExpectedStore, Pyramid, PyramidLinks, Random, Recipe, RecipeProfile, StoreKind, pyramid,
};

use super::{
    block_on,
    columns::{Verdict, ensure},
    compare::Comparison,
    config,
    expect::{self, Expected, ExpectedRow},
    open, pieces,
    random_query::random_query,
};
use crate::stores::recipes;

fn any_pyramid() -> impl Strategy<Value = (Recipe, PyramidLinks)> {
    let profile = proptest::sample::select(vec![
        RecipeProfile::V09,
        RecipeProfile::V10,
        RecipeProfile::V080,
    ]);
    let links = proptest::sample::select(vec![PyramidLinks::Implicit, PyramidLinks::Explicit]);
    (profile.prop_flat_map(recipes), links)
}

/// Returns a query on level 0 or 1 that reports which vertices of the store it selects.
fn random_query_of_level(truth: &ExpectedStore, level: u32, random: &mut Random) -> Query {
    let mut query = random_query(truth, random);
    query.level = LevelChoice::Number(LevelId::new(level));
    query.columns = Selection::All;
    query.clip = Clip::Drop;
    // A vertex of several objects is reported with the object by which it was requested.
    if level == 1 && !truth.recipe.kind.is_paths() {
        query.objects = None;
        query.groups = None;
    }
    query
}

fn result(made: &Pyramid, query: &Query) -> Option<QueryResult> {
    block_on(super::result(&made.fine, query))
}

fn panic_at(made: &Pyramid, query: &Query, verdict: Verdict) {
    if let Err(fault) = verdict {
        panic!("{fault}\n{query:?}\n{:?}", made.fine.truth.recipe);
    }
}

/// Returns the vertices of a level as points, the form of drill results.
fn as_points(truth: &ExpectedStore) -> ExpectedStore {
    let mut truth = truth.clone();
    truth.recipe.kind = StoreKind::ObjectPoints;
    truth.link_attributes.clear();
    truth
}

/// Returns these vertices as an expected result, by chunk and row.
fn vertices(truth: &ExpectedStore, at: &BTreeSet<usize>, limit: Option<u64>) -> Expected {
    let mut at: Vec<usize> = at.iter().copied().collect();
    at.sort_by_key(|at| (&truth.vertices[*at].chunk, truth.vertices[*at].row));
    at.truncate(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()));
    let owners: BTreeSet<i64> = at
        .iter()
        .filter_map(|at| truth.vertices[*at].object)
        .filter(|id| *id != zvf::Owner::SEVERAL)
        .collect();
    Expected {
        rows: at.into_iter().map(ExpectedRow::Vertex).collect(),
        objects: owners.into_iter().collect(),
        ..Expected::default()
    }
}

fn check_drill(made: &Pyramid, up: bool, seed: u64) {
    let (from, to) = if up {
        (&made.fine.truth, &made.coarse)
    } else {
        (&made.coarse, &made.fine.truth)
    };
    let mut random = Random::new(seed);
    let mut query = random_query_of_level(from, u32::from(!up), &mut random);
    // The reported owner of a shared vertex does not matter here.
    query.owners = true;
    let limit = query.limit.take();
    let start: BTreeSet<usize> = expect::expect(from, &query)
        .rows
        .iter()
        .map(|expected_row| match expected_row {
            ExpectedRow::Vertex(vertex) => *vertex,
            ExpectedRow::Between { .. } => panic!("{query:?}"),
        })
        .collect();
    let pairs = made
        .parents
        .iter()
        .enumerate()
        .filter_map(|(child, parent)| Some((child, (*parent)?)));
    let reached: BTreeSet<usize> = pairs
        .filter_map(|(child, parent)| {
            if up {
                start.contains(&child).then_some(parent)
            } else {
                start.contains(&parent).then_some(child)
            }
        })
        .collect();
    let mut query = query.drill(if up { 1 } else { -1 });
    // New vertices on the border are linked to nothing.
    if seed.is_multiple_of(2) {
        query.clip = Clip::Split;
    }
    query.limit = limit;
    let Some(result) = result(made, &query) else {
        return;
    };
    let mut to = as_points(to);
    to.groups.clone_from(&from.groups);
    let expected = vertices(&to, &reached, limit);
    // Conditions of the query apply to the level where it starts, not to the target level.
    let mut plain = Query::new();
    plain.groups.clone_from(&query.groups);
    let comparison = Comparison {
        truth: &to,
        query: &plain,
        result: &result,
    };
    panic_at(made, &query, comparison.with(&expected));
}

/// Checks a result of level 1, including counts and batches.
fn check_coarse(made: &Pyramid, query: &Query) {
    let Some(result) = result(made, query) else {
        return;
    };
    let expected = expect::expect(&made.coarse, query);
    let comparison = Comparison {
        truth: &made.coarse,
        query,
        result: &result,
    };
    let verdict = comparison.with(&expected).and_then(|()| {
        block_on(async {
            let dataset = open(&made.fine).await;
            let counts = dataset.count(query).await;
            pieces::counts(
                &result,
                &counts.map_err(|error| format!("counting: {error:?}"))?,
            )?;
            let explained = dataset.explain(query).await;
            explained.map_err(|error| format!("explaining: {error:?}"))?;
            let budget = 4096 << (made.fine.truth.recipe.seed % 3);
            pieces::batches(&made.fine, query, &result, budget).await
        })
    });
    panic_at(made, query, verdict);
}

/// Returns the level that `count` chooses.
fn counted(made: &Pyramid, choice: LevelChoice) -> Result<u32, String> {
    let query = Query::new().level(choice);
    let counts = block_on(async { open(&made.fine).await.count(&query).await })
        .map_err(|error| format!("{error:?}"))?;
    let (fine, coarse) = (&made.fine.truth.vertices, &made.coarse.vertices);
    let level = u32::from(counts.level == LevelId::new(1));
    // Vertices of paths are counted once per path.
    if !made.fine.truth.recipe.kind.is_paths() {
        let expected = [fine.len(), coarse.len()][level as usize];
        if counts.vertices != expected as u64 {
            return Err(format!("{counts:?}, expected {expected}"));
        }
    }
    Ok(level)
}

fn check_choice(made: &Pyramid) -> Verdict {
    let found = |choice| counted(made, choice);
    ensure!(
        found(LevelChoice::Scale(0.5)).is_err(),
        "no level is that fine"
    );
    for (max, level) in [(1.0, 0), (made.factor - 0.1, 0), (made.factor, 1), (9.0, 1)] {
        let found = found(LevelChoice::Scale(max))?;
        ensure!(found == level, "level {found} up to {max} times");
    }
    let (fine, coarse) = (&made.fine.truth.vertices, &made.coarse.vertices);
    for max in [0, coarse.len(), fine.len().saturating_sub(1), fine.len()] {
        let found = found(LevelChoice::Vertices(max as u64))?;
        let level = u32::from(max < fine.len());
        ensure!(found == level, "level {found} for {max} vertices");
    }
    ensure!(
        found(LevelChoice::Number(LevelId::new(2))).is_err(),
        "level 2 is there"
    );
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn coarse_levels_are_answered((recipe, links) in any_pyramid(), seed in any::<u64>()) {
        let made = pyramid(&recipe, links);
        let mut random = Random::new(seed);
        for _ in 0..2 {
            let query = random_query_of_level(&made.coarse, 1, &mut random);
            check_coarse(&made, &query);
        }
    }

    /// Each path has its own copy of shared vertices, also when clipped.
    #[test]
    fn paths_that_share_vertices_are_answered((recipe, links) in any_pyramid(),
        seed in any::<u64>())
    {
        let kind = if seed % 4 == 0 { StoreKind::Lines } else { StoreKind::Polylines };
        let made = pyramid(&Recipe { kind, ..recipe }.possible(), links);
        let mut random = Random::new(seed);
        for _ in 0..2 {
            let mut query = random_query(&made.coarse, &mut random);
            query.level = LevelChoice::Number(LevelId::new(1));
            check_coarse(&made, &query);
        }
    }

    #[test]
    fn coarser_vertices_are_reached((recipe, links) in any_pyramid(), seed in any::<u64>()) {
        check_drill(&pyramid(&recipe, links), true, seed);
    }

    #[test]
    fn finer_vertices_are_reached((recipe, links) in any_pyramid(), seed in any::<u64>()) {
        check_drill(&pyramid(&recipe, links), false, seed);
    }

    #[test]
    fn levels_are_chosen((recipe, links) in any_pyramid()) {
        let made = pyramid(&recipe, links);
        panic_at(&made, &Query::new(), check_choice(&made));
    }
}

#[test]
fn a_limit_applies_to_the_target_level_of_a_drill() {
    let made = pyramid(&Recipe::default(), PyramidLinks::Implicit);
    let coarse = made.coarse.vertices.len() as u64;
    assert!(coarse < made.fine.truth.vertices.len() as u64);
    let query = Query::new().limit(coarse).drill(1);
    let result = result(&made, &query).unwrap();
    assert_eq!(result.positions.len() as u64, coarse);
}

#[test]
fn a_drill_beyond_level_0_says_so() {
    let made = pyramid(&Recipe::default(), PyramidLinks::Implicit);
    for levels in [-1, i32::MIN] {
        let query = Query::new().drill(levels);
        let error = block_on(async { open(&made.fine).await.query(&query).await }).unwrap_err();
        assert_eq!(error.kind(), zvf::ErrorKind::NotFound);
        let text = error.to_string();
        assert!(text.ends_with("level 0 is the finest"), "{text}");
    }
}

/// The coarser level has no objects.
#[test]
fn a_link_family_without_arrays_links_nothing() {
    let mut seeds = 0_u64..;
    let made = seeds.find_map(|seed| {
        let recipe = Recipe {
            seed,
            kind: StoreKind::Graph,
            size: 1,
            ..Recipe::default()
        };
        let made = pyramid(&recipe, PyramidLinks::Explicit);
        made.coarse.vertices.is_empty().then_some(made)
    });
    let result = result(&made.unwrap(), &Query::new().drill(1)).unwrap();
    assert_eq!(result.positions.len(), 0);
}
