//! `testdata/MANIFEST.json`: every golden file with its size and checksum.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::files;
use crate::workspace;

const MANIFEST: &str = "MANIFEST.json";
const README: &str = "README.md";

pub(crate) fn findings() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(testdata().join(MANIFEST))
        .context("testdata has no manifest; run `cargo xtask fixtures --manifest`")?;
    let manifest: Value = serde_json::from_str(&text).context("testdata/MANIFEST.json")?;
    let listed = manifest["files"].as_object().cloned().unwrap_or_default();
    Ok(differences(&listed.into_iter().collect(), &present()?))
}

/// Writes the manifest of the existing files.
pub(crate) fn write() -> Result<()> {
    let lines: Vec<_> = present()?
        .into_iter()
        .map(|(name, entry)| format!("    {}: {entry}", Value::String(name)))
        .collect();
    let text = format!("{{\n  \"files\": {{\n{}\n  }}\n}}\n", lines.join(",\n"));
    std::fs::write(testdata().join(MANIFEST), text).context("cannot write testdata/MANIFEST.json")
}

fn testdata() -> PathBuf {
    workspace::root().join("testdata")
}

fn present() -> Result<BTreeMap<String, Value>> {
    let mut entries = BTreeMap::new();
    for file in files::all()? {
        let Ok(name) = file.strip_prefix("testdata") else {
            continue;
        };
        if [MANIFEST, README].map(Path::new).contains(&name) {
            continue;
        }
        let bytes = std::fs::read(workspace::root().join(&file))?;
        let name = name.to_str().context("a file name is not UTF-8")?;
        entries.insert(name.replace('\\', "/"), entry(&bytes));
    }
    Ok(entries)
}

fn entry(bytes: &[u8]) -> Value {
    let digest = hex::encode(Sha256::digest(bytes));
    json!({ "bytes": bytes.len(), "sha256": digest })
}

fn differences(listed: &BTreeMap<String, Value>, present: &BTreeMap<String, Value>) -> Vec<String> {
    let gone = listed
        .keys()
        .filter(|name| !present.contains_key(*name))
        .map(|name| format!("{name} is listed but not there"));
    let other = present.iter().filter_map(|(name, entry)| {
        let listed = listed.get(name);
        match listed {
            None => Some(format!("{name} is not listed")),
            Some(listed) if listed != entry => {
                Some(format!("{name} is {entry}, the manifest says {listed}"))
            }
            Some(_) => None,
        }
    });
    gone.chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_size_and_checksum() {
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(entry(b"abc"), json!({ "bytes": 3, "sha256": hash }));
    }

    #[test]
    fn sees_missing_unlisted_and_changed_files() {
        let of = |files: &[(&str, &[u8])]| {
            let files = files.iter();
            files.map(|(n, b)| ((*n).to_owned(), entry(b))).collect()
        };
        let listed = of(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
        assert!(differences(&listed, &listed).is_empty());
        let found = differences(&listed, &of(&[("b", b"2"), ("c", b"4"), ("d", b"5")]));
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], "a is listed but not there");
        assert_eq!(found[2], "d is not listed");
    }
}
