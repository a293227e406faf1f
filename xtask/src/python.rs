//! The Python reference, in a virtual environment of its own.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    hex, metadata,
    run::{Run, exists, program},
    workspace,
};

const REQUIREMENTS: &str = "xtask/python/requirements.txt";

/// The reference's Python running a script of ours, or `None` without python3.
pub(crate) fn script(name: &str) -> Result<Option<Run>> {
    let Some(python) = environment()? else {
        return Ok(None);
    };
    let script = workspace::root().join("xtask/python").join(name);
    // Bytecode would land in the source tree.
    let run = program(python).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(Some(run.arg(script)))
}

/// What [`script`] needs and did not find.
pub(crate) const MISSING: &str = "python3 (3.11 or newer) is missing";

/// Makes the environment, or finds the one made from the same requirements.
fn environment() -> Result<Option<PathBuf>> {
    let requirements = workspace::root().join(REQUIREMENTS);
    let text = fs::read(&requirements).context(REQUIREMENTS)?;
    let mut name = hex::encode(&Sha256::digest(&text));
    name.truncate(8);
    let venv = metadata::scratch("xtask")?.join(format!("venv-{name}"));
    let bin = if cfg!(windows) { "Scripts" } else { "bin" };
    let python = venv.join(bin).join("python");
    let complete = venv.join("complete");
    if complete.exists() {
        return Ok(Some(python));
    }
    if !exists("python3") {
        return Ok(None);
    }
    println!("installing {REQUIREMENTS} into {}", venv.display());
    program("python3")
        .words("-m venv --clear")
        .arg(&venv)
        .run()
        .context("python3 cannot make a virtual environment")?;
    program(&python)
        .words("-m pip install --quiet --disable-pip-version-check --requirement")
        .arg(&requirements)
        .run()
        .context("cannot install the Python reference; it needs Python 3.11 or newer and PyPI")?;
    fs::write(complete, text)?;
    Ok(Some(python))
}
