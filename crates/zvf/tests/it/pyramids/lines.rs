//! Simplified lines, and their distance from the original.

use std::collections::{BTreeMap, BTreeSet};

use super::{model::Level, step::Step};

pub(super) fn check(step: &Step<'_>, tolerance: Option<f64>) {
    let about = &step.about;
    let (fine, coarse) = (step.fine, step.coarse);
    for (vertex, members) in coarse.vertices.iter().zip(&step.members) {
        let own = members
            .iter()
            .any(|at| fine.vertices[*at].bits == vertex.bits);
        assert!(own, "{:?} is where none was, {about}", vertex.place);
    }
    // End points and branch points keep their positions.
    for vertex in fixed(fine) {
        if let Some(parent) = step.into[vertex] {
            let (old, new) = (&fine.vertices[vertex], &coarse.vertices[parent]);
            assert_eq!(old.bits, new.bits, "{vertex} is an end, {about}");
        }
    }
    let segments = segments(coarse);
    let pieces = pieces(coarse);
    let mut farthest = 0.0_f64;
    for (vertex, parent) in step.into.iter().enumerate() {
        let Some(parent) = parent else { continue };
        let piece = &segments[&pieces[*parent]];
        let off = piece
            .iter()
            .map(|[a, b]| off(fine.place(vertex), coarse.place(*a), coarse.place(*b)));
        farthest = farthest.max(off.fold(f64::INFINITY, f64::min));
    }
    let error = step.error.unwrap();
    assert!(
        farthest <= error + 1e-4,
        "{farthest} is more than {error}, {about}"
    );
    if let Some(tolerance) = tolerance {
        assert!(
            error <= tolerance,
            "{error} is more than {tolerance}, {about}"
        );
    }
}

/// Returns end points and branch points of lines.
fn fixed(level: &Level) -> Vec<usize> {
    let mut near: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut ends = BTreeSet::new();
    for (_, path) in level.objects.iter().flatten().filter(|_| level.is_named) {
        ends.extend(path.first().into_iter().chain(path.last()).copied());
        for pair in path.windows(2).filter(|pair| pair[0] != pair[1]) {
            near.entry(pair[0]).or_default().insert(pair[1]);
            near.entry(pair[1]).or_default().insert(pair[0]);
        }
    }
    for link in level
        .links
        .iter()
        .filter(|link| link.ends[0] != link.ends[1])
    {
        near.entry(link.ends[0]).or_default().insert(link.ends[1]);
        near.entry(link.ends[1]).or_default().insert(link.ends[0]);
    }
    let meet = near.into_iter().filter(|(_, near)| near.len() != 2);
    ends.extend(meet.map(|(vertex, _)| vertex));
    ends.into_iter().collect()
}

/// Labels connected components by their least vertex.
fn pieces(level: &Level) -> Vec<usize> {
    let mut pieces: Vec<usize> = (0..level.vertices.len()).collect();
    let all = joined(level);
    loop {
        let before = pieces.clone();
        for [a, b] in &all {
            let min = pieces[*a].min(pieces[*b]);
            (pieces[*a], pieces[*b]) = (min, min);
        }
        if before == pieces {
            return pieces;
        }
    }
}

/// Returns the segments of each component; each vertex is also a segment of length zero.
fn segments(level: &Level) -> BTreeMap<usize, Vec<[usize; 2]>> {
    let pieces = pieces(level);
    let mut segments: BTreeMap<usize, Vec<[usize; 2]>> = BTreeMap::new();
    let alone = (0..level.vertices.len()).map(|vertex| [vertex, vertex]);
    for [a, b] in joined(level).into_iter().chain(alone) {
        segments.entry(pieces[a]).or_default().push([a, b]);
    }
    segments
}

/// Returns pairs of vertices connected by a path or link.
fn joined(level: &Level) -> Vec<[usize; 2]> {
    let paths = level
        .objects
        .iter()
        .flatten()
        .filter(|_| level.is_named)
        .flat_map(|(_, path)| path.windows(2).map(|pair| [pair[0], pair[1]]));
    let links = level.links.iter().map(|link| [link.ends[0], link.ends[1]]);
    paths.chain(links).collect()
}

/// Returns the distance of a position from a segment.
fn off(place: &[f64], from: &[f64], to: &[f64]) -> f64 {
    let along: f64 = (0..place.len())
        .map(|axis| (place[axis] - from[axis]) * (to[axis] - from[axis]))
        .sum();
    let length: f64 = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b)).sum();
    let share = if length > 0.0 {
        (along / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let nearest: Vec<f64> = (0..place.len())
        .map(|axis| from[axis] + share * (to[axis] - from[axis]))
        .collect();
    super::bins::distance(place, &nearest)
}
