//! Every check that a change must pass, cheapest first.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::{
    fuzz, msrv, nostd, outside,
    run::{EVERYTHING, cargo},
    stage::{Done, Stages},
    test::{self, Choice},
    tidy,
};

const FUZZ_SECONDS: u64 = 2;
/// The platform on which futures are not `Send`.
const BROWSER: &str = "wasm32-unknown-unknown";
/// Third-party crates that `zvf --no-default-features --features local` may compile.
const MAX_READER_CRATES: usize = 88;

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("format", format)
        .run("tidy", tidy::all)
        .run("clippy", clippy)
        .run("tests", || test::tests(EVERYTHING, Choice::Sample))
        .run("doctests", || test::doctests(EVERYTHING))
        .run("feature sets of zvf-format", features)
        .run("feature sets of zvf-codecs", codec_features)
        .run("feature sets of zvf-store", store_features)
        .run("feature sets of zvf", facade_features)
        .run("feature sets of zvf-cli", cli_features)
        .run("feature sets of zvf-dense", dense_features)
        .run("nostd", nostd::all)
        .run("older compilers", msrv::all)
        .run("programs outside of the workspace", outside::all)
        .run("rustdoc", rustdoc)
        .run("fuzz", || fuzz::sample(FUZZ_SECONDS))
        // These programs use one core each. The longest come first. A fixed seed generates the same
        // data for each change, as in the tests.
        .run_beside(&[
            ("servers", "servers"),
            ("Python package", "python"),
            ("Dask, Ray and Spark", "python --clusters --guide"),
            ("tests of zarr-vectors", "python --compat"),
            ("conformance: runners", "conformance --runners --check"),
            (
                "conformance: stores of ours",
                "conformance --stores --sample --seed 1",
            ),
            ("fixtures --check", "fixtures --check"),
            (
                "conformance: arrays of Blosc2",
                "conformance --b2nd --seed 1",
            ),
            (
                "conformance: levels of ours",
                "conformance --pyramids --sample --seed 2",
            ),
            (
                "conformance: random stores",
                "conformance --random --cases 10 --seed 1",
            ),
            (
                "conformance: Python reference",
                "conformance --reference --seed 1",
            ),
            ("conformance: migrated stores", "conformance --migrated"),
            ("conformance: files", "conformance --files"),
            ("conformance: precomputed", "conformance --precomputed"),
            ("Neuroglancer in Chromium", "conformance --viewer"),
            ("conformance: golden data", "conformance --golden"),
            ("public items", "api --check"),
        ]);
    stages
}

fn format() -> Result<Done> {
    cargo("fmt --all --check").run()?;
    for excluded in nostd::EXCLUDED {
        // A manifest without a package needs `--all`.
        cargo("fmt --all --check --manifest-path")
            .arg(excluded)
            .run()?;
    }
    Ok(Done::Passed)
}

/// Checks all targets with all features; benches are only checked, never linked. The stages for
/// feature sets check code that exists without a feature.
fn clippy() -> Result<Done> {
    cargo("clippy --workspace --all-targets --all-features --locked -- -D warnings").run()?;
    for excluded in nostd::EXCLUDED {
        cargo("clippy --locked --manifest-path")
            .arg(excluded)
            .words("-- -D warnings")
            .run()?;
    }
    Ok(Done::Passed)
}

/// Tests the feature sets that users choose. A powerset takes longer and finds nothing more.
fn features() -> Result<Done> {
    for set in ["", "--features alloc"] {
        println!("zvf-format --no-default-features {set}");
        let test = cargo("test --quiet --locked --package zvf-format --no-default-features");
        test.words(set).run()?;
    }
    Ok(Done::Passed)
}

/// Checks `zvf-codecs` with a few features, such as the zstd decoder in Rust. The tests of that
/// decoder have run with all features.
fn codec_features() -> Result<Done> {
    for features in ["gzip", "ruzstd", "gzip,ruzstd", "zstd"] {
        let clippy = cargo("clippy --locked --package zvf-codecs --no-default-features --features");
        clippy.arg(features).words("-- -D warnings").run()?;
    }
    Ok(Done::Passed)
}

/// Checks `zvf-store` without any feature, and without Blosc and zip.
fn store_features() -> Result<Done> {
    for features in ["", "--features gzip,local --all-targets"] {
        let clippy = cargo("clippy --locked --package zvf-store --no-default-features");
        let clippy = clippy.words(features);
        clippy.words("-- -D warnings").run()?;
    }
    Ok(Done::Passed)
}

/// Checks the library of `zvf` without writers, without validation and in browsers, and counts the
/// crates that a reader of local stores compiles.
fn facade_features() -> Result<Done> {
    facade_with(&["", "local,validate", "local,write"])?;
    if nostd::has_target(BROWSER)? {
        let clippy = cargo("clippy --locked --package zvf --no-default-features --target");
        clippy.arg(BROWSER).words("-- -D warnings").run()?;
    }
    let tree = cargo("tree --locked --package zvf --no-default-features --features local")
        .words("--edges normal --prefix none --format {p}")
        .read()?;
    let crates: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.starts_with("zvf"))
        .collect();
    println!(
        "a reader of local stores compiles {} third-party crates",
        crates.len()
    );
    ensure!(
        crates.len() <= MAX_READER_CRATES,
        "at most {MAX_READER_CRATES} are allowed: {crates:?}"
    );
    Ok(Done::Passed)
}

/// Checks `zvf` with each set of features.
fn facade_with(sets: &[&str]) -> Result<()> {
    for features in sets {
        let clippy = cargo("clippy --locked --package zvf --no-default-features --features");
        clippy.arg(features).words("-- -D warnings").run()?;
    }
    Ok(())
}

/// Checks feature sets that CI omits, and tests `zvf-store` without Blosc and zip. The stores of its
/// tests use gzip.
pub(crate) fn more_features() -> Result<Done> {
    facade_with(&["local", "local,migrate", "local,pyramid"])?;
    cli_with("--features arrow")?;
    cargo("test --quiet --locked --package zvf-store --no-default-features")
        .words("--features gzip,local")
        .run()?;
    Ok(Done::Passed)
}

/// Checks `zvf-dense` without zarrs and stores. Its tests have run with all features.
fn dense_features() -> Result<Done> {
    let clippy = cargo("clippy --locked --package zvf-dense --no-default-features --all-targets");
    clippy.words("-- -D warnings").run()?;
    Ok(Done::Passed)
}

/// Checks `zvf-cli` without Arrow and Parquet. Its tests have run with all features.
fn cli_features() -> Result<Done> {
    cli_with("")?;
    Ok(Done::Passed)
}

/// Checks `zvf-cli` with these features only.
fn cli_with(features: &str) -> Result<()> {
    let clippy = cargo("clippy --all-targets --locked --package zvf-cli --no-default-features");
    clippy.words(features).words("-- -D warnings").run()
}

/// Documents all features, because docs link to items behind other features.
fn rustdoc() -> Result<Done> {
    cargo("doc --workspace --no-deps --locked --all-features")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    Ok(Done::Passed)
}
