//! Automation of the workspace. `cargo xtask` lists the commands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool reports on its standard streams"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod api;
mod bench;
mod check;
mod ci;
mod conformance;
mod fixtures;
mod fuzz;
mod memory_folder;
mod metadata;
mod msrv;
mod nightly;
mod nostd;
mod outside;
mod package;
mod pictures;
mod python;
mod record;
mod release;
mod rules;
mod run;
mod stage;
mod test;
mod tidy;
mod viewer;
mod workspace;

use stage::{Done, Stages};

/// Automation of the workspace. With CI=true, a missing tool is a failure instead of a skip.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every day: format, tidy, clippy, and tests of changed crates and of their dependents, except
    /// the slowest
    Check {
        /// Compare with this revision (default: the upstream branch, else HEAD)
        #[arg(long)]
        since: Option<String>,
    },
    /// What shows that a build is sound: tests except the slowest, doctests, golden data, probes
    Test {
        /// Also the slowest tests, which .config/nextest.toml lists
        #[arg(long)]
        all: bool,
    },
    /// Layering, import cycles, type names, pages, golden manifest, packages, text
    Tidy,
    /// Everything that .ci/run checks, cheapest first
    Ci,
    /// All tests with long random runs and every mutant, all stores for other implementations, long
    /// fuzzing; CI runs a sample of each
    Nightly,
    /// Write docs/api: the public items of every library
    Api {
        /// Compare instead of writing
        #[arg(long)]
        check: bool,
    },
    /// Write docs/rules.md: the rules of the validator
    Rules {
        /// Compare instead of writing
        #[arg(long)]
        check: bool,
    },
    /// Write testdata/codec, with the Python reference; the examples and the description of the corpus;
    /// the manifest
    Fixtures(fixtures::FixtureOptions),
    /// Draw docs/pictures: the demo and the levels of small stores
    Pictures {
        /// Pictures to draw (default: all)
        names: Vec<String>,
    },
    /// Golden data, and comparison with other implementations
    Conformance(conformance::ConformanceOptions),
    /// The corpus of stores as an archive for other readers
    Corpus(conformance::CorpusOptions),
    /// Crates that declare an older compiler, with that compiler
    Msrv,
    /// The programs of examples/outside, built with the packages to be published
    Outside,
    /// The Python package: builds its module, runs mypy and pytest
    Python(package::PackageOptions),
    /// The page of `zvf view` and the npm package, built again: the page has the same bytes, and the
    /// package reads every recorded store
    Viewer,
    /// Stores on an S3 server, Azurite and a web server, with injected faults
    Servers,
    /// `no_std` and no-panic probes, cross builds of the format crate
    Nostd,
    /// Coverage-guided fuzzing on the stable toolchain
    Fuzz(fuzz::FuzzOptions),
    /// Comparison of speed with other programs; without a word, everything in docs/performance.md
    Bench(bench::BenchOptions),
    /// Build a program with the features of CI, and print its path; for the suite in `conformance`
    #[command(hide = true)]
    Built {
        #[arg(long)]
        bin: Option<String>,
        #[arg(long)]
        example: Option<String>,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Check { since } => report(&check::all(since.as_deref())),
        Command::Ci => report(&ci::all()),
        Command::Nightly => report(&nightly::all()),
        Command::Test { all } => report(&test::all(all)),
        Command::Tidy => single(tidy::all()),
        Command::Fixtures(options) => single(fixtures::from_options(&options)),
        Command::Conformance(options) => single(conformance::from_options(&options)),
        Command::Corpus(options) => single(conformance::corpus(&options)),
        Command::Rules { check } => single(rules::write(check)),
        Command::Api { check } => single(api::listed(check)),
        Command::Pictures { names } => single(pictures::draw(&names)),
        Command::Servers => single(conformance::suite(&[conformance::SERVERS], "")),
        Command::Python(options) => single(package::from_options(&options)),
        Command::Viewer => single(viewer::rebuilt()),
        Command::Msrv => single(msrv::all()),
        Command::Nostd => single(nostd::all()),
        Command::Outside => single(outside::all()),
        Command::Fuzz(options) => single(fuzz::from_options(&options)),
        Command::Bench(options) => single(bench::from_options(&options)),
        Command::Built { bin, example } => single(conformance::print_built(bin, example)),
    }
}

fn report(stages: &Stages) -> ExitCode {
    println!("{stages}");
    match stages.failed() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn single(outcome: anyhow::Result<Done>) -> ExitCode {
    match outcome {
        Ok(Done::Passed) => ExitCode::SUCCESS,
        Ok(Done::InPart(missing)) => {
            eprintln!("{}{missing}", stage::SKIPPED_PART);
            ExitCode::SUCCESS
        }
        Ok(Done::Skipped(missing)) => {
            eprintln!("SKIPPED: {missing}");
            if workspace::in_ci() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
