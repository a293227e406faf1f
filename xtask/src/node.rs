//! npm packages, in a folder of their own.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    hex, metadata,
    run::{exists, program},
    workspace,
};

/// What [`packages`] needs and did not find.
pub(crate) const MISSING: &str = "node or npm (Node.js 18 or newer) is missing";

/// The folder `node_modules` with what `xtask/node` locks, or `None` without
/// node and npm.
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

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
