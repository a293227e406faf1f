//! Files of the field beside nibabel, zvtools, laspy, trimesh and navis.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run, cargo},
    stage::Done,
};

/// Reads and writes files of the given number of vertices, by default 20 million.
pub(super) fn run(sizes: &[String]) -> Result<Done> {
    let Some(python) = python::bench_files()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let zvf = run::built(cargo(
        "build --quiet --locked --release --package zvf-cli --bin zvf",
    ))?;
    let read = run::built(cargo(
        "build --quiet --locked --release --package zvf-files --features geoparquet --example read",
    ))?;
    let folder = metadata::scratch("xtask/files")?;
    let script = python::running(&python, "bench_files.py");
    let script = script.arg(&folder).arg(&zvf).arg(&read);
    let table = sizes.iter().fold(script, Run::arg).read()?;
    println!(
        "{table}\n\nwritten to {}",
        folder.join("files.json").display()
    );
    Ok(Done::Passed)
}
