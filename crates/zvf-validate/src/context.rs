//! What every check has at hand.
#![expect(
    clippy::needless_pass_by_value,
    reason = "messages are formatted where they are given"
)]

use serde_json::Value;
use zvf_model::{fetch::Port, grid::ChunkCoord, key::Key};

use crate::{
    ValidateOptions,
    finding::{Finding, Findings, Fix, ValidationReport},
    rule::Rule,
};

/// Reads, and writes down what is found.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) fetch: Port<'a>,
    pub(crate) options: &'a ValidateOptions,
    findings: Findings,
}

impl<'a> Context<'a> {
    pub(crate) fn new(fetch: Port<'a>, options: &'a ValidateOptions) -> Self {
        Self {
            fetch,
            options,
            findings: Findings::new(options.max_findings_per_rule),
        }
    }

    /// The same store, for what reads again what was checked: what it finds is not
    /// written down twice.
    pub(crate) fn aside(&self) -> Self {
        Self::new(self.fetch, self.options)
    }

    /// A rule does not hold of a node.
    pub(crate) fn find(&self, rule: &'static Rule, key: &Key, message: impl ToString) {
        self.add(rule, key, None, message.to_string(), None);
    }

    /// A rule does not hold at a place of a node.
    pub(crate) fn find_at(
        &self,
        rule: &'static Rule,
        key: &Key,
        place: impl ToString,
        message: impl ToString,
    ) {
        self.add(
            rule,
            key,
            Some(place.to_string()),
            message.to_string(),
            None,
        );
    }

    /// A rule does not hold in a chunk.
    pub(crate) fn find_in(
        &self,
        rule: &'static Rule,
        key: &Key,
        chunk: &ChunkCoord,
        message: impl ToString,
    ) {
        self.find_at(rule, key, format_args!("chunk {chunk}"), message);
    }

    /// A rule does not hold of an attribute that must be `value`, or absent.
    pub(crate) fn find_attribute(
        &self,
        rule: &'static Rule,
        node: &Key,
        path: &[&str],
        message: impl ToString,
        value: Option<Value>,
    ) {
        let place = format!("attributes.{}", path.join("."));
        let fix = Fix::Attribute {
            node: node.clone(),
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            value,
        };
        self.add(rule, node, Some(place), message.to_string(), Some(fix));
    }

    /// A rule does not hold somewhere, and this puts it right, where that is known.
    pub(crate) fn add(
        &self,
        rule: &'static Rule,
        key: &Key,
        place: Option<String>,
        message: String,
        fix: Option<Fix>,
    ) {
        self.findings.add(Finding {
            rule,
            path: key.as_str().to_owned(),
            location: place,
            message,
            fix,
        });
    }

    /// A cell of so many bytes was looked at.
    pub(crate) fn checked(&self, bytes: usize) {
        self.findings
            .checked(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(crate) fn finish(self) -> ValidationReport {
        self.findings.finish()
    }
}
