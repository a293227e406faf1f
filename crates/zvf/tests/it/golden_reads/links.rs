//! Graphs, skeletons and meshes, assembled from the recorded fragments and records. With a region,
//! the result of the reference is restricted to the region.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf::{Dataset, QueryResult};
use zvf_model::{root::LinksConvention, word::Word};
use zvf_query::{
    Shape,
    geometry::{Bbox, Mode, Primitive},
};

use super::{
    call::Work,
    columns::{self, data, flat},
    recorded::{Coord, Level},
    tally::Tally,
};

/// Vertices, and links by vertex number with their records.
#[derive(Debug, PartialEq)]
pub(super) struct Graph {
    pub(super) positions: Vec<Vec<Json>>,
    pub(super) links: Vec<(Vec<usize>, Option<usize>)>,
    pub(super) row_of: BTreeMap<(Coord, u64), usize>,
}

pub(super) fn is_skeleton(dataset: &Dataset) -> bool {
    dataset.root().links_convention == Some(Word::Known(LinksConvention::ImplicitWithBranches))
}

/// Assembles the selected fragments of a level.
pub(super) fn of_level(
    level: &Level,
    is_skeleton: bool,
    allowed: impl Fn(&Coord, usize) -> bool,
) -> Graph {
    let mut positions = Vec::new();
    let mut row_of = BTreeMap::new();
    let mut parents = BTreeMap::new();
    for chunk in &level.chunks {
        for (at, fragment) in chunk.fragments.iter().enumerate() {
            if !allowed(&chunk.coord, at) {
                continue;
            }
            for (place, row) in fragment.rows.iter().enumerate() {
                let number = positions.len();
                positions.push(fragment.positions[place].clone());
                row_of.entry((chunk.coord.clone(), *row)).or_insert(number);
                if is_skeleton && place > 0 {
                    parents.insert(number, number - 1);
                }
            }
        }
    }
    let mut links = Vec::new();
    let mut seen = BTreeSet::new();
    let stored = &level.links;
    for (at, record) in stored.records.iter().enumerate() {
        if stored.is_duplicate && !seen.insert(record.clone()) {
            continue;
        }
        let mut ends: Vec<Option<usize>> =
            record.iter().map(|end| row_of.get(end).copied()).collect();
        // Streamed skeletons store cross-chunk links from parent to child.
        if is_skeleton && stored.is_directed && record[0].0 != record[1].0 {
            ends.reverse();
        }
        // A child is not linked to the previous vertex, even if its parent is in another chunk.
        if is_skeleton && let Some(child) = ends[0] {
            parents.remove(&child);
        }
        if let Some(ends) = ends.into_iter().collect() {
            links.push((ends, Some(at)));
        }
    }
    if is_skeleton {
        let implied = parents
            .into_iter()
            .map(|(child, parent)| (vec![child, parent], None));
        links.extend(implied);
        links.sort_by_key(|(ends, _)| ends[0]);
    }
    Graph {
        positions,
        links,
        row_of,
    }
}

/// Selects the part of a graph in a box.
fn select(graph: Graph, bbox: &Bbox, mode: Mode) -> Graph {
    let numbers = |row: &Vec<Json>| row.iter().map(|value| value.as_f64().unwrap()).collect();
    let positions: Vec<Vec<f64>> = graph.positions.iter().map(numbers).collect();
    let mut keep: Vec<bool> = positions
        .iter()
        .map(|position| bbox.touches(Primitive::Point(position)))
        .collect();
    let inside = keep.clone();
    let mut links = graph.links;
    links.retain(|(ends, _)| {
        let corners: Vec<&[f64]> = ends.iter().map(|end| positions[*end].as_slice()).collect();
        let is_selected = match mode {
            Mode::Within => ends.iter().all(|end| inside[*end]),
            _ => bbox.touches(Primitive::Polygon(&corners)),
        };
        if is_selected {
            for end in ends {
                keep[*end] = true;
            }
        }
        is_selected
    });
    let mut place = Vec::new();
    let mut next = 0;
    for keep in &keep {
        place.push(next);
        next += usize::from(*keep);
    }
    for (ends, _) in &mut links {
        for end in ends {
            *end = place[*end];
        }
    }
    let positions = graph.positions.into_iter().zip(keep);
    Graph {
        positions: positions
            .filter_map(|(position, keep)| keep.then_some(position))
            .collect(),
        links,
        row_of: BTreeMap::new(),
    }
}

pub(super) fn ends(result: &QueryResult) -> Vec<Vec<usize>> {
    let links = result.links.as_ref().unwrap();
    let width = usize::try_from(links.width).unwrap();
    let end = |end: &u64| usize::try_from(*end).unwrap();
    let links = links.ends.chunks(width);
    links.map(|link| link.iter().map(end).collect()).collect()
}

/// Compares a result with the selected part of a level, including attributes.
pub(super) fn compare(
    result: &QueryResult,
    graph: &Graph,
    level: &Level,
    tally: &mut Tally,
    at: &str,
) {
    tally.equal(&columns::rows(&result.positions), &graph.positions, at);
    let links: Vec<_> = graph.links.iter().map(|(ends, _)| ends.clone()).collect();
    tally.equal(ends(result), links, at);
    let width = result.links.as_ref().unwrap().width;
    tally.equal(usize::try_from(width).unwrap(), level.links.width, at);
    tally.equal(result.link.len(), level.links.attributes.len(), at);
    for (name, values) in &level.links.attributes {
        let at = format!("{at}, {name}");
        let Some(column) = columns::named(&result.link, name) else {
            tally.differs(format!("{at}: {:?}", result.link));
            continue;
        };
        let record = |(_, record): &(_, Option<usize>)| match record {
            Some(record) => flat(&values[*record]),
            None => vec![Json::Null],
        };
        let expected: Vec<_> = graph.links.iter().map(record).collect();
        tally.equal(columns::column(column), expected, &at);
    }
}

pub(super) fn check(work: &Work<'_>, tally: &mut Tally) {
    let (call, level, at) = (work.call, work.level, work.at);
    let is_skeleton = is_skeleton(work.dataset);
    let (ids, chunks) = (call.object_ids(), call.chunks());
    let objects = level.objects.as_deref().unwrap_or_default();
    let graph = || {
        of_level(level, is_skeleton, |chunk, fragment| {
            let mut of_ids = objects
                .iter()
                .filter(|(id, _)| ids.as_ref().is_some_and(|ids| ids.contains(id)));
            let piece = |(found, at): &(Coord, usize)| found == chunk && *at == fragment;
            chunks.as_ref().is_none_or(|list| list.contains(chunk))
                && (ids.is_none() || of_ids.any(|(_, pieces)| pieces.iter().any(piece)))
        })
    };
    let query = call.query().shape(Shape::Links);
    if let Some(bbox) = call.bbox()
        && let Some(result) = work.run(&query, tally)
    {
        let graph = select(graph(), &bbox, Mode::Touch);
        compare(&result, &graph, level, tally, at);
    }
    let Some(result) = work.run(&query.mode(Mode::Within), tally) else {
        return;
    };
    let graph = match call.bbox() {
        Some(bbox) => select(graph(), &bbox, Mode::Within),
        None => graph(),
    };
    compare(&result, &graph, level, tally, at);

    let Some(expected) = &call.expected else {
        tally.not_comparable("read_graph and read_mesh refuse object_ids");
        return;
    };
    let (vertices, links, counts) = match call.name.as_str() {
        "read_graph" => ("positions", "edges", ["node_count", "edge_count"]),
        _ => ("vertices", "faces", ["vertex_count", "face_count"]),
    };
    let found = columns::rows(&result.positions);
    tally.equal(
        u64::try_from(found.len()).ok(),
        expected[counts[0]].as_u64(),
        at,
    );
    tally.equal(found.concat(), flat(&expected[vertices]), at);
    tally.dtype(Some(result.positions.kind.name()), &expected[vertices], at);
    let mut theirs: Vec<Vec<usize>> =
        serde_json::from_value(data(&expected[links]).clone()).unwrap();
    if level.links.is_duplicate && !theirs.is_empty() {
        let mut seen = BTreeSet::new();
        theirs.retain(|link| seen.insert(link.clone()));
        tally.not_comparable("copies of links that the reference gives again");
    }
    if is_skeleton && level.links.is_directed && ends(&result) != theirs {
        let between = |ends: &Vec<usize>| {
            let mut ends = ends.clone();
            ends.sort_unstable();
            ends
        };
        // The reference took a parent for its child, so the parent lost its own parent.
        let ours: BTreeSet<_> = ends(&result).iter().map(between).collect();
        let theirs: BTreeSet<_> = theirs.iter().map(between).collect();
        tally.equal(
            theirs.is_subset(&ours) && theirs.len() + 1 == ours.len(),
            true,
            at,
        );
        tally.not_comparable(
            "streamed skeletons, whose links between chunks the reference misreads",
        );
        return;
    }
    if is_skeleton && chunks.is_some() && ends(&result) != theirs {
        // The reference ignores records of links to other fragments.
        let whole = of_level(level, is_skeleton, |_, _| true);
        let position = |row: &usize| graph.positions[*row].clone();
        for link in theirs.iter().filter(|link| !ends(&result).contains(link)) {
            let link: Vec<_> = link.iter().map(position).collect();
            let is_there = whole.links.iter().any(|(ends, _)| {
                let ends = ends.iter().map(|end| &whole.positions[*end]);
                ends.eq(&link)
            });
            tally.equal(is_there, false, at);
        }
        tally.not_comparable(
            "links with the vertex before, which the reference makes up where the parent is elsewhere",
        );
        return;
    }
    if level.links.width == 1 {
        assert!(theirs.is_empty());
        tally.not_comparable("links of one end, which read_graph drops");
        return;
    }
    tally.equal(ends(&result), theirs, at);
}
