//! Implementations asked what is in the stores of the corpus: `docs/conformance.md`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    metadata,
    options::Options,
    python,
    run::{self, Run},
    stage::Done,
    workspace,
};

const DOCUMENT: &str = "docs/conformance.md";
/// What ours is called in the table.
const OURS: &str = "zvf";

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    if let Some(command) = options.text("runner") {
        return foreign(command);
    }
    if options.flag("check") {
        return check();
    }
    all("--write")
}

/// All there are, against the figures in the document.
pub(crate) fn check() -> Result<Done> {
    all("--check")
}

/// A program of somebody else's, which changes no figures.
fn foreign(command: &str) -> Result<Done> {
    let Some(script) = script()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let script = script.arg("--runner").arg(format!("runner={command}"));
    script.words("--show runner").run()?;
    Ok(Done::Passed)
}

fn all(what: &str) -> Result<Done> {
    // What compares has to see what is wrong.
    if let Some(test) = python::script("conformance/test_compare.py")? {
        test.words("--quiet").run()?;
    }
    let (Some(script), Some(reference), Some(older)) =
        (script()?, python::reference()?, python::older()?)
    else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let script = script
        .arg("--runner")
        .arg(format!("{OURS}={}", quoted(&ours()?)))
        .arg("--runner")
        .arg(format!(
            "zarr-vectors 0.9.2={}",
            command(&reference, "runner_092.py")
        ))
        .arg("--runner")
        .arg(format!(
            "zarr-vectors 0.2.0={}",
            command(&older, "runner_020.py")
        ));
    let document = workspace::root().join(DOCUMENT);
    script
        .words("--strict")
        .arg(OURS)
        .arg(what)
        .arg(document)
        .run()?;
    Ok(Done::Passed)
}

/// The runner of ours, built.
pub(super) fn ours() -> Result<PathBuf> {
    run::built_here("--example conformance")
}

fn script() -> Result<Option<Run>> {
    let stores = metadata::stores()?.join("corpus");
    let script = python::script("conformance/run.py")?;
    Ok(script.map(|script| script.arg(stores)))
}

/// The command line of a script of ours.
pub(super) fn command(python: &Path, file: &str) -> String {
    let scripts = workspace::root().join("xtask/python/conformance");
    format!("{} -B {}", quoted(python), quoted(&scripts.join(file)))
}

/// As one word of a command line, with what is special in it.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\'', r"'\''");
    format!("'{text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quoted(Path::new("/a b/c'd")), r"'/a b/c'\''d'");
    }
}
