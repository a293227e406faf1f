//! The Python package: builds its extension module and runs its tests.

use std::{env::consts::DLL_EXTENSION, fs, process};

use anyhow::{Context, Result};

use crate::{
    metadata,
    options::Options,
    python,
    run::{built, cargo, program},
    stage::Done,
    workspace,
};

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    if options.flag("compat") {
        return compat(options.flag("write"));
    }
    all()
}

/// Checks the package with mypy and pytest.
fn all() -> Result<Done> {
    let Some(python) = python::package()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    build()?;
    let run = |words| {
        let run = program(&python).env("PYTHONDONTWRITEBYTECODE", "1");
        let run = run.env("PYTHONPATH", workspace::root().join("python"));
        run.words(words).run()
    };
    run("-m mypy --no-incremental")?;
    run("-m mypy.stubtest zvf._zvf --mypy-config-file pyproject.toml")?;
    run("-m pytest --quiet")?;
    Ok(Done::Passed)
}

/// Runs the tests of zarr-vectors against `zvf.compat`, and writes the table of docs/compat.md or
/// compares it.
fn compat(write: bool) -> Result<Done> {
    let Some(python) = python::compat()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    build()?;
    let script = python::running(&python, "compat_tests.py");
    let script = script.arg(metadata::scratch("xtask")?.join("compat"));
    let script = script.arg(workspace::root().join("docs/compat.md"));
    let script = if write { script.arg("--write") } else { script };
    script.run()?;
    Ok(Done::Passed)
}

/// Puts the extension module of a debug build beside the package.
fn build() -> Result<()> {
    let build = cargo("build --quiet --locked --package zvf-python");
    let library = built(build)?;
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
