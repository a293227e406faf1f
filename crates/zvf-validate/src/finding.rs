//! Findings, their fixes, and the report that collects them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};
use zvf_model::{base64, json::Json, key::Key};

use self::withheld::WithheldFix;
use crate::rule::{Rule, Severity};

mod withheld;

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
    withheld: Option<WithheldFix>,
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
            withheld: None,
        }
    }

    zvf_model::setters! {
        fix: Fix,
        location: into String,
    }

    /// Returns the code and path of the finding to resolve before this one can be repaired: that
    /// finding shows that the data from which the fix follows may be damaged. Returns `None` if the
    /// finding has a fix, or if no edit repairs it.
    pub fn obstacle(&self) -> Option<&str> {
        Some(&self.withheld.as_ref()?.obstacle)
    }

    fn to_json(&self) -> Value {
        // Which fixes are withheld depends on the whole report.
        let withheld = self.withheld.as_ref().map(|withheld| &withheld.fix);
        json!({
            "code": self.rule.code,
            "path": self.path,
            "place": self.location,
            "message": self.message,
            "fix": self.fix.as_ref().or(withheld).map(Fix::to_json),
        })
    }

    fn from_json(json: &Value) -> Option<Self> {
        let text = |name: &str| json.get(name)?.as_str();
        Some(Self {
            rule: crate::rules::find(text("code")?)?,
            path: text("path")?.to_owned(),
            location: match json.get("place")? {
                Value::Null => None,
                place => Some(place.as_str()?.to_owned()),
            },
            message: text("message")?.to_owned(),
            fix: match json.get("fix")? {
                Value::Null => None,
                fix => Some(Fix::from_json(fix)?),
            },
            withheld: None,
        })
    }
}

impl Fix {
    /// Returns the node or array that the edit changes.
    pub(crate) fn target(&self) -> &Key {
        match self {
            Self::Attribute { node, .. } => node,
            Self::Cell { array, .. } => array,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            // A list, because a value may be null.
            Self::Attribute { node, path, value } => json!({
                "node": node.as_str(),
                "path": path,
                "value": value.as_slice(),
            }),
            Self::Cell {
                array,
                element,
                payload,
            } => json!({
                "array": array.as_str(),
                "element": element,
                "payload": base64::encode(payload),
            }),
        }
    }

    fn from_json(json: &Value) -> Option<Self> {
        let list = |name: &str| json.get(name)?.as_array();
        let key = |key: &Value| match key.as_str()? {
            "" => Some(Key::root()),
            path => Key::parse(path).ok(),
        };
        if let Some(node) = json.get("node") {
            let names = list("path")?
                .iter()
                .map(|name| Some(name.as_str()?.to_owned()));
            return Some(Self::Attribute {
                node: key(node)?,
                path: names.collect::<Option<_>>()?,
                value: list("value")?.first().cloned(),
            });
        }
        let element = list("element")?.iter().map(Value::as_u64);
        let payload = json.get("payload")?.as_str()?;
        Some(Self::Cell {
            array: key(json.get("array")?)?,
            element: element.collect::<Option<_>>()?,
            payload: base64::decode(payload.as_bytes()).ok()?,
        })
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
        let listed = self
            .findings
            .iter()
            .filter(|finding| finding.rule.severity == severity);
        let unlisted = self.unlisted.iter().filter_map(|(code, count)| {
            let rule = crate::rules::find(code)?;
            (rule.severity == severity).then_some(*count)
        });
        let listed = u64::try_from(listed.count()).unwrap_or(u64::MAX);
        unlisted.fold(listed, u64::saturating_add)
    }

    /// Returns whether there are findings of a rule, listed or not.
    pub(crate) fn has(&self, rule: &Rule) -> bool {
        let is_listed = self.findings.iter().any(|finding| finding.rule == rule);
        is_listed || self.unlisted.contains_key(rule.code)
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
        withheld::update(&mut self.findings);
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Json {
        let findings = self.findings.iter().map(Finding::to_json);
        json!({
            "findings": findings.collect::<Vec<Value>>(),
            "unlisted": self.unlisted,
            "bytes": self.bytes,
            "cells": self.cells,
        })
        .into()
    }

    /// Parses the output of [`to_json`](Self::to_json); `None` for anything else, and for rules that
    /// this version does not have.
    pub fn from_json(json: &Json) -> Option<Self> {
        let json: &Value = json.as_ref();
        let findings = json.get("findings")?.as_array()?.iter();
        let unlisted = json
            .get("unlisted")?
            .as_object()?
            .iter()
            .map(|(code, count)| {
                let rule = crate::rules::find(code)?;
                Some((rule.code, count.as_u64()?))
            });
        let mut findings: Vec<Finding> = findings.map(Finding::from_json).collect::<Option<_>>()?;
        withheld::update(&mut findings);
        Some(Self {
            findings,
            unlisted: unlisted.collect::<Option<_>>()?,
            bytes: json.get("bytes")?.as_u64()?,
            cells: json.get("cells")?.as_u64()?,
        })
    }

    /// Removes the findings of a rule, and returns how many there were, listed or not.
    pub fn remove_rule(&mut self, rule: &Rule) -> u64 {
        let before = self.findings.len();
        self.findings.retain(|finding| finding.rule != rule);
        withheld::update(&mut self.findings);
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
    inner: Mutex<ReportState>,
}

#[derive(Debug, Default)]
struct ReportState {
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

    /// Calls a function for each listed finding.
    pub(crate) fn for_each(&self, change: impl Fn(&mut Finding)) {
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        found.report.findings.iter_mut().for_each(change);
    }

    pub(crate) fn checked(&self, bytes: u64) {
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let report = &mut found.report;
        report.bytes = report.bytes.saturating_add(bytes);
        report.cells = report.cells.saturating_add(1);
    }

    /// Adds what another process found and checked.
    pub(crate) fn add_report(&self, report: &ValidationReport) {
        for finding in &report.findings {
            self.add(finding.clone());
        }
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let own = &mut found.report;
        for (code, count) in &report.unlisted {
            let unlisted = own.unlisted.entry(code).or_default();
            *unlisted = unlisted.saturating_add(*count);
        }
        own.bytes = own.bytes.saturating_add(report.bytes);
        own.cells = own.cells.saturating_add(report.cells);
    }

    /// Returns what was found since the last call, in order.
    pub(crate) fn take(&self) -> ValidationReport {
        let mut found = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut found.report)
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
        withheld::update(&mut report.findings);
        report
    }
}
