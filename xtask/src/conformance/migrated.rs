//! Recorded stores before 0.9, migrated and read by the reference.

use anyhow::Result;

use crate::{metadata, python, run, stage::Done};

/// Migrates every recorded store of 0.6 to 0.8 to 0.9 and compares what the reference reads with
/// the recorded contents.
pub(crate) fn migrated() -> Result<Done> {
    let Some(script) = python::script("migrated.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let folder = metadata::stores()?.join("migrated");
    script.arg(ours).arg(folder).run()?;
    Ok(Done::Passed)
}
