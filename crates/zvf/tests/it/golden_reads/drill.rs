//! Queries from level to level, along the recorded cross-level links.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf::{Dataset, Query};
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_query::{LevelChoice, QueryError, Shape};
use zvf_testkit::golden::Golden;

use super::{
    columns,
    recorded::{self, Coord, Level},
    tally::Tally,
};
use crate::{
    block_on,
    golden::{open, stores},
};

type Rows = BTreeSet<(Coord, u64)>;

/// Follows the links between two levels, whichever of the two stores them.
fn hop(expected: &Json, from: i32, to: i32, rows: &Rows) -> Option<Rows> {
    let stored = |level: i32, delta| recorded::links(expected, level.try_into().unwrap(), delta);
    let (links, first) = match stored(from, to - from) {
        Some(links) => (links, 0),
        None => (stored(to, from - to)?, 1),
    };
    let linked = links
        .records
        .iter()
        .filter(|ends| rows.contains(&ends[first]));
    Some(linked.map(|ends| ends[1 - first].clone()).collect())
}

/// Follows the links between two levels, or level by level where none connect the two directly.
fn reached(expected: &Json, from: i32, to: i32, rows: &Rows) -> Option<Rows> {
    let step = (to - from).signum();
    hop(expected, from, to, rows).or_else(|| {
        let mut rows = rows.clone();
        let mut level = from;
        while level != to {
            rows = hop(expected, level, level + step, &rows)?;
            level += step;
        }
        Some(rows)
    })
}

fn positions(level: &Level) -> BTreeMap<(Coord, u64), Vec<Json>> {
    let mut positions = BTreeMap::new();
    for chunk in &level.chunks {
        for fragment in &chunk.fragments {
            let rows = fragment.rows.iter().zip(&fragment.positions);
            let keyed = rows.map(|(row, position)| ((chunk.coord.clone(), *row), position.clone()));
            positions.extend(keyed);
        }
    }
    positions
}

fn check(dataset: &Dataset, expected: &Json, levels: &[i32], tally: &mut Tally, store: &str) {
    let number = |level: i32| u32::try_from(level).unwrap();
    for (from, to) in levels
        .iter()
        .flat_map(|from| levels.iter().map(move |to| (*from, *to)))
    {
        if from == to {
            continue;
        }
        let level = positions(&recorded::level(expected, number(from), dataset));
        let target = positions(&recorded::level(expected, number(to), dataset));
        let chunks: BTreeSet<_> = level.keys().map(|(chunk, _)| chunk.clone()).collect();
        let parts = chunks.into_iter().map(Some).chain([None]);
        tally.reads += 1;
        for chunk in parts {
            let at = format!("{store} {from} to {to}, chunk {chunk:?}");
            let rows: Rows = level
                .keys()
                .filter(|(of, _)| chunk.as_ref().is_none_or(|chunk| chunk == of))
                .cloned()
                .collect();
            let mut query = Query::new()
                .level(LevelChoice::Number(LevelId::new(number(from))))
                .shape(Shape::Points)
                .drill(to - from);
            if let Some(chunk) = chunk {
                query = query.chunks([ChunkCoord::new(chunk)]);
            }
            let found = block_on(dataset.query(&query));
            match (found, reached(expected, from, to, &rows)) {
                (Ok(result), Some(reached)) => {
                    let reached: Vec<_> = reached.iter().map(|row| target[row].clone()).collect();
                    tally.equal(columns::rows(&result.positions), reached, &at);
                    tally.equal(result.level, LevelId::new(number(to)), &at);
                }
                (Err(ref error), None)
                    if let Some(QueryError::Unsupported(why)) = error.cause() =>
                {
                    tally.equal(*why, "the store has no links between these levels", &at);
                }
                other => tally.differs(format!("{at}: {other:?}")),
            }
        }
    }
}

fn drills(archive: &str) -> Tally {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let Some(levels) = expected["levels"].as_object() else {
            continue;
        };
        let levels: Vec<i32> = levels.keys().map(|name| name.parse().unwrap()).collect();
        if levels.len() > 1 {
            let dataset = open(&golden, &store);
            check(&dataset, &expected, &levels, &mut tally, &store);
        }
    }
    tally
}

#[test]
fn golden_drills_06() {
    drills("zvf-06").report("zvf-06", "pairs of levels", 74, &[]);
}

#[test]
fn golden_drills_07() {
    drills("zvf-07").report("zvf-07", "pairs of levels", 74, &[]);
}

#[test]
fn golden_drills_08() {
    drills("zvf-08").report("zvf-08", "pairs of levels", 104, &[]);
}

#[test]
fn golden_drills_09() {
    drills("zvf-09").report("zvf-09", "pairs of levels", 134, &[]);
}
