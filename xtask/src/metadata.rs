//! The output of `cargo metadata`.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run;

/// Reads `cargo metadata` once, with all features.
pub(crate) fn read() -> Result<&'static Value> {
    static METADATA: OnceLock<Value> = OnceLock::new();
    if let Some(metadata) = METADATA.get() {
        return Ok(metadata);
    }
    let args = "metadata --format-version 1 --all-features --locked";
    let text = run::cargo(args).read()?;
    let value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    Ok(METADATA.get_or_init(|| value))
}

/// Returns the packages of the workspace.
pub(crate) fn members() -> Result<Vec<&'static Value>> {
    let packages = read()?["packages"].as_array().context("no packages")?;
    let is_member = |package: &&Value| package["source"].is_null();
    Ok(packages.iter().filter(is_member).collect())
}

/// Returns the packages of the workspace that are published.
pub(crate) fn published() -> Result<Vec<&'static Value>> {
    let mut members = members()?;
    members.retain(|package| package["publish"].is_null());
    Ok(members)
}

/// Creates a folder below the target directory, if it is missing, and returns it.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let target = read()?["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    let folder = Path::new(target).join(name);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Returns a folder for temporary stores: below `ZVF_SCRATCH`, which CI sets to a folder in
/// memory, or else below the target directory.
pub(crate) fn stores() -> Result<PathBuf> {
    let Some(folder) = std::env::var_os("ZVF_SCRATCH").map(PathBuf::from) else {
        return scratch("xtask");
    };
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
