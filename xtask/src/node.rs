//! npm packages, installed into a folder below the target directory.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    hex, metadata,
    run::{exists, program},
    workspace,
};

/// The reason that [`packages`] returns `None`.
pub(crate) const MISSING: &str = "node or npm (Node.js 18 or newer) is missing";

/// Installs the packages that `xtask/node` locks and returns the folder `node_modules`; `None`
/// without node and npm.
pub(crate) fn packages() -> Result<Option<PathBuf>> {
    let sources = workspace::root().join("xtask/node");
    let lock = fs::read(sources.join("package-lock.json")).context("xtask/node")?;
    let mut name = hex::encode(&Sha256::digest(&lock));
    name.truncate(8);
    let folder = metadata::scratch("xtask")?.join(format!("node-{name}"));
    let complete = folder.join("complete");
    if !exists("node") || !exists(NPM) {
        return Ok(None);
    }
    if !complete.exists() {
        println!("installing xtask/node into {}", folder.display());
        fs::create_dir_all(&folder)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(sources.join(file), folder.join(file)).context(file)?;
        }
        program(NPM)
            .words("ci --ignore-scripts --no-audit --no-fund --loglevel=error --prefix")
            .arg(&folder)
            .run()
            .context("cannot install the servers; they need the npm registry")?;
        fs::write(complete, lock)?;
    }
    Ok(Some(folder.join("node_modules")))
}

/// The command that installs and packs npm packages.
pub(crate) const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
