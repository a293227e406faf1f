//! Random stores, written by one implementation and read by the other.

use anyhow::Result;

use super::{runners, seeded};
use crate::{metadata, options::Options, python, run, stage::Done};

/// The number of cases in CI.
pub(super) const CI_CASES: u64 = 10;
const CASES: u64 = 40;

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    let cases = options.number("cases")?.unwrap_or(CASES);
    stores(cases, options.number("seed")?)
}

pub(crate) fn stores(cases: u64, seed: Option<u64>) -> Result<Done> {
    let (Some(script), Some(older)) = (
        python::script("conformance/random_stores.py")?,
        python::older()?,
    ) else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let script = script
        .arg(ours)
        .arg(runners::quoted(&runners::ours()?))
        .arg(runners::command(&older, "writer_020.py"))
        .arg(metadata::stores()?.join("random"))
        .arg("--cases")
        .arg(cases.to_string());
    seeded(script, seed).run()?;
    Ok(Done::Passed)
}
