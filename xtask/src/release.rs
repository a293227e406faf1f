//! Rehearsal of a release: the steps of `.github/workflows/release.yml` that run on any machine and
//! publish nothing.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use crate::{
    metadata, python,
    run::{Run, cargo, program, runs},
    stage::Done,
    viewer::NPM,
    workspace,
};

/// The programs that check packages.
const PACKAGES: &str = "xtask/requirements-release.txt";
/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The npm package of the viewer.
const VIEWER: &str = "viewer/pkg";

/// Packs the crates, the Python package and the npm package, and checks what registries check.
pub(crate) fn rehearse() -> Result<Done> {
    let notes = program("sh").words(".github/notes.sh").arg(VERSION);
    println!(
        "notes of this version: {} lines",
        notes.read()?.lines().count()
    );
    // Builds each crate from its package.
    cargo("publish --workspace --dry-run --locked --allow-dirty --quiet").run()?;
    let Some(python) = python::environment(PACKAGES)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let folder = metadata::scratch("xtask")?.join("release");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let run = |words: &str| program(&python).words(words);
    // The wheel of `python --wheel` has compiled everything.
    run("-m maturin build --release --features zarr --locked --compression-level 9 --out")
        .arg(&folder)
        .run()?;
    run("-m maturin sdist --out").arg(&folder).run()?;
    let files = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    let is_wheel = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "whl");
    let wheel = files
        .iter()
        .find(is_wheel)
        .context("maturin has built no wheel")?;
    let is_manylinux = wheel.to_string_lossy().contains("manylinux");
    ensure!(
        is_manylinux || !cfg!(target_os = "linux"),
        "{} is not a manylinux wheel",
        wheel.display()
    );
    run("-m abi3audit --strict").arg(wheel).run()?;
    let check = run("-m twine check --strict");
    files.iter().fold(check, Run::arg).run()?;
    viewer()
}

/// Packs the npm package, if there is one.
fn viewer() -> Result<Done> {
    let folder = workspace::root().join(VIEWER);
    if !folder.join("package.json").exists() {
        println!("no npm package: {VIEWER} does not exist");
        return Ok(Done::Passed);
    }
    if !runs(NPM) {
        return Ok(Done::InPart(format!("{VIEWER}, because npm is missing")));
    }
    program(NPM).words("pack --dry-run").arg(&folder).run()?;
    Ok(Done::Passed)
}
