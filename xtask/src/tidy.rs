//! Rules about the workspace that the compiler does not check.

use anyhow::{Result, ensure};

use crate::stage::Done;

mod archives;
mod book;
mod cycles;
mod files;
mod hidden;
mod layers;
mod module_docs;
mod modules;
mod packages;
mod programs;
mod rebinding;
mod recipes;
mod text;
mod type_names;

pub(crate) use archives::write as write_manifest;

type Check = fn() -> Result<Vec<String>>;

const CHECKS: [(&str, Check); 12] = [
    ("layering", layers::findings),
    ("import cycles", cycles::findings),
    ("type names", type_names::findings),
    ("module docs", module_docs::findings),
    ("hidden items", hidden::findings),
    ("names bound twice", rebinding::findings),
    ("pages and their links", book::findings),
    ("programs of the guide", programs::findings),
    ("recipes", recipes::findings),
    ("golden manifest", archives::findings),
    ("packages", packages::findings),
    ("text", text::findings),
];

pub(crate) fn all() -> Result<Done> {
    let mut found = 0;
    for (name, check) in CHECKS {
        // A check that fails to run counts as one finding, and the others still run.
        let findings = check().unwrap_or_else(|error| vec![format!("{error:#}")]);
        let verdict = match findings.len() {
            0 => "ok".to_owned(),
            count => format!("{count} found"),
        };
        println!("tidy: {name}: {verdict}");
        for finding in &findings {
            println!("  {finding}");
        }
        found += findings.len();
    }
    ensure!(found == 0, "{found} findings");
    Ok(Done::Passed)
}
