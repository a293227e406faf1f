//! Where things are, and what cargo says about them.

use std::{
    env,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run;

/// Whether a missing tool is a failure.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    // Cargo's answer at run time: worktrees may share a target directory, and so this very binary.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map(Path::to_path_buf).unwrap_or(xtask)
}

/// Everything `cargo metadata` knows, with all features on.
pub(crate) fn metadata() -> Result<&'static Value> {
    static METADATA: OnceLock<Value> = OnceLock::new();
    if let Some(metadata) = METADATA.get() {
        return Ok(metadata);
    }
    let args = "metadata --format-version 1 --all-features --locked";
    let text = run::cargo(args).read()?;
    let value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    Ok(METADATA.get_or_init(|| value))
}

/// A folder of ours below the target directory, made if it is missing.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let target = metadata()?["target_directory"].as_str();
    let target = target.context("cargo metadata names no target directory")?;
    let folder = Path::new(target).join(name);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
