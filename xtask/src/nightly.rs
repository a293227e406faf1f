//! Statistical checks that are too long for each change: long random runs, every mutant, long
//! fuzzing. CI runs a sample of each.

use anyhow::Result;

use crate::{
    conformance, fuzz,
    run::{EVERYTHING, cargo, exists},
    servers,
    stage::{Done, Stages},
};

const FUZZ_SECONDS: u64 = 120;
const RANDOM_STORES: u64 = 200;
const RANDOM_BLOBS: u64 = 20_000;

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("tests, every mutant", tests)
        .run("conformance: random stores", || {
            conformance::random::stores(RANDOM_STORES, None)
        })
        .run("conformance: Python reference", || {
            conformance::differential(RANDOM_BLOBS, None)
        })
        .run("servers", servers::all)
        .run("fuzz", || fuzz::each(FUZZ_SECONDS));
    stages
}

/// Runs all tests; `ZVF_TEST_ALL` checks every mutant instead of a sample.
fn tests() -> Result<Done> {
    let runner = if exists("cargo-nextest") {
        "nextest run --no-fail-fast"
    } else {
        "test --no-fail-fast --quiet --lib --bins --tests --examples"
    };
    cargo(runner)
        .words(EVERYTHING)
        .env("ZVF_TEST_ALL", "1")
        .run()?;
    Ok(Done::Passed)
}
