//! Every source file starts with a module comment.

use std::path::Path;

use anyhow::Result;

use super::files;

pub(crate) fn findings() -> Result<Vec<String>> {
    let sources = files::sources(&["crates", "xtask", "fuzz", "probe"])?;
    let undocumented = sources.iter().filter(|(_, text)| !text.starts_with("//!"));
    let finding = |path: &Path| format!("{} does not start with `//!`", path.display());
    Ok(undocumented.map(|(path, _)| finding(path)).collect())
}
