//! State shared by all checks: the port, the options and the findings.
#![expect(
    clippy::needless_pass_by_value,
    reason = "callers pass the result of format! without a borrow"
)]

use serde_json::Value;
use zvf_model::{fetch::Port, grid::ChunkCoord, key::Key};

use crate::{
    finding::{Finding, Findings, Fix, ValidationReport},
    options::ValidateOptions,
    rule::Rule,
};

/// Reads the store and collects findings.
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

    /// Returns a context for reading data that were checked before. Its findings are discarded, so
    /// that no fault is reported twice.
    pub(crate) fn silent(&self) -> Self {
        Self::new(self.fetch, self.options)
    }

    /// Reports that a node violates a rule.
    pub(crate) fn report(&self, rule: &'static Rule, key: &Key, message: impl ToString) {
        self.add(rule, key, None, message.to_string(), None);
    }

    /// Reports that a node violates a rule at `place`.
    pub(crate) fn report_at(
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

    /// Reports that a chunk of a part violates a rule.
    pub(crate) fn report_in_chunk(
        &self,
        rule: &'static Rule,
        key: &Key,
        chunk: &ChunkCoord,
        message: impl ToString,
    ) {
        self.report_at(rule, key, format_args!("chunk {chunk}"), message);
    }

    /// Reports that an attribute of a node violates a rule. The fix sets it to `value`, or removes
    /// it for `None`.
    pub(crate) fn report_attribute(
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

    /// Reports a violation, with the fix where it is known.
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

    /// Counts a checked cell of `bytes` decoded bytes.
    pub(crate) fn checked(&self, bytes: usize) {
        self.findings
            .checked(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(crate) fn finish(self) -> ValidationReport {
        self.findings.finish()
    }
}
