//! The npm package and the page of `zvf view`, built again from their sources.

use anyhow::Result;

use crate::{
    metadata, nostd,
    run::{self, program, runs},
    stage::Done,
    workspace,
};

/// The command that installs npm packages.
pub(crate) const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
/// The target of the module.
const BROWSER: &str = "wasm32-unknown-unknown";

/// Builds the package and the page, compares the page with the one in the repository, and lets Node
/// read every recorded store with the package as the command reads it.
pub(crate) fn rebuilt() -> Result<Done> {
    if !runs("node") || !runs(NPM) {
        return Ok(Done::Skipped("node or npm is missing".to_owned()));
    }
    if !nostd::has_target(BROWSER)? {
        return Ok(Done::Skipped(format!("the target {BROWSER} is missing")));
    }
    let folder = workspace::root().join("viewer");
    program("sh")
        .arg(folder.join("pkg/build.sh"))
        .env("CARGO_TARGET_DIR", metadata::scratch("wasm")?)
        .run()?;
    for words in ["ci --silent", "run --silent check"] {
        program(NPM)
            .arg("--prefix")
            .arg(&folder)
            .words(words)
            .run()?;
    }
    program("node")
        .arg(folder.join("build.mjs"))
        .arg("--check")
        .run()?;
    program("node")
        .arg("--test")
        .arg("--test-reporter=dot")
        .arg(folder.join("pkg/tests/stores.test.mjs"))
        .env("ZVF", run::built_here("--bin zvf")?)
        .run()?;
    Ok(Done::Passed)
}
