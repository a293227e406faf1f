//! Where the workspace is, and who runs it.

use std::{
    env,
    path::{Path, PathBuf},
};

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
