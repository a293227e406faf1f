//! Automation of the workspace. `cargo xtask` lists the commands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool reports on its standard streams"
)]

use std::process::ExitCode;

mod api;
mod bench;
mod check;
mod ci;
mod conformance;
mod fixtures;
mod fuzz;
mod hex;
mod memory_folder;
mod metadata;
mod msrv;
mod nightly;
mod node;
mod nostd;
mod options;
mod outside;
mod package;
mod pictures;
mod python;
mod release;
mod rules;
mod run;
mod servers;
mod stage;
mod test;
mod tidy;
mod workspace;

use options::Options;
use stage::{Done, Stages};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Every day:
  check                format, tidy, clippy, tests of changed crates and of their dependents,
                       except the slowest
    --since REV        compare with this revision (default: the upstream branch, else HEAD)
  test                 what shows that a build is sound: tests except the slowest, doctests, golden
                       data, probes
    --all              also the slowest tests, which .config/nextest.toml lists
  tidy                 layering, import cycles, type names, licences, duplicate packages, pages,
                       golden manifest, text

For a whole change:
  ci                   everything that .ci/run checks, cheapest first
  nightly              all tests with long random runs and every mutant, all stores for other
                       implementations, long fuzzing; CI runs a sample of each

Files that are written from code (--check compares instead of writing):
  api                  docs/api: the public items of every library
  rules                docs/rules.md: the rules of the validator
  fixtures             testdata/codec, with the Python reference; the examples and the description
                       of the corpus; the manifest
    --manifest         only the manifest, without Python
  pictures [NAME]...   docs/pictures: the demo and the levels of small stores

Comparison with other implementations:
  conformance          golden data, random blobs both ways, stores both ways, migrated stores
    --golden           only golden data
    --reference        only random blobs, both ways
      --cases N        number of blobs each way (default 2000)
    --stores           only stores that `zvf create` writes
      --sample         as CI does: with or without checksums in turn
    --pyramids         only levels that `zvf pyramid` writes
      --sample         as CI does: every other case
    --migrated         only recorded stores, migrated to 0.9
    --files            only files of the field, both ways
    --precomputed      only layers for Neuroglancer, exported and served, read by other programs
    --viewer           only layers drawn in Neuroglancer, in headless Chromium
    --random           only random stores, both ways
      --cases N        number of stores (default 40)
    --b2nd             only Blosc2 arrays, both ways
    --runners          only the queries of docs/conformance.md; writes its table
    --runner COMMAND   the same queries, run by another implementation
      --store PATTERN,…      only of these stores, as 'zvf-09/*'
      --query KIND,…         only of these kinds, as all,bbox
      --generation G,…       only of stores of these generations, as 0.9
    --seed N           repeat a run
  msrv                 crates that declare an older compiler, with that compiler
  outside              the programs of examples/outside, built with the packages to be published
  python               the Python package: builds its module, runs mypy and pytest
    --compat           only the tests of zarr-vectors against zvf.compat, compared with
                       docs/compat.md
      --write          write its table
    --wheel            only the wheel: its size, and an example in a new environment
    --clusters         only stores that Dask, Ray and Spark build while workers are killed, and the
                       scripts of their pages
      --kills N        workers killed in each phase (default 1)
      --guide          only the scripts
  servers              stores on an S3 server, Azurite and a web server, with injected faults

Hostile input:
  nostd                no_std and no-panic probes, cross builds of the format crate
  fuzz [TARGET]        coverage-guided fuzzing on the stable toolchain
    --seconds N        time for each target (default 60)
    --same             as CI does: one seed, no inputs of earlier runs
    --list             print the targets
    --reproduce HEX    run one input

Speed:
  bench                every comparison; writes docs/performance.md
    --quick            a three-minute sample that leaves the page unchanged
    --huge             also stores of 10^8 vertices in a bucket
    --compare FILE     only instruction counts of inner loops, compared with FILE
  bench kernels        instruction counts, compared with xtask/kernels.json
    --write            replace that file
  bench format         codecs beside the Python reference and memcpy
  bench dense [N]...   slices of dense arrays on N threads, beside python-blosc2, Tetration and
                       zarr-python
  bench files [VERTICES]
                       reading and writing files, beside nibabel, zvtools, laspy, trimesh and navis
  bench reads [STORE]...
                       requests, bytes and time of queries beside the reference
  bench pyramids [SIZE]... [--large]
                       time and memory of pyramids beside the reference
  bench serve [KIND]... [--quick]
                       time and memory of the server and of exports, with 64 clients
  bench writes [SIZE]...
                       time, memory and size of writing beside the reference

With CI=true, a missing tool is a failure instead of a skip.
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(command) = words.next() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let words: Vec<String> = words.collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return help(&command);
    }
    let options = match Options::parse(words.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match command.as_str() {
        "check" => report(&check::all(&options)),
        "ci" => report(&ci::all()),
        "nightly" => report(&nightly::all()),
        "test" => report(&test::all(&options)),
        "tidy" => single(tidy::all()),
        "fixtures" => single(fixtures::from_options(&options)),
        "conformance" => single(conformance::from_options(&options)),
        "rules" => single(rules::from_options(&options)),
        "api" => single(api::from_options(&options)),
        "pictures" => single(pictures::from_options(&options)),
        "servers" => single(servers::all(1)),
        "python" => single(package::from_options(&options)),
        "msrv" => single(msrv::all()),
        "nostd" => single(nostd::all()),
        "outside" => single(outside::all()),
        "fuzz" => single(fuzz::from_options(&options)),
        "bench" => single(bench::from_options(&options)),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        unknown => {
            eprintln!("no command `{unknown}`\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Prints the lines of one command, or all of them for an unknown command.
fn help(command: &str) -> ExitCode {
    match section(command) {
        Some(section) => println!("Usage: cargo xtask {command} [OPTIONS]\n\n{section}"),
        None => print!("{USAGE}"),
    }
    ExitCode::SUCCESS
}

/// Returns the lines of the usage that describe `command`: the lines that begin with its name, and the
/// lines below each, which are indented further.
fn section(command: &str) -> Option<String> {
    let mut is_within = false;
    let lines = USAGE.lines().filter(|line| {
        let begins = line.starts_with("  ") && !line.starts_with("   ");
        if begins || line.is_empty() {
            is_within = begins && line.split_whitespace().next() == Some(command);
        }
        is_within
    });
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
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
    use super::*;

    #[test]
    fn help_of_a_command_is_its_part_of_the_usage() {
        let conformance = section("conformance").unwrap();
        assert!(conformance.starts_with("  conformance  "));
        assert!(conformance.contains("--generation") && conformance.ends_with("repeat a run"));
        assert!(!conformance.contains("servers"));
        assert_eq!(section("bench").unwrap().matches("\n  bench").count(), 8);
        assert_eq!(section("confirm"), None);
    }
}
