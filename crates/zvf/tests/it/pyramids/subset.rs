//! The subset method: some points of each cell keep their positions.

use std::collections::BTreeMap;

use super::{bins::distance, step::Step};

pub(super) fn check(step: &Step<'_>, cell: &[f64], keep: usize) {
    let about = &step.about;
    let (fine, coarse) = (step.fine, step.coarse);
    let owners = fine.owners();
    // A point is kept if it maps to a vertex at its own position.
    let stays = |vertex: usize| {
        step.into[vertex]
            .filter(|parent| coarse.vertices[*parent].bits == fine.vertices[vertex].bits)
    };
    let coarse_owners = coarse.owners();
    let mut found: BTreeMap<(Option<i64>, Vec<i64>), usize> = BTreeMap::new();
    for (vertex, owner) in coarse_owners.iter().enumerate() {
        let key = (*owner, coarse.cell(vertex, cell));
        *found.entry(key).or_default() += 1;
    }
    let mut there: BTreeMap<(Option<i64>, Vec<i64>), usize> = BTreeMap::new();
    for (vertex, owner) in owners.iter().enumerate() {
        let key = (*owner, fine.cell(vertex, cell));
        *there.entry(key).or_default() += 1;
    }
    // For each object, a cell keeps this many of its points, or all.
    for (cell, count) in &mut there {
        *count = (*count).min(keep);
        assert_eq!(Some(&*count), found.get(cell), "{cell:?}, {about}");
    }
    assert_eq!(there.len(), found.len(), "{about}");
    let kept: Vec<Option<usize>> = (0..fine.vertices.len()).map(stays).collect();
    for members in &step.members {
        assert!(
            members.iter().any(|at| kept[*at].is_some()),
            "moved, {about}"
        );
    }
    for (vertex, parent) in step.into.iter().enumerate() {
        let own = fine.cell(vertex, cell);
        let others = (0..coarse.vertices.len()).filter(|other| coarse.cell(*other, cell) == own);
        let others = others.filter(|other| coarse_owners[*other] == owners[vertex]);
        let off = |other: usize| distance(fine.place(vertex), coarse.place(other));
        let min = others.map(off).fold(f64::INFINITY, f64::min);
        match parent {
            Some(parent) => assert!(off(*parent) <= min, "{vertex}: not the nearest, {about}"),
            None => panic!("{vertex} is lost, {about}"),
        }
    }
}
