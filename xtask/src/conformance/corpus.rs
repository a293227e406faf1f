//! The corpus: small stores of the examples in the specification, and a description of all healthy
//! stores.

use anyhow::Result;

use crate::{
    metadata, python,
    run::{self, Run},
    workspace,
};

const ARCHIVE: &str = "testdata/zvf-examples.tar.gz";
const DESCRIPTION: &str = "testdata/corpus/stores.json";

/// Generates the examples and the description.
pub(crate) fn write() -> Result<()> {
    made("")
}

/// Generates both in another folder and compares them.
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
        // A separate folder, because runners may be unpacking the same archives.
        finished(describe.arg(scratch.join("described")), DESCRIPTION, check)?;
    }
    Ok(())
}

fn finished(script: Run, file: &str, check: &str) -> Result<()> {
    script.arg(workspace::root().join(file)).words(check).run()
}
