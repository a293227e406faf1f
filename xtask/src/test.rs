//! The tests that a user runs on a new machine to trust a build. `--all` includes the slowest.

use anyhow::Result;

use crate::{
    conformance,
    memory_folder::MemoryFolder,
    nostd,
    options::Options,
    run::{cargo, exists},
    stage::{Done, Stages},
};

/// The default features, without clients for buckets.
pub(crate) const BUILD: &str = "--workspace --locked";
/// The seed of property tests. The same cases are tested for each change, so that a failure is due to
/// the change; `cargo xtask nightly` searches for new ones.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Tests to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    All,
    /// Without the long series that `.config/nextest.toml` lists for CI.
    Sample,
    /// Without the slowest tests, which `.config/nextest.toml` lists.
    Quick,
}

impl Choice {
    /// Returns the command that runs the tests. Only nextest can leave some out.
    pub(crate) fn runner(self) -> &'static str {
        match (exists("cargo-nextest"), self) {
            (true, Self::All) => "nextest run --no-fail-fast",
            (true, Self::Sample) => "nextest run --no-fail-fast --profile ci",
            (true, Self::Quick) => "nextest run --no-fail-fast --profile quick",
            (false, _) => "test --no-fail-fast --quiet --lib --bins --tests --examples",
        }
    }
}

pub(crate) fn all(options: &Options) -> Stages {
    let choice = if options.flag("all") {
        Choice::All
    } else {
        Choice::Quick
    };
    println!("{}", announcement(choice));
    let mut stages = Stages::default();
    stages
        .run("tests", move || tests(BUILD, choice))
        .run("doctests", || doctests(BUILD))
        .run("golden data", || conformance::golden_of(BUILD))
        .run("no_std and no-panic probes", nostd::probes);
    stages
}

/// Says what will run and about how long it takes, on two cores.
fn announcement(choice: Choice) -> String {
    let tests = match (exists("cargo-nextest"), choice) {
        (true, Choice::Quick | Choice::Sample) => "the tests except the slowest",
        (true, Choice::All) => "all tests",
        (false, _) => "all tests (with cargo-nextest: all except the slowest)",
    };
    format!(
        "Compiles the workspace and runs {tests}, the examples of the documentation, the golden \
         data and the probes for std and panics. Takes about 25 minutes on two cores the first \
         time, and 10 minutes afterwards. Nothing is installed."
    )
}

pub(crate) fn tests(build: &str, choice: Choice) -> Result<Done> {
    let folder = MemoryFolder::new();
    let tests = cargo(choice.runner()).words(build).env(SEED.0, SEED.1);
    folder.set(tests).run()?;
    Ok(Done::Passed)
}

pub(crate) fn doctests(build: &str) -> Result<Done> {
    cargo("test --doc").words(build).run()?;
    Ok(Done::Passed)
}
