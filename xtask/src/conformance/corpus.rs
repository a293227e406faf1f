//! The corpus: small stores of the specification's examples, and what all healthy
//! stores are.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run},
    workspace,
};

const ARCHIVE: &str = "testdata/zvf-examples.tar.gz";
const DESCRIPTION: &str = "testdata/corpus/stores.json";

/// Makes the examples and the description.
pub(crate) fn write() -> Result<()> {
    made("")
}

/// Makes them again elsewhere and compares.
pub(crate) fn check() -> Result<()> {
    made("--check")
}

fn made(check: &str) -> Result<()> {
    let scratch = metadata::stores()?;
    let ours = run::built_here("--bin zvf")?;
    if let Some(examples) = python::script("conformance/examples.py")? {
        let examples = examples.arg(ours).arg(scratch.join("examples"));
        finished(examples, ARCHIVE, check)?;
    }
    if let Some(describe) = python::script("conformance/describe.py")? {
        // Not where runners unpack the same, which may be at it.
        finished(describe.arg(scratch.join("described")), DESCRIPTION, check)?;
    }
    Ok(())
}

fn finished(script: Run, file: &str, check: &str) -> Result<()> {
    script.arg(workspace::root().join(file)).words(check).run()
}
