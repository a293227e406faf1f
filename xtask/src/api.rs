//! `docs/api/*.txt`: the public items of every published library, one per line, so that a review
//! shows each change. Items that a library re-exports from another one are listed in both.
//!
//! The items come from rustdoc's JSON output, which is unstable. `RUSTC_BOOTSTRAP=1` enables it on
//! the stable toolchain. Only rustdoc gets this variable, through a wrapper script, so that nothing
//! is recompiled.

mod item;
mod rules;
mod types;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{metadata, run::cargo, stage::Done, workspace};

/// The published libraries. `zvf-cli` is a program; its library exists for its tests.
const LIBRARIES: [&str; 20] = [
    "zvf",
    "zvf-arrow",
    "zvf-build",
    "zvf-catalog",
    "zvf-codecs",
    "zvf-dataset",
    "zvf-dense",
    "zvf-files",
    "zvf-format",
    "zvf-migrate",
    "zvf-model",
    "zvf-pages",
    "zvf-precomputed",
    "zvf-serve",
    "zvf-pyramid",
    "zvf-query",
    "zvf-render",
    "zvf-store",
    "zvf-validate",
    "zvf-write",
];
/// The library with rules for its items.
const FACADE: &str = "zvf";
const FOLDER: &str = "docs/api";

/// Writes the lists, or compares them. Findings of rustdoc's lints are errors in both cases.
pub(crate) fn listed(check: bool) -> Result<Done> {
    if !cfg!(unix) {
        return Ok(Done::Skipped(
            "the rustdoc wrapper is a shell script".to_owned(),
        ));
    }
    let wrapper = wrapper()?;
    let folder = workspace::root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    document(&wrapper)?;
    let mut documented = BTreeMap::new();
    for library in LIBRARIES {
        documented.insert(library.replace('-', "_"), json_of(library)?);
    }
    let mut stale = Vec::new();
    for library in LIBRARIES {
        let json = documented
            .get(&library.replace('-', "_"))
            .with_context(|| format!("the documentation of {library}"))?;
        let list =
            item::lines(json, &documented).with_context(|| format!("the items of {library}"))?;
        if library == FACADE {
            rules::check(&list)?;
        }
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
        "{FOLDER} does not list the public items of {}; run `cargo xtask api` and describe the \
         change in CHANGELOG.md",
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

/// Documents every library as JSON. One build documents all, with the features of `cargo doc` in CI,
/// so that nothing is compiled for it.
fn document(wrapper: &Path) -> Result<()> {
    // Items behind a feature are public too.
    cargo("doc --quiet --locked --workspace --lib --no-deps --all-features")
        .env("RUSTDOC", wrapper)
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json -D warnings",
        )
        .run()
}

/// Reads what rustdoc wrote for a library.
fn json_of(library: &str) -> Result<Value> {
    let file = metadata::scratch("doc")?.join(format!("{}.json", library.replace('-', "_")));
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}
