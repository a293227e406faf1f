//! What validating finds in stores, healthy and not.

mod cells;
mod corpus;
mod geom;
mod healthy;
mod mutants;
pub(crate) mod own;
mod repaired;

use serde_json::Value as Json;
use zvf::{OpenOptions, validate_store, validation::ValidateOptions};
use zvf_testkit::{damage::Files, golden::Golden};

use crate::block_on;

/// The files of a recorded store.
fn files(golden: &Golden, store: &str) -> Files {
    let prefix = format!("{store}/");
    let below = golden.files().filter_map(|(path, bytes)| {
        let key = path.strip_prefix(&prefix)?;
        Some((key.to_owned(), bytes.to_vec()))
    });
    let files: Files = below.collect();
    assert!(!files.is_empty(), "{store}");
    files
}

/// What is found in a store, as lines of code, path, place and message.
fn findings(files: &Files, options: &ValidateOptions) -> Vec<String> {
    let store = OpenOptions::default().from_memory(files.iter().cloned());
    let report = block_on(validate_store(store.unwrap(), options)).unwrap();
    let lines = report.findings.iter().map(|finding| {
        let place = finding.location.as_deref().unwrap_or("-");
        let (code, path) = (finding.rule.code, &finding.path);
        format!("{code} {path} {place} {}", finding.message)
    });
    lines.collect()
}

/// The codes of such lines, in order, each once.
fn codes(lines: &[String]) -> Vec<String> {
    let codes = lines.iter().filter_map(|line| line.split(' ').next());
    let codes: std::collections::BTreeSet<&str> = codes.collect();
    codes.into_iter().map(str::to_owned).collect()
}

/// A file of the corpus.
fn corpus_file(name: &str) -> Json {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/corpus");
    let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}
