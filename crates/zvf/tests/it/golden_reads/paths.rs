//! Paths, assembled from the recorded fragments and manifests; with a region, every segment is
//! tested. The reference selects by whole chunks and end points.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use zvf::QueryResult;
use zvf_query::{
    Column, Shape,
    geometry::{Bbox, Primitive},
};

use super::{
    call::Work,
    columns::{self, data, flat},
    recorded::{Coord, Level, fields},
    tally::Tally,
};

/// Id of an object, and positions.
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

/// Returns the paths of a level in object order, each split into runs of pieces in allowed chunks.
/// Runs without vertices are omitted.
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

pub(super) fn of_result(result: &QueryResult) -> Vec<Path> {
    let parts = result.parts.as_ref().unwrap();
    let rows = columns::rows(&result.positions);
    let offset = |at: u64| usize::try_from(at).unwrap();
    let ranges = parts.offsets.windows(2);
    let paths = ranges.zip(&parts.objects).map(|(ends, id)| {
        let rows = &rows[offset(ends[0])..offset(ends[1])];
        (*id, rows.to_vec())
    });
    paths.collect()
}

/// A path of the reference; older archives do not record its object.
type Theirs = (Option<i64>, Vec<Vec<Json>>);

fn of_reference(expected: &Json) -> Vec<Theirs> {
    let row = |row: &Json| row.as_array().unwrap().clone();
    let rows = |rows: &Json| -> Vec<_> {
        let rows = data(rows).as_array().unwrap();
        rows.iter().map(row).collect()
    };
    let mut paths: Vec<Theirs> = Vec::new();
    if let Some(lines) = expected.get("endpoints") {
        let lines = data(lines).as_array().unwrap().iter();
        paths.extend(lines.map(|line| (None, rows(line))));
    }
    let polylines = expected["polylines"].as_array().into_iter().flatten();
    for (at, fragments) in polylines.enumerate() {
        let fragments = fragments.as_array().unwrap().iter();
        let ids = expected.get("object_ids");
        let id = ids.map(|ids| data(ids)[at].as_i64().unwrap());
        paths.push((id, fragments.flat_map(rows).collect()));
    }
    paths.retain(|(_, path)| !path.is_empty());
    paths
}

pub(super) fn check(work: &Work<'_>, tally: &mut Tally) {
    let (call, at) = (work.call, work.at);
    let Some(result) = work.run(&call.query().shape(Shape::Paths), tally) else {
        return;
    };
    let found = of_result(&result);
    tally.equal(&found, &expected(work, &result), at);
    let reference = call.expected.as_ref().unwrap();
    let theirs = of_reference(reference);
    let both = Both::new(&found, &theirs);
    both.compare(work, tally);
    for (name, values) in fields(&reference["vertex_attributes"]) {
        let column = columns::named(&result.vertex, name).unwrap();
        both.compare_column(column, values, tally, &format!("{at}, {name}"));
    }
    for column in &result.vertex {
        let is_given = reference["vertex_attributes"].get(&column.name).is_some();
        let rows = columns::column(column);
        if reference.get("vertex_attributes").is_none() {
            tally.not_comparable("attributes of paths, which reads of this archive do not record");
        } else if is_given || theirs.is_empty() || found.is_empty() {
            // Every path is returned.
        } else if rows.iter().any(|row| row.len() > 1) {
            tally.not_comparable("attributes of several numbers, which reads of paths drop");
        } else {
            let why = "attributes that not all vertices have, which reads of paths drop";
            tally.equal(rows.contains(&vec![Json::Null]), true, at);
            tally.not_comparable(why);
        }
    }
}

/// Derives the expected result from the recorded level.
fn expected(work: &Work<'_>, result: &QueryResult) -> Vec<Path> {
    let call = work.call;
    let groups = result.groups.iter();
    let members: BTreeSet<i64> = groups.flat_map(|group| group.members.clone()).collect();
    let ids = if result.groups.is_empty() {
        call.object_ids()
    } else {
        Some(members.into_iter().collect())
    };
    let (chunks, leading) = (call.chunks(), work.leading());
    let allowed = |chunk: &Coord| {
        let is_listed = chunks.as_ref().is_none_or(|list| list.contains(chunk));
        is_listed && leading.is_none_or(|leading| chunk[0] == leading)
    };
    let mut paths = of_level(work.level, ids.as_deref(), allowed);
    if let Some(bbox) = call.bbox() {
        paths.retain(|(_, path)| touches(&bbox, path));
    }
    paths
}

/// Paths of both results, and whether each occurs in both.
struct Both<'a> {
    ours: Vec<(&'a Path, bool)>,
    theirs: Vec<(&'a Theirs, bool)>,
}

impl<'a> Both<'a> {
    fn new(ours: &'a [Path], theirs: &'a [Theirs]) -> Self {
        let same = |ours: &Path, theirs: &Theirs| {
            theirs.0.is_none_or(|id| id == ours.0) && theirs.1 == ours.1
        };
        let is_theirs = |path: &'a Path| (path, theirs.iter().any(|other| same(path, other)));
        let is_ours = |path: &'a Theirs| (path, ours.iter().any(|other| same(other, path)));
        Self {
            ours: ours.iter().map(is_theirs).collect(),
            theirs: theirs.iter().map(is_ours).collect(),
        }
    }

    /// Checks that common paths come in the same order, and that every other path has a known
    /// reason.
    fn compare(&self, work: &Work<'_>, tally: &mut Tally) {
        let (call, at) = (work.call, work.at);
        let ours: Vec<_> = self
            .ours
            .iter()
            .filter(|(_, both)| *both)
            .map(|(path, _)| &path.1)
            .collect();
        let theirs: Vec<_> = self
            .theirs
            .iter()
            .filter(|(_, both)| *both)
            .map(|(path, _)| &path.1)
            .collect();
        tally.equal(ours, theirs, at);
        for (path, _) in self.ours.iter().filter(|(_, both)| !both) {
            // The reference selects lines by their ends, polylines by the chunks of their vertices.
            let bbox = call.bbox().unwrap_or_else(|| panic!("{at}: {path:?}"));
            let is_inside = |row: &Vec<Json>| touches(&bbox, std::slice::from_ref(row));
            let why = "a path that crosses the box between vertices, which the reference drops";
            tally.equal(path.1.iter().any(is_inside), false, at);
            tally.not_comparable(why);
        }
        for _ in self.theirs.iter().filter(|(_, both)| !both) {
            // It was checked above that no segment enters the box.
            let is_by_chunk = call.bbox().is_some() && call.name == "read_polylines";
            let why = "a polyline outside of the box, which the reference keeps by its chunks";
            tally.equal(is_by_chunk, true, at);
            tally.not_comparable(why);
        }
    }

    /// Compares values of vertices of the common paths.
    fn compare_column(&self, column: &Column, values: &Json, tally: &mut Tally, at: &str) {
        tally.dtype(columns::dtype(column), values, at);
        let (ours, theirs) = (columns::column(column), flat(values));
        let width = ours.first().map_or(1, Vec::len);
        let lengths = self.ours.iter().map(|(path, both)| (path.1.len(), *both));
        let ours = of_both(ours.into_iter(), lengths);
        let lengths = self.theirs.iter().map(|(path, both)| (path.1.len(), *both));
        let theirs = of_both(theirs.chunks(width).map(<[Json]>::to_vec), lengths);
        tally.equal(ours, theirs, at);
    }
}

/// Returns the rows of common paths, given the length of each path and whether it is common.
fn of_both(
    mut rows: impl Iterator<Item = Vec<Json>>,
    paths: impl Iterator<Item = (usize, bool)>,
) -> Vec<Vec<Json>> {
    let mut found = Vec::new();
    for (length, both) in paths {
        let of_path: Vec<_> = rows.by_ref().take(length).collect();
        assert_eq!(of_path.len(), length);
        found.extend(of_path.into_iter().filter(|_| both));
    }
    assert!(rows.next().is_none());
    found
}
