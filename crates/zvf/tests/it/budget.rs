//! Vertex budgets. The levels chosen are compared with a plain implementation of the rule, and the
//! vertices returned with the known content of the store.

mod additive;
mod costs;
mod options;
mod recorded;
mod rule;
mod single;
mod stale;

use core::ops::ControlFlow;

use proptest::prelude::*;
use zvf::{Dataset, Error};
use zvf_model::level::LevelId;
use zvf_query::{
    LevelChoice, NumericColumn, Query, QueryError, QueryResult, VertexBudget,
    geometry::{Bbox, Position},
    predicate::Predicate,
};
use zvf_testkit::sample::cases;
use zvf_testkit::stores::{
    ExpectedStore, Layers, Random, Recipe, RecipeProfile, StoreKind, layers,
};

use crate::{
    block_on,
    stores::{open, recipes},
};

const POINTS: [StoreKind; 3] = [
    StoreKind::Points,
    StoreKind::BinnedPoints,
    StoreKind::ObjectPoints,
];

fn any_layers(kinds: &'static [StoreKind]) -> impl Strategy<Value = (Recipe, u32, bool)> {
    let kind = proptest::sample::select(kinds);
    (recipes(RecipeProfile::V09), kind, 1_u32..4, any::<bool>()).prop_map(
        |(recipe, kind, levels, additive)| {
            let recipe = Recipe {
                kind,
                chunked: false,
                axes: recipe.axes.min(3),
                ..recipe
            };
            (recipe.possible(), levels, additive)
        },
    )
}

fn config(sample: u32) -> ProptestConfig {
    ProptestConfig::with_cases(cases(sample))
}

fn run(dataset: &Dataset, query: &Query) -> QueryResult {
    block_on(dataset.query(query)).unwrap_or_else(|error| panic!("{error:?}\n{query:?}"))
}

/// Returns rows as `f64`.
fn numbers(rows: &NumericColumn) -> Vec<Vec<f64>> {
    let view = rows.view().unwrap();
    let row = |row: usize| {
        let value = |column| match view.value(row, column) {
            Some(zvf_format::numeric::Value::Float(value)) => value,
            other => panic!("{other:?}"),
        };
        (0..rows.width).map(value).collect()
    };
    (0..rows.len()).map(row).collect()
}

/// Returns the vertices of chunks of a level, in stored order.
fn vertices<'t>(
    truth: &'t ExpectedStore,
    is_in: impl Fn(&[i64]) -> bool + 't,
    region: Option<&'t Bbox>,
) -> impl Iterator<Item = usize> + 't {
    let inside = move |at: &usize| {
        let vertex = &truth.vertices[*at];
        let point = zvf_query::geometry::Primitive::Point(&vertex.position);
        is_in(&vertex.chunk) && region.is_none_or(|region| region.contains(point))
    };
    (0..truth.vertices.len()).filter(inside)
}

/// Checks that each level contributes exactly the vertices in its chunks and the region, each once. The last
/// may be a sample: vertices at even distances.
fn check_rows(made: &Layers, result: &QueryResult, region: Option<&Bbox>) {
    let found = numbers(&result.positions);
    let mut rows = 0;
    for used in &result.levels {
        let truth = rule::level(made, used.level.number());
        let is_whole = used.chunks.is_empty();
        let is_in =
            |chunk: &[i64]| is_whole || used.chunks.iter().any(|(own, _)| own.coords() == chunk);
        let mut expected: Vec<usize> = vertices(truth, is_in, region).collect();
        let (kept, of) = (used.vertices, expected.len() as u64);
        if kept < of && result.levels.last() == Some(used) {
            let share = |rows: usize| rows as u64 * kept / of;
            let mut row = 0..;
            expected.retain(|_| row.next().is_some_and(|row| share(row + 1) > share(row)));
        }
        assert_eq!(kept, expected.len() as u64, "{:?}", result.levels);
        for vertex in expected {
            assert_eq!(found[rows], truth.vertices[vertex].position);
            check_attributes(truth, vertex, result, rows);
            rows += 1;
        }
    }
    assert_eq!(rows, found.len());
    let finest = result.levels.iter().map(|used| used.level).min();
    assert_eq!(Some(result.level), finest);
}

/// Checks attributes against the source. Coarse levels have no attributes.
fn check_attributes(truth: &ExpectedStore, vertex: usize, result: &QueryResult, row: usize) {
    for column in &result.vertex {
        let own = truth
            .vertex_attributes
            .iter()
            .find(|own| own.name == column.name);
        let missing = own.is_none_or(|own| own.missing[vertex]);
        assert_eq!(column.is_null(row), missing, "{} {row}", column.name);
        if let (Some(own), zvf_query::ColumnValues::Numeric(rows)) = (own, &column.values) {
            let size = rows.row_size();
            let found = &rows.bytes[row * size..(row + 1) * size];
            assert!(missing || own.row(vertex) == found, "{} {row}", column.name);
        }
    }
    if let Some(ids) = &result.object_ids {
        let number = truth.vertices[vertex].object;
        let own = number.map_or(zvf::Owner::None, zvf::Owner::from_number);
        assert_eq!(ids.get(row), Some(own));
    }
}

/// Checks that counting, batches and a limit agree with the whole result.
fn check_ways(dataset: &Dataset, query: &Query, result: &QueryResult) {
    let counts = block_on(dataset.count(query)).unwrap();
    assert_eq!(counts.vertices, result.positions.len() as u64);
    assert_eq!(counts.levels, result.levels);
    assert_eq!(counts.notes, result.notes);
    let (mut rows, mut first_rows) = (Vec::new(), Vec::new());
    let outcome = block_on(dataset.batches(query, |batch| {
        first_rows.push((batch.first_row, rows.len() as u64));
        rows.extend(numbers(&batch.positions));
        ControlFlow::Continue(())
    }));
    assert_eq!(outcome.unwrap().levels, result.levels);
    assert_eq!(rows, numbers(&result.positions));
    assert!(first_rows.iter().all(|(said, found)| said == found));
    let some = result.positions.len() / 2;
    let few = run(dataset, &query.clone().limit(some as u64));
    assert_eq!(numbers(&few.positions), rows[..some]);
    let mut objects = result.objects.clone();
    objects.sort_unstable();
    objects.dedup();
    assert_eq!(objects.len(), result.objects.len());
}

fn total(made: &Layers, number: u32, additive: bool) -> u64 {
    let levels = rule::drawn_with(made, number, additive);
    let sizes = levels
        .iter()
        .map(|n| rule::level(made, *n).vertices.len() as u64);
    sizes.sum()
}

/// Returns a budget equal to, just below or between the sizes of levels.
fn budget(made: &Layers, additive: bool, random: &mut Random) -> u64 {
    let top = u32::try_from(made.coarse.len()).unwrap();
    let of = |level| total(made, level, additive);
    let level = u32::try_from(random.below(made.coarse.len() + 1)).unwrap();
    match random.below(4) {
        0 => of(level),
        1 => of(level).saturating_sub(1),
        _ => {
            let max = i64::try_from(of(0).max(of(top))).unwrap();
            random.between(0, max).unsigned_abs()
        }
    }
}

fn place(truth: &ExpectedStore, random: &mut Random) -> Option<Vec<f64>> {
    let vertex = truth.vertices.get(random.below(truth.vertices.len()))?;
    Some(vertex.position.clone())
}

fn check_whole(made: &Layers, additive: bool, seed: u64) {
    let mut random = Random::new(seed);
    let max = budget(made, additive, &mut random);
    let focus = place(&made.fine.truth, &mut random).filter(|_| random.chance(50));
    let mut budget = VertexBudget::new(max);
    if let Some(focus) = &focus {
        budget = budget.focus(Position::new(focus).unwrap());
    }
    let query = Query::new().level(budget);
    let dataset = block_on(open(&made.fine));
    let top = u32::try_from(made.coarse.len()).unwrap();
    let found = block_on(dataset.query(&query));
    if total(made, top, additive) > max {
        let Some(&QueryError::OverVertices {
            level,
            vertices,
            budget,
            ..
        }) = found.as_ref().err().and_then(Error::cause)
        else {
            panic!("{found:?}")
        };
        assert_eq!((level.number(), budget), (top, max));
        assert_eq!(vertices, total(made, top, additive));
        return;
    }
    let result = found.unwrap_or_else(|error| panic!("{error:?}"));
    assert!(result.positions.len() as u64 <= max);
    check_rows(made, &result, None);
    let mut used: rule::Drawn = result
        .levels
        .iter()
        .map(|used| {
            let chunks = used
                .chunks
                .iter()
                .map(|(chunk, count)| (chunk.coords().to_vec(), *count));
            (used.level.number(), chunks.collect())
        })
        .collect();
    // A level without vertices is named only if the result has no other level.
    used.retain(|(_, chunks)| !chunks.is_empty());
    let drawn = rule::drawn(made, additive, max, focus.as_deref());
    let counts = drawn.iter().flat_map(|(_, chunks)| chunks.values());
    let all = (0..=top).map(|level| total(made, level, additive));
    if counts.sum::<u64>() >= max - max / 5 || all.max() <= Some(max) {
        assert_eq!(used, drawn, "{max}");
    } else {
        // A budget of 100,000 returned 43,872 points, since a chunk was refined as a whole or not.
        assert!(
            is_filled(made, additive, &result, max),
            "{max}: {used:?}, {drawn:?}"
        );
    }
    let explained = block_on(dataset.explain(&query)).unwrap();
    assert!(explained.is_exact);
    assert_eq!(explained.levels, result.levels);
    check_ways(&dataset, &query, &result);
}

fn check_box(made: &Layers, additive: bool, seed: u64) {
    let mut random = Random::new(seed);
    let truth = &made.fine.truth;
    let (Some(a), Some(b)) = (place(truth, &mut random), place(truth, &mut random)) else {
        return;
    };
    let both = || a.iter().zip(&b);
    let lo: Vec<f64> = both().map(|(a, b)| a.min(*b)).collect();
    let hi: Vec<f64> = both().map(|(a, b)| a.max(*b)).collect();
    let region = Bbox::new(&lo, &hi).unwrap();
    let max = budget(made, additive, &mut random) / 2;
    let query = Query::new().level(VertexBudget::new(max)).region(region);
    let dataset = block_on(open(&made.fine));
    let top = u32::try_from(made.coarse.len()).unwrap();
    match block_on(dataset.query(&query)) {
        Err(error) if let Some(&QueryError::OverVertices { vertices, .. }) = error.cause() => {
            let levels = rule::drawn_with(made, top, additive);
            let inside = levels
                .iter()
                .map(|level| vertices_in(rule::level(made, *level), &region));
            assert_eq!(vertices, inside.sum::<u64>());
            assert!(vertices > max);
        }
        Err(error) => panic!("{error:?}"),
        Ok(result) => {
            assert!(result.positions.len() as u64 <= max, "{max}");
            check_rows(made, &result, Some(&region));
            check_ways(&dataset, &query, &result);
        }
    }
}

/// Returns whether a result has as many vertices as allowed, or all of the finest level that it could have.
fn is_filled(made: &Layers, additive: bool, result: &QueryResult, max: u64) -> bool {
    let found = result.positions.len() as u64;
    found == max || found == total(made, result.level.number(), additive)
}

fn vertices_in(truth: &ExpectedStore, region: &Bbox) -> u64 {
    vertices(truth, |_| true, Some(region)).count() as u64
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn the_finest_levels_within_the_budget_are_returned((recipe, levels, additive) in any_layers(&POINTS),
        seed in any::<u64>())
    {
        check_whole(&layers(&recipe, levels, additive), additive, seed);
    }

    #[test]
    fn boxes_stay_within_the_budget((recipe, levels, additive) in any_layers(&POINTS),
        seed in any::<u64>())
    {
        check_box(&layers(&recipe, levels, additive), additive, seed);
    }
}

/// Guards against a vacuous test: random budgets must often produce results of several levels.
#[test]
fn random_budgets_mix_levels() {
    let mut mixed = 0;
    for seed in 0..cases(30) {
        let recipe = Recipe {
            seed,
            size: 200,
            ..Recipe::default()
        };
        let made = layers(&recipe, 2, false);
        let max = u64::midpoint(total(&made, 1, false), total(&made, 2, false));
        let drawn = rule::drawn(&made, false, max, None);
        mixed += usize::from(drawn.len() > 1);
    }
    assert!(mixed > 15, "{mixed} of 30");
}

/// A level that fits as a whole gives the result of a query that names the level.
#[test]
fn a_level_within_the_budget_equals_a_query_by_level_number() {
    for seed in 0..cases(12) {
        let kind = POINTS[usize::try_from(seed % 3).unwrap()];
        let made = layers(
            &Recipe {
                seed,
                kind,
                ..Recipe::default()
            },
            2,
            false,
        );
        let dataset = block_on(open(&made.fine));
        for level in 0..3 {
            let max = total(&made, level, false);
            let mut result = run(&dataset, &Query::new().level(VertexBudget::new(max)));
            let number = result.level;
            assert!(number.number() <= level);
            assert_eq!(result.levels.len(), 1);
            result.levels.clear();
            let plain = Query::new().level(LevelChoice::Number(number));
            assert_eq!(result, run(&dataset, &plain));
        }
        let all = run(&dataset, &Query::new().level(VertexBudget::new(u64::MAX)));
        assert_eq!(all.level.number(), 0);
    }
}

/// A selection that fits was refused, because all vertices of the coarsest level were counted.
#[test]
fn a_budget_holds_what_a_predicate_leaves() {
    let recipe = Recipe {
        kind: StoreKind::Points,
        ..Recipe::default()
    };
    let made = layers(&recipe, 1, false);
    let dataset = block_on(open(&made.fine));
    let query = |text: &str, max: u64| {
        let filter = Predicate::parse(text).unwrap();
        Query::new().filter(filter).level(VertexBudget::new(max))
    };
    assert_eq!(run(&dataset, &query("false", 0)).positions.len(), 0);
    let coarsest = rule::level(&made, 1).vertices.iter();
    let last = coarsest
        .map(|vertex| vertex.position[0])
        .fold(f64::NEG_INFINITY, f64::max);
    let text = format!("x >= {last:?}");
    let filter = Predicate::parse(&text).unwrap();
    let level = LevelChoice::Number(LevelId::new(1));
    let plain = run(&dataset, &Query::new().filter(filter).level(level));
    let left = plain.positions.len() as u64;
    assert!(0 < left && left < total(&made, 1, false), "{left}");
    let found = run(&dataset, &query(&text, left));
    assert_eq!(found.positions, plain.positions);
    let error = block_on(dataset.query(&query(&text, left - 1))).unwrap_err();
    let Some(&QueryError::OverVertices { vertices, .. }) = error.cause() else {
        panic!("{error:?}")
    };
    assert_eq!(vertices, left);
}
