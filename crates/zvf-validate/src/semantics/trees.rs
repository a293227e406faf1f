//! Skeletons: a forest, with one tree per object.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::path::Delta;
use zvf_model::{root::LinksConvention, word::Word};

use super::{
    LevelView,
    numbers::{NONE, SEVERAL, VertexNumbers, at_of},
    parents::Parents,
};
use crate::{
    links::{LinkPart, each_link},
    rules::semantics as rules,
};

pub(super) async fn check(view: &LevelView<'_, '_>) {
    let has_links = view.counts.links.contains_key(&Delta::INTRA);
    // Coarser levels have vertices and objects but no links.
    if !view.is_full() && !has_links || !view.is_read() {
        return;
    }
    let Some(numbers) = view.numbers() else {
        return;
    };
    let per_vertex = u64::from(numbers.vertices).saturating_mul(9);
    let per_fragment = u64::from(numbers.fragments).saturating_mul(4);
    if !view.fits("following trees", per_vertex.saturating_add(per_fragment)) {
        return;
    }
    let mut parents = Parents::new(numbers.vertices);
    let is_implicit = view.scope.root.links_convention
        == Some(Word::Known(LinksConvention::ImplicitWithBranches));
    if is_implicit && !imply(view, &numbers, &mut parents).await {
        return;
    }
    let (mut twice, mut other) = (0_u64, 0_u64);
    let is_whole = each_link(
        &view.aside,
        view.scope,
        Delta::INTRA,
        |coords, _| numbers.span_at(coords),
        |part, record| {
            let ends = match record.ends {
                [(Some(one), first), (Some(other), second)] => {
                    one.vertex(*first).zip(other.vertex(*second))
                }
                _ => None,
            };
            match ends {
                Some((child, parent)) => {
                    let (child, parent) = if names_parents_first(view, part) {
                        (parent, child)
                    } else {
                        (child, parent)
                    };
                    twice = twice.saturating_add(u64::from(parents.store(child, parent)));
                }
                // L3 reports missing vertices.
                None => other = other.saturating_add(1),
            }
        },
    )
    .await;
    if !is_whole || other > 0 {
        return view.not_run("some links cannot be read, so trees were not followed");
    }
    let key = view.links_key();
    if twice > 0 {
        let message = format!("{twice} links give a vertex a second parent");
        view.context.report(&rules::TWO_PARENTS, &key, message);
    }
    let cycles = parents.cycles();
    if let Some(first) = cycles.first() {
        let count = cycles.len();
        let message = format!("vertex {first} of the level is its own ancestor; {count} cycles");
        view.context.report(&rules::CYCLE, &key, message);
    }
    objects(view, &numbers, &parents).await;
}

/// Sets the parents that the order of rows in a fragment implies. Returns whether all fragments were
/// visited; reports it otherwise.
async fn imply(view: &LevelView<'_, '_>, numbers: &VertexNumbers, parents: &mut Parents) -> bool {
    view.each_fragment(numbers, &BTreeSet::new(), |span, _, rows| {
        let mut before = None;
        for row in rows {
            let vertex = span.vertex(row);
            if let (Some(parent), Some(child)) = (before, vertex) {
                parents.imply(child, parent);
            }
            before = vertex;
        }
    })
    .await
}

/// Returns whether the links of a part name the parent first. Streamed skeletons name the child
/// first inside chunks, but the parent first between them.
fn names_parents_first(view: &LevelView<'_, '_>, part: &LinkPart) -> bool {
    let root = view.scope.root;
    root.names_parents_first(view.scope.store.layout().generation)
        && part.family.directed
        && !part.is_inside
}

/// Checks that parents belong to the object of their children, and that each object is one tree.
async fn objects(view: &LevelView<'_, '_>, numbers: &VertexNumbers, parents: &Parents) {
    let Some(owners) = view.vertex_owners(numbers).await else {
        return;
    };
    let is_object = |owner: &&u32| **owner != NONE && **owner != SEVERAL;
    let mut roots: BTreeMap<u32, u64> = BTreeMap::new();
    let mut limbs = 0_u64;
    for vertex in 0..numbers.vertices {
        let own = at_of(&owners, vertex).filter(is_object);
        match (parents.of(vertex), own) {
            (None, Some(own)) => {
                let count = roots.entry(*own).or_default();
                *count = count.saturating_add(1);
            }
            (Some(parent), Some(own)) => {
                let other = at_of(&owners, parent).filter(is_object);
                limbs = limbs.saturating_add(u64::from(other.is_some_and(|other| other != own)));
            }
            _ => {}
        }
    }
    let key = &view.scope.level.key;
    if limbs > 0 {
        let message = format!("{limbs} vertices have a parent in another object");
        view.context
            .report(&rules::PARENT_IN_OTHER_OBJECT, key, message);
    }
    let mut several = roots.iter().filter(|(_, count)| **count > 1);
    if let Some((row, count)) = several.next() {
        let more = several.count();
        let message =
            format!("the object in row {row} has {count} roots; {more} more such objects");
        view.context.report(&rules::FOREST, key, message);
    }
}
