//! The rows that each coarser row replaces.

use core::ops::Range;

use rayon::prelude::*;

use crate::coordinates::BLOCK;

/// Number of ranges into which the coarser rows are divided.
const PARTS: usize = 8;

/// Rows grouped by their parent, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    /// Offset of each parent's rows, and the end of the last.
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Members {
    /// Groups rows by `parent`, in ascending order. Rows whose parent is not below `count` are
    /// omitted.
    pub(super) fn new(parent: &[u32], count: usize) -> Self {
        Self::of_visits(parent, count, 0..parent.len() as u32)
    }

    /// Groups rows in the order of visits. A row may be visited several times.
    pub(super) fn of_visits(
        parent: &[u32],
        count: usize,
        visits: impl Iterator<Item = u32> + Clone,
    ) -> Self {
        // Counts rows without a parent beyond the end, where they are dropped.
        let parent_of = |row: u32| (parent[row as usize] as usize).min(count);
        let mut starts = vec![0_usize; count + 2];
        for row in visits.clone() {
            starts[parent_of(row) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; starts[count + 1]];
        for row in visits {
            let slot = &mut next[parent_of(row)];
            rows[*slot] = row;
            *slot += 1;
        }
        starts.truncate(count + 1);
        rows.truncate(starts[count]);
        Self { starts, rows }
    }

    /// Returns the members without some rows.
    pub(super) fn without(&self, is_dropped: impl Fn(u32) -> bool) -> Self {
        let mut kept = Self {
            starts: vec![0],
            rows: Vec::new(),
        };
        for parent in 0..self.count() {
            let rows = self.of(parent).iter().copied();
            kept.rows.extend(rows.filter(|row| !is_dropped(*row)));
            kept.starts.push(kept.rows.len());
        }
        kept
    }

    /// Returns the number of parents.
    pub(super) fn count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the rows of a parent.
    pub(super) fn of(&self, parent: usize) -> &[u32] {
        &self.rows[self.starts[parent]..self.starts[parent + 1]]
    }

    /// Returns all rows that have a parent.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Computes values of all parents on all cores, each for a range of parents with about as many
    /// rows as the others.
    pub(super) fn by_parent<T: Send>(
        &self,
        make: &(dyn Fn(Range<usize>) -> Vec<T> + Sync),
    ) -> Vec<T> {
        let count = self.count();
        if self.rows.len() < BLOCK || count < PARTS {
            return make(0..count);
        }
        let end = |part: usize| {
            let rows = self.rows.len() / PARTS * part;
            match part {
                PARTS => count,
                _ => self
                    .starts
                    .partition_point(|start| *start < rows)
                    .min(count),
            }
        };
        let parts: Vec<Vec<T>> = (0..PARTS)
            .into_par_iter()
            .map(|part| make(end(part)..end(part + 1)))
            .collect();
        parts.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::NO_VERTEX;
    use super::*;

    #[test]
    fn rows_are_grouped_in_order() {
        let members = Members::new(&[2, NO_VERTEX, 0, 2, 7, 0], 3);
        assert_eq!(members.count(), 3);
        assert_eq!(members.of(0), [2, 5]);
        assert!(members.of(1).is_empty());
        assert_eq!(members.of(2), [0, 3]);
        assert_eq!(
            members.without(|row| row == 3),
            Members::new(&[2, 9, 0, 9, 9, 0], 3)
        );
        let visits = [3, 0, 3, 1].into_iter();
        let members = Members::of_visits(&[1, NO_VERTEX, 0, 1], 2, visits);
        assert!(members.of(0).is_empty());
        assert_eq!(members.of(1), [3, 0, 3]);
        assert_eq!(Members::new(&[], 0).count(), 0);
    }

    #[test]
    fn ranges_cover_all_parents() {
        for count in [0_u32, 1, 7, 8, 9, 5000] {
            for parent in [
                Vec::new(),
                vec![0; 10_000],
                (0..10_000).map(|row| row % count.max(1)).collect(),
                vec![count.saturating_sub(1); 10_000],
            ] {
                let members = Members::new(&parent, count as usize);
                let found = members.by_parent(&Iterator::collect);
                assert_eq!(found, (0..count as usize).collect::<Vec<_>>());
            }
        }
    }
}
