//! `docs/rules.md`, generated from the rules of the validator.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{run::cargo, stage::Done, workspace};

const PAGE: &str = "docs/rules.md";

/// Writes the page, or compares it. A test of `zvf-validate` compares it as well.
pub(crate) fn write(check: bool) -> Result<Done> {
    let page = cargo("run --quiet --locked --package zvf-validate --example rules").read()?;
    let file = workspace::root().join(PAGE);
    if check {
        let found = fs::read_to_string(&file).context(PAGE)?;
        ensure!(
            found == page,
            "{PAGE} is stale: `cargo xtask rules` writes it"
        );
    } else {
        fs::write(&file, page).context(PAGE)?;
        println!("{PAGE} is up to date");
    }
    Ok(Done::Passed)
}
