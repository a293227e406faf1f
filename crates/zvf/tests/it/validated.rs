//! Validation and repair through the façade: created stores, mutants, and repaired stores.
//!
//! The corpus of damaged stores is checked in `zvf-validate`.

mod geom;
mod mutants;
pub(crate) mod own;
mod planned;
mod refused;
mod repaired;
mod written;

pub(crate) use mutants::snapshot;

use zvf::{Finding, OpenOptions, ValidateOptions, validate};
use zvf_testkit::golden::Files;

use crate::block_on;

/// Formats a finding as its code, path, location and message.
fn line(finding: &Finding) -> String {
    let location = finding.location.as_deref().unwrap_or("-");
    let (code, path) = (finding.rule.code, &finding.path);
    format!("{code} {path} {location} {}", finding.message)
}

/// Validates a store and returns a line for each finding.
pub(crate) fn findings(files: &Files, options: &ValidateOptions) -> Vec<String> {
    let store = OpenOptions::default().from_memory(files.iter().cloned());
    let report = block_on(validate(store.unwrap(), options)).unwrap();
    report.findings.iter().map(line).collect()
}
