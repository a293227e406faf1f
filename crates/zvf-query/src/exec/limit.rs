//! The first rows of a result.

use zvf_catalog::RowSelection;

use super::operator::{Details, Operator};
use crate::resolve::query::LevelQuery;

/// The operator that passes the first vertices, paths or links on.
///
/// Its input and output are selections, or counts of rows about to be copied. One limit counts
/// over all batches of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    left: u64,
}

impl Operator for Limit {
    const NAME: &'static str = "Limit";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        details.add("rows", self.left);
    }
}

impl Limit {
    /// Creates a limit; `None` passes everything.
    pub(crate) fn new(rows: Option<u64>) -> Self {
        let left = rows.unwrap_or(u64::MAX);
        Self { left }
    }

    /// Returns the limit as an operator of a plan; `None` if it passes everything.
    pub(crate) fn as_operator(&self) -> Option<&Self> {
        (!self.passes_all()).then_some(self)
    }

    /// Returns whether the limit passes everything.
    pub(crate) fn passes_all(self) -> bool {
        self.left == u64::MAX
    }

    /// Returns whether nothing more passes.
    pub(crate) fn is_reached(self) -> bool {
        self.left == 0
    }

    /// Returns how many more rows pass.
    pub(crate) fn left(self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    /// Takes up to `count` rows and returns how many pass.
    pub(crate) fn take(&mut self, count: usize) -> usize {
        if self.passes_all() {
            return count;
        }
        let taken = count.min(self.left());
        let rows = u64::try_from(taken).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(rows);
        taken
    }

    /// Truncates a selection to the rows that pass.
    pub(crate) fn truncate(&mut self, rows: &mut RowSelection) {
        rows.truncate(self.take(rows.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_over_batches() {
        let mut limit = Limit::new(Some(5));
        let mut rows = RowSelection::all(3);
        limit.truncate(&mut rows);
        assert_eq!((rows.len(), limit.left()), (3, 2));
        let mut rows = RowSelection::ascending([0..1, 4..9]);
        limit.truncate(&mut rows);
        let indices: Vec<u64> = rows.iter().map(|run| run.row).collect();
        assert_eq!(indices, [0, 4]);
        assert!(limit.is_reached());
        assert_eq!(limit.take(1), 0);
    }

    #[test]
    fn without_a_limit_everything_passes() {
        let mut limit = Limit::new(None);
        assert!(limit.passes_all());
        assert_eq!(limit.take(usize::MAX), usize::MAX);
        assert!(!limit.is_reached() && limit.passes_all());
    }
}
