//! Statistical checks that are too long for each change: long random runs, every mutant, long
//! fuzzing. CI runs a sample of each. The wheel and the kernels are optimized builds, and a release is
//! rehearsed.

use anyhow::Result;

use crate::{
    bench::kernels,
    ci::{self, always},
    conformance, fuzz, outside, package, release,
    run::{cargo, everything, exists},
    stage::{Done, Stages},
    test::Choice,
    viewer,
};

const FUZZ_SECONDS: u64 = 120;
/// Cases of a random test over those of its sample in CI.
const SCALE: u32 = 8;
/// Scale of the tests that need servers; smaller, because the S3 server handles one request at a time.
const SERVERS_SCALE: u32 = 3;
/// Workers that are killed in each phase of each store by each engine of clusters.
const KILLS: u64 = 20;

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("tests: long random runs, every mutant", 7200, tests)
        .run("licences, bans and sources", 60, licences)
        .run("further feature sets", 300, ci::more_features)
        .run("programs outside of the workspace", 300, outside::all)
        .run_beside(&[
            always(
                "conformance: random stores",
                "conformance --random --cases 200",
                1200,
            ),
            always(
                "conformance: Python reference",
                "conformance --reference --cases 20000",
                1200,
            ),
            always("conformance: stores of ours", "conformance --stores", 600),
            always("conformance: levels of ours", "conformance --pyramids", 600),
            always("conformance: arrays of Blosc2", "conformance --b2nd", 300),
            always("conformance: files", "conformance --files", 300),
            // Optional in CI.
            always("conformance: precomputed", "conformance --precomputed", 300),
            always("Neuroglancer in Chromium", "conformance --viewer", 300),
            always("page in Chromium", "conformance --page", 300),
            always("page in JupyterLab", "python --notebook", 300),
            always("tests of zarr-vectors", "python --compat", 300),
            always("wheel of the Python package", "python --wheel", 3600),
        ])
        .run("page and package for browsers", 1800, viewer::rebuilt)
        .run("rehearsal of a release", 3600, release::rehearse)
        .run("servers", 900, || {
            let words = format!("--scale {SERVERS_SCALE}");
            conformance::suite(&[conformance::SERVERS], &words)
        })
        .run("Dask, Ray and Spark with killed workers", 3600, || {
            package::clusters(KILLS)
        })
        .run("fuzz", 7200, || fuzz::each(FUZZ_SECONDS))
        .run("instructions of kernels", 300, kernels::check);
    stages
}

/// Checks the licences and versions of all dependencies, as `deny.toml` says.
fn licences() -> Result<Done> {
    if !exists("cargo-deny") {
        return Ok(Done::Skipped(
            "cargo-deny is missing: `cargo install cargo-deny --locked`".to_owned(),
        ));
    }
    // Dependencies of other platforms as well.
    cargo("fetch --quiet --locked").run()?;
    cargo("deny --offline --log-level error check bans licenses sources").run()?;
    Ok(Done::Passed)
}

/// Runs all tests. `ZVF_TEST_ALL` checks every mutant instead of a sample, and `ZVF_TEST_SCALE`
/// multiplies the cases of random tests. Properties without a number of their own have 256 cases, of
/// new seeds: `PROPTEST_CASES` would also replace the numbers of the others.
fn tests() -> Result<Done> {
    everything(Choice::All.runner())
        .env("ZVF_TEST_ALL", "1")
        .env("ZVF_TEST_SCALE", SCALE.to_string())
        .run()?;
    Ok(Done::Passed)
}
