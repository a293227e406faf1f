//! Nearest-neighbour search among vertices.

use super::{VertexBlock, distance::square};

/// Range size below which a linear scan is faster.
const MAX_SCANNED_ROWS: usize = 12;

/// Implicit k-d tree: the median of each range splits it along the axis of its depth.
#[derive(Clone, Debug)]
pub(super) struct Nearest<'a> {
    block: &'a VertexBlock,
    rows: Vec<u32>,
}

impl<'a> Nearest<'a> {
    /// Builds the tree of some vertices.
    pub(super) fn new(block: &'a VertexBlock, mut rows: Vec<u32>) -> Self {
        sort(block, &mut rows);
        Self { block, rows }
    }

    /// Returns the vertex nearest to a position and its squared distance; the lowest row of equals.
    pub(super) fn find(&self, position: &[f64]) -> Option<(f64, u32)> {
        let mut best = None;
        self.search(position, 0, self.rows.len(), 0, &mut best);
        best
    }

    fn search(
        &self,
        position: &[f64],
        start: usize,
        end: usize,
        axis: usize,
        best: &mut Option<(f64, u32)>,
    ) {
        let mut visit = |row: u32| {
            let found = (square(position, self.block.position(row as usize)), row);
            if best.is_none_or(|best| found < best) {
                *best = Some(found);
            }
        };
        if end - start <= MAX_SCANNED_ROWS {
            self.rows[start..end].iter().for_each(|row| visit(*row));
            return;
        }
        let middle = usize::midpoint(start, end);
        let row = self.rows[middle];
        visit(row);
        let side = position[axis] - self.block.position(row as usize)[axis];
        let next = (axis + 1) % self.block.axes;
        let (near, far) = if side < 0.0 {
            ((start, middle), (middle + 1, end))
        } else {
            ((middle + 1, end), (start, middle))
        };
        self.search(position, near.0, near.1, next, best);
        // Equal distances are searched too, for the lowest row.
        if best.is_none_or(|best| side * side <= best.0) {
            self.search(position, far.0, far.1, next, best);
        }
    }
}

fn sort(block: &VertexBlock, rows: &mut [u32]) {
    let mut ranges = vec![(0, rows.len(), 0)];
    while let Some((start, end, axis)) = ranges.pop() {
        if end - start <= MAX_SCANNED_ROWS {
            continue;
        }
        let middle = usize::midpoint(start, end);
        let at = |row: u32| block.position(row as usize)[axis];
        rows[start..end].select_nth_unstable_by(middle - start, |a, b| {
            at(*a).total_cmp(&at(*b)).then(a.cmp(b))
        });
        let next = (axis + 1) % block.axes;
        ranges.extend([(start, middle, next), (middle + 1, end, next)]);
    }
}
