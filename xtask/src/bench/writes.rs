//! Time, memory and size of writing beside the Python reference.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run, cargo},
    stage::Done,
};

/// Writes stores of the given sizes, by default 1 and 10 million vertices.
pub(super) fn run(sizes: &[String]) -> Result<Done> {
    let Some(script) = python::script("bench_writes.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let zvf = run::built(cargo(
        "build --quiet --locked --release --package zvf-cli --bin zvf",
    ))?;
    let folder = metadata::scratch("xtask/writes")?;
    let script = script.arg(&folder).arg(&zvf);
    let table = sizes.iter().fold(script, Run::arg).read()?;
    println!("{table}");
    println!(
        "\nOurs is the whole command, reading the npz included; theirs the call alone, on arrays in memory.\n\
         written to {}",
        folder.join("writes.json").display()
    );
    Ok(Done::Passed)
}
