//! `testdata/codec/*.json`, written by the encoders of the Python reference, and the corpus of
//! stores.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    conformance::corpus, metadata, options::Options, python, stage::Done, tidy, workspace,
};

const SCRIPT: &str = "make_codec_fixtures.py";

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    if options.flag("check") {
        return check();
    }
    if !options.flag("manifest") {
        let Some(script) = python::script(SCRIPT)? else {
            return Ok(Done::Skipped(python::MISSING.to_owned()));
        };
        fs::create_dir_all(codec())?;
        script.arg(codec()).run()?;
        corpus::write()?;
    }
    tidy::write_manifest()?;
    println!("testdata/MANIFEST.json is up to date");
    Ok(Done::Passed)
}

/// Generates the fixtures in another folder and compares them byte for byte.
pub(crate) fn check() -> Result<Done> {
    let Some(script) = python::script(SCRIPT)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let again = metadata::stores()?.join("fixtures");
    if again.exists() {
        fs::remove_dir_all(&again)?;
    }
    fs::create_dir_all(&again)?;
    script.arg(&again).run()?;
    let (ours, again) = (contents(&codec())?, contents(&again)?);
    let different: Vec<_> = ours
        .keys()
        .chain(again.keys())
        .filter(|name| ours.get(*name) != again.get(*name))
        .cloned()
        .collect();
    if !different.is_empty() {
        bail!(
            "testdata/codec is not what the reference writes: {}; `cargo xtask fixtures` rewrites it",
            different.join(", ")
        );
    }
    println!("{} files are what the reference writes", ours.len());
    corpus::check()?;
    Ok(Done::Passed)
}

fn codec() -> PathBuf {
    workspace::root().join("testdata/codec")
}

fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        contents.insert(name, fs::read(entry.path())?);
    }
    Ok(contents)
}
