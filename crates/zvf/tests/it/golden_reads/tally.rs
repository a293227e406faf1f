//! What was compared, and what could not be.

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
    /// One comparison of a whole array or list with what is recorded.
    pub(super) fn equal<T: PartialEq + Debug>(&mut self, found: T, expected: T, at: &str) {
        self.comparisons += 1;
        self.same(found, expected, at);
    }

    /// A comparison of two answers of ours, which counts for nothing.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "either may be made on the spot"
    )]
    pub(super) fn same<T: PartialEq + Debug>(&mut self, found: T, expected: T, at: &str) {
        if found != expected {
            self.differs(format!("{at}\n   found {found:?}\nexpected {expected:?}"));
        }
    }

    /// The type of an array, if it is recorded.
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

    /// What is not as it should be; all is told at the end.
    pub(super) fn differs(&mut self, difference: String) {
        self.differences.push(difference);
    }

    /// A part of a recorded read that ours is not expected to equal, and why.
    pub(super) fn not_comparable(&mut self, reason: &'static str) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// That something was compared, and nothing is different.
    pub(super) fn are_equal(&self) {
        let differences = self.differences.join("\n\n");
        assert!(self.differences.is_empty(), "{differences}");
        assert!(self.comparisons > 0);
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
