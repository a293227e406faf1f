//! Runners: implementations that run queries on the corpus, as `docs/conformance.md` describes.

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

/// A runner in Python without packages, and the number of fields of the corpus that it returns.
const SMALL: (&str, &str) = ("examples/outside/runner.py", "small=497");
const DOCUMENT: &str = "docs/conformance.md";
/// The name of our runner in the table.
const OURS: &str = "zvf";
/// Options that select queries of the corpus.
const FILTERS: [&str; 3] = ["store", "query", "generation"];

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    if let Some(command) = options.text("runner") {
        return foreign(command, options);
    }
    if options.flag("check") {
        return check();
    }
    all("--write")
}

/// Runs every runner and compares with the documented results.
pub(crate) fn check() -> Result<Done> {
    match all("--check")? {
        Done::Passed => small(),
        skipped => Ok(skipped),
    }
}

/// Runs the runner of `examples/outside`, which supports some of the queries.
fn small() -> Result<Done> {
    let Some(script) = script()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let (file, right) = SMALL;
    let runner = quoted(&workspace::root().join(file));
    let script = script
        .arg("--runner")
        .arg(format!("small=python3 -B {runner}"));
    script.words("--correct small --right").arg(right).run()?;
    Ok(Done::Passed)
}

/// Runs an external runner on the queries that the filters leave, without changing the documented
/// results. A wrong result is an error.
fn foreign(command: &str, options: &Options) -> Result<Done> {
    let Some(mut script) = script()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    for filter in FILTERS {
        if let Some(value) = options.text(filter) {
            script = script.arg(format!("--{filter}={value}"));
        }
    }
    let script = script.arg("--runner").arg(format!("runner={command}"));
    script.words("--show runner --correct runner").run()?;
    Ok(Done::Passed)
}

fn all(what: &str) -> Result<Done> {
    // Show the failures of this runner.
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

/// Builds our runner.
pub(super) fn ours() -> Result<PathBuf> {
    run::built_here("--example conformance")
}

fn script() -> Result<Option<Run>> {
    let stores = metadata::stores()?.join("corpus");
    let script = python::script("conformance/run.py")?;
    Ok(script.map(|script| script.arg(stores)))
}

/// Returns the command line of a script in `xtask/python`.
pub(super) fn command(python: &Path, file: &str) -> String {
    let scripts = workspace::root().join("xtask/python/conformance");
    format!("{} -B {}", quoted(python), quoted(&scripts.join(file)))
}

/// Quotes a string as one word of a command line.
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
