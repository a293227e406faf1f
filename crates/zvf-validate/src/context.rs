//! State shared by all checks: the port, the options and the findings.
#![expect(
    clippy::needless_pass_by_value,
    reason = "callers pass the result of format! without a borrow"
)]

use std::{collections::BTreeSet, sync::PoisonError};

use serde_json::Value;
use zvf_model::{fetch::Port, grid::ChunkCoord, key::Key};

use crate::{
    finding::{Finding, Findings, Fix, ValidationReport},
    options::ValidateOptions,
    rule::Rule,
    rules::consistency as rules,
    share::{CheckedChunk, ChunkOutcome, ShareMode, ValidationShare},
};

/// Reads the store and collects findings.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) fetch: Port<'a>,
    pub(crate) options: &'a ValidateOptions,
    /// The part of the validation that this process does.
    pub(crate) mode: &'a ShareMode<'a>,
    findings: Findings,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        fetch: Port<'a>,
        options: &'a ValidateOptions,
        mode: &'a ShareMode<'a>,
    ) -> Self {
        Self {
            fetch,
            options,
            mode,
            findings: Findings::new(options.max_findings_per_rule),
        }
    }

    /// Returns a context for reading data that were checked before. Its findings are discarded, so
    /// that no fault is reported twice.
    pub(crate) fn silent(&self) -> Self {
        Self::new(self.fetch, self.options, self.mode)
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
        let mut finding = Finding::new(rule, key.as_str(), message);
        finding.location = place;
        finding.fix = fix;
        self.findings.add(finding);
    }

    /// Counts a checked cell of `bytes` decoded bytes.
    pub(crate) fn checked(&self, bytes: usize) {
        self.findings
            .checked(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Adds what another process found and checked.
    pub(crate) fn add_report(&self, report: &ValidationReport) {
        self.findings.add_report(report);
    }

    /// Returns what was found since the last call, and forgets it. The maximum number of findings per
    /// rule counts all calls.
    pub(crate) fn take(&self) -> ValidationReport {
        self.findings.take()
    }

    /// Returns the share that this process checks; `None` if it does a whole validation.
    pub(crate) fn share(&self) -> Option<ValidationShare> {
        match self.mode {
            ShareMode::One(share, _) => Some(*share),
            _ => None,
        }
    }

    /// Returns whether this process checks a share, so that it knows nothing of other chunks.
    pub(crate) fn is_share(&self) -> bool {
        self.share().is_some()
    }

    /// Returns the groups of chunks that this process checks: all, or those of its share.
    pub(crate) fn own_groups(&self, seed: &str, groups: BTreeSet<Vec<i64>>) -> BTreeSet<Vec<i64>> {
        match self.share() {
            Some(share) => share.picked(seed, groups),
            None => groups,
        }
    }

    /// Records an outcome of a share, unless a cell could not be delivered: the process that joins the
    /// shares tries again.
    pub(crate) fn record(
        &self,
        pass: &str,
        chunk: &ChunkCoord,
        outcome: &impl ChunkOutcome,
        found: ValidationReport,
    ) {
        let ShareMode::One(_, report) = self.mode else {
            return;
        };
        if found.has(&rules::CELL_NOT_CHECKED) {
            return;
        }
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        report.insert(pass, chunk, outcome, found);
    }

    /// Returns the recorded outcome of a chunk after reporting what was found with it; `None` if
    /// there is none that holds.
    pub(crate) fn recorded<T: ChunkOutcome>(
        &self,
        pass: &str,
        chunk: &ChunkCoord,
        holds: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let ShareMode::Joined(shares) = self.mode else {
            return None;
        };
        let checked = shares.get(pass, chunk)?;
        let outcome = checked.parse().filter(holds)?;
        self.add_report(&checked.found);
        Some(outcome)
    }

    /// Returns whether there is a recorded outcome of a chunk that holds.
    pub(crate) fn has_recorded<T: ChunkOutcome>(
        &self,
        pass: &str,
        chunk: &ChunkCoord,
        holds: impl FnOnce(&T) -> bool,
    ) -> bool {
        let ShareMode::Joined(shares) = self.mode else {
            return false;
        };
        let checked = shares.get(pass, chunk);
        let outcome = checked.and_then(CheckedChunk::parse);
        outcome.is_some_and(|outcome| holds(&outcome))
    }

    /// Calls a function for each finding that is listed so far.
    pub(crate) fn for_each(&self, change: impl Fn(&mut Finding)) {
        self.findings.for_each(change);
    }

    pub(crate) fn finish(self) -> ValidationReport {
        self.findings.finish()
    }
}
