//! Time and memory of pyramid builds beside the Python reference.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run, cargo},
    stage::Done,
};

/// Builds pyramids of stores of the given sizes, by default a million vertices, and ten million
/// if `large`.
pub(super) fn run(sizes: &[String], large: bool) -> Result<Done> {
    let Some(script) = python::script("bench_pyramids.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let zvf = run::built(cargo(
        "build --quiet --locked --release --package zvf-cli --bin zvf",
    ))?;
    let folder = metadata::scratch("xtask/pyramids-bench")?;
    let mut sizes = sizes.to_vec();
    if sizes.is_empty() {
        sizes.push("1000000".to_owned());
    }
    if large {
        sizes.push("10000000".to_owned());
    }
    let script = script.arg(&folder).arg(&zvf);
    let table = sizes.iter().fold(script, Run::arg).read()?;
    println!(
        "{table}\nwritten to {}",
        folder.join("pyramids.json").display()
    );
    Ok(Done::Passed)
}
