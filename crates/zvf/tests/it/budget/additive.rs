//! Additive levels: each point is stored on exactly one level.

use std::collections::BTreeSet;

use zvf::Query;
use zvf_catalog::Selection;
use zvf_model::level::LevelId;
use zvf_query::{LevelChoice, QueryError, Shape, VertexBudget, geometry::Position};
use zvf_testkit::stores::{Layers, Recipe, StoreKind, layers};

use super::{numbers, rule, run};
use crate::{block_on, stores::open};

fn made(seed: u64, kind: StoreKind) -> Layers {
    let recipe = Recipe {
        seed,
        kind,
        ..Recipe::default()
    };
    layers(&recipe, 3, true)
}

fn number(level: u32) -> LevelChoice {
    LevelChoice::Number(LevelId::new(level))
}

/// A query of a level also returns all coarser levels, coarsest first; level 0 alone holds
/// everything.
#[test]
fn an_additive_level_includes_all_coarser_levels() {
    for (seed, kind) in (0..9).zip(super::POINTS.into_iter().cycle()) {
        let made = made(seed, kind);
        let dataset = block_on(open(&made.fine));
        for level in 0..4 {
            let result = run(&dataset, &Query::new().level(number(level)));
            let drawn = rule::drawn_with(&made, level, true);
            let all: Vec<&Vec<f64>> = drawn
                .iter()
                .flat_map(|n| &rule::level(&made, *n).vertices)
                .map(|vertex| &vertex.position)
                .collect();
            assert!(numbers(&result.positions).iter().eq(all), "{level}");
            assert_eq!(result.level, LevelId::new(level));
            let levels: Vec<u32> = result
                .levels
                .iter()
                .map(|used| used.level.number())
                .collect();
            let expected = if drawn.len() > 1 { drawn } else { Vec::new() };
            assert_eq!(levels, expected);
            super::check_ways(&dataset, &Query::new().level(number(level)), &result);
        }
        // All other levels together hold the content of level 0.
        let whole = run(&dataset, &Query::new().level(number(1)))
            .positions
            .len();
        assert_eq!(whole, made.fine.truth.vertices.len());
    }
}

/// An object on several levels is reported once, with the requested groups.
#[test]
fn objects_on_several_levels_are_reported_once() {
    let made = made(13, StoreKind::ObjectPoints);
    let dataset = block_on(open(&made.fine));
    let objects = made.fine.truth.objects.as_ref().unwrap();
    let ids: Vec<i64> = objects.iter().map(|object| object.id).take(3).collect();
    let query = Query::new().level(number(1)).objects(ids.clone());
    let result = run(&dataset, &query);
    assert!(result.levels.len() == 3 && result.levels.iter().all(|used| used.vertices > 0));
    let named: BTreeSet<i64> = result.objects.iter().copied().collect();
    assert_eq!(named.len(), result.objects.len());
    let level_0 = run(&dataset, &Query::new().objects(ids));
    assert_eq!(result.positions.len(), level_0.positions.len());
    assert_eq!(named, level_0.objects.into_iter().collect());
}

#[test]
fn queries_that_need_a_single_level_are_rejected() {
    let made = made(2, StoreKind::Points);
    let dataset = block_on(open(&made.fine));
    let place = Position::new(&[0.0; 3]).unwrap();
    let level = || Query::new().level(number(1));
    let budget = || Query::new().level(VertexBudget::new(1 << 20));
    let queries = [
        level().nearest(place, 2),
        level().drill(-1),
        budget().nearest(place, 2),
        budget().drill(1),
        budget().chunks([]),
    ];
    for query in queries {
        let found = block_on(dataset.query(&query));
        let refused = matches!(&found, Err(error) if matches!(error.cause(), Some(QueryError::Unsupported(_))));
        assert!(refused, "{query:?}: {found:?}");
    }
    let focus = Position::new(&[0.0; 2]).unwrap();
    let found = block_on(dataset.query(&Query::new().level(VertexBudget::new(9).focus(focus))));
    assert!(matches!(&found, Err(error) if matches!(error.cause(), Some(QueryError::Axes { .. }))));
}

/// Declared vertex counts are summed over all levels drawn together.
#[test]
fn declared_vertices_are_summed_over_additive_levels() {
    let made = made(6, StoreKind::Points);
    let dataset = block_on(open(&made.fine));
    for level in 1..4 {
        let drawn = rule::drawn_with(&made, level, true);
        let sizes = drawn.iter().map(|n| rule::level(&made, *n).vertices.len());
        let max = sizes.sum::<usize>() as u64;
        let query = Query::new().level(LevelChoice::Vertices(max));
        let counts = block_on(dataset.count(&query)).unwrap();
        assert!(counts.vertices <= max);
        let finest = (0..4).find(|n| super::total(&made, *n, true) <= max);
        assert_eq!(counts.level.number(), finest.unwrap());
    }
}

/// The additive flag applies to points only; paths are read from one level.
#[test]
fn the_additive_flag_does_not_apply_to_paths() {
    let made = made(3, StoreKind::ObjectPoints);
    let dataset = block_on(open(&made.fine));
    let query = Query::new().level(number(1)).shape(Shape::Paths);
    let result = run(&dataset, &query.columns(Selection::none()));
    let own = rule::level(&made, 1).vertices.len();
    assert_eq!(result.positions.len(), own);
    assert_eq!(result.levels, []);
}
