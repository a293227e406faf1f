//! Published packages are complete: each has a description, its sources, licences and README, and no
//! test data.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{metadata, run::cargo};

/// Upper bound on the size of a package in bytes. The page for browsers takes half of it.
const MAX_SIZE: u64 = 3 << 20;
/// Files that every package must contain.
const REQUIRED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

pub(crate) fn findings() -> Result<Vec<String>> {
    let default = &metadata::read()?["workspace_default_members"];
    let mut findings = Vec::from_iter(started(&metadata::members()?, default));
    findings.extend(locked());
    for package in metadata::published()? {
        findings.extend(of_package(package)?);
    }
    Ok(findings)
}

/// The excluded workspaces have lock files of their own, which go stale when a crate of this
/// workspace gains a dependency.
fn locked() -> impl Iterator<Item = String> {
    let stale = |folder: &&str| {
        let manifest = format!("{folder}/Cargo.toml");
        let metadata = cargo("metadata --locked --format-version 1 --manifest-path").arg(manifest);
        metadata.read().is_err()
    };
    let folders = ["examples/outside", "fuzz", "probe"];
    folders.into_iter().filter(stale).map(|folder| {
        format!("{folder}/Cargo.lock is not current: `cargo update --workspace --manifest-path {folder}/Cargo.toml`")
    })
}

/// Checks that `cargo run` starts `zvf`; with two programs, it would fail.
fn started(packages: &[&Value], default: &Value) -> Option<String> {
    let default = default.as_array().map(Vec::as_slice).unwrap_or_default();
    let packages = packages.iter().filter(|one| default.contains(&one["id"]));
    let targets = packages
        .filter_map(|one| one["targets"].as_array())
        .flatten();
    let programs = targets.filter(|target| target["kind"][0] == "bin");
    let names: Vec<&str> = programs.filter_map(|one| one["name"].as_str()).collect();
    (names != ["zvf"]).then(|| format!("cargo run starts {names:?}, not zvf alone"))
}

fn of_package(package: &Value) -> Result<Vec<String>> {
    let name = package["name"].as_str().context("a package has no name")?;
    let mut wrong = described(package);
    let manifest = package["manifest_path"]
        .as_str()
        .context("a package has no manifest")?;
    let folder = std::path::Path::new(manifest).with_file_name("");
    let list = cargo("package --list --allow-dirty --package")
        .arg(name)
        .read()?;
    let mut size = 0;
    for file in list.lines() {
        let is_source = file.starts_with("src/") || file.starts_with("examples/");
        let is_made = ["Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json"].contains(&file);
        if !is_source && !is_made && !REQUIRED.contains(&file) {
            wrong.push(format!("holds {file}"));
        }
        size += std::fs::metadata(folder.join(file)).map_or(0, |file| file.len());
    }
    let lacks = REQUIRED
        .iter()
        .filter(|file| !list.lines().any(|line| line == **file));
    wrong.extend(lacks.map(|file| format!("lacks {file}")));
    if size > MAX_SIZE {
        wrong.push(format!("holds {size} bytes, more than {MAX_SIZE}"));
    }
    Ok(wrong
        .into_iter()
        .map(|why| format!("package {name} {why}"))
        .collect())
}

/// Lists missing fields of a manifest, and fields that registries reject.
fn described(package: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for field in ["description", "documentation", "license", "readme"] {
        if package[field].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("has no {field}"));
        }
    }
    for field in ["keywords", "categories"] {
        let words = package[field]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_long = |word: &Value| word.as_str().is_none_or(|word| word.len() > 20);
        if words.is_empty() || words.len() > 5 || (field == "keywords" && words.iter().any(is_long))
        {
            wrong.push(format!(
                "has {} {field}; 1 to 5 short ones are taken",
                words.len()
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_registry_refuses_is_found() {
        let good = json!({ "description": "d", "license": "MIT",
            "documentation": "https://docs.rs/d", "readme": "README.md",
            "keywords": ["zarr"], "categories": ["science"] });
        assert!(described(&good).is_empty());
        let mut bad = good.clone();
        bad["readme"] = Value::Null;
        bad["keywords"] = json!(["a", "b", "c", "d", "e", "f"]);
        assert_eq!(described(&bad).len(), 2);
    }
}
