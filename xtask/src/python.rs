//! Python packages, in virtual environments of their own.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    hex, metadata,
    run::{Run, program, runs},
    workspace,
};

/// The Python reference.
const REFERENCE: &str = "xtask/python/requirements.txt";
/// The one before it that was released.
const OLDER: &str = "xtask/python/requirements-020.txt";
/// Blosc2's own reader and writer.
const BLOSC2: &str = "xtask/python/requirements-blosc2.txt";
/// All libraries of dense arrays, to be timed.
const DENSE: &str = "xtask/python/requirements-dense.txt";
/// The library before it, which has wheels up to Python 3.10.
const CATERVA: &str = "xtask/python/requirements-caterva.txt";
/// What `cargo xtask servers` starts.
const SERVERS: &str = "xtask/python/requirements-servers.txt";
/// What `cargo xtask bench` compares with.
const PEERS: &str = "xtask/python/requirements-peers.txt";
/// What draws.
const PICTURES: &str = "xtask/python/requirements-pictures.txt";

/// The reference's Python running a script of ours, or `None` without python3.
pub(crate) fn script(name: &str) -> Result<Option<Run>> {
    let python = environment(REFERENCE)?;
    Ok(python.map(|python| running(&python, name)))
}

/// The reference's Python, or `None` without python3.
pub(crate) fn reference() -> Result<Option<PathBuf>> {
    environment(REFERENCE)
}

/// The Python of the release before it, or `None` without python3.
pub(crate) fn older() -> Result<Option<PathBuf>> {
    environment(OLDER)
}

/// The Python that has the servers, or `None` without python3.
pub(crate) fn servers() -> Result<Option<PathBuf>> {
    environment(SERVERS)
}

/// The Python that draws, or `None` without python3.
pub(crate) fn pictures() -> Result<Option<PathBuf>> {
    environment(PICTURES)
}

/// The Python that has the peers, or `None` without python3.
pub(crate) fn peers() -> Result<Option<PathBuf>> {
    environment(PEERS)
}

/// The Python that has python-blosc2, or `None` without python3.
pub(crate) fn blosc2() -> Result<Option<PathBuf>> {
    environment(BLOSC2)
}

/// The Python that has the libraries of dense arrays, or `None` without python3.
pub(crate) fn dense() -> Result<Option<PathBuf>> {
    environment(DENSE)
}

/// The Python that has caterva, or `None` without Python 3.9.
pub(crate) fn caterva() -> Result<Option<PathBuf>> {
    let base = if runs("python3.9") {
        PathBuf::from("python3.9")
    } else {
        let Some(installed) = pyenv("3.9.") else {
            return Ok(None);
        };
        installed
    };
    environment_of(&base, CATERVA)
}

/// A Python that pyenv has installed, whether or not it is chosen: its shims fail for others.
fn pyenv(version: &str) -> Option<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(env::home_dir()?.join(".pyenv")))?;
    let installed = fs::read_dir(root.join("versions")).ok()?.flatten();
    let fitting =
        installed.filter(|entry| entry.file_name().to_string_lossy().starts_with(version));
    let mut programs = fitting.map(|entry| entry.path().join("bin/python"));
    programs.find(|program| runs(program))
}

/// A Python running a script of ours.
pub(crate) fn running(python: &Path, name: &str) -> Run {
    let script = workspace::root().join("xtask/python").join(name);
    // Bytecode would land in the source tree.
    let run = program(python).env("PYTHONDONTWRITEBYTECODE", "1");
    run.arg(script)
}

/// What [`script`] and its like need and did not find.
pub(crate) const MISSING: &str = "python3 (3.11 or newer) is missing";

/// An environment of the Python that is there.
fn environment(list: &'static str) -> Result<Option<PathBuf>> {
    environment_of(Path::new("python3"), list)
}

/// Makes the environment, or finds the one made from the same requirements.
fn environment_of(base: &Path, list: &'static str) -> Result<Option<PathBuf>> {
    let requirements = workspace::root().join(list);
    let text = fs::read(&requirements).context(list)?;
    let mut name = hex::encode(&Sha256::digest(&text));
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
    // Another process may be making it.
    let lock = File::create(metadata::scratch("xtask")?.join("venv.lock"))?;
    lock.lock().context("the lock of Python's environments")?;
    if complete.exists() {
        return Ok(Some(python));
    }
    println!("installing {list} into {}", venv.display());
    program(base)
        .words("-m venv --clear")
        .arg(&venv)
        .run()
        .with_context(|| format!("{} cannot make a virtual environment", base.display()))?;
    program(&python)
        .words("-m pip install --quiet --disable-pip-version-check --requirement")
        .arg(&requirements)
        .run()
        .with_context(|| {
            let base = base.display();
            format!("cannot install {list}; it needs PyPI, and Python 3.11 or newer where {base} is python3")
        })?;
    fs::write(complete, text)?;
    Ok(Some(python))
}
