//! What a user runs on a fresh machine to trust a build.

use anyhow::Result;

use crate::{
    conformance, nostd,
    run::{cargo, exists},
    stage::{Done, Stages},
};

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("tests", tests)
        .run("doctests", doctests)
        .run("golden data", conformance::golden)
        .run("no_std and no-panic probes", nostd::probes);
    stages
}

pub(crate) fn tests() -> Result<Done> {
    let runner = if exists("cargo-nextest") {
        "nextest run --no-fail-fast"
    } else {
        "test --no-fail-fast --quiet --lib --bins --tests --examples"
    };
    cargo(runner).words("--workspace --locked").run()?;
    Ok(Done::Passed)
}

pub(crate) fn doctests() -> Result<Done> {
    cargo("test --workspace --locked --doc").run()?;
    Ok(Done::Passed)
}
