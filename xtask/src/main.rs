//! The workspace's automation; `cargo xtask` lists the commands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool reports on its standard streams"
)]

use std::process::ExitCode;

mod api;
mod bench;
mod ci;
mod conformance;
mod fixtures;
mod fuzz;
mod hex;
mod metadata;
mod node;
mod nostd;
mod options;
mod pictures;
mod python;
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
cargo xtask COMMAND

  test                 all that shows a build is sound: tests, doctests, golden data, probes
  ci                   everything .ci/run checks, cheapest first
  tidy                 layering, licences, duplicates, docs, golden manifest, text
  fixtures             rewrite testdata/codec with the Python reference, the examples and
                       description of the corpus, and the manifest
    --check            compare instead of writing
    --manifest         only the manifest, without Python
  conformance          golden tests, then random cases both ways with the Python reference,
                       then stores of `zvf create` beside its own, and recorded ones migrated
    --seed N           repeat a run
    --cases N          how many cases each way (default 2000)
    --golden           only the golden tests
    --reference        only the random cases
    --stores           only the stores
    --runners          only what implementations read of the corpus; writes the table
      --check          compare with the table instead
    --pyramids         levels that `zvf pyramid` makes, read by the reference
    --runner COMMAND   the same of another implementation, as docs/conformance.md explains
    --random           only random stores, both ways
      --cases N        how many (default 40)
    --b2nd             only arrays of Blosc2, both ways beside python-blosc2 and caterva
    --migrated         only the recorded stores, migrated to 0.9 and read by the reference
  rules                rewrite docs/rules.md from the validator's code
    --check            compare instead of writing
  api                  rewrite docs/api, the public items of every library
    --check            compare instead of writing
  pictures [NAME]…     redraw docs/pictures: the demo, levels of a small store of each kind, or some
  servers              stores read from an S3 server, Azurite and a web server, with faults between
  nostd                no_std and no-panic probes, cross builds of the format crate
  fuzz [TARGET]        coverage-guided fuzzing on stable, all targets or one
    --seconds N        for each target (default 60)
    --list             print the targets
    --reproduce HEX    run one input
  bench                speed beside everybody else, costs in a bucket, scaling; writes
                       docs/performance.md
    --quick            less of it, in three minutes, and leaves the page as it is
    --huge             also stores of 10^8 vertices in a bucket
    --compare FILE     only instructions of inner loops, which may be 3 % more than in FILE
  bench kernels        the same beside xtask/kernels.json
    --write            keeps what is counted there
  bench format         speed of the format crate beside the Python reference and memcpy
  bench dense [N]…     slices of dense arrays, on so many threads, beside python-blosc2,
                       Tetration and zarr-python
  bench reads [STORE]…  requests, bytes and time of queries beside the reference, on all
                       stores of a million vertices or some; makes them first
  bench pyramids [SIZE]… [--large]  time and memory of making levels beside the reference
  bench writes [SIZE]…  time, memory and size of writing beside the reference

CI=true makes a missing tool a failure instead of a skip.
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(command) = words.next() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match command.as_str() {
        "ci" => report(&ci::all()),
        "test" => report(&test::all()),
        "tidy" => single(tidy::all()),
        "fixtures" => single(fixtures::from_options(&options)),
        "conformance" => single(conformance::from_options(&options)),
        "rules" => single(rules::from_options(&options)),
        "api" => single(api::from_options(&options)),
        "pictures" => single(pictures::from_options(&options)),
        "servers" => single(servers::all()),
        "nostd" => single(nostd::all()),
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
            eprintln!("{}{missing}", stage::IN_PART);
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
