//! Python packages, in virtual environments below the target directory.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    metadata,
    run::{Run, program, runs},
    workspace,
};

/// Returns the later versions of Python that are installed, which the wheel serves as well.
pub(crate) fn later() -> Vec<PathBuf> {
    let versions = ["3.12", "3.13", "3.14"].into_iter();
    let found = versions.filter_map(|version| {
        let name = format!("python{version}");
        if runs(&name) {
            Some(PathBuf::from(name))
        } else {
            pyenv(&format!("{version}."))
        }
    });
    found.collect()
}

/// Finds a Python that pyenv has installed. The shims of pyenv fail for versions that are not selected.
fn pyenv(version: &str) -> Option<PathBuf> {
    let root = env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".pyenv")))?;
    let installed = fs::read_dir(root.join("versions")).ok()?.flatten();
    let fitting =
        installed.filter(|entry| entry.file_name().to_string_lossy().starts_with(version));
    let mut programs = fitting.map(|entry| entry.path().join("bin/python"));
    programs.find(|program| runs(program))
}

/// Prepares a run of a script of this repository.
pub(crate) fn running(python: &Path, path: &str) -> Run {
    let script = workspace::root().join(path);
    // Keeps bytecode out of the source tree.
    let run = program(python).env("PYTHONDONTWRITEBYTECODE", "1");
    run.arg(script)
}

/// The reason that [`environment`] returns `None`.
pub(crate) const MISSING: &str = "python3 (3.11 or newer) is missing";

/// Creates an environment with the listed packages, or finds the one with the same list; `None`
/// without python3.
pub(crate) fn environment(list: &'static str) -> Result<Option<PathBuf>> {
    let base = Path::new("python3");
    let requirements = workspace::root().join(list);
    let text = fs::read(&requirements).context(list)?;
    let mut name = hex::encode(Sha256::digest(&text));
    name.truncate(8);
    let venv = metadata::scratch("xtask")?.join(format!("venv-{name}"));
    let bin = if cfg!(windows) { "Scripts" } else { "bin" };
    let python = venv.join(bin).join("python");
    let complete = venv.join("complete");
    if complete.exists() {
        return Ok(Some(python));
    }
    if !runs(base) {
        return Ok(None);
    }
    // Another process may be creating it.
    let lock = File::create(metadata::scratch("xtask")?.join("venv.lock"))?;
    lock.lock().context("cannot lock the Python environments")?;
    if complete.exists() {
        return Ok(Some(python));
    }
    println!("installing {list} into {}", venv.display());
    program(base)
        .words("-m venv --clear")
        .arg(&venv)
        .run()
        .with_context(|| format!("{} cannot create a virtual environment", base.display()))?;
    program(&python)
        .words("-m pip install --quiet --disable-pip-version-check --requirement")
        .arg(&requirements)
        .run()
        .with_context(|| {
            format!("cannot install {list}; it needs PyPI, and Python 3.11 or newer as python3")
        })?;
    fs::write(complete, text)?;
    Ok(Some(python))
}
