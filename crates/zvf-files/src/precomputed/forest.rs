//! Edges of skeletons as links of trees.

use std::collections::HashSet;

/// The links of a skeleton that is a tree, or several.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Forest {
    /// Links (child, parent), in the order of the edges.
    pub(super) links: Vec<[u32; 2]>,
    /// Edges that repeat, or that join a vertex with itself.
    pub(super) left_out: usize,
}

impl Forest {
    /// Directs edges between `vertices` vertices so that each vertex has at most one parent; `None`
    /// if the edges form a circle. The edges name existing vertices.
    ///
    /// Edges keep their direction if that makes a tree, or are all reversed. Otherwise the first
    /// vertex of each tree becomes its root.
    pub(super) fn of(vertices: usize, edges: &[[u32; 2]]) -> Option<Self> {
        let mut links = edges.to_vec();
        if has_circle(vertices, &links) {
            let mut known = HashSet::with_capacity(links.len());
            links.retain(|[a, b]| a != b && known.insert([*a.min(b), *a.max(b)]));
            if has_circle(vertices, &links) {
                return None;
            }
        }
        let left_out = edges.len().saturating_sub(links.len());
        if are_distinct(vertices, links.iter().map(|[child, _]| *child)) {
            return Some(Self { links, left_out });
        }
        if are_distinct(vertices, links.iter().map(|[_, child]| *child)) {
            for link in &mut links {
                link.reverse();
            }
            return Some(Self { links, left_out });
        }
        let parents = parents(vertices, &links);
        for link in &mut links {
            let [a, b] = *link;
            if parents.get(index(a)).copied().flatten() != Some(b) {
                *link = [b, a];
            }
        }
        Some(Self { links, left_out })
    }
}

fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

fn are_distinct(vertices: usize, mut rows: impl Iterator<Item = u32>) -> bool {
    let mut known = vec![false; vertices];
    rows.all(|row| {
        let place = known.get_mut(index(row));
        place.is_some_and(|known| !std::mem::replace(known, true))
    })
}

/// Returns whether an edge joins vertices that other edges connect already.
fn has_circle(vertices: usize, edges: &[[u32; 2]]) -> bool {
    let mut sets: Vec<usize> = (0..vertices).collect();
    edges.iter().any(|[a, b]| {
        let (one, other) = (root(&mut sets, index(*a)), root(&mut sets, index(*b)));
        if let Some(set) = sets.get_mut(one) {
            *set = other;
        }
        one == other
    })
}

/// Returns the representative of a set, and halves the way to it.
fn root(sets: &mut [usize], mut at: usize) -> usize {
    while let Some(next) = sets.get(at).copied().filter(|next| *next != at) {
        let after = sets.get(next).copied().unwrap_or(next);
        if let Some(set) = sets.get_mut(at) {
            *set = after;
        }
        at = after;
    }
    at
}

/// Returns the parent of each vertex, seen from the first vertex of each tree.
fn parents(vertices: usize, edges: &[[u32; 2]]) -> Vec<Option<u32>> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); vertices];
    for [a, b] in edges {
        for (from, to) in [(a, b), (b, a)] {
            if let Some(list) = neighbours.get_mut(index(*from)) {
                list.push(*to);
            }
        }
    }
    let mut parents = vec![None; vertices];
    let mut is_seen = vec![false; vertices];
    for first in 0..u32::try_from(vertices).unwrap_or(u32::MAX) {
        let mut open = vec![first];
        while let Some(vertex) = open.pop() {
            let Some(seen) = is_seen.get_mut(index(vertex)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            for next in neighbours.get(index(vertex)).into_iter().flatten() {
                if is_seen.get(index(*next)) == Some(&false) {
                    if let Some(parent) = parents.get_mut(index(*next)) {
                        *parent = Some(vertex);
                    }
                    open.push(*next);
                }
            }
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vertices: usize, edges: &[[u32; 2]], links: Option<&[[u32; 2]]>, left_out: usize) {
        let expected = links.map(|links| Forest {
            links: links.to_vec(),
            left_out,
        });
        assert_eq!(Forest::of(vertices, edges), expected, "{edges:?}");
    }

    #[test]
    fn edges_keep_their_direction_if_they_form_a_tree() {
        check(0, &[], Some(&[]), 0);
        check(3, &[[1, 0], [2, 0]], Some(&[[1, 0], [2, 0]]), 0);
        check(3, &[[0, 1], [1, 2]], Some(&[[0, 1], [1, 2]]), 0);
    }

    #[test]
    fn other_edges_are_directed_to_the_first_vertex() {
        // From the root to its children.
        check(3, &[[0, 1], [0, 2]], Some(&[[1, 0], [2, 0]]), 0);
        // Mixed: 1 and 2 are joined twice as first and as second end.
        let edges = [[1, 0], [1, 2], [3, 2], [3, 4]];
        let links = [[1, 0], [2, 1], [3, 2], [4, 3]];
        check(6, &edges, Some(&links), 0);
        let edges = [[4, 3], [4, 5], [5, 3]];
        check(6, &edges, None, 0);
    }

    #[test]
    fn repeated_edges_are_left_out_and_circles_are_no_trees() {
        check(2, &[[1, 0], [0, 1], [1, 1]], Some(&[[1, 0]]), 2);
        check(3, &[[0, 1], [1, 2], [2, 0]], None, 0);
    }
}
