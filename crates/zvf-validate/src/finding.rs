//! Findings, their fixes, and the report that collects them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;
use zvf_model::key::Key;

use crate::rule::{Rule, Severity};

/// An edit of one node or cell that repairs a fault without guessing.
#[derive(Clone, Debug, PartialEq)]
pub enum Fix {
    /// Sets or removes an attribute of a node.
    Attribute {
        /// Key of the node.
        node: Key,
        /// Names of the nested fields below `attributes`.
        path: Vec<String>,
        /// The new value, or `None` to remove the attribute.
        value: Option<Value>,
    },
    /// Rewrites a cell of an array.
    Cell {
        /// Key of the array.
        array: Key,
        /// Index of the element.
        element: Vec<u64>,
        /// The new payload, decoded.
        payload: Vec<u8>,
    },
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Path of the node or file, relative to the root of the store. Empty for the root.
    pub path: String,
    /// Location inside the node: a path in its JSON, a chunk, a row or an object.
    pub location: Option<String>,
    /// The observed fault.
    pub message: String,
    /// The edit that repairs the store, where the right value is known.
    pub fix: Option<Fix>,
}

impl Finding {
    /// Creates a finding about a node, without a location inside it and without a fix.
    pub fn new(rule: &'static Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule,
            path: path.into(),
            location: None,
            message: message.into(),
            fix: None,
        }
    }

    /// Sets the location inside the node.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }

    /// Sets the edit that repairs the store.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }
}

/// The result of a validation: all findings, and how much was checked.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ValidationReport {
    /// Findings by path, then code and location. At most
    /// [`max_findings_per_rule`](crate::ValidateOptions::max_findings_per_rule) of one rule.
    pub findings: Vec<Finding>,
    /// Number of further findings by the code of their rule.
    pub unlisted: BTreeMap<&'static str, u64>,
    /// Decoded bytes of all checked cells.
    pub bytes: u64,
    /// Number of checked cells.
    pub cells: u64,
}

impl ValidationReport {
    /// Returns whether the report has no errors.
    pub fn is_ok(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the number of findings of a severity, listed or not.
    pub fn count(&self, severity: Severity) -> u64 {
        let listed = self.findings.iter();
        let listed = listed.filter(|finding| finding.rule.severity == severity);
        let unlisted = self.unlisted.iter().filter_map(|(code, count)| {
            let rule = crate::rules::find(code)?;
            (rule.severity == severity).then_some(*count)
        });
        let listed = u64::try_from(listed.count()).unwrap_or(u64::MAX);
        unlisted.fold(listed, u64::saturating_add)
    }

    /// Adds findings of checks outside of this crate, at most `limit` of one rule.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>, limit: usize) {
        let all = Findings::new(limit);
        for finding in core::mem::take(&mut self.findings) {
            all.add(finding);
        }
        for finding in findings {
            all.add(finding);
        }
        let mut other = all.finish();
        self.findings = other.findings;
        for (code, count) in core::mem::take(&mut other.unlisted) {
            let unlisted = self.unlisted.entry(code).or_default();
            *unlisted = unlisted.saturating_add(count);
        }
    }

    /// Removes the findings of a rule, and returns how many there were, listed or not.
    pub fn remove_rule(&mut self, rule: &Rule) -> u64 {
        let before = self.findings.len();
        self.findings.retain(|finding| finding.rule != rule);
        let listed = before.saturating_sub(self.findings.len());
        let unlisted = self.unlisted.remove(rule.code).unwrap_or(0);
        u64::try_from(listed)
            .unwrap_or(u64::MAX)
            .saturating_add(unlisted)
    }
}

/// Collects findings from concurrent checks.
#[derive(Debug)]
pub(crate) struct Findings {
    limit: usize,
    inner: Mutex<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    report: ValidationReport,
    /// Number of listed findings by code.
    listed: BTreeMap<&'static str, usize>,
}

impl Findings {
    /// Creates a collector that lists at most `limit` findings per rule.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            inner: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, finding: Finding) {
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let code = finding.rule.code;
        let listed = found.listed.entry(code).or_default();
        if *listed >= self.limit {
            let count = found.report.unlisted.entry(code).or_default();
            *count = count.saturating_add(1);
            return;
        }
        *listed = listed.saturating_add(1);
        found.report.findings.push(finding);
    }

    pub(crate) fn checked(&self, bytes: u64) {
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let report = &mut found.report;
        report.bytes = report.bytes.saturating_add(bytes);
        report.cells = report.cells.saturating_add(1);
    }

    /// Returns the report, with findings sorted by path, code and location.
    pub(crate) fn finish(self) -> ValidationReport {
        let found = self.inner.into_inner();
        let mut report = found.unwrap_or_else(PoisonError::into_inner).report;
        report.findings.sort_by(|a, b| {
            let key = |finding: &Finding| {
                (
                    finding.path.clone(),
                    finding.rule.code,
                    finding.location.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        report
    }
}
