//! Paths: what the recorded fragments and manifests make, in a region by testing
//! every segment. The reference cuts a region by whole chunks and end points.

use serde_json::Value as Json;
use zvf::Answer;
use zvf_query::{
    Shape,
    geometry::{Bbox, Primitive},
};

use super::{
    call::Work,
    columns::{self, data, flat},
    recorded::{Coord, Level},
    tally::Tally,
};

/// An object's id and positions.
pub(super) type Path = (i64, Vec<Vec<Json>>);

pub(super) fn touches(bbox: &Bbox, path: &[Vec<Json>]) -> bool {
    let numbers = |row: &Vec<Json>| row.iter().map(|value| value.as_f64().unwrap()).collect();
    let path: Vec<Vec<f64>> = path.iter().map(numbers).collect();
    match path.as_slice() {
        [one] => bbox.touches(Primitive::Point(one)),
        many => many
            .windows(2)
            .any(|ends| bbox.touches(Primitive::Segment([&ends[0], &ends[1]]))),
    }
}

/// Paths of a level: objects in order, each cut into runs of pieces in chunks
/// that are allowed. What has no vertex is no path.
pub(super) fn of_level(
    level: &Level,
    ids: Option<&[i64]>,
    allowed: impl Fn(&Coord) -> bool,
) -> Vec<Path> {
    let objects = level.objects.as_deref().unwrap_or_default();
    let objects: Vec<_> = match ids {
        None => objects.iter().collect(),
        Some(ids) => {
            let find = |id: &i64| objects.iter().find(|(found, _)| found == id);
            ids.iter().filter_map(find).collect()
        }
    };
    let mut paths = Vec::new();
    for (id, pieces) in objects {
        for run in pieces.split(|(chunk, _)| !allowed(chunk)) {
            let pieces = run.iter().map(|(chunk, at)| level.fragment(chunk, *at));
            let positions: Vec<_> = pieces.flat_map(|piece| piece.positions.clone()).collect();
            if !positions.is_empty() {
                paths.push((*id, positions));
            }
        }
    }
    paths
}

pub(super) fn of_answer(answer: &Answer) -> Vec<Path> {
    let parts = answer.parts.as_ref().unwrap();
    let rows = columns::rows(&answer.positions);
    let offset = |at: u64| usize::try_from(at).unwrap();
    let ranges = parts.offsets.windows(2);
    let paths = ranges.zip(&parts.objects).map(|(ends, id)| {
        let rows = &rows[offset(ends[0])..offset(ends[1])];
        (*id, rows.to_vec())
    });
    paths.collect()
}

/// Paths of the reference; older ones do not say which objects they are.
fn of_reference(expected: &Json) -> Vec<(Option<i64>, Vec<Vec<Json>>)> {
    let row = |row: &Json| row.as_array().unwrap().clone();
    let rows = |rows: &Json| {
        data(rows)
            .as_array()
            .unwrap()
            .iter()
            .map(row)
            .collect::<Vec<_>>()
    };
    if let Some(lines) = expected.get("endpoints") {
        let lines = data(lines).as_array().unwrap().iter();
        return lines.map(|line| (None, rows(line))).collect();
    }
    let polylines = expected["polylines"].as_array().unwrap().iter();
    let paths = polylines.enumerate().map(|(at, fragments)| {
        let fragments = fragments.as_array().unwrap().iter();
        let id = expected
            .get("object_ids")
            .map(|ids| data(ids)[at].as_i64().unwrap());
        (id, fragments.flat_map(rows).collect())
    });
    paths.collect()
}

pub(super) fn check(work: &Work<'_>, tally: &mut Tally) {
    let (call, level, at) = (work.call, work.level, work.at);
    let expected = call.expected.as_ref().unwrap();
    let Some(answer) = work.ask(&call.query().shape(Shape::Paths), tally) else {
        return;
    };
    let found = of_answer(&answer);

    // What ours must be, from what is recorded of the level.
    let ids = match answer.groups.is_empty() {
        true => call.object_ids(),
        false => {
            let mut ids: Vec<i64> = answer
                .groups
                .iter()
                .flat_map(|group| group.members.clone())
                .collect();
            ids.sort_unstable();
            ids.dedup();
            Some(ids)
        }
    };
    let bbox = call.bbox();
    let (chunks, leading) = (call.chunks(), work.leading());
    let allowed = |chunk: &Coord| {
        let is_listed = chunks.as_ref().is_none_or(|list| list.contains(chunk));
        is_listed && leading.is_none_or(|leading| chunk[0] == leading)
    };
    let mut paths = of_level(level, ids.as_deref(), allowed);
    if let Some(bbox) = &bbox {
        paths.retain(|(_, path)| touches(bbox, path));
    }
    tally.equal(&found, &paths, at);

    // What the reference answered.
    let mut theirs = of_reference(expected);
    theirs.retain(|(_, path)| !path.is_empty());
    let same = |ours: &Path, theirs: &(Option<i64>, Vec<Vec<Json>>)| {
        theirs.0.is_none_or(|id| id == ours.0) && theirs.1 == ours.1
    };
    let ours_in_both: Vec<bool> = found
        .iter()
        .map(|ours| theirs.iter().any(|theirs| same(ours, theirs)))
        .collect();
    let theirs_in_both: Vec<bool> = theirs
        .iter()
        .map(|theirs| found.iter().any(|ours| same(ours, theirs)))
        .collect();
    let ours_of_both = found.iter().zip(&ours_in_both).filter(|(_, both)| **both);
    let theirs_of_both = theirs
        .iter()
        .zip(&theirs_in_both)
        .filter(|(_, both)| **both);
    let is_same = ours_of_both
        .map(|(path, _)| &path.1)
        .eq(theirs_of_both.map(|(path, _)| &path.1));
    tally.equal(is_same, true, at);
    for ((_, path), _) in found.iter().zip(&ours_in_both).filter(|(_, both)| !**both) {
        // What crosses the box between vertices: lines are kept by their ends,
        // polylines by the chunks of their vertices.
        let is_inside =
            |row: &Vec<Json>| touches(bbox.as_ref().unwrap(), std::slice::from_ref(row));
        tally.equal(path.iter().any(is_inside), false, at);
        tally.not_comparable(
            "a path that crosses the box between vertices, which the reference drops",
        );
    }
    for _ in theirs_in_both.iter().filter(|both| !**both) {
        // It was compared above: no segment comes into the box.
        tally.equal(bbox.is_some() && call.name == "read_polylines", true, at);
        tally.not_comparable(
            "a polyline outside of the box, which the reference keeps by its chunks",
        );
    }
    let attributes = expected["vertex_attributes"].as_object();
    for (name, values) in attributes.into_iter().flatten() {
        let at = format!("{at}, {name}");
        let column = columns::named(&answer.vertex, name).unwrap();
        tally.dtype(columns::dtype(column), values, &at);
        let ours = columns::column(column);
        let theirs_rows = flat(values);
        let mut ours_rows = ours.iter().cloned();
        let mut theirs_rows = theirs_rows.chunks(ours.first().map_or(1, Vec::len));
        let mut ours_of_both = Vec::new();
        for ((_, path), both) in found.iter().zip(&ours_in_both) {
            let rows: Vec<_> = ours_rows.by_ref().take(path.len()).collect();
            ours_of_both.extend(rows.into_iter().filter(|_| *both));
        }
        let mut theirs_of_both = Vec::new();
        for ((_, path), both) in theirs.iter().zip(&theirs_in_both) {
            let rows: Vec<_> = theirs_rows.by_ref().take(path.len()).collect();
            theirs_of_both.extend(rows.into_iter().map(<[Json]>::to_vec).filter(|_| *both));
        }
        tally.equal(theirs_rows.next(), None, &at);
        tally.equal(ours_of_both, theirs_of_both, &at);
    }
    for column in &answer.vertex {
        if expected.get("vertex_attributes").is_none() {
            tally.not_comparable("attributes of paths, which reads of this archive do not record");
            continue;
        }
        let is_given = attributes.is_some_and(|given| given.contains_key(&column.name));
        if is_given || theirs.is_empty() || found.is_empty() {
            continue;
        }
        let rows = columns::column(column);
        if rows.iter().any(|row| row.len() > 1) {
            tally.not_comparable("attributes of several numbers, which reads of paths drop");
        } else {
            tally.equal(rows.contains(&vec![Json::Null]), true, at);
            tally
                .not_comparable("attributes that not all vertices have, which reads of paths drop");
        }
    }
}
