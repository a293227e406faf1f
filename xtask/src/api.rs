//! `docs/api/*.txt`: the public items of every published library, a line each, so that a change of them is seen
//! in review.
//!
//! rustdoc writes them as JSON, which is no stable output of it: a stable rustdoc does so when it is told to be
//! one that may. Only rustdoc is told, through a wrapper, so that nothing is compiled anew.

mod item;
mod types;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{metadata, options::Options, run::cargo, stage::Done, workspace};

/// Libraries that are published; `zvf-cli` is a program, whose library is for its tests.
const LIBRARIES: [&str; 10] = [
    "zvf",
    "zvf-build",
    "zvf-dense",
    "zvf-format",
    "zvf-model",
    "zvf-pages",
    "zvf-query",
    "zvf-render",
    "zvf-store",
    "zvf-validate",
];
const FOLDER: &str = "docs/api";

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    listed(options.flag("check"))
}

fn listed(check: bool) -> Result<Done> {
    if !cfg!(unix) {
        return Ok(Done::Skipped(
            "the wrapper of rustdoc is a script of sh".to_owned(),
        ));
    }
    let wrapper = wrapper()?;
    let folder = workspace::root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    let mut stale = Vec::new();
    for library in LIBRARIES {
        let list = list(library, &wrapper)?;
        let file = folder.join(format!("{library}.txt"));
        if fs::read_to_string(&file).unwrap_or_default() == list {
            continue;
        }
        stale.push(library);
        if !check {
            fs::write(&file, list)?;
        }
    }
    ensure!(
        !check || stale.is_empty(),
        "the public items of {} are not those of {FOLDER}: `cargo xtask api` writes them, and the \
         changelog says what changes for users",
        stale.join(", ")
    );
    println!(
        "{FOLDER}: {} libraries, {} changed",
        LIBRARIES.len(),
        stale.len()
    );
    Ok(Done::Passed)
}

fn wrapper() -> Result<PathBuf> {
    let file = metadata::scratch("xtask")?.join("rustdoc-json");
    fs::write(&file, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    Ok(file)
}

fn list(library: &str, wrapper: &std::path::Path) -> Result<String> {
    // All features: what is behind one is public as well.
    cargo("rustdoc --quiet --locked --lib --all-features --package")
        .arg(library)
        .words("-- -Z unstable-options --output-format json --cap-lints allow")
        .env("RUSTDOC", wrapper)
        .run()?;
    let file = metadata::scratch("doc")?.join(format!("{}.json", library.replace('-', "_")));
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let json: Value = serde_json::from_str(&text)?;
    item::lines(&json).with_context(|| format!("the items of {library}"))
}
