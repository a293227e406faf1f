//! Paths and linked vertices, which come from a single level.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zvf::{Dataset, Query};
use zvf_model::level::LevelId;
use zvf_query::{
    Clip, LevelChoice, QueryError, QueryResult, VertexBudget,
    geometry::{Bbox, Mode},
};
use zvf_testkit::stores::{Layers, Random, StoreKind, layers};

use super::{any_layers, check_ways, config, numbers, place, rule, run};
use crate::{block_on, stores::open};

const KINDS: [StoreKind; 5] = [
    StoreKind::Lines,
    StoreKind::Polylines,
    StoreKind::Graph,
    StoreKind::Skeleton,
    StoreKind::Triangles,
];

/// Counts the vertices of a level in query results: a vertex of several paths counts once per path.
fn size(made: &Layers, number: u32) -> u64 {
    let truth = rule::level(made, number);
    let Some(objects) = truth
        .objects
        .as_ref()
        .filter(|_| truth.recipe.kind.is_paths())
    else {
        return truth.vertices.len() as u64;
    };
    let sizes = objects
        .iter()
        .map(|object| truth.vertices_of(object).count() as u64);
    sizes.sum()
}

fn check(made: &Layers, seed: u64) {
    let mut random = Random::new(seed);
    let top = u32::try_from(made.coarse.len()).unwrap();
    let sizes: Vec<u64> = (0..=top).map(|level| size(made, level)).collect();
    let max = i64::try_from(*sizes.iter().max().unwrap()).unwrap();
    let max = if random.chance(50) {
        sizes[random.below(sizes.len())]
    } else {
        random.between(0, max).unsigned_abs()
    };
    let dataset = block_on(open(&made.fine));
    let query = Query::new().level(VertexBudget::new(max));
    let fits = (0..=top)
        .rev()
        .take_while(|level| sizes[*level as usize] <= max);
    let found = block_on(dataset.query(&query));
    let Some(level) = fits.last() else {
        let over = matches!(&found, Err(error) if matches!(error.cause(), Some(QueryError::OverVertices { .. })));
        assert!(over, "{found:?}");
        return;
    };
    let mut result = found.unwrap_or_else(|error| panic!("{error:?}"));
    check_ways_of(&dataset, &query, &result);
    if result.level.number() < level {
        assert!(sizes[level as usize] < max - max / 5);
        check_sample(made, &dataset, &result, (level, max));
        return;
    }
    assert_eq!(result.levels.len(), 1);
    assert_eq!(result.level.number(), level);
    assert_eq!(result.levels[0].vertices, sizes[level as usize]);
    result.levels.clear();
    let plain = Query::new().level(LevelChoice::Number(LevelId::new(level)));
    assert_eq!(result, run(&dataset, &plain));
}

/// Checks that each object comes from one of two levels, and that no other fits the budget on the finer one.
fn check_sample(made: &Layers, dataset: &Dataset, result: &QueryResult, (level, max): (u32, u64)) {
    let sizes = |number: u32| -> BTreeMap<i64, u64> {
        let truth = rule::level(made, number);
        assert!(truth.recipe.kind.is_paths());
        let objects = truth.objects.iter().flatten();
        let sizes = objects.map(|object| (object.id, truth.vertices_of(object).count() as u64));
        sizes.filter(|(_, size)| *size > 0).collect()
    };
    let (mut coarse, fine) = (sizes(level), sizes(level - 1));
    let left = max - result.positions.len() as u64;
    let found = numbers(&result.positions);
    let (mut row, mut part) = (0, 0);
    let parts = result.parts.as_ref().unwrap();
    for used in &result.levels {
        let end = row + used.vertices;
        let first = part;
        while parts.offsets.get(part + 1).is_some_and(|next| *next <= end) {
            part += 1;
        }
        let mut ids = parts.objects[first..part].to_vec();
        ids.dedup();
        let query = Query::new().level(LevelChoice::Number(used.level));
        let plain = run(dataset, &query.objects(ids.clone()));
        let rows = usize::try_from(row).unwrap()..usize::try_from(end).unwrap();
        assert_eq!(found[rows], numbers(&plain.positions));
        let own = if used.level.number() == level {
            &mut coarse
        } else {
            &mut fine.clone()
        };
        for id in &ids {
            assert!(own.remove(id).is_some(), "{id} twice, or without vertices");
        }
        if used.level.number() < level {
            coarse.retain(|id, _| !ids.contains(id));
            let before = |id: &i64| sizes(level).get(id).copied().unwrap_or(0);
            let others = fine.iter().filter(|(id, _)| !ids.contains(id));
            for (id, size) in others {
                assert!(
                    size.saturating_sub(before(id)) > left,
                    "{id} fits in {left}"
                );
            }
        }
        row = end;
    }
    assert!(coarse.is_empty(), "missing: {coarse:?}");
}

/// Checks limits, which count paths and links here.
fn check_ways_of(dataset: &Dataset, query: &Query, result: &QueryResult) {
    if result.positions.is_empty() {
        check_ways(dataset, query, result);
    }
    let counts = block_on(dataset.count(query)).unwrap();
    assert_eq!(counts.vertices, result.positions.len() as u64);
    assert_eq!(counts.levels, result.levels);
}

/// Vertices outside the chunks of a box count as well if a path or link includes them.
fn check_box(made: &Layers, seed: u64) {
    let mut random = Random::new(seed);
    let truth = &made.fine.truth;
    let (Some(a), Some(b)) = (place(truth, &mut random), place(truth, &mut random)) else {
        return;
    };
    let both = || a.iter().zip(&b);
    let lo: Vec<f64> = both().map(|(a, b)| a.min(*b)).collect();
    let hi: Vec<f64> = both().map(|(a, b)| a.max(*b)).collect();
    let mode = *random.pick(&[Mode::Touch, Mode::Within, Mode::Clip]);
    let mut plain = Query::new().region(Bbox::new(&lo, &hi).unwrap()).mode(mode);
    if random.chance(50) {
        plain = plain.clip(Clip::Drop);
    }
    let max = random.below(truth.vertices.len() + 1) as u64;
    let dataset = block_on(open(&made.fine));
    let query = plain.clone().level(VertexBudget::new(max));
    let top = u32::try_from(made.coarse.len()).unwrap();
    match block_on(dataset.query(&query)) {
        Err(error)
            if let Some(&QueryError::OverVertices {
                vertices, level, ..
            }) = error.cause() =>
        {
            assert_eq!(level.number(), top);
            let coarsest = plain.level(LevelChoice::Number(level));
            let counts = block_on(dataset.count(&coarsest)).unwrap();
            assert_eq!(counts.vertices, vertices);
            assert!(vertices > max);
        }
        Err(error) => panic!("{error:?}\n{query:?}"),
        Ok(mut result) => {
            assert!(result.positions.len() as u64 <= max);
            check_ways_of(&dataset, &query, &result);
            let used = core::mem::take(&mut result.levels);
            let plain = plain.level(LevelChoice::Number(result.level));
            let all = run(&dataset, &plain);
            // The objects of a sample are returned whole.
            let plain = if result == all {
                plain
            } else {
                plain.objects(result.objects.clone())
            };
            // A result of two levels has objects of each.
            if used.len() == 1 {
                assert_eq!(result, run(&dataset, &plain), "{query:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn the_finest_level_that_fits_is_returned((recipe, levels, _) in any_layers(&KINDS),
        seed in any::<u64>())
    {
        check(&layers(&recipe, levels, false), seed);
    }

    #[test]
    fn vertices_outside_the_box_of_a_path_are_counted((recipe, levels, _) in any_layers(&KINDS),
        seed in any::<u64>())
    {
        check_box(&layers(&recipe, levels, false), seed);
    }
}
