//! The subset method: some points of each cell keep their positions.

use std::collections::BTreeMap;

use super::{bins::distance, model::Level, step::Step};

pub(super) fn check(step: &Step<'_>, cell: &[f64], keep: usize) {
    let about = &step.about;
    let (fine, coarse) = (step.fine, step.coarse);
    let [owners, coarse_owners] = [fine, coarse].map(|level| owners(level, step));
    // A point is kept if it maps to a vertex at its own position.
    let stays = |vertex: usize| {
        step.into[vertex]
            .filter(|parent| coarse.vertices[*parent].bits == fine.vertices[vertex].bits)
    };
    let counts = |level: &Level, owners: &[Option<Owner>]| {
        let mut counts: BTreeMap<(Owner, Vec<i64>), usize> = BTreeMap::new();
        for (vertex, owner) in owners.iter().enumerate() {
            if let Some(owner) = owner {
                let key = (*owner, level.cell(vertex, cell));
                *counts.entry(key).or_default() += 1;
            }
        }
        counts
    };
    let found = counts(coarse, &coarse_owners);
    let mut there = counts(fine, &owners);
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
        let others = (0..coarse.vertices.len())
            .filter(|other| coarse.cell(*other, cell) == own)
            .filter(|other| coarse_owners[*other] == owners[vertex]);
        let off = |other: usize| distance(fine.place(vertex), coarse.place(other));
        let min = others.map(off).fold(f64::INFINITY, f64::min);
        match parent {
            Some(parent) => assert!(off(*parent) <= min, "{vertex}: not the nearest, {about}"),
            None => assert_eq!(owners[vertex], None, "{vertex} is lost, {about}"),
        }
    }
    assert!(!coarse_owners.contains(&None), "of no object, {about}");
}

/// The object of a vertex; `None` in levels without objects, and where objects share vertices, so
/// that they are sampled together.
type Owner = Option<i64>;

/// Returns the owner of each vertex, if it is of an object that the coarser level keeps.
fn owners(level: &Level, step: &Step<'_>) -> Vec<Option<Owner>> {
    let Some(objects) = &level.objects else {
        return vec![Some(None); level.vertices.len()];
    };
    let kept = step.coarse.present();
    let mut owners = vec![None; level.vertices.len()];
    for (id, own) in objects.iter().filter(|(id, _)| kept.contains(id)) {
        for vertex in own {
            owners[*vertex] = Some((!step.fine.is_named).then_some(*id));
        }
    }
    owners
}
