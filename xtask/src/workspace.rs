//! The folder of the workspace, and whether CI runs it.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Returns whether a missing tool is a failure.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // Read at run time, because worktrees that share a target directory share this binary.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map(Path::to_path_buf).unwrap_or(xtask)
}
