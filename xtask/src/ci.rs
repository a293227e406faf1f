//! Every check that a change must pass, cheapest first.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::{
    api, fuzz, msrv, nostd, outside,
    run::{cargo, everything, without_warnings},
    stage::{Beside, Done, Stages},
    test::{self, Choice},
    tidy,
};

const FUZZ_SECONDS: u64 = 2;
/// The platform on which futures are not `Send`.
const BROWSER: &str = "wasm32-unknown-unknown";
/// Third-party crates that `zvf --no-default-features --features local` may compile.
const MAX_READER_CRATES: usize = 88;

/// Stages with a budget in seconds on two slow cores. A stage with inputs runs if they changed since the
/// last commit whose run passed; after other changes it runs in `cargo xtask nightly`.
const BESIDE: &[Beside] = &[
    // The longest come first. A fixed seed generates the same data for each change, as in the tests.
    Beside {
        name: "servers",
        words: "servers",
        budget: 240,
        inputs: "crates/zvf-store crates/zvf/tests/it/servers crates/zvf-testkit/src/proxy \
            conformance/test_servers.py conformance/s3_server.py conformance/node",
    },
    always("Python package", "python", 240),
    Beside {
        name: "Dask, Ray and Spark",
        words: "python --clusters --guide",
        budget: 300,
        inputs: "crates/zvf-python python/zvf docs/dask.md docs/ray.md docs/spark.md \
            conformance/test_clusters.py conformance/requirements-clusters.txt",
    },
    Beside {
        name: "tests of zarr-vectors",
        words: "python --compat",
        budget: 240,
        inputs: "crates/zvf-python python/zvf docs/compat.md conformance/test_compat.py \
            conformance/compat_plugin.py conformance/requirements-compat.txt",
    },
    always("conformance: runners", "conformance --runners --check", 180),
    always(
        "conformance: stores of ours",
        "conformance --stores --sample --seed 1",
        180,
    ),
    always("corpus as a pack", "corpus --check", 120),
    always("fixtures --check", "fixtures --check", 60),
    always(
        "conformance: arrays of Blosc2",
        "conformance --b2nd --seed 1 --cases 60",
        60,
    ),
    always(
        "conformance: levels of ours",
        "conformance --pyramids --sample --seed 2",
        120,
    ),
    always(
        "conformance: random stores",
        "conformance --random --cases 10 --seed 1",
        60,
    ),
    always(
        "conformance: Python reference",
        "conformance --reference --cases 1000 --seed 1",
        60,
    ),
    always("conformance: migrated stores", "conformance --migrated", 60),
    always("conformance: files", "conformance --files --sample", 120),
    Beside {
        name: "conformance: precomputed",
        words: "conformance --precomputed",
        budget: 180,
        inputs: "crates/zvf-precomputed crates/zvf-serve crates/zvf-files/src crates/zvf-tables/src \
            conformance/test_precomputed.py conformance/test_imported.py",
    },
    Beside {
        name: "page in Chromium",
        words: "conformance --page",
        budget: 300,
        inputs: "viewer crates/zvf-wasm crates/zvf-serve/src/viewer.html conformance/test_page.py \
            conformance/pictures",
    },
    Beside {
        name: "Neuroglancer in Chromium",
        words: "conformance --viewer",
        budget: 300,
        inputs: "crates/zvf-serve crates/zvf-precomputed conformance/test_viewer.py \
            conformance/test_precomputed.py",
    },
];

/// A stage that runs after every change.
pub(crate) const fn always(name: &'static str, words: &'static str, budget: u64) -> Beside {
    Beside {
        name,
        words,
        budget,
        inputs: "",
    }
}

pub(crate) fn all() -> Stages {
    let mut stages = Stages::default();
    stages
        .run("format", 20, format)
        .run("tidy", 30, tidy::all)
        .run("clippy", 900, clippy)
        .run("tests", 900, || test::tests(everything, Choice::Sample))
        .run("doctests", 180, || test::doctests(everything))
        .run("zvf-format without features", 80, features)
        .run("feature sets of other crates", 180, feature_sets)
        .run("nostd", 60, nostd::all)
        .run("older compilers", 30, msrv::all)
        .run("programs outside of the workspace", 120, outside::checked)
        .run("rustdoc and public items", 180, documented)
        .run("fuzz", 240, || fuzz::sample(FUZZ_SECONDS))
        // These programs use one core each.
        .run_beside(BESIDE);
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

/// Compiles all targets for the stages that follow, with clippy's lints. The stages for feature sets
/// check code that exists without a feature.
fn clippy() -> Result<Done> {
    without_warnings(everything("test --quiet --no-run --all-targets"))?;
    for excluded in nostd::EXCLUDED {
        cargo("clippy --locked --manifest-path")
            .arg(excluded)
            .words("-- -D warnings")
            .run()?;
    }
    Ok(Done::Passed)
}

/// Tests `zvf-format` without features.
fn features() -> Result<Done> {
    format_with("")
}

fn format_with(features: &str) -> Result<Done> {
    let test = cargo("test --quiet --locked --package zvf-format --no-default-features");
    test.words(features).run()?;
    Ok(Done::Passed)
}

/// A package and features whose code clippy checks, with further arguments of cargo. All of these were
/// tested with all features.
type Set = (&'static str, &'static str, &'static str);

const SETS: [Set; 8] = [
    // The zstd decoder in Rust.
    ("zvf-codecs", "gzip,ruzstd", ""),
    ("zvf-store", "", ""),
    // Without Blosc and zip.
    ("zvf-store", "gzip,local", "--all-targets"),
    // Without writers, and without validation.
    ("zvf", "", ""),
    ("zvf", "local,write", ""),
    // Without zarrs and stores.
    ("zvf-dense", "", "--all-targets"),
    // Without Arrow and Parquet.
    ("zvf-cli", "", "--all-targets"),
    ("zvf", "local,validate", ""),
];
/// Sets that CI leaves out.
const FURTHER_SETS: [Set; 7] = [
    ("zvf-codecs", "gzip", ""),
    ("zvf-codecs", "ruzstd", ""),
    ("zvf-codecs", "zstd", ""),
    ("zvf", "local", ""),
    ("zvf", "local,migrate", ""),
    ("zvf", "local,pyramid", ""),
    ("zvf-cli", "arrow", "--all-targets"),
];

fn clippy_of(sets: &[Set]) -> Result<()> {
    for (package, features, more) in sets {
        let run = cargo("clippy --quiet --locked --no-default-features --package")
            .arg(package)
            .words(more)
            .arg(format!("--features={features}"));
        run.words("-- -D warnings").run()?;
    }
    Ok(())
}

/// Checks the feature sets that users choose, and `zvf` in browsers, and counts the crates that a reader
/// of local stores compiles.
fn feature_sets() -> Result<Done> {
    clippy_of(&SETS)?;
    if nostd::has_target(BROWSER)? {
        let clippy = cargo("clippy --quiet --locked --package zvf --no-default-features --target");
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

/// Checks feature sets that CI omits, and tests `zvf-format` with a heap and `zvf-store` without Blosc
/// and zip. The stores of its tests use gzip.
pub(crate) fn more_features() -> Result<Done> {
    clippy_of(&FURTHER_SETS)?;
    format_with("--features alloc")?;
    cargo("test --quiet --locked --package zvf-store --no-default-features")
        .words("--features gzip,local")
        .run()?;
    Ok(Done::Passed)
}

/// Documents all features, because docs link to items behind other features. Libraries are documented
/// once, as JSON, for their lints and their lists of items.
fn documented() -> Result<Done> {
    cargo("doc --quiet --workspace --bins --no-deps --locked --all-features")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    api::listed(true)
}
