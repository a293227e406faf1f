//! What was found.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;
use zvf_model::key::Key;

use crate::rule::{Rule, Severity};

/// What puts a finding right without guessing: one change of one node or cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Fix {
    /// An attribute of a node.
    Attribute {
        /// The node.
        node: Key,
        /// The names that lead to it, from `attributes` on.
        path: Vec<String>,
        /// What it is to be; `None` takes it away.
        value: Option<Value>,
    },
    /// A cell of an array.
    Cell {
        /// The array.
        array: Key,
        /// Its element.
        element: Vec<u64>,
        /// The payload that it is to have.
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
    /// Every finding, by path; of a rule that is broken very often the first.
    pub findings: Vec<Finding>,
    /// Findings by the code of their rule that are not listed, as there are
    /// too many of them.
    pub unlisted: BTreeMap<&'static str, u64>,
    /// Bytes of blobs that were checked, as they are when decoded.
    pub bytes: u64,
    /// Cells that were checked.
    pub cells: u64,
}

impl ValidationReport {
    /// Whether there is no error.
    pub fn is_ok(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// How many findings are of a severity, listed or not.
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
}

/// Findings as they come.
#[derive(Debug)]
pub(crate) struct Findings {
    limit: usize,
    inner: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    report: ValidationReport,
    /// How many are listed of each rule.
    listed: BTreeMap<&'static str, usize>,
}

impl Findings {
    /// Lists up to `limit` of each rule.
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

    /// All, by path, code and place.
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
