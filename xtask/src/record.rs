//! The inputs with which stages passed, so that a stage of an optional judge runs when they change.
//!
//! The record is `passed.json` in the cache folder of the user, beside the target folder of CI: the
//! checksum of the inputs of each stage, and the commit whose run passed.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{run::program, workspace};

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
    let record = read(&file()?);
    let last = record.get(stage)?;
    let is_same = last["inputs"] == fingerprint;
    is_same.then(|| last["commit"].as_str().unwrap_or("unknown").to_owned())
}

/// Records that a stage passed with these inputs.
pub(crate) fn note(stage: &str, fingerprint: &str) -> Result<()> {
    let Some(file) = file() else { return Ok(()) };
    let commit = program("git")
        .words("rev-parse --short HEAD")
        .read()
        .unwrap_or_default();
    let mut record = read(&file);
    let entry = json!({ "inputs": fingerprint, "commit": commit.trim() });
    record.insert(stage.to_owned(), entry);
    fs::create_dir_all(file.parent().context("no cache folder")?)?;
    // A run that is interrupted leaves the old record.
    let staged = file.with_extension("new");
    fs::write(&staged, format!("{:#}\n", Value::Object(record)))?;
    Ok(fs::rename(&staged, &file)?)
}

fn read(file: &Path) -> Map<String, Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // Without a readable record, everything runs.
    serde_json::from_str(&text).unwrap_or_default()
}

fn file() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cache")))?;
    Some(cache.join("zvf-ci/passed.json"))
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
