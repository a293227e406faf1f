//! Arrays of Blosc2, written and changed both ways.

use anyhow::Result;

use super::seeded;
use crate::{metadata, python, run, stage::Done};

const CASES: u64 = 150;

/// Random arrays, each written by one side and read and changed by the other:
/// python-blosc2, and caterva where there is a Python it runs on.
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
        // Its last wheels are for Python 3.10, which a machine need not have.
        None => Done::InPart("caterva 0.7.3 was not asked, python3.9 is missing".to_owned()),
    })
}
