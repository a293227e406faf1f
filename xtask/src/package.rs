//! The Python package: builds its extension module and runs its tests.

use std::{env::consts::DLL_EXTENSION, fs, path::Path, process};

use anyhow::{Context, Result, ensure};

use crate::{
    conformance::{self, CLUSTERS, COMPAT, NOTEBOOK},
    metadata, python,
    run::{built_here, program},
    stage::Done,
    workspace,
};

/// Size of the wheel of `pip install .` when it was last recorded here.
const RECORDED_WHEEL_BYTES: u64 = 24_000_000;
/// Growth in percent that needs a reason.
const MAX_WHEEL_GROWTH: u64 = 5;

const PACKAGE: &str = "conformance/requirements-package.txt";
const ENGINES: &str = "conformance/requirements-clusters.txt";
const LAB: &str = "conformance/requirements-notebook.txt";

#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct PackageOptions {
    /// Only the tests of zarr-vectors against zvf.compat, compared with docs/compat.md
    #[arg(long)]
    compat: bool,
    /// Write the table of docs/compat.md
    #[arg(long)]
    write: bool,
    /// Only the wheel: its size, and an example in a new environment
    #[arg(long)]
    wheel: bool,
    /// Only the page of `zvf.view` in `JupyterLab`, in headless Chromium
    #[arg(long)]
    notebook: bool,
    /// Only stores that Dask, Ray and Spark build while workers are killed, and the scripts of their
    /// pages
    #[arg(long)]
    clusters: bool,
    /// Workers killed in each phase
    #[arg(long, default_value_t = 1)]
    kills: u64,
    /// Only the scripts of the pages about Dask, Ray and Spark
    #[arg(long)]
    guide: bool,
}

pub(crate) fn from_options(options: &PackageOptions) -> Result<Done> {
    if options.compat {
        build()?;
        return conformance::suite(&[COMPAT], if options.write { "--update" } else { "" });
    }
    if options.wheel {
        return wheel();
    }
    if options.notebook {
        return notebook();
    }
    if options.clusters {
        return if options.guide {
            engines("-k test_guide")
        } else {
            clusters(options.kills)
        };
    }
    all()
}

/// Builds the wheel as `pip install .` does, with the features of a release, compares its size with the recorded one, and runs it in a
/// new environment.
pub(crate) fn wheel() -> Result<Done> {
    let Some(python) = python::environment(PACKAGE)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let folder = metadata::scratch("xtask")?.join("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    program(&python)
        .words("-m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir")
        .arg(&folder)
        .arg("--config-settings=build-args=--features zarr")
        .arg(workspace::root())
        .run()?;
    let mut files = fs::read_dir(&folder)?;
    let wheel = files.next().context("pip has built no wheel")??;
    let bytes = wheel.metadata()?.len();
    println!("{}: {bytes} bytes", wheel.file_name().display());
    ensure!(
        bytes * 100 <= RECORDED_WHEEL_BYTES * (100 + MAX_WHEEL_GROWTH),
        "the wheel is more than {MAX_WHEEL_GROWTH} % larger than the recorded {RECORDED_WHEEL_BYTES} bytes: \
         name the dependency in CHANGELOG.md, and record the new size"
    );
    installed(&python, &wheel.path(), &folder.join("environment"))?;
    for later in python::later() {
        let name = later.file_name().unwrap_or_default();
        let version = later
            .parent()
            .and_then(Path::parent)
            .and_then(Path::file_name);
        println!("with {}", version.unwrap_or(name).display());
        installed(&later, &wheel.path(), &folder.join("later"))?;
    }
    Ok(Done::Passed)
}

/// Installs the wheel into a new environment, runs an example and the command, and the tests that
/// need no other packages.
fn installed(python: &Path, wheel: &Path, fresh: &Path) -> Result<()> {
    program(python).words("-m venv --clear").arg(fresh).run()?;
    let bin = fresh.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let run = || program(bin.join("python"));
    run()
        .words("-m pip install --quiet --disable-pip-version-check")
        .arg(wheel)
        .run()?;
    // Stops at the first warning, as that of a debug build.
    let example = "import zvf; zvf.create('memory:', kind='points', positions=[[0.0, 0, 0]])";
    run().words("-W error -c").arg(example).run()?;
    program(bin.join("zvf")).arg("doctor").run()?;
    run()
        .words("-m pip install --quiet --disable-pip-version-check pytest")
        .run()?;
    let mut tests = run()
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // The package of this folder must not hide the installed one.
        .words("-m pytest --quiet -o pythonpath= -o addopts= -p no:cacheprovider")
        .arg("--import-mode=importlib");
    for name in [
        "change", "create", "dense", "files", "limits", "query", "serve",
    ] {
        tests = tests.arg(format!("python/tests/test_{name}.py"));
    }
    tests.run()
}

/// Builds stores with each engine while workers are killed in each phase, and runs the scripts of the
/// pages.
pub(crate) fn clusters(kills: u64) -> Result<Done> {
    engines(&format!("--kills {kills}"))
}

/// Runs cells of a notebook in `JupyterLab`.
fn notebook() -> Result<Done> {
    let Some(python) = python::environment(LAB)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    build()?;
    conformance::suite_in(&python, &[NOTEBOOK], "")
}

fn engines(words: &str) -> Result<Done> {
    let Some(python) = python::environment(ENGINES)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    build()?;
    conformance::suite_in(&python, &[CLUSTERS], words)
}

/// Checks the package with mypy and pytest, and with Dask while a worker is killed in each phase.
fn all() -> Result<Done> {
    let Some(python) = python::environment(PACKAGE)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    build()?;
    let run = |words| {
        let run = program(&python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", workspace::root().join("python"));
        run.words(words).run()
    };
    run("-m mypy --no-incremental")?;
    run("-m mypy.stubtest zvf._zvf --mypy-config-file pyproject.toml")?;
    run("-m pytest --quiet")?;
    // `clusters` is the whole run.
    conformance::suite_in(&python, &[CLUSTERS], "-k killed_workers[dask-points]")
}

/// Puts the extension module of a debug build beside the package.
pub(crate) fn build() -> Result<()> {
    // The features of the tests, whose libraries it uses.
    let library = built_here("--lib")?;
    let suffix = if DLL_EXTENSION == "dll" {
        "pyd"
    } else {
        "abi3.so"
    };
    let module = workspace::root().join(format!("python/zvf/_zvf.{suffix}"));
    // A program that has the old file open keeps it.
    let staged = module.with_extension(format!("{}.new", process::id()));
    fs::copy(&library, &staged).with_context(|| library.display().to_string())?;
    fs::rename(&staged, &module).with_context(|| module.display().to_string())?;
    Ok(())
}
