//! The files of the project: tracked, or new and not ignored.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{run::program, workspace};

/// Returns paths relative to the workspace, in order. Without git, as in a release archive, returns
/// all files except build output.
pub(crate) fn all() -> Result<Vec<PathBuf>> {
    let root = workspace::root();
    let mut files = if root.join(".git").exists() {
        listed()?
    } else {
        found(&root, &root)?
    };
    files.retain(|file| root.join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads the `.rs` files below `folders`.
pub(crate) fn sources(folders: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let mut sources = Vec::new();
    for file in all()? {
        let below = folders.iter().any(|folder| file.starts_with(folder));
        if below && file.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(workspace::root().join(&file));
            sources.push((
                file.clone(),
                text.with_context(|| format!("cannot read {}", file.display()))?,
            ));
        }
    }
    Ok(sources)
}

fn listed() -> Result<Vec<PathBuf>> {
    let list = program("git")
        .words("ls-files -z --cached --others --exclude-standard")
        .read()
        .context("cannot list the files with git")?;
    let names = list.split('\0').filter(|name| !name.is_empty());
    Ok(names.map(PathBuf::from).collect())
}

fn found(root: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            files.push(path.strip_prefix(root)?.to_path_buf());
        } else if !path.ends_with("target") {
            files.extend(found(root, &path)?);
        }
    }
    Ok(files)
}
