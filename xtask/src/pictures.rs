//! The pictures of `docs/pictures`, drawn from stores that are made for them.

use anyhow::{Context, Result};

use crate::{
    metadata,
    options::Options,
    python,
    run::{self, Run, cargo},
    stage::Done,
    workspace,
};

const FOLDER: &str = "docs/pictures";

/// Draws those of these names, or all.
pub(crate) fn from_options(options: &Options) -> Result<Done> {
    let Some(python) = python::pictures()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let zvf = run::built(cargo("build --quiet --locked --package zvf-cli --bin zvf"))?;
    let out = workspace::root().join(FOLDER);
    std::fs::create_dir_all(&out).context(FOLDER)?;
    let script = python::running(&python, "draw_levels.py").arg(zvf);
    let script = script.arg(metadata::scratch("xtask/pictures")?).arg(out);
    let names = options.word().into_iter();
    let names = names.chain(options.further_words().iter().map(String::as_str));
    names.fold(script, Run::arg).run()?;
    Ok(Done::Passed)
}
