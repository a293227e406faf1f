//! The bins method: all vertices of an object in a cell become one vertex at their mean or medoid.

use std::collections::{BTreeMap, BTreeSet};

use zvf::coarsen::{CoarsenMethod, Placement};
use zvf_build::GeometryKind;

use super::step::Step;

/// A cell and the owner of its vertices: none for paths, a connected component of an object for
/// trees, otherwise an object.
type Key = (Vec<i64>, Option<i64>, usize);

pub(super) fn check(step: &Step<'_>, cell: &[f64]) {
    let about = &step.about;
    let mut expected: BTreeMap<Key, BTreeSet<usize>> = BTreeMap::new();
    for (vertex, key) in keys(step, cell).into_iter().enumerate() {
        if step.into[vertex].is_some() {
            expected.entry(key).or_default().insert(vertex);
        }
    }
    let expected: BTreeSet<BTreeSet<usize>> = expected.into_values().collect();
    let members = step.members.iter();
    let found = members.map(|own| own.iter().copied().collect::<BTreeSet<usize>>());
    assert_eq!(expected, found.collect(), "{about}");
    let times = times(step);
    let CoarsenMethod::Bins { placement, .. } = &step.design.method else {
        panic!("{about}")
    };
    let mut farthest = 0.0_f64;
    for (members, vertex) in step.members.iter().zip(&step.coarse.vertices) {
        let total: f64 = members.iter().map(|at| times[*at]).sum();
        let mean = |axis: usize| {
            let sum = members
                .iter()
                .map(|at| times[*at] * step.fine.place(*at)[axis]);
            sum.sum::<f64>() / total
        };
        let mean: Vec<f64> = (0..step.fine.axes).map(mean).collect();
        let off = |at: &usize| distance(&mean, step.fine.place(*at));
        match placement {
            Placement::Mean => {
                let off = distance(&mean, &vertex.place);
                assert!(off < 1e-4, "{mean:?} is at {:?}, {about}", vertex.place);
            }
            Placement::Medoid => {
                let min = members.iter().map(off).fold(f64::INFINITY, f64::min);
                let own = |at: &&usize| step.fine.vertices[**at].bits == vertex.bits;
                let own = members.iter().find(own);
                let off = off(own.unwrap_or_else(|| panic!("it is not a member, {about}")));
                assert!(off < min + 1e-6, "{off} and not {min}, {about}");
            }
        }
        for member in members {
            farthest = farthest.max(distance(step.fine.place(*member), &vertex.place));
        }
    }
    if let Some(error) = step.error {
        assert!(
            (error - farthest).abs() < 1e-3,
            "{error} and not {farthest}, {about}"
        );
    }
}

/// Returns the weight of each vertex.
fn times(step: &Step<'_>) -> Vec<f64> {
    if !step.fine.is_named && !step.coarse.is_named {
        return vec![1.0; step.fine.vertices.len()];
    }
    let mut times = vec![0.0; step.fine.vertices.len()];
    for id in step.coarse.present() {
        for vertex in step.fine.of(id) {
            times[*vertex] += 1.0;
        }
    }
    times
}

fn keys(step: &Step<'_>, cell: &[f64]) -> Vec<Key> {
    let fine = step.fine;
    let count = fine.vertices.len();
    let cells: Vec<Vec<i64>> = (0..count).map(|vertex| fine.cell(vertex, cell)).collect();
    let owners = if step.coarse.is_named {
        vec![None; count]
    } else {
        fine.owners()
    };
    let mut pieces = vec![0; count];
    if fine.kind == Some(GeometryKind::Skeletons) {
        // Each vertex gets the least vertex that is reachable without leaving cell or object.
        pieces = (0..count).collect();
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for link in &fine.links {
                let [a, b] = [link.ends[0], link.ends[1]];
                let is_inside = cells[a] == cells[b] && step.into[a].is_some();
                if is_inside && step.into[b].is_some() && pieces[a] != pieces[b] {
                    let min = pieces[a].min(pieces[b]);
                    (pieces[a], pieces[b], is_done) = (min, min, false);
                }
            }
        }
    }
    let keys = cells.into_iter().zip(owners).zip(pieces);
    keys.map(|((cell, owner), piece)| (cell, owner, piece))
        .collect()
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}
