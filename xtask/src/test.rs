//! The tests that a user runs on a new machine to trust a build.

use anyhow::Result;

use crate::{
    conformance,
    memory_folder::MemoryFolder,
    nostd,
    run::{cargo, exists},
    stage::{Done, Stages},
};

/// The default features, without clients for buckets.
const BUILD: &str = "--workspace --locked";

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("tests", || tests(BUILD))
        .run("doctests", || doctests(BUILD))
        .run("golden data", || conformance::golden_of(BUILD))
        .run("no_std and no-panic probes", nostd::probes);
    stages
}

pub(crate) fn tests(build: &str) -> Result<Done> {
    let runner = if exists("cargo-nextest") {
        "nextest run --no-fail-fast"
    } else {
        "test --no-fail-fast --quiet --lib --bins --tests --examples"
    };
    let folder = MemoryFolder::new();
    folder.set(cargo(runner).words(build)).run()?;
    Ok(Done::Passed)
}

pub(crate) fn doctests(build: &str) -> Result<Done> {
    cargo("test --doc").words(build).run()?;
    Ok(Done::Passed)
}
