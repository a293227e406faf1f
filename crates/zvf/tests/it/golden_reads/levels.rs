//! Every level as a whole, compared with its record.

use serde_json::Value as Json;
use zvf::{Dataset, Owner, Query, QueryResult};
use zvf_catalog::LevelCache;
use zvf_model::{
    generation::Generation, geometry_kind::GeometryKind, grid::ChunkCoord, level::LevelId,
};
use zvf_query::{LevelChoice, Shape};
use zvf_testkit::golden::{Golden, unhex};

use super::{
    again, call,
    columns::{self, flat},
    links, paths,
    recorded::{self, Coord, Fragment, Level},
    tally::Tally,
};
use crate::{
    block_on,
    golden::{open, stores},
    objects::catalog,
};

/// Iterates over fragments in order, with chunk number and fragment number.
fn fragments(level: &Level) -> impl Iterator<Item = (usize, usize, &Fragment)> {
    let chunks = level.chunks.iter().enumerate();
    chunks.flat_map(|(chunk, of_chunk)| {
        let fragments = of_chunk.fragments.iter().enumerate();
        fragments.map(move |(at, fragment)| (chunk, at, fragment))
    })
}

/// Returns the object of a fragment.
fn owner(level: &Level, chunk: usize, fragment: usize) -> Owner {
    let piece = (level.chunks[chunk].coord.clone(), fragment);
    let objects = level.objects.iter().flatten();
    let mut owners = objects.filter(|(_, pieces)| pieces.contains(&piece));
    match (owners.next(), owners.next()) {
        (None, _) => Owner::None,
        (Some((id, _)), None) => Owner::Object(*id),
        _ => Owner::Several,
    }
}

fn check(dataset: &Dataset, number: u32, level: &Level, tally: &mut Tally, at: &str) {
    let whole = Query::new().level(LevelChoice::Number(LevelId::new(number)));
    part(dataset, &whole, level, |_| true, tally, at);
    for chunk in &level.chunks {
        let only = ChunkCoord::new(chunk.coord.clone());
        let at = format!("{at}, chunk {only}");
        let query = whole.clone().chunks([only]);
        part(
            dataset,
            &query,
            level,
            |coord| *coord == chunk.coord,
            tally,
            &at,
        );
    }
}

/// Reads the allowed chunks of a level in every shape.
fn part(
    dataset: &Dataset,
    query: &Query,
    level: &Level,
    allowed: impl Fn(&Coord) -> bool,
    tally: &mut Tally,
    at: &str,
) {
    let run = |shape, tally: &mut Tally| {
        let query = query.clone().shape(shape);
        let found = block_on(dataset.query(&query));
        let result = call::whole(dataset, &query, found, tally, at)?;
        again::check(dataset, &query, &result, tally, at);
        Some(result)
    };
    if let Some(result) = run(Shape::Points, tally) {
        points(&result, level, &allowed, tally, at);
    }
    if level.objects.is_some()
        && let Some(result) = run(Shape::Paths, tally)
    {
        let expected = paths::of_level(level, None, &allowed);
        tally.equal(&paths::of_result(&result), &expected, at);
        objects(dataset, &result, level, &expected, tally, at);
    }
    let is_skeleton = links::is_skeleton(dataset);
    if (is_skeleton || !level.links.records.is_empty())
        && let Some(result) = run(Shape::Links, tally)
    {
        let mut graph = links::of_level(level, is_skeleton, |chunk, _| allowed(chunk));
        let stored = graph.links.len();
        if has_wrong_rows(dataset) {
            let is_inside = |record: usize| {
                let ends = &level.links.records[record];
                ends.iter().all(|(chunk, _)| *chunk == ends[0].0)
            };
            graph
                .links
                .retain(|(_, record)| record.is_none_or(is_inside));
            assert!(
                result.notes.iter().any(|note| note.contains("left out")),
                "{at}"
            );
        }
        if graph.links.len() < stored {
            tally.not_comparable("links between chunks whose rows writers of paths got wrong");
        }
        links::compare(&result, &graph, level, tally, at);
    }
}

/// Returns whether cross-chunk links name wrong rows: those of lines, and of all paths up to 0.7.
fn has_wrong_rows(dataset: &Dataset) -> bool {
    let old = [Generation::V0_6, Generation::V0_7].contains(&dataset.layout().generation);
    dataset.root().kinds().any(|kind| match kind {
        GeometryKind::Lines => true,
        GeometryKind::Polylines | GeometryKind::Streamlines => old,
        _ => false,
    })
}

/// Returns the objects that have a path, with their attributes. Another test compares the
/// attributes with the record.
fn objects(
    dataset: &Dataset,
    result: &QueryResult,
    level: &Level,
    expected: &[paths::Path],
    tally: &mut Tally,
    at: &str,
) {
    let rows = (0_u64..).zip(level.objects.iter().flatten());
    let given = rows.filter(|(_, (id, _))| expected.iter().any(|(found, _)| found == id));
    let (rows, ids): (Vec<u64>, Vec<i64>) = given.map(|(row, (id, _))| (row, *id)).unzip();
    tally.equal(&result.objects, &ids, at);
    let levels = LevelCache::default();
    let catalog = catalog(dataset, &levels);
    for column in &result.object {
        let at = format!("{at}, object {}", column.name);
        let expected = catalog.object_values(result.level, &column.name, Some(&rows));
        let expected = columns::column(&block_on(expected).unwrap());
        tally.equal(columns::column(column), expected, &at);
    }
}

fn points(
    result: &QueryResult,
    level: &Level,
    allowed: impl Fn(&Coord) -> bool,
    tally: &mut Tally,
    at: &str,
) {
    let fragments = || fragments(level).filter(|(chunk, ..)| allowed(&level.chunks[*chunk].coord));
    let positions = fragments().flat_map(|(_, _, fragment)| fragment.positions.clone());
    tally.equal(columns::rows(&result.positions), positions.collect(), at);
    let owners = level.objects.is_some().then(|| {
        let owners = fragments().flat_map(|(chunk, fragment, rows)| {
            let owner = owner(level, chunk, fragment);
            rows.rows.iter().map(move |_| owner)
        });
        owners.collect()
    });
    tally.equal(&result.object_ids, &owners, at);
    for column in &result.vertex {
        let at = format!("{at}, vertex {}", column.name);
        let mut expected = Vec::new();
        for (chunk, _, fragment) in fragments() {
            let values = fragment
                .attributes
                .get(&column.name)
                .map(flat)
                .unwrap_or_default();
            if values.is_empty() && !fragment.rows.is_empty() {
                // The chunk stores fewer rows, or none.
                let chunk = &level.chunks[chunk].coord;
                assert!(level.lacks(&column.name, chunk), "{at} {chunk:?}");
                expected.extend(fragment.rows.iter().map(|_| Json::Null));
            }
            expected.extend(values);
        }
        tally.equal(columns::column(column).concat(), expected, &at);
    }
    for column in &result.fragment {
        let at = format!("{at}, fragment {}", column.name);
        let mut expected = Vec::new();
        for (chunk, place, fragment) in fragments() {
            let Some((dtype, rows)) = level.chunks[chunk].attributes.get(&column.name) else {
                tally.not_comparable("attributes of fragments that are recorded as reads");
                return;
            };
            tally.equal(columns::dtype(column), Some(dtype.as_str()), &at);
            expected.extend(fragment.rows.iter().map(|_| flat(&rows[place])));
        }
        tally.equal(columns::column(column), expected, &at);
    }
}

fn levels(archive: &str) -> Tally {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let dataset = open(&golden, &store);
        let Some(levels) = expected["levels"].as_object() else {
            // The reference of that version could not read its own shards: cells are recorded.
            tally.reads += 1;
            let result = block_on(dataset.query(&Query::new().shape(Shape::Points))).unwrap();
            let cells = expected["vlen"]["0/vertices"].as_array().unwrap().iter();
            let bytes: Vec<u8> = cells.flat_map(|hex| unhex(hex.as_str().unwrap())).collect();
            tally.equal(result.positions.bytes, bytes, &store);
            continue;
        };
        for name in levels.keys() {
            tally.reads += 1;
            let number = name.parse().unwrap();
            let level = recorded::level(&expected, number, &dataset);
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
    let reasons = [
        (
            "links between chunks whose rows writers of paths got wrong",
            3,
        ),
        ("links of vertices that are not there", 2),
    ];
    levels("zvf-06").report("zvf-06", "levels", 478, &reasons);
}

#[test]
fn golden_levels_07() {
    let reasons = [
        (
            "links between chunks whose rows writers of paths got wrong",
            3,
        ),
        ("links of vertices that are not there", 2),
    ];
    levels("zvf-07").report("zvf-07", "levels", 550, &reasons);
}

#[test]
fn golden_levels_08() {
    let reasons = [
        ("attributes of fragments that are recorded as reads", 4),
        ("links of vertices that are not there", 8),
    ];
    levels("zvf-08").report("zvf-08", "levels", 480, &reasons);
}

#[test]
fn golden_levels_09() {
    let reasons = [
        ("attributes that edits left out of step with vertices", 12),
        (
            "links between chunks whose rows writers of paths got wrong",
            3,
        ),
        ("links of vertices that are not there", 2),
    ];
    levels("zvf-09").report("zvf-09", "levels", 1930, &reasons);
}
