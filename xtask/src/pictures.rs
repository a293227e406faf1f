//! The pictures of `docs/pictures` that `zvf render` draws.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run},
    stage::Done,
    workspace,
};

const PACKAGES: &str = "xtask/pictures/requirements.txt";

/// Draws the named pictures, or all.
pub(crate) fn draw(names: &[String]) -> Result<Done> {
    let Some(python) = python::environment(PACKAGES)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let script = python::running(&python, "xtask/pictures/draw.py")
        .arg(run::built_here("--bin zvf")?)
        .arg(metadata::scratch("xtask/pictures")?)
        .arg(workspace::root().join("docs/pictures"));
    names.iter().fold(script, Run::arg).run()?;
    Ok(Done::Passed)
}
