//! Stores as sources of Neuroglancer, exported and served, read by other programs, and sources of
//! other programs as stores.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, exists},
    stage::Done,
};

/// Attempts to draw: software rendering on a busy machine may miss a limit of time.
const ATTEMPTS: usize = 2;
const NO_BROWSER: &str = "chromium or chromedriver is missing: nothing was drawn; install the Debian packages chromium \
     and chromium-driver";

/// Exports and serves stores of every kind, and compares what cloud-volume, tensorstore and the reader of
/// Neuroglancer find with the results of queries. Then reads what these programs write.
pub(crate) fn exported() -> Result<Done> {
    let Some(python) = python::precomputed()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let folder = metadata::stores()?.join("precomputed");
    for script in ["precomputed.py", "imported.py"] {
        let script = python::running(&python, script).arg(&ours);
        script.arg(&folder).run()?;
    }
    Ok(Done::Passed)
}

/// Draws served and exported stores in Neuroglancer in a browser.
pub(crate) fn drawn() -> Result<Done> {
    if !exists("chromium") || !exists("chromedriver") {
        return Ok(Done::Skipped(NO_BROWSER.to_owned()));
    }
    let Some(python) = python::precomputed()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let folder = metadata::stores()?.join("viewer");
    let draw = || {
        python::running(&python, "viewer.py")
            .arg(&ours)
            .arg(&folder)
    };
    for _ in 1..ATTEMPTS {
        match draw().run() {
            Ok(()) => return Ok(Done::Passed),
            Err(error) => println!("{error:#}; once more"),
        }
    }
    draw().run()?;
    Ok(Done::Passed)
}
