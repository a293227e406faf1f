//! Statistical checks that are too long for each change: long random runs, every mutant, long
//! fuzzing. CI runs a sample of each. The wheel and the kernels are optimized builds, and
//! a release is rehearsed.

use anyhow::Result;

use crate::{
    bench::kernels,
    ci, conformance, fuzz, package, release,
    run::{EVERYTHING, cargo},
    servers,
    stage::{Done, Stages},
    test::Choice,
};

const FUZZ_SECONDS: u64 = 120;
const RANDOM_STORES: u64 = 200;
const RANDOM_BLOBS: u64 = 20_000;
/// Cases of a random test over those of its sample in CI.
const SCALE: u32 = 8;
/// Scale of the tests that need servers; smaller, because the S3 server handles one request at a time.
const SERVERS_SCALE: u32 = 3;
/// Workers that are killed in each phase of each store by each engine of clusters.
const KILLS: u64 = 20;

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("tests: long random runs, every mutant", tests)
        .run("further feature sets", ci::more_features)
        .run("conformance: random stores", || {
            conformance::random::stores(RANDOM_STORES, None)
        })
        .run("conformance: Python reference", || {
            conformance::differential(RANDOM_BLOBS, None)
        })
        .run_beside(&[
            ("conformance: stores of ours", "conformance --stores"),
            ("conformance: levels of ours", "conformance --pyramids"),
            ("conformance: arrays of Blosc2", "conformance --b2nd"),
        ])
        .run("servers", || servers::all(SERVERS_SCALE))
        .run("wheel of the Python package", package::wheel)
        .run("rehearsal of a release", release::rehearse)
        .run("Dask, Ray and Spark with killed workers", || {
            package::clusters(Some(KILLS))
        })
        .run("fuzz", || fuzz::each(FUZZ_SECONDS))
        .run("instructions of kernels", kernels::check);
    stages
}

/// Runs all tests. `ZVF_TEST_ALL` checks every mutant instead of a sample, and `ZVF_TEST_SCALE`
/// multiplies the cases of random tests. Properties without a number of their own have 256 cases, of
/// new seeds: `PROPTEST_CASES` would also replace the numbers of the others.
fn tests() -> Result<Done> {
    cargo(Choice::All.runner())
        .words(EVERYTHING)
        .env("ZVF_TEST_ALL", "1")
        .env("ZVF_TEST_SCALE", SCALE.to_string())
        .run()?;
    Ok(Done::Passed)
}
