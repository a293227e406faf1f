//! The stores of the read benchmark, and the reads of the reference.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{hex, metadata, python, workspace};

/// The sources that generate the stores.
const SOURCES: [&str; 4] = [
    "requirements.txt",
    "read_data.py",
    "read_truth.py",
    "make_read_stores.py",
];

#[derive(Debug)]
pub(super) struct Stores {
    folder: PathBuf,
    names: Vec<String>,
}

impl Stores {
    /// Creates missing stores; `None` without python3.
    pub(super) fn make() -> Result<Option<Self>> {
        let Some(script) = python::script("make_read_stores.py")? else {
            return Ok(None);
        };
        let folder = metadata::scratch("xtask/read-stores")?;
        let folder = current(&folder)?;
        let names = script.arg(&folder).read()?;
        let names = names.lines().map(str::to_owned).collect();
        Ok(Some(Self { folder, names }))
    }

    /// Returns the named stores, or all.
    pub(super) fn choose<'a>(&'a self, wanted: &'a [String]) -> Result<&'a [String]> {
        if wanted.is_empty() {
            return Ok(&self.names);
        }
        if let Some(unknown) = wanted.iter().find(|name| !self.names.contains(name)) {
            bail!(
                "no store {unknown}; the stores are {}",
                self.names.join(", ")
            );
        }
        Ok(wanted)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads the description of a store and its queries.
    pub(super) fn about(&self, name: &str) -> Result<Value> {
        let path = self.folder.join(format!("{name}.json"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Runs the queries with the reference and returns its records.
    pub(super) fn reference(&self, name: &str) -> Result<Vec<Value>> {
        let script = python::script("count_reads.py")?.context(python::MISSING)?;
        let records = script.arg(&self.folder).arg(name).read()?;
        serde_json::from_str(&records).context("count_reads.py")
    }
}

/// Returns the folder, emptied if other sources filled it.
fn current(folder: &Path) -> Result<PathBuf> {
    let mut sources = Sha256::new();
    for name in SOURCES {
        let path = workspace::root().join("xtask/python").join(name);
        sources.update(fs::read(&path).with_context(|| path.display().to_string())?);
    }
    let digest = hex::encode(&sources.finalize());
    let mark = folder.join("made-from");
    if fs::read_to_string(&mark).ok().as_deref() != Some(&digest) {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::create_dir_all(folder)?;
        fs::write(&mark, digest)?;
    }
    Ok(folder.to_owned())
}
