//! The tests that a user runs on a new machine to trust a build. `--all` includes the slowest.

use std::fs;

use anyhow::{Context, Result};

use crate::{
    conformance,
    memory_folder::MemoryFolder,
    nostd,
    run::{Build, Run, default_features, exists},
    stage::{Done, Stages},
    workspace,
};

const NEXTEST: &str = ".config/nextest.toml";
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
    /// Returns the command that runs the tests.
    pub(crate) fn runner(self) -> &'static str {
        match (exists("cargo-nextest"), self) {
            (true, Self::All) => "nextest run --no-fail-fast",
            (true, Self::Sample) => "nextest run --no-fail-fast --profile ci",
            (true, Self::Quick) => "nextest run --no-fail-fast --profile quick",
            (false, _) => "test --no-fail-fast --quiet --lib --bins --tests --examples",
        }
    }
}

pub(crate) fn all(slowest: bool) -> Stages {
    let choice = if slowest { Choice::All } else { Choice::Quick };
    println!("{}", announcement(choice));
    let mut stages = Stages::default();
    stages
        .run("tests", 1200, move || tests(default_features, choice))
        .run("doctests", 300, || doctests(default_features))
        .run("golden data", 30, || conformance::golden(default_features))
        .run("no_std and no-panic probes", 60, nostd::probes);
    stages
}

/// Says what will run and about how long it takes, on two cores.
fn announcement(choice: Choice) -> String {
    let tests = match choice {
        Choice::Quick | Choice::Sample => "the tests except the slowest",
        Choice::All => "all tests",
    };
    format!(
        "Compiles the workspace and runs {tests}, the examples of the documentation, the golden \
         data and the probes for std and panics. Takes about 25 minutes on two cores the first \
         time, and 10 minutes afterwards. Nothing is installed."
    )
}

pub(crate) fn tests(build: Build, choice: Choice) -> Result<Done> {
    let folder = MemoryFolder::new();
    let tests = build(choice.runner()).env(SEED.0, SEED.1);
    folder.set(filtered(tests, choice)?).run()?;
    Ok(Done::Passed)
}

/// Adds the names that the profile of nextest leaves out, where the tests run without nextest.
pub(crate) fn filtered(tests: Run, choice: Choice) -> Result<Run> {
    let profile = match choice {
        _ if exists("cargo-nextest") => return Ok(tests),
        Choice::All => return Ok(tests),
        Choice::Sample => "ci",
        Choice::Quick => "quick",
    };
    let text = fs::read_to_string(workspace::root().join(NEXTEST)).context(NEXTEST)?;
    let names = left_out(&text, profile);
    Ok(names
        .iter()
        .fold(tests.arg("--"), |tests, name| tests.arg("--skip").arg(name)))
}

/// Lists the names in `test(/^a::(b|c)/)` of a profile: `a::b` and `a::c`.
fn left_out(text: &str, profile: &str) -> Vec<String> {
    let section = text.split("[profile.");
    let section = section.filter(|section| section.starts_with(profile));
    let patterns = section
        .flat_map(|section| section.split("test(/^").skip(1))
        .filter_map(|rest| rest.split("/)").next());
    let names = patterns.flat_map(|pattern| {
        let (before, rest) = pattern.split_once('(').unwrap_or((pattern, ")"));
        let (several, after) = rest.split_once(')').unwrap_or((rest, ""));
        let names = several.split('|');
        names.map(move |name| format!("{before}{name}{after}"))
    });
    names.collect()
}

pub(crate) fn doctests(build: Build) -> Result<Done> {
    build("test --doc").run()?;
    Ok(Done::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_profile_of_nextest() {
        let text =
            "[profile.quick]\nx = test(/^a::(b|c)_d/) | test(/^e::/)\n[profile.ci]\ntest(/^f/)";
        assert_eq!(left_out(text, "quick"), ["a::b_d", "a::c_d", "e::"]);
        assert_eq!(left_out(text, "ci"), ["f"]);
        let text = fs::read_to_string(workspace::root().join(NEXTEST)).unwrap();
        assert!(left_out(&text, "quick").len() > left_out(&text, "ci").len());
        assert!(
            left_out(&text, "ci")
                .iter()
                .all(|name| !name.contains(['(', '[', '*']))
        );
    }
}
