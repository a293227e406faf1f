//! What was compared, and what could not be.

use std::{collections::BTreeMap, fmt::Debug};

#[derive(Default)]
pub(super) struct Tally {
    /// Recorded reads, or levels.
    pub(super) reads: usize,
    comparisons: usize,
    reasons: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// One comparison of a whole array or list.
    pub(super) fn equal<T: PartialEq + Debug>(&mut self, found: T, expected: T, at: &str) {
        assert_eq!(found, expected, "{at}");
        self.comparisons += 1;
    }

    /// A part of a recorded read that ours is not expected to equal, and why.
    pub(super) fn not_comparable(&mut self, reason: &'static str) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Prints all, and holds it against what is known to be so.
    #[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
    pub(super) fn report(
        &self,
        archive: &str,
        of: &str,
        comparisons: usize,
        reasons: &[(&str, usize)],
    ) {
        let (reads, count) = (self.reads, self.comparisons);
        println!("conformance: {archive}: {reads} {of}, {count} parts of answers equal");
        for (reason, count) in &self.reasons {
            println!("conformance: {archive}: {count} not comparable: {reason}");
        }
        let found: Vec<_> = self.reasons.iter().map(|(why, n)| (*why, *n)).collect();
        assert_eq!(found, reasons, "{archive}");
        assert_eq!(count, comparisons, "{archive}");
    }
}
