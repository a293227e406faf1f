//! Recorded reads of anything but whole geometries.

use serde_json::{Value as Json, json};
use zvf_catalog::LevelCache;
use zvf_model::level::LevelId;
use zvf_query::{Query, Shape, predicate::Predicate};

use super::{
    call::Work,
    columns::{self, flat},
    links, paths,
    tally::Tally,
};
use crate::{block_on, extras, objects::catalog};

pub(super) fn check(work: &Work<'_>, tally: &mut Tally) {
    match work.call.name.as_str() {
        "read_object_vertices" => object_vertices(work, tally),
        "read_object_attribute_present_mask" => present_mask(work, tally),
        "read_parametric_objects" => parametric(work, tally),
        "read_header" => header(work, tally),
        "read_composite" => composite(work, tally),
        "read_skeleton_by_segment_id" => segment(work, tally),
        "read_fragment_attribute" => fragment_attribute(work, tally),
        "read_cross_chunk_links" => between_chunks(work, tally),
        "append" => tally.not_comparable("the response of a writer"),
        other => panic!("{}: {other}", work.at),
    }
}

fn object_vertices(work: &Work<'_>, tally: &mut Tally) {
    let Some(result) = work.run(&work.call.query().shape(Shape::Paths), tally) else {
        return;
    };
    let found = paths::of_result(&result);
    let rows: Vec<Json> = found.iter().flat_map(|(_, rows)| rows.concat()).collect();
    match &work.call.expected {
        Some(expected) => tally.equal(rows, flat(expected), work.at),
        // Both reject the read.
        None => tally.equal(found.len(), 0, work.at),
    }
    assert!(found.len() <= 1, "{}", work.at);
}

fn present_mask(work: &Work<'_>, tally: &mut Tally) {
    let levels = LevelCache::default();
    let catalog = catalog(work.dataset, &levels);
    let name = work.call.args["attr_name"].as_str().unwrap();
    let column = catalog.object_values(LevelId::new(work.call.level()), name, None);
    let column = block_on(column).unwrap();
    let present = (0..column.values.len()).map(|row| json!(u8::from(!column.is_null(row))));
    let expected = flat(work.call.expected.as_ref().unwrap());
    tally.equal(present.collect::<Vec<_>>(), expected, work.at);
}

fn parametric(work: &Work<'_>, tally: &mut Tally) {
    let levels = LevelCache::default();
    let found = block_on(catalog(work.dataset, &levels).parametric()).unwrap();
    let found = extras::objects(&found.unwrap());
    tally.equal(&found, work.call.expected.as_ref().unwrap(), work.at);
}

fn header(work: &Work<'_>, tally: &mut Tally) {
    let levels = LevelCache::default();
    let mut found = block_on(catalog(work.dataset, &levels).headers())
        .unwrap()
        .into_iter();
    let found = Json::from(found.next().unwrap().attributes);
    tally.equal(&found, work.call.expected.as_ref().unwrap(), work.at);
}

fn composite(work: &Work<'_>, tally: &mut Tally) {
    let levels = LevelCache::default();
    let catalog = catalog(work.dataset, &levels);
    let further = block_on(catalog.composite(LevelId::new(0))).unwrap();
    let geometries = work.call.expected.as_ref().unwrap().as_object().unwrap();
    for (name, expected) in geometries {
        let at = format!("{} {name}", work.at);
        let mut query = Query::new();
        let is_further = further.iter().any(|geometry| geometry.kind == *name);
        query.geometry = is_further.then(|| name.clone());
        let Some(result) = work.run(&query, tally) else {
            continue;
        };
        let rows = columns::rows(&result.positions);
        tally.equal(
            u64::try_from(rows.len()).ok(),
            expected["vertex_count"].as_u64(),
            &at,
        );
        tally.equal(rows.concat(), flat(&expected["positions"]), &at);
        if let Some(stored) = expected.get("links") {
            let found: Vec<Json> = links::ends(&result)
                .concat()
                .into_iter()
                .map(Json::from)
                .collect();
            tally.equal(found, flat(stored), &at);
        }
    }
}

fn segment(work: &Work<'_>, tally: &mut Tally) {
    let id = &work.call.args["segment_id"];
    let predicate = Predicate::parse(&format!("object.segment_id = {id}")).unwrap();
    let query = work.call.query().shape(Shape::Links).filter(predicate);
    let Some(result) = work.run(&query, tally) else {
        return;
    };
    let expected = work.call.expected.as_ref().unwrap();
    let rows = columns::rows(&result.positions);
    if expected.is_null() {
        tally.equal(rows.len(), 0, work.at);
        return;
    }
    // Only this reader applies the offset to positions.
    let offset = [100.0, 0.0, -50.0];
    let moved: Vec<Json> = rows
        .iter()
        .flatten()
        .zip(offset.iter().cycle())
        .map(|(x, by)| json!(x.as_f64().unwrap() + by))
        .collect();
    tally.equal(moved, flat(&expected["positions"]), work.at);
    for (name, values) in expected["attributes"].as_object().unwrap() {
        let column = columns::named(&result.vertex, name).unwrap();
        tally.equal(columns::column(column).concat(), flat(values), work.at);
    }
    let level = work.level;
    let [owner] = result.objects[..] else {
        panic!("{}: {:?}", work.at, result.objects)
    };
    let mut objects = level.objects.iter().flatten();
    let (_, pieces) = objects.find(|(id, _)| *id == owner).unwrap();
    let graph = links::of_level(
        level,
        links::is_skeleton(work.dataset),
        |chunk, fragment| {
            pieces
                .iter()
                .any(|(found, at)| found == chunk && *at == fragment)
        },
    );
    links::compare(&result, &graph, level, tally, work.at);
    tally.equal(
        u64::try_from(pieces.len()).ok(),
        expected["fragment_count"].as_u64(),
        work.at,
    );
    // This reader returns links by fragment, without cross-chunk links.
    let mut theirs: Vec<Vec<usize>> =
        serde_json::from_value(expected["edges"]["data"].clone()).unwrap();
    theirs.sort();
    let between = |(ends, record): &(Vec<usize>, Option<usize>)| {
        let record = record.map(|record| &level.links.records[record]);
        let is_between = record.is_some_and(|record| record[0].0 != record[1].0);
        (!is_between).then(|| ends.clone())
    };
    let ours: Vec<_> = graph.links.iter().filter_map(between).collect();
    if ours.len() < graph.links.len() {
        tally.not_comparable("links between chunks, which read_skeleton_by_segment_id leaves out");
    }
    tally.equal(ours, theirs, work.at);
}

fn fragment_attribute(work: &Work<'_>, tally: &mut Tally) {
    let name = work.call.args["name"].as_str().unwrap();
    let Some(result) = work.run(&work.call.query().shape(Shape::Points), tally) else {
        return;
    };
    let column = columns::named(&result.fragment, name).unwrap();
    let mut expected = Vec::new();
    let values = work.call.expected.as_ref().unwrap().as_array().unwrap();
    let fragments = work.level.chunks.iter().flat_map(|chunk| &chunk.fragments);
    for (fragment, value) in fragments.zip(values) {
        expected.extend(fragment.rows.iter().map(|_| flat(value)));
        if fragment.rows.is_empty() {
            tally.not_comparable("an attribute of a fragment without vertices");
        }
    }
    tally.equal(columns::column(column), expected, work.at);
}

fn between_chunks(work: &Work<'_>, tally: &mut Tally) {
    let Some(result) = work.run(&work.call.query().shape(Shape::Links), tally) else {
        return;
    };
    let found = links::ends(&result);
    let graph = links::of_level(work.level, false, |_, _| true);
    for record in work.call.expected.as_ref().unwrap().as_array().unwrap() {
        let ends: Vec<(Vec<i64>, u64)> = serde_json::from_value(record.clone()).unwrap();
        let rows: Vec<usize> = ends.iter().map(|end| graph.row_of[end]).collect();
        tally.equal(found.contains(&rows), true, work.at);
    }
}
