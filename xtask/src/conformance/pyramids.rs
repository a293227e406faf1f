//! Levels that `zvf pyramid` writes, read by the reference.

use anyhow::Result;

use super::{sampled, seeded};
use crate::{metadata, python, run, stage::Done};

/// Builds pyramids of random stores of every kind, from a seed that the script prints.
pub(super) fn levels(seed: Option<u64>, sample: bool) -> Result<Done> {
    let Some(script) = python::script("pyramids.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let folder = metadata::stores()?.join("pyramids");
    let script = seeded(script.arg(ours).arg(folder), seed);
    sampled(script, sample).run()?;
    Ok(Done::Passed)
}
