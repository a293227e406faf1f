//! Iteration over the cells of a grid that a selection touches.

use crate::hyperslab::AxisRange;

/// The part of a selection in one cell, along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPart {
    /// The index of the cell along the axis.
    pub cell: u64,
    /// The first element, relative to the start of the cell. Further elements are one step of the
    /// selection apart.
    pub offset: u64,
    /// The position of that element in the selection.
    pub at: u64,
    /// The number of elements, at least 1.
    pub count: u64,
}

impl CellPart {
    /// Divides the part into smaller cells, which count from the start of this cell. `at` remains a
    /// position in the selection.
    pub fn parts(self, step: u64, cell_len: u64) -> CellParts {
        CellParts {
            start: self.offset,
            step,
            cell_len: cell_len.max(1),
            done: 0,
            count: self.count,
            at: self.at,
        }
    }
}

/// Iterates over the cells of one axis that a selection touches.
#[derive(Clone, Debug)]
pub struct CellParts {
    start: u64,
    step: u64,
    cell_len: u64,
    done: u64,
    count: u64,
    /// The position of the first element in the selection.
    at: u64,
}

impl AxisRange {
    /// Divides the range at the borders of cells of this length, in constant time per touched cell. Cells
    /// between two elements are skipped.
    pub fn parts(self, cell_len: u64) -> CellParts {
        CellParts {
            start: self.start(),
            step: self.step(),
            cell_len: cell_len.max(1),
            done: 0,
            count: self.count(),
            at: 0,
        }
    }
}

impl Iterator for CellParts {
    type Item = CellPart;

    fn next(&mut self) -> Option<CellPart> {
        let left = self.count.checked_sub(self.done).filter(|left| *left > 0)?;
        // Does not saturate: all elements of an `AxisRange` are below 2^64.
        let position = self
            .done
            .saturating_mul(self.step)
            .saturating_add(self.start);
        let cell = position.checked_div(self.cell_len)?;
        let offset = position.checked_rem(self.cell_len)?;
        let rest = self.cell_len.saturating_sub(offset).saturating_sub(1);
        let count = rest.checked_div(self.step)?.saturating_add(1).min(left);
        let at = self.at.saturating_add(self.done);
        self.done = self.done.saturating_add(count);
        Some(CellPart {
            cell,
            offset,
            at,
            count,
        })
    }
}

/// Counts the cells of this length that a range touches.
pub(super) fn touched(range: AxisRange, cell_len: u64) -> u64 {
    let cell_len = cell_len.max(1);
    let Some(last) = range.last() else {
        return 0;
    };
    if range.step() >= cell_len {
        return range.count();
    }
    let (first, last) = (range.start() / cell_len, last / cell_len);
    last.saturating_sub(first).saturating_add(1)
}

/// Iterates over the cells of a grid that a selection touches, in row-major order, with memory for one
/// cell.
#[derive(Clone, Debug)]
pub struct GridCells {
    axes: Vec<CellParts>,
    walks: Vec<CellParts>,
    parts: Vec<CellPart>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Within,
    After,
}

impl GridCells {
    /// Creates an iterator over the cells of these extents that the ranges touch.
    pub fn new(ranges: &[AxisRange], cell: &[u64]) -> Self {
        let axes = ranges.iter().zip(cell);
        Self::of(axes.map(|(range, &len)| range.parts(len)))
    }

    /// Creates an iterator over the smaller cells inside a cell that contain elements of a selection:
    /// `parts` of the cell, at the steps of `ranges`.
    pub fn within(parts: &[CellPart], ranges: &[AxisRange], cell: &[u64]) -> Self {
        let axes = parts.iter().zip(ranges).zip(cell);
        Self::of(axes.map(|((part, range), &len)| part.parts(range.step(), len)))
    }

    fn of(axes: impl Iterator<Item = CellParts>) -> Self {
        Self {
            axes: axes.collect(),
            walks: Vec::new(),
            parts: Vec::new(),
            state: State::Before,
        }
    }

    /// Returns the selected part of the next cell along each axis.
    #[expect(
        clippy::should_implement_trait,
        reason = "the parts are borrowed, which `Iterator` does not support"
    )]
    pub fn next(&mut self) -> Option<&[CellPart]> {
        match self.state {
            State::Before => {
                self.walks.clone_from(&self.axes);
                for walk in &mut self.walks {
                    let Some(part) = walk.next() else {
                        self.state = State::After;
                        return None;
                    };
                    self.parts.push(part);
                }
                self.state = State::Within;
            }
            State::Within => {
                let axes = self.axes.iter().zip(&mut self.walks).zip(&mut self.parts);
                let mut is_over = true;
                for ((axis, walk), part) in axes.rev() {
                    if let Some(next) = walk.next() {
                        *part = next;
                        is_over = false;
                        break;
                    }
                    walk.clone_from(axis);
                    *part = walk.next()?;
                }
                if is_over {
                    self.state = State::After;
                    return None;
                }
            }
            State::After => return None,
        }
        Some(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: u64, stop: u64, step: u64, cell: u64) {
        let range = AxisRange::new(start, stop, step).unwrap();
        let mut expected: Vec<(u64, Vec<u64>)> = Vec::new();
        let mut position = start;
        while position < stop {
            match expected.last_mut() {
                Some((at, list)) if *at == position / cell => list.push(position % cell),
                _ => expected.push((position / cell, vec![position % cell])),
            }
            position += step;
        }
        let mut at = 0;
        let found: Vec<_> = range
            .parts(cell)
            .map(|part| {
                assert_eq!(part.at, at);
                at += part.count;
                let offsets = (0..part.count).map(|k| part.offset + k * step);
                (part.cell, offsets.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found, expected, "{start}..{stop} by {step} in {cell}");
        assert_eq!(touched(range, cell), u64::try_from(expected.len()).unwrap());
    }

    #[test]
    fn parts_are_what_counting_one_by_one_finds() {
        for start in 0..7 {
            for stop in 0..15 {
                for step in 1..8 {
                    for cell in 1..6 {
                        check(start, stop, step, cell);
                    }
                }
            }
        }
    }

    #[test]
    fn ends_of_the_number_line_are_no_harm() {
        let range = AxisRange::new(u64::MAX - 3, u64::MAX, 2).unwrap();
        let parts: Vec<_> = range.parts(u64::MAX).collect();
        assert_eq!((parts.len(), parts[0].count), (1, 2));
    }

    #[test]
    fn cells_come_in_row_major_order() {
        let ranges = [AxisRange::whole(3), AxisRange::new(1, 5, 3).unwrap()];
        let mut cells = GridCells::new(&ranges, &[2, 2]);
        let mut found = Vec::new();
        while let Some(parts) = cells.next() {
            found.push((parts[0].cell, parts[1].cell));
        }
        assert_eq!(found, [(0, 0), (0, 2), (1, 0), (1, 2)]);
        assert!(
            GridCells::new(&[], &[])
                .next()
                .is_some_and(<[CellPart]>::is_empty)
        );
        assert!(
            GridCells::new(&[AxisRange::whole(0)], &[4])
                .next()
                .is_none()
        );
    }
}
