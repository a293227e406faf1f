//! Every level whole, against what is recorded of it.

use serde_json::Value as Json;
use zvf::{Dataset, Query};
use zvf_model::level::LevelId;
use zvf_query::{LevelChoice, NO_OBJECT, SEVERAL_OBJECTS, Shape};
use zvf_testkit::golden::{Golden, unhex};

use super::{
    columns::{self, flat},
    links, paths,
    recorded::{self, Fragment, Level},
    tally::Tally,
};
use crate::{
    block_on,
    golden::{open, stores},
};

/// Fragments with their chunk's number and their own, in order.
fn fragments(level: &Level) -> impl Iterator<Item = (usize, usize, &Fragment)> {
    let chunks = level.chunks.iter().enumerate();
    chunks.flat_map(|(chunk, of_chunk)| {
        let fragments = of_chunk.fragments.iter().enumerate();
        fragments.map(move |(at, fragment)| (chunk, at, fragment))
    })
}

/// The object of a fragment.
fn owner(level: &Level, chunk: usize, fragment: usize) -> i64 {
    let piece = (level.chunks[chunk].coord.clone(), fragment);
    let objects = level.objects.iter().flatten();
    let mut owners = objects.filter(|(_, pieces)| pieces.contains(&piece));
    match (owners.next(), owners.next()) {
        (None, _) => NO_OBJECT,
        (Some((id, _)), None) => *id,
        _ => SEVERAL_OBJECTS,
    }
}

fn check(dataset: &Dataset, number: u32, level: &Level, tally: &mut Tally, at: &str) {
    let query = Query::new().level(LevelChoice::Number(LevelId::new(number)));
    let answer = block_on(dataset.query(&query.clone().shape(Shape::Points)));
    let answer = answer.unwrap_or_else(|error| panic!("{at}: {error:?}"));
    let positions = fragments(level).flat_map(|(_, _, fragment)| fragment.positions.clone());
    tally.equal(columns::rows(&answer.positions), positions.collect(), at);
    let owners = level.objects.is_some().then(|| {
        let owners = fragments(level).flat_map(|(chunk, fragment, rows)| {
            let owner = owner(level, chunk, fragment);
            rows.rows.iter().map(move |_| owner)
        });
        owners.collect()
    });
    tally.equal(&answer.object_ids, &owners, at);
    for column in &answer.vertex {
        let at = format!("{at}, vertex {}", column.name);
        let mut expected = Vec::new();
        for (_, _, fragment) in fragments(level) {
            match fragment.attributes.get(&column.name) {
                Some(values) => expected.extend(flat(values)),
                None => expected.extend(fragment.rows.iter().map(|_| Json::Null)),
            }
        }
        tally.equal(columns::column(column).concat(), expected, &at);
    }
    for column in &answer.fragment {
        let at = format!("{at}, fragment {}", column.name);
        let mut expected = Vec::new();
        for (chunk, place, fragment) in fragments(level) {
            let values = level.chunks[chunk].attributes.get(&column.name);
            let value = values.map_or_else(|| vec![Json::Null], |(_, rows)| flat(&rows[place]));
            expected.extend(fragment.rows.iter().map(|_| value.clone()));
        }
        tally.equal(columns::column(column), expected, &at);
    }
    let counts = block_on(dataset.count(&query.clone().shape(Shape::Points))).unwrap();
    tally.equal(
        counts.vertices,
        u64::try_from(answer.positions.len()).unwrap(),
        at,
    );
    if level.objects.is_some() {
        let answer = block_on(dataset.query(&query.clone().shape(Shape::Paths))).unwrap();
        let expected = paths::of_level(level, None, |_| true);
        tally.equal(paths::of_answer(&answer), expected, at);
    }
    let is_skeleton = links::is_skeleton(dataset);
    if is_skeleton || !level.links.records.is_empty() {
        let answer = block_on(dataset.query(&query.shape(Shape::Links)));
        let answer = answer.unwrap_or_else(|error| panic!("{at}: {error:?}"));
        let graph = links::of_level(level, is_skeleton, |_, _| true);
        links::compare(&answer, &graph, level, tally, at);
    }
}

fn levels(archive: &str) -> Tally {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let dataset = open(&golden, &store);
        let Some(levels) = expected["levels"].as_object() else {
            // The reference of that time could not read its own shards: cells are recorded.
            tally.reads += 1;
            let answer = block_on(dataset.query(&Query::new().shape(Shape::Points))).unwrap();
            let cells = expected["vlen"]["0/vertices"].as_array().unwrap().iter();
            let bytes: Vec<u8> = cells.flat_map(|hex| unhex(hex.as_str().unwrap())).collect();
            tally.equal(answer.positions.bytes, bytes, &store);
            continue;
        };
        for name in levels.keys() {
            tally.reads += 1;
            let number = name.parse().unwrap();
            let level = recorded::level(&expected, number);
            check(
                &dataset,
                number,
                &level,
                &mut tally,
                &format!("{store}/{name}"),
            );
        }
    }
    tally
}

#[test]
fn golden_levels_06() {
    levels("zvf-06").report("zvf-06", "levels", 0, &[]);
}

#[test]
fn golden_levels_07() {
    levels("zvf-07").report("zvf-07", "levels", 0, &[]);
}

#[test]
fn golden_levels_08() {
    levels("zvf-08").report("zvf-08", "levels", 0, &[]);
}

#[test]
fn golden_levels_09() {
    levels("zvf-09").report("zvf-09", "levels", 0, &[]);
}
