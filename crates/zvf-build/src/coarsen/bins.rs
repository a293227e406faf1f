//! Binning: the vertices of a cell become one.

use rayon::prelude::*;

use super::{
    MergedPositions, NO_VERTEX, Topology, VertexBlock, VertexMerge, cells::Cells, distance::square,
    members::Members,
};
use crate::coordinates::BLOCK;

/// Position of the vertex that replaces a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Mean of the replaced vertices.
    #[default]
    Mean,
    /// The replaced vertex nearest to their mean.
    Medoid,
}

/// Merges the vertices of each owner in a cell; with `share`, and for paths, those of all owners.
/// In trees only connected vertices merge, so that trees remain trees.
pub(super) fn merge(
    block: &VertexBlock,
    cell: &[f64],
    placement: Placement,
    share: bool,
) -> VertexMerge {
    let by_owner = match block.topology {
        Topology::Paths | Topology::SharedPoints => false,
        Topology::Trees => true,
        _ => !share,
    };
    let (parent, count) = Cells::new(block, cell, by_owner).merged(block);
    let members = members(block, &parent, count);
    let means = means(block, &members);
    let positions = match placement {
        Placement::Mean => MergedPositions::Computed(means),
        Placement::Medoid => MergedPositions::Source(medoids(block, &members, &means)),
    };
    let mut merge = VertexMerge {
        parent,
        positions,
        error: None,
        dropped_pieces: 0,
    };
    // A face with merged corners vanishes, and its points may be far from all others.
    if block.topology != Topology::Faces {
        merge.error = Some(merge.farthest(block));
    }
    merge
}

/// Groups the vertices by the vertex that replaces them; vertices of paths as often as paths
/// reference them.
fn members(block: &VertexBlock, parent: &[u32], count: usize) -> Members {
    match block.topology {
        Topology::Paths | Topology::SharedPoints => {
            let visits = block.paths.iter().flat_map(|path| &path.rows).copied();
            Members::of_visits(parent, count, visits)
        }
        _ => Members::new(parent, count),
    }
}

fn means(block: &VertexBlock, members: &Members) -> Vec<f64> {
    let axes = block.axes;
    let mut means = members.by_parent(&|parents| {
        let mut means = vec![0.0; parents.len() * axes];
        for (mean, parent) in means.chunks_exact_mut(axes.max(1)).zip(parents) {
            let rows = members.of(parent);
            for row in rows {
                for (sum, value) in mean.iter_mut().zip(block.position(*row as usize)) {
                    *sum += value;
                }
            }
            let count = f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            for sum in mean {
                *sum /= count;
            }
        }
        means
    });
    let rows = members.rows().par_iter().with_min_len(BLOCK);
    let (lower, upper) = block.extent_of(rows.map(|row| *row as usize));
    for mean in means.chunks_exact_mut(axes.max(1)) {
        for (axis, mean) in mean.iter_mut().enumerate() {
            // Clamping to the members' extent keeps a rounded mean in their chunk.
            *mean = mean.max(lower[axis]).min(upper[axis]);
            if let (Some(lower), Some(upper)) = (block.lower.get(axis), block.upper.get(axis)) {
                *mean = inside(*mean, *lower, *upper);
            }
        }
    }
    means
}

/// Returns the number, or one close to it, that lies in the range also as a 32-bit float.
fn inside(value: f64, lower: f64, upper: f64) -> f64 {
    let is_inside = |value: f64| lower <= value && value < upper;
    let single = value as f32;
    if is_inside(value) && is_inside(single.into()) {
        return value;
    }
    let steps = [single, single.next_up(), single.next_down()];
    let nudged = steps
        .into_iter()
        .map(f64::from)
        .find(|step| is_inside(*step));
    // No 32-bit float lies in the range: such chunks need 64-bit positions.
    nudged.unwrap_or(value.min(upper.next_down()).max(lower))
}

/// Returns the member nearest to each mean, the first of equals.
fn medoids(block: &VertexBlock, members: &Members, means: &[f64]) -> Vec<u32> {
    let axes = block.axes;
    members.by_parent(&|parents| {
        let nearest = parents.map(|parent| {
            let mean = &means[parent * axes..(parent + 1) * axes];
            let mut nearest = (f64::INFINITY, NO_VERTEX);
            for row in members.of(parent) {
                let found = (square(mean, block.position(*row as usize)), *row);
                if nearest.1 == NO_VERTEX || found < nearest {
                    nearest = found;
                }
            }
            nearest.1
        });
        nearest.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_moved_into_the_chunk() {
        let check = |value: f64, lower: f64, upper: f64| {
            let found = inside(value, lower, upper);
            let single = f64::from(found as f32);
            assert!(lower <= found && found < upper, "{found}");
            assert!(lower <= single && single < upper, "{single}");
            assert!(
                (found - value).abs() <= 3e-7 * value.abs().max(1e-30),
                "{found}"
            );
        };
        check(10.0_f64.next_down(), 0.0, 10.0);
        check(10.0, 0.0, 10.0);
        check(0.3, 0.1 + 0.2, 0.4);
        check(-10.0_f64.next_up(), -20.0, -10.0);
        check(0.1_f64.next_up(), 0.1, 0.2);
        check(0.7_f64.next_down(), 0.0, 0.7);
        let same = |a: f64, b: f64| assert_eq!(a.to_bits(), b.to_bits());
        same(inside(5.3, 0.0, 10.0), 5.3);
        same(inside(1.0, 1.0 + 1e-12, 1.0 + 2e-12), 1.0 + 1e-12);
    }
}
