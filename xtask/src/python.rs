//! Python packages, in virtual environments below the target directory.

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
/// The previous release of the reference.
const OLDER: &str = "xtask/python/requirements-020.txt";
/// The reader and writer of Blosc2.
const BLOSC2: &str = "xtask/python/requirements-blosc2.txt";
/// The dense-array libraries of the benchmark.
const DENSE: &str = "xtask/python/requirements-dense.txt";
/// caterva, the predecessor of b2nd, which has wheels up to Python 3.10.
const CATERVA: &str = "xtask/python/requirements-caterva.txt";
/// The servers of `cargo xtask servers`.
const SERVERS: &str = "xtask/python/requirements-servers.txt";
/// The programs that `cargo xtask bench` compares with.
const PEERS: &str = "xtask/python/requirements-peers.txt";
/// The readers of tractograms, meshes and neurons.
const FILES: &str = "xtask/python/requirements-files.txt";
const BENCH_FILES: &str = "xtask/python/requirements-bench-files.txt";
/// The readers of Neuroglancer's precomputed formats.
const PRECOMPUTED: &str = "xtask/python/requirements-precomputed.txt";
/// The tests of the Python package.
const PACKAGE: &str = "xtask/python/requirements-package.txt";
/// Dask, Ray and Spark.
const CLUSTERS: &str = "xtask/python/requirements-clusters.txt";
/// The tests of zarr-vectors.
const COMPAT: &str = "xtask/python/requirements-compat.txt";
/// The programs that check packages before a release.
const RELEASE: &str = "xtask/python/requirements-release.txt";
/// The plotting libraries.
const PICTURES: &str = "xtask/python/requirements-pictures.txt";

/// Runs a script with the Python of the reference; `None` without python3.
pub(crate) fn script(name: &str) -> Result<Option<Run>> {
    let python = environment(REFERENCE)?;
    Ok(python.map(|python| running(&python, name)))
}

/// Returns the Python of the reference; `None` without python3.
pub(crate) fn reference() -> Result<Option<PathBuf>> {
    environment(REFERENCE)
}

/// Returns the Python of the previous release; `None` without python3.
pub(crate) fn older() -> Result<Option<PathBuf>> {
    environment(OLDER)
}

/// Returns the Python of the servers; `None` without python3.
pub(crate) fn servers() -> Result<Option<PathBuf>> {
    environment(SERVERS)
}

/// Returns the Python of the plotting libraries; `None` without python3.
pub(crate) fn pictures() -> Result<Option<PathBuf>> {
    environment(PICTURES)
}

/// Returns the Python of the programs to compare with; `None` without python3.
pub(crate) fn peers() -> Result<Option<PathBuf>> {
    environment(PEERS)
}

/// Returns the Python of the readers of files; `None` without python3.
pub(crate) fn files() -> Result<Option<PathBuf>> {
    environment(FILES)
}

/// Returns the Python of the programs that the benchmark of files compares with; `None` without
/// python3.
pub(crate) fn bench_files() -> Result<Option<PathBuf>> {
    environment(BENCH_FILES)
}

/// Returns the Python of Neuroglancer; `None` without python3.
pub(crate) fn precomputed() -> Result<Option<PathBuf>> {
    environment(PRECOMPUTED)
}

/// Returns the Python of the tests of the Python package; `None` without python3.
pub(crate) fn package() -> Result<Option<PathBuf>> {
    environment(PACKAGE)
}

/// Returns the later versions of Python that are installed, which the wheel serves as well.
pub(crate) fn later() -> Vec<PathBuf> {
    let versions = ["3.12", "3.13", "3.14"].into_iter();
    let found = versions.filter_map(|version| {
        let name = format!("python{version}");
        match runs(&name) {
            true => Some(PathBuf::from(name)),
            // A shim of pyenv fails for a version that is not selected.
            false => pyenv(&format!("{version}.")),
        }
    });
    found.collect()
}

/// Returns the Python of Dask, Ray and Spark; `None` without python3.
pub(crate) fn clusters() -> Result<Option<PathBuf>> {
    environment(CLUSTERS)
}

/// Returns the Python of the tests of zarr-vectors; `None` without python3.
pub(crate) fn compat() -> Result<Option<PathBuf>> {
    environment(COMPAT)
}

/// Returns the Python of the programs that check packages; `None` without python3.
pub(crate) fn release() -> Result<Option<PathBuf>> {
    environment(RELEASE)
}

/// Returns the Python of python-blosc2; `None` without python3.
pub(crate) fn blosc2() -> Result<Option<PathBuf>> {
    environment(BLOSC2)
}

/// Returns the Python of the dense-array libraries; `None` without python3.
pub(crate) fn dense() -> Result<Option<PathBuf>> {
    environment(DENSE)
}

/// Returns the Python of caterva; `None` without Python 3.9.
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

/// Finds a Python that pyenv has installed. The shims of pyenv fail for versions that are not selected.
fn pyenv(version: &str) -> Option<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(env::home_dir()?.join(".pyenv")))?;
    let installed = fs::read_dir(root.join("versions")).ok()?.flatten();
    let fitting =
        installed.filter(|entry| entry.file_name().to_string_lossy().starts_with(version));
    let mut programs = fitting.map(|entry| entry.path().join("bin/python"));
    programs.find(|program| runs(program))
}

/// Prepares a run of a script in `xtask/python`.
pub(crate) fn running(python: &Path, name: &str) -> Run {
    let script = workspace::root().join("xtask/python").join(name);
    // Keeps bytecode out of the source tree.
    let run = program(python).env("PYTHONDONTWRITEBYTECODE", "1");
    run.arg(script)
}

/// The reason that [`script`] and the other functions return `None`.
pub(crate) const MISSING: &str = "python3 (3.11 or newer) is missing";

/// Creates an environment of the default Python.
fn environment(list: &'static str) -> Result<Option<PathBuf>> {
    environment_of(Path::new("python3"), list)
}

/// Creates an environment, or finds the one with the same requirements.
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
            let base = base.display();
            format!("cannot install {list}; it needs PyPI, and Python 3.11 or newer where {base} is python3")
        })?;
    fs::write(complete, text)?;
    Ok(Some(python))
}
