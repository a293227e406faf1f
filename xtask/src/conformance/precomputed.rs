//! Stores exported as sources of Neuroglancer, and read by other programs.

use anyhow::Result;

use crate::{metadata, python, run, stage::Done};

/// Exports stores of every kind and compares what cloud-volume, tensorstore and the reader of
/// Neuroglancer find with the answers of queries.
pub(crate) fn exported() -> Result<Done> {
    let Some(python) = python::precomputed()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let script = python::running(&python, "precomputed.py").arg(ours);
    script.arg(metadata::stores()?.join("precomputed")).run()?;
    Ok(Done::Passed)
}
