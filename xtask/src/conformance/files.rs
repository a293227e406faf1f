//! Files of the field, written by one program and read by another.

use anyhow::Result;

use crate::{metadata, python, run, stage::Done};

/// Compares `zvf` with nibabel, trx-python, plyfile, trimesh, laspy and navis.
pub(crate) fn both_ways() -> Result<Done> {
    let Some(python) = python::files()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let script = python::running(&python, "files.py").arg(ours);
    script.arg(metadata::stores()?.join("files")).run()?;
    Ok(Done::Passed)
}
