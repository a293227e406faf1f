//! The pictures of `docs/pictures`, drawn from generated stores.

use anyhow::{Context, Result};

use crate::{
    metadata, python,
    run::{self, Run},
    stage::Done,
    workspace,
};

const PACKAGES: &str = "xtask/pictures/requirements.txt";
const FOLDER: &str = "docs/pictures";
/// The picture in README.md, which a separate script draws.
const DEMO: &str = "demo";

/// Draws the named pictures, or all.
pub(crate) fn draw(names: &[String]) -> Result<Done> {
    let Some(python) = python::environment(PACKAGES)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let zvf = run::built_here("--bin zvf")?;
    let out = workspace::root().join(FOLDER);
    std::fs::create_dir_all(&out).context(FOLDER)?;
    let (levels, demo): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| *name != DEMO);
    if names.is_empty() || !demo.is_empty() {
        let script = python::running(&python, "xtask/pictures/draw_demo.py").arg(&zvf);
        let folder = metadata::scratch("xtask/pictures-demo")?;
        script.arg(folder).arg(&out).run()?;
    }
    if names.is_empty() || !levels.is_empty() {
        let script = python::running(&python, "xtask/pictures/draw_levels.py").arg(&zvf);
        let script = script.arg(metadata::scratch("xtask/pictures")?).arg(&out);
        levels.into_iter().fold(script, Run::arg).run()?;
    }
    Ok(Done::Passed)
}
