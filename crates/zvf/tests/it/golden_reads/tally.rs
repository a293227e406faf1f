//! Counters of compared and skipped items.

use std::{collections::BTreeMap, fmt::Debug};

use serde_json::Value as Json;

#[derive(Default)]
pub(super) struct Tally {
    /// Recorded reads, or levels.
    pub(super) reads: usize,
    comparisons: usize,
    differences: Vec<String>,
    reasons: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Compares a whole array or list with its record.
    pub(super) fn equal<T: PartialEq + Debug>(&mut self, found: T, expected: T, at: &str) {
        self.comparisons += 1;
        self.same(found, expected, at);
    }

    /// Compares two results of the engine; not counted as a comparison with the reference.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "either may be made on the spot"
    )]
    pub(super) fn same<T: PartialEq + Debug>(&mut self, found: T, expected: T, at: &str) {
        if found != expected {
            self.differs(format!("{at}\n   found {found:?}\nexpected {expected:?}"));
        }
    }

    /// Compares the type of an array, if it is recorded.
    pub(super) fn dtype(&mut self, found: Option<&str>, array: &Json, at: &str) {
        let Some(expected) = array.get("dtype") else {
            return;
        };
        if array["shape"][0] == 0 && found != expected.as_str() {
            self.not_comparable("arrays without rows, which the reference makes float32");
        } else {
            self.equal(found, expected.as_str(), at);
        }
    }

    /// Records a difference; all are reported at the end.
    pub(super) fn differs(&mut self, difference: String) {
        self.differences.push(difference);
    }

    /// Records a part of a read that cannot be compared, and why.
    pub(super) fn not_comparable(&mut self, reason: &'static str) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Asserts that something was compared and nothing differs.
    pub(super) fn are_equal(&self) {
        let differences = self.differences.join("\n\n");
        assert!(self.differences.is_empty(), "{differences}");
        assert!(self.comparisons > 0);
    }

    /// Prints the counters and compares them with the known numbers.
    #[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
    pub(super) fn report(
        &self,
        archive: &str,
        of: &str,
        comparisons: usize,
        reasons: &[(&str, usize)],
    ) {
        let (reads, count) = (self.reads, self.comparisons);
        println!("conformance: {archive}: {reads} {of}, {count} parts of results equal");
        for (reason, count) in &self.reasons {
            println!("conformance: {archive}: {of}, {count} parts not comparable: {reason}");
        }
        assert!(
            self.differences.is_empty(),
            "{}",
            self.differences.join("\n\n")
        );
        let found: Vec<_> = self.reasons.iter().map(|(why, n)| (*why, *n)).collect();
        assert_eq!(found, reasons, "{archive}");
        assert_eq!(count, comparisons, "{archive}");
    }
}
