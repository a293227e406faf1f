//! Validation of stores held in memory.

use std::collections::BTreeSet;

use zvf_model::key::Key;
use zvf_store::{CellReader, OpenOptions, Read};
use zvf_testkit::golden::Files;
use zvf_validate::{Finding, ValidateOptions, ValidationReport, validate};

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Opens a store through the committed view of its root, as the façade does.
pub(crate) async fn open(files: &Files) -> CellReader {
    let store = OpenOptions::default()
        .from_memory(files.iter().cloned())
        .unwrap();
    let root = Key::root().metadata().unwrap();
    CellReader::new(match store.read_one(Read::full(root)).await.unwrap() {
        Some(bytes) => store.committed_view(&bytes).await.unwrap(),
        None => store,
    })
}

/// Validates a store.
pub(crate) fn report(files: &Files, options: &ValidateOptions) -> ValidationReport {
    block_on(async {
        let cells = open(files).await;
        validate(cells.port(), options).await
    })
}

/// Formats a finding as its code, path, location and message.
pub(crate) fn line(finding: &Finding) -> String {
    let location = finding.location.as_deref().unwrap_or("-");
    let (code, path) = (finding.rule.code, &finding.path);
    format!("{code} {path} {location} {}", finding.message)
}

/// Validates a store to the deepest level and returns a line for each finding.
pub(crate) fn lines(files: &Files) -> Vec<String> {
    let report = report(files, &ValidateOptions::default());
    report.findings.iter().map(line).collect()
}

/// Returns the distinct codes that such lines start with.
pub(crate) fn codes(lines: &[String]) -> BTreeSet<String> {
    let codes = lines.iter().filter_map(|line| line.split(' ').next());
    codes.map(str::to_owned).collect()
}
