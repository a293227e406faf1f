//! Slices of dense arrays beside the other libraries.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run, cargo},
    stage::Done,
};

/// Runs with the given numbers of threads on both sides, or with one per core.
pub(super) fn run(threads: &[String]) -> Result<Done> {
    let Some(python) = python::dense()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built(cargo(
        "build --quiet --locked --release --package zvf-dense --example b2nd",
    ))?;
    let folder = metadata::scratch("xtask/dense-bench")?;
    let script = python::running(&python, "bench_dense.py");
    let mut script = script.arg(ours).arg(folder);
    if !threads.is_empty() {
        script = threads.iter().fold(script.arg("--threads"), Run::arg);
    }
    script.run()?;
    Ok(Done::Passed)
}
