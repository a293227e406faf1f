//! Paths and links clipped at the border of a box.

use std::ops::Range;

use zvf_query::geometry::Bbox;
use zvf_testkit::stores::ExpectedStore;

use super::expect::ExpectedRow;

/// Clipped links.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cut {
    /// Edges of positive length, with their two ends.
    pub(super) edges: Vec<(usize, [ExpectedRow; 2])>,
    /// Total area of the faces.
    pub(super) area: f64,
}

/// Returns the runs of kept items.
pub(super) fn runs(len: usize, keep: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..len).filter(|at| keep(*at)) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Returns the parts of a path in a box.
pub(super) fn path(truth: &ExpectedStore, path: &[usize], bbox: &Bbox) -> Vec<Vec<ExpectedRow>> {
    if let [vertex] = path {
        let point = &truth.vertices[*vertex].position;
        let inside = bbox.touches(zvf_query::geometry::Primitive::Point(point));
        return inside
            .then(|| vec![ExpectedRow::Vertex(*vertex)])
            .into_iter()
            .collect();
    }
    let mut parts: Vec<Vec<ExpectedRow>> = Vec::new();
    for pair in path.windows(2) {
        let Some([start, end]) = segment(truth, [pair[0], pair[1]], bbox) else {
            continue;
        };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&start) && start == ExpectedRow::Vertex(pair[0]) => {
                part.push(end);
            }
            _ => parts.push(vec![start, end]),
        }
    }
    parts
}

/// Returns the part of a segment in a box.
fn segment(truth: &ExpectedStore, ends: [usize; 2], bbox: &Bbox) -> Option<[ExpectedRow; 2]> {
    let positions = ends.map(|end| truth.vertices[end].position.as_slice());
    let part = bbox.clip_segment(positions)?;
    let expected_row = |t: f64, position: &[f64]| {
        if t <= 0.0 {
            ExpectedRow::Vertex(ends[0])
        } else if t >= 1.0 {
            ExpectedRow::Vertex(ends[1])
        } else {
            let position = position.to_vec();
            ExpectedRow::Between { position, ends, t }
        }
    };
    Some([
        expected_row(part.t0, &part.start),
        expected_row(part.t1, &part.end),
    ])
}

/// Clips links.
pub(super) fn links(truth: &ExpectedStore, links: &[usize], bbox: &Bbox) -> Cut {
    let mut cut = Cut::default();
    for link in links {
        let ends = &truth.links[*link].ends;
        if let [a, b] = ends.as_slice() {
            if let Some(part) = segment(truth, [*a, *b], bbox) {
                let [start, end] = &part;
                if start.position(truth) != end.position(truth) {
                    cut.edges.push((*link, part));
                }
            }
            continue;
        }
        let corners: Vec<&[f64]> = ends
            .iter()
            .map(|end| truth.vertices[*end].position.as_slice())
            .collect();
        for pair in corners.windows(2).skip(1) {
            let Some(part) = bbox.clip_triangle([corners[0], pair[0], pair[1]]) else {
                continue;
            };
            let polygon: Vec<&[f64]> = part.vertices.iter().map(|v| &*v.position).collect();
            cut.area += area(&polygon);
        }
    }
    cut
}

/// Returns the area of a fan of triangles, in any dimension.
pub(super) fn area(polygon: &[&[f64]]) -> f64 {
    let triangle = |pair: &[&[f64]]| {
        let side = |to: &[f64]| -> Vec<f64> {
            to.iter()
                .zip(polygon[0])
                .map(|(to, from)| to - from)
                .collect()
        };
        let (u, v) = (side(pair[0]), side(pair[1]));
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let gram = dot(&u, &u) * dot(&v, &v) - dot(&u, &v) * dot(&u, &v);
        gram.max(0.0).sqrt() / 2.0
    };
    polygon.windows(2).skip(1).map(triangle).sum()
}
