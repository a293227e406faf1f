//! Blosc2 arrays, written and changed by both implementations.

use anyhow::Result;

use super::seeded;
use crate::{metadata, python, run, stage::Done};

const CASES: u64 = 150;

/// Has one implementation write random arrays and the other read and change them. Uses
/// python-blosc2, and caterva if a Python that runs it is installed.
pub(crate) fn both_ways(cases: Option<u64>, seed: Option<u64>) -> Result<Done> {
    let Some(python) = python::blosc2()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--example b2nd")?;
    let folder = metadata::stores()?.join("b2nd");
    let script = python::running(&python, "b2nd.py").arg(ours).arg(folder);
    let script = script
        .arg("--cases")
        .arg(cases.unwrap_or(CASES).to_string());
    let caterva = python::caterva()?;
    let script = match &caterva {
        Some(caterva) => script.arg("--caterva").arg(caterva),
        None => script,
    };
    seeded(script, seed).run()?;
    Ok(match caterva {
        Some(_) => Done::Passed,
        // Its last wheels are for Python 3.10, which may not be installed.
        None => Done::InPart("caterva 0.7.3 was skipped, because python3.9 is missing".to_owned()),
    })
}
