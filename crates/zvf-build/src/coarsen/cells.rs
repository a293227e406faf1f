//! Numbering of the cells of a block in coordinate order.

use rayon::prelude::*;

use super::{NO_VERTEX, Topology, VertexBlock};
use crate::coordinates::{self, BLOCK};

/// Cell of each vertex.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cells {
    /// Cell number of each vertex, ascending by (owner, cell) if owners are separated, else by
    /// cell. Every number below `count` occurs.
    pub(super) of: Vec<u32>,
    /// Number of non-empty cells.
    pub(super) count: usize,
}

impl Cells {
    /// Assigns vertices to cells of this extent. Axes beyond the length of `cell` are not divided.
    /// `by_owner` separates vertices of different owners.
    pub(super) fn new(block: &VertexBlock, cell: &[f64], by_owner: bool) -> Self {
        let vertices = block.len();
        let has_owners = by_owner && !block.owners.is_empty();
        let cell_of = |value: f64, axis: usize| -> i64 {
            let extent = cell.get(axis).copied().unwrap_or(f64::INFINITY);
            // The format defines cells as the floor of a 64-bit quotient.
            coordinates::floor(value / extent)
        };
        let at = |vertex: usize, axis: usize| -> i64 {
            match axis.checked_sub(usize::from(has_owners)) {
                None => block.owner(vertex).into(),
                Some(axis) => cell_of(block.positions[vertex * block.axes + axis], axis),
            }
        };
        let axes = block.axes + usize::from(has_owners);
        let all = (0..vertices).into_par_iter().with_min_len(BLOCK);
        let mut lower = Vec::with_capacity(axes);
        let mut upper = Vec::with_capacity(axes);
        if has_owners {
            let owners = all.clone().map(|vertex| i64::from(block.owner(vertex)));
            lower.extend(owners.clone().min());
            upper.extend(owners.max());
        }
        let (least, greatest) = block.extent_of(all.clone());
        // Quotients are ordered as the dividends.
        for (axis, (least, greatest)) in least.into_iter().zip(greatest).enumerate() {
            let (least, greatest) = (cell_of(least, axis), cell_of(greatest, axis));
            lower.push(least.min(greatest));
            upper.push(least.max(greatest));
        }
        let mut spans = lower
            .iter()
            .zip(&upper)
            .map(|(lower, upper)| upper.abs_diff(*lower).checked_add(1));
        let total = spans.try_fold(1_u64, |total, span| total.checked_mul(span?));
        let Some(total) = total.filter(|_| vertices > 0) else {
            // Spans too large for one key, as no chunk has: rank axis by axis.
            let mut cells = Self {
                of: vec![0; vertices],
                count: vertices.min(1),
            };
            for axis in 0..axes {
                let keys = cells.of.iter().zip(0..);
                cells = Self::ranked(keys.map(|(rank, vertex)| (*rank, at(vertex, axis))));
            }
            return cells;
        };
        let key = |vertex: usize| {
            (0..axes).fold(0, |key: u64, axis| {
                let (lower, upper) = (lower[axis], upper[axis]);
                // NaN has no place in the order.
                let at = at(vertex, axis).clamp(lower, upper);
                key * (upper.abs_diff(lower) + 1) + at.abs_diff(lower)
            })
        };
        match usize::try_from(total) {
            Ok(total) if total <= vertices.saturating_mul(4) => {
                Self::counted(all.map(|vertex| key(vertex) as u32).collect(), total)
            }
            _ => Self::ranked((0..vertices).map(key)),
        }
    }

    /// Ranks keys below `total` with a table.
    fn counted(mut keys: Vec<u32>, total: usize) -> Self {
        let mut numbers = vec![NO_VERTEX; total];
        for key in &keys {
            numbers[*key as usize] = 0;
        }
        let mut count = 0;
        for number in numbers.iter_mut().filter(|number| **number == 0) {
            *number = count;
            count += 1;
        }
        keys.par_iter_mut()
            .with_min_len(BLOCK)
            .for_each(|key| *key = numbers[*key as usize]);
        Self {
            of: keys,
            count: count as usize,
        }
    }

    /// Ranks keys by sorting.
    fn ranked<K: Ord + Copy>(keys: impl Iterator<Item = K>) -> Self {
        let mut sorted: Vec<(K, u32)> = keys.zip(0..).collect();
        sorted.sort_unstable();
        let mut cells = Self {
            of: vec![0; sorted.len()],
            count: 0,
        };
        let mut last = None;
        for (key, vertex) in sorted {
            cells.count += usize::from(last != Some(key));
            last = Some(key);
            cells.of[vertex as usize] = cells.count as u32 - 1;
        }
        cells
    }

    /// Turns cells into vertices of the coarser level: for paths the visited cells in order of
    /// visits, for trees the connected parts of cells by first vertex, else the cells.
    pub(super) fn merged(self, block: &VertexBlock) -> (Vec<u32>, usize) {
        match block.topology {
            Topology::Paths | Topology::SharedPoints => self.visited(block),
            Topology::Trees => self.connected(block),
            _ => (self.of, self.count),
        }
    }

    fn visited(self, block: &VertexBlock) -> (Vec<u32>, usize) {
        let mut numbers = vec![NO_VERTEX; self.count];
        let mut parent = vec![NO_VERTEX; self.of.len()];
        let mut count = 0;
        for row in block.paths.iter().flat_map(|path| &path.rows) {
            let number = &mut numbers[self.of[*row as usize] as usize];
            if *number == NO_VERTEX {
                *number = count;
                count += 1;
            }
            // Vertices that no path visits belong to dropped objects.
            parent[*row as usize] = *number;
        }
        (parent, count as usize)
    }

    fn connected(self, block: &VertexBlock) -> (Vec<u32>, usize) {
        let mut top: Vec<u32> = (0..block.len() as u32).collect();
        let top_of = |top: &mut [u32], mut row: u32| {
            while top[row as usize] != row {
                // Path halving.
                top[row as usize] = top[top[row as usize] as usize];
                row = top[row as usize];
            }
            row
        };
        for link in block.links.chunks_exact(block.width.max(1)) {
            for end in &link[1..] {
                if self.of[*end as usize] == self.of[link[0] as usize] {
                    let (a, b) = (top_of(&mut top, *end), top_of(&mut top, link[0]));
                    // The lowest row is the representative.
                    top[a.max(b) as usize] = a.min(b);
                }
            }
        }
        let mut numbers = self.of;
        let mut count = 0;
        for row in 0..block.len() as u32 {
            let first = top_of(&mut top, row);
            numbers[row as usize] = if first == row {
                count += 1;
                count - 1
            } else {
                numbers[first as usize]
            };
        }
        (numbers, count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(axes: usize, positions: &[f64]) -> VertexBlock {
        VertexBlock {
            axes,
            positions: positions.to_vec(),
            ..VertexBlock::default()
        }
    }

    #[test]
    fn cells_are_numbered_in_coordinate_order_at_any_distance() {
        let check = |axes, positions: &[f64], expected: &[u32]| {
            let cells = Cells::new(&block(axes, positions), &vec![1.0; axes], true);
            assert_eq!(cells.of, expected, "{positions:?}");
            let count = expected.iter().max().map_or(0, |last| last + 1);
            assert_eq!(cells.count, count as usize);
        };
        check(1, &[], &[]);
        check(1, &[0.5, -0.5, 0.9, -1.0], &[1, 0, 1, 0]);
        check(2, &[0.0, 5.0, 1.0, 0.0, 0.0, 4.0], &[1, 2, 0]);
        check(1, &[1e6, 0.0, 1e3], &[2, 0, 1]);
        let far = [1e300, 0.0, -1e300, 7.0, 1e300, -1.0, -1e300, 7.5];
        check(2, &far, &[2, 0, 1, 0]);
    }

    #[test]
    fn owners_sort_before_cells() {
        let mut block = block(1, &[0.5, 9.5, 0.5, 0.6]);
        block.owners = vec![7, 2, super::super::NO_OBJECT, 7];
        assert_eq!(Cells::new(&block, &[1.0], true).of, [1, 0, 2, 1]);
        assert_eq!(Cells::new(&block, &[1.0], false).of, [0, 1, 0, 0]);
        assert_eq!(Cells::new(&block, &[], false).of, [0, 0, 0, 0]);
    }
}
