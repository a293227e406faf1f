//! Coverage-guided fuzzing on the stable toolchain.
//!
//! libFuzzer needs instrumented code, and rustc gives it through plain LLVM
//! flags; cargo-fuzz and a nightly toolchain are not needed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    metadata, nostd,
    run::{self, cargo, program},
    stage::Done,
    workspace,
};

const INSTRUMENT: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg fuzzing";
/// Inputs of 4 KiB hold the structures of every codec; longer ones only slow the runs.
const LIMITS: &str = "-max_len=4096 -rss_limit_mb=1024 -timeout=10 -print_final_stats=1";
const GEOPARQUET: &str = "files_geoparquet";
const CONCURRENT_TARGETS: usize = 2;

#[derive(clap::Args)]
pub(crate) struct FuzzOptions {
    /// The target (default: all)
    target: Option<String>,
    /// Time for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Use one seed and no inputs of earlier runs, as CI does
    #[arg(long)]
    same: bool,
    /// Print the targets
    #[arg(long)]
    list: bool,
    /// Run one input
    #[arg(long, value_name = "HEX", requires = "target")]
    reproduce: Option<String>,
}

pub(crate) fn from_options(options: &FuzzOptions) -> Result<Done> {
    let all = targets()?;
    if options.list {
        for target in &all {
            println!("{target}");
        }
        return Ok(Done::Passed);
    }
    let chosen: Vec<String> = match &options.target {
        Some(target) if all.contains(target) => vec![target.clone()],
        Some(unknown) => bail!("no target {unknown}; the targets are {all:?}"),
        None => all.into_iter().collect(),
    };
    if let (Some(hex), [target]) = (&options.reproduce, chosen.as_slice()) {
        return reproduce(target, &hex::decode(hex)?);
    }
    let inputs = if options.same {
        Inputs::Same
    } else {
        Inputs::Kept
    };
    fuzz(chosen, options.seconds, inputs)
}

/// The inputs that fuzzing starts from.
#[derive(Clone, Copy, Debug)]
enum Inputs {
    /// The seeds and the inputs of earlier runs, changed at random.
    Kept,
    /// The seeds, changed by one sequence of random numbers: a failure is one of the change.
    Same,
}

/// Fuzzes the targets that CI builds, with the same inputs each time.
pub(crate) fn sample(seconds: u64) -> Result<Done> {
    let targets = targets()?.into_iter().filter(|name| !is_of_files(name));
    fuzz(targets.collect(), seconds, Inputs::Same)
}

/// Fuzzes every target.
pub(crate) fn each(seconds: u64) -> Result<Done> {
    fuzz(targets()?.into_iter().collect(), seconds, Inputs::Kept)
}

/// Lists the targets. A test of the testkit compares the list with its laws.
fn targets() -> Result<BTreeSet<String>> {
    let mut targets = BTreeSet::new();
    for entry in fs::read_dir(workspace::root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        targets.insert(name.context("a fuzz target has no name")?.to_owned());
    }
    Ok(targets)
}

fn fuzz(chosen: Vec<String>, seconds: u64, inputs: Inputs) -> Result<Done> {
    if !["c++", "g++", "clang++"].into_iter().any(run::exists) {
        return Ok(Done::Skipped(
            "a C++ compiler is missing, libFuzzer needs it".to_owned(),
        ));
    }
    let binaries = build(&chosen, inputs)?;
    let corpus = match inputs {
        Inputs::Kept => metadata::scratch("fuzz/corpus")?,
        Inputs::Same => {
            let seeds = metadata::scratch("fuzz/seeds")?;
            fs::remove_dir_all(&seeds)?;
            seeds
        }
    };
    cargo("run --quiet --locked --package zvf-testkit --features std --example fuzz_corpus --")
        .arg(&corpus)
        .run()?;
    let count = chosen.len();
    let queue = Mutex::new(chosen.into_iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..CONCURRENT_TARGETS {
            scope.spawn(|| {
                while let Some(target) = next(&queue) {
                    let outcome = binary(&binaries, &target)
                        .and_then(|binary| run_target(&target, binary, &corpus, seconds, inputs));
                    match outcome {
                        Ok(summary) => println!("fuzz {target}: {summary}"),
                        Err(error) => {
                            println!("fuzz {target}: {error:#}");
                            failures.lock().map(|mut list| list.push(target)).ok();
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    println!("{count} targets, {seconds} s each");
    Ok(Done::Passed)
}

fn next(queue: &Mutex<std::vec::IntoIter<String>>) -> Option<String> {
    queue.lock().ok()?.next()
}

/// Returns whether a target reads files of other formats. These targets need most crates of the
/// workspace. CI omits them, because it runs their laws as property tests.
fn is_of_files(target: &str) -> bool {
    target.starts_with("files_")
}

/// Builds the chosen targets and all others that need no further crates.
fn build(chosen: &[String], inputs: Inputs) -> Result<Vec<PathBuf>> {
    let features = if chosen.iter().any(|name| name == GEOPARQUET) {
        ""
    } else if chosen.iter().any(|name| is_of_files(name)) {
        "--no-default-features --features files"
    } else {
        "--no-default-features"
    };
    // CI spends more time on the build than on the runs.
    let opt_level = match inputs {
        Inputs::Kept => "3",
        Inputs::Same => "1",
    };
    let build = cargo("build --quiet --release --manifest-path fuzz/Cargo.toml --bins")
        .words(nostd::locked())
        .words(features)
        // `--target` keeps the flags below away from build scripts.
        .arg("--target")
        .arg(host()?)
        .arg("--target-dir")
        .arg(metadata::scratch("fuzz")?)
        .env("RUSTFLAGS", INSTRUMENT)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", opt_level);
    run::built_all(build)
}

fn host() -> Result<String> {
    let version = program("rustc").arg("-vV").read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

fn binary<'a>(binaries: &'a [PathBuf], target: &str) -> Result<&'a Path> {
    let mut named = binaries.iter().map(PathBuf::as_path);
    let found = named.find(|binary| binary.file_stem().is_some_and(|stem| stem == target));
    found.with_context(|| format!("no binary was built for {target}"))
}

fn run_target(
    target: &str,
    binary: &Path,
    corpus: &Path,
    seconds: u64,
    inputs: Inputs,
) -> Result<String> {
    let crashes = metadata::scratch(&format!("fuzz/crashes/{target}"))?;
    let before = files(&crashes)?;
    // Not every target has a corpus to begin with.
    fs::create_dir_all(corpus.join(target))?;
    let seed = match inputs {
        Inputs::Kept => "-seed=0",
        Inputs::Same => "-seed=1",
    };
    let output = program(binary)
        .words(LIMITS)
        .arg(seed)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg(corpus.join(target))
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return summary(&log).context("no coverage was counted: the code is not instrumented");
    }
    let mut report = vec![output.status.to_string()];
    report.extend(reasons(&log).map(str::to_owned));
    for crash in files(&crashes)?.difference(&before) {
        let input = hex::encode(fs::read(crash)?);
        report.push(format!(
            "reproduce the input, here as hex, with:
  cargo xtask fuzz {target} --reproduce {input}"
        ));
    }
    bail!("{}", report.join("\n"))
}

fn reproduce(target: &str, input: &[u8]) -> Result<Done> {
    let binaries = build(&[target.to_owned()], Inputs::Kept)?;
    let file = metadata::scratch("fuzz")?.join(format!("{target}.input"));
    fs::write(&file, input)?;
    let binary = binary(&binaries, target)?;
    program(binary).words(LIMITS).arg(file).run()?;
    println!("{target} takes these {} bytes", input.len());
    Ok(Done::Passed)
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    Ok(entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?)
}

/// Extracts the statistics that libFuzzer prints last.
fn summary(log: &str) -> Option<String> {
    let last = |key: &str| {
        let line = log.lines().rev().find(|line| line.contains(key))?;
        line.split(key).nth(1)?.split_whitespace().next()
    };
    Some(format!(
        "{} runs, {} runs/s, {} edges covered, no failure",
        last("number_of_executed_units:")?,
        last("average_exec_per_sec:")?,
        last("cov:")?
    ))
}

/// Selects the lines that explain a failure and drops the backtrace.
fn reasons(log: &str) -> impl Iterator<Item = &str> {
    let mut follows_panic = false;
    log.lines().filter(move |line| {
        // A panic prints its location first and its message on the next line.
        let is_message = follows_panic;
        follows_panic = line.contains("panicked at");
        follows_panic || is_message || line.contains("ERROR:") || line.contains("SUMMARY:")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_lines_that_say_why() {
        let log = "INFO: seed\nthread 'main' panicked at a.rs:3:5:\nfragment 2\nnote: run\n\
            ==12== ERROR: libFuzzer: deadly signal\n   #1 0x5 in main\nSUMMARY: libFuzzer: deadly";
        let kept: Vec<_> = reasons(log).collect();
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[1], "fragment 2");
    }

    #[test]
    fn reads_the_final_statistics() {
        let log = "#9 NEW cov: 12 ft: 30\n#90 DONE cov: 15 ft: 40\n\
            stat::number_of_executed_units: 90\nstat::average_exec_per_sec:     45\n";
        let want = "90 runs, 45 runs/s, 15 edges covered, no failure";
        assert_eq!(summary(log).as_deref(), Some(want));
        assert_eq!(summary("WARNING: no interesting inputs were found"), None);
    }
}
