//! The inputs with which stages passed, so that a stage of an optional judge runs when they change.
//!
//! The record is `.ci/passed.json`: the checksum of the inputs of each stage, and the commit whose run
//! passed. It is committed with the change that was judged, because a machine that runs CI may have no
//! other memory.

use std::{
    fs,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{run::program, workspace};

const RECORD: &str = ".ci/passed.json";

/// A sum of the names and contents of the files below `inputs`, which are paths of the repository,
/// separated by spaces.
pub(crate) fn fingerprint(inputs: &str) -> Result<String> {
    let list = program("git")
        .words("ls-files -z --cached --others --exclude-standard --")
        .words(inputs)
        .read()?;
    let mut names: Vec<&str> = list.split('\0').filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    let mut sum = Sha256::new();
    for name in names {
        // A deleted file is still listed.
        let bytes = fs::read(workspace::root().join(name)).unwrap_or_default();
        sum.update(format!("{name} {}\n", bytes.len()));
        sum.update(bytes);
    }
    Ok(hex::encode(sum.finalize()))
}

/// The commit whose run of a stage passed with these inputs, if there is one.
pub(crate) fn passed(stage: &str, fingerprint: &str) -> Option<String> {
    let record = read();
    let last = record.get(stage)?;
    let is_same = last["inputs"] == fingerprint;
    is_same.then(|| last["commit"].as_str().unwrap_or("unknown").to_owned())
}

/// Records that a stage passed with these inputs.
pub(crate) fn note(stage: &str, fingerprint: &str) -> Result<()> {
    // Stages run beside each other.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let commit = program("git")
        .words("rev-parse --short HEAD")
        .read()
        .unwrap_or_default();
    let mut record = read();
    let entry = json!({ "inputs": fingerprint, "commit": commit.trim() });
    record.insert(stage.to_owned(), entry);
    let file = workspace::root().join(RECORD);
    fs::write(&file, format!("{:#}\n", Value::Object(record))).context(RECORD)
}

fn read() -> Map<String, Value> {
    let text = fs::read_to_string(workspace::root().join(RECORD)).unwrap_or_default();
    // Without a readable record, everything runs.
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_further_file_changes_the_fingerprint() {
        let of = |inputs| fingerprint(inputs).unwrap();
        assert_eq!(of("deny.toml"), of("deny.toml"));
        assert_ne!(of("deny.toml"), of("deny.toml clippy.toml"));
        assert_eq!(of("missing"), hex::encode(Sha256::digest("")));
    }
}
