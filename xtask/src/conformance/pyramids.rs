//! Levels that `zvf pyramid` writes, read by the reference.

use anyhow::Result;

use super::seeded;
use crate::{metadata, python, run, stage::Done};

/// Builds pyramids of random stores of every kind, from a seed that the script prints.
pub(super) fn levels(seed: Option<u64>) -> Result<Done> {
    let Some(script) = python::script("pyramids.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let folder = metadata::stores()?.join("pyramids");
    seeded(script.arg(ours).arg(folder), seed).run()?;
    Ok(Done::Passed)
}
