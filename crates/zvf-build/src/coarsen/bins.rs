//! Binning: the vertices of a cell become one.

use super::{
    MergedPositions, NO_VERTEX, Topology, VertexBlock, VertexMerge, by_parent, cells::Cells,
    distance::square,
};

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
        Topology::Paths => false,
        Topology::Trees => true,
        _ => !share,
    };
    let (parent, count) = Cells::new(block, cell, by_owner).merged(block);
    let means = means(block, &parent, count);
    let positions = match placement {
        Placement::Mean => MergedPositions::Computed(means),
        Placement::Medoid => MergedPositions::Source(medoids(block, &parent, &means, count)),
    };
    let mut merge = VertexMerge {
        parent,
        positions,
        error: None,
    };
    // A face with merged corners vanishes, and its points may be far from all others.
    if block.topology != Topology::Faces {
        merge.error = Some(merge.farthest(block));
    }
    merge
}

/// Visits each vertex; for paths, each vertex as often as paths reference it.
fn for_each_member(block: &VertexBlock, visit: impl FnMut(usize)) {
    match block.topology {
        Topology::Paths => {
            let rows = block.paths.iter().flat_map(|path| &path.rows);
            rows.map(|row| *row as usize).for_each(visit);
        }
        _ => (0..block.len()).for_each(visit),
    }
}

fn means(block: &VertexBlock, parent: &[u32], count: usize) -> Vec<f64> {
    let axes = block.axes;
    let mut means = by_parent(block.len(), count, &|range| {
        let mut sums = vec![0.0; range.len() * axes];
        let mut members = vec![0_u32; range.len()];
        for_each_member(block, |vertex| {
            let number = (parent[vertex] as usize).wrapping_sub(range.start);
            let Some(members) = members.get_mut(number) else {
                return;
            };
            *members = members.saturating_add(1);
            let sums = &mut sums[number * axes..(number + 1) * axes];
            for (sum, value) in sums.iter_mut().zip(block.position(vertex)) {
                *sum += value;
            }
        });
        for (sums, members) in sums.chunks_exact_mut(axes.max(1)).zip(members) {
            for sum in sums {
                *sum /= f64::from(members);
            }
        }
        sums
    });
    let (lower, upper) = extent(block);
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

/// Returns the corners of the box around all members.
fn extent(block: &VertexBlock) -> (Vec<f64>, Vec<f64>) {
    let mut lower = vec![f64::INFINITY; block.axes];
    let mut upper = vec![f64::NEG_INFINITY; block.axes];
    for_each_member(block, |vertex| {
        for (axis, value) in block.position(vertex).iter().enumerate() {
            lower[axis] = lower[axis].min(*value);
            upper[axis] = upper[axis].max(*value);
        }
    });
    (lower, upper)
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
fn medoids(block: &VertexBlock, parent: &[u32], means: &[f64], count: usize) -> Vec<u32> {
    let axes = block.axes;
    let mut nearest = vec![(f64::INFINITY, NO_VERTEX); count];
    for_each_member(block, |vertex| {
        let number = parent[vertex] as usize;
        let mean = &means[number * axes..(number + 1) * axes];
        let found = (square(mean, block.position(vertex)), vertex as u32);
        if nearest[number].1 == NO_VERTEX || found < nearest[number] {
            nearest[number] = found;
        }
    });
    nearest.into_iter().map(|(_, vertex)| vertex).collect()
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
