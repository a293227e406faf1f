//! `testdata/codec/*.json`, written by the encoders of the Python reference, the corpus of stores,
//! and the manifest.

use anyhow::Result;

use crate::{
    conformance::{FIXTURES, suite},
    stage::Done,
    tidy,
};

#[derive(clap::Args)]
pub(crate) struct FixtureOptions {
    /// Compare instead of writing
    #[arg(long)]
    check: bool,
    /// Only the manifest, without Python
    #[arg(long)]
    manifest: bool,
}

pub(crate) fn from_options(options: &FixtureOptions) -> Result<Done> {
    if options.check {
        return suite(&[FIXTURES], "");
    }
    if !options.manifest {
        match suite(&[FIXTURES], "--update")? {
            Done::Passed => {}
            other => return Ok(other),
        }
    }
    tidy::write_manifest()?;
    println!("testdata/MANIFEST.json is up to date");
    Ok(Done::Passed)
}
