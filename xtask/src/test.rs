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
/// The seed of property tests. The same cases are tested for each change, so that a failure is due to
/// the change; `cargo xtask nightly` searches for new ones.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

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
    let tests = cargo(runner).words(build).env(SEED.0, SEED.1);
    folder.set(tests).run()?;
    Ok(Done::Passed)
}

pub(crate) fn doctests(build: &str) -> Result<Done> {
    cargo("test --doc").words(build).run()?;
    Ok(Done::Passed)
}
