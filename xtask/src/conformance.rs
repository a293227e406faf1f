//! Comparison with golden data and, by the suite in `conformance`, with other programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    metadata, python,
    run::{self, Build, EVERYTHING, Run, WRAPPER, everything, program},
    stage::Done,
    workspace,
};

const MARK: &str = "conformance: ";
/// Packages that the modules of the suite import.
const REQUIREMENTS: &str = "conformance/requirements.txt";
/// The previous release of the reference.
const OLDER: &str = "conformance/requirements-020.txt";
/// Attempts to draw: software rendering on a busy machine may miss a limit of time.
const ATTEMPTS: usize = 2;

/// A judge: the option that selects it, and its modules, separated by spaces.
type Judge = (&'static str, &'static str);

const JUDGES: [Judge; 10] = [
    ("reference", "codecs"),
    ("stores", "created sealed draco convention guide"),
    ("pyramids", "pyramids"),
    ("migrated", "migrated"),
    ("precomputed", "precomputed imported"),
    ("viewer", "viewer"),
    ("page", "page"),
    (
        "files",
        "tractograms surfaces point_clouds swc graphs geoparquet judges",
    ),
    ("b2nd", "b2nd"),
    ("random", "random_stores"),
];
const RUNNERS: Judge = ("runners", "compare runners");
pub(crate) const SERVERS: Judge = ("servers", "servers");
pub(crate) const CLUSTERS: Judge = ("clusters", "clusters");
pub(crate) const NOTEBOOK: Judge = ("notebook", "notebook");
pub(crate) const COMPAT: Judge = ("compat", "compat");
pub(crate) const FIXTURES: Judge = ("fixtures", "fixtures");

/// Without an option, all comparisons.
#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct ConformanceOptions {
    /// Only golden data
    #[arg(long)]
    golden: bool,
    /// Only random blobs, both ways
    #[arg(long)]
    reference: bool,
    /// Only stores that `zvf create` writes
    #[arg(long)]
    stores: bool,
    /// Only levels that `zvf pyramid` writes
    #[arg(long)]
    pyramids: bool,
    /// Only recorded stores, migrated to 0.9
    #[arg(long)]
    migrated: bool,
    /// Only files of the field, both ways
    #[arg(long)]
    files: bool,
    /// Only layers for Neuroglancer, exported and served, read by other programs
    #[arg(long)]
    precomputed: bool,
    /// Only layers drawn in Neuroglancer, in headless Chromium
    #[arg(long)]
    viewer: bool,
    /// Only the page of `zvf view`, in headless Chromium
    #[arg(long)]
    page: bool,
    /// Only random stores, both ways
    #[arg(long)]
    random: bool,
    /// Only Blosc2 arrays, both ways
    #[arg(long)]
    b2nd: bool,
    /// Only the queries of docs/conformance.md; writes its table
    #[arg(long)]
    runners: bool,
    /// Compare the table instead of writing it
    #[arg(long)]
    check: bool,
    /// Run a part of the cases, as CI does
    #[arg(long)]
    sample: bool,
    /// Number of random blobs, stores or arrays
    #[arg(long)]
    cases: Option<u64>,
    /// Repeat a run
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn from_options(options: &ConformanceOptions) -> Result<Done> {
    let update = if options.check { "" } else { "--update" };
    if options.runners {
        return suite(&[RUNNERS], update);
    }
    let chosen = [
        options.reference,
        options.stores,
        options.pyramids,
        options.migrated,
        options.precomputed,
        options.viewer,
        options.page,
        options.files,
        options.b2nd,
        options.random,
    ];
    let chosen: Vec<Judge> = JUDGES
        .into_iter()
        .zip(chosen)
        .filter_map(|(judge, is_chosen)| is_chosen.then_some(judge))
        .collect();
    let number = |name: &str, value: Option<u64>| match value {
        Some(value) => format!("--{name} {value}"),
        None => String::new(),
    };
    let sample = if options.sample { "--sample" } else { "" };
    let (cases, seed) = (number("cases", options.cases), number("seed", options.seed));
    let words = format!("{sample} {cases} {seed}");
    if !chosen.is_empty() {
        return suite(&chosen, &words);
    }
    golden(everything)?;
    if options.golden {
        return Ok(Done::Passed);
    }
    suite(&[JUDGES.as_slice(), &[RUNNERS]].concat(), &words)
}

/// Runs modules of the suite, and prints the table of what they compared.
pub(crate) fn suite(judges: &[Judge], words: &str) -> Result<Done> {
    let Some(python) = python::environment(REQUIREMENTS)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    // Created here, because several processes may need it.
    if judges
        .iter()
        .any(|(name, _)| ["runners", "random"].contains(name))
    {
        python::environment(OLDER)?;
    }
    let draws = judges
        .iter()
        .any(|(name, _)| ["viewer", "page"].contains(name));
    for _ in 1..if draws { ATTEMPTS } else { 1 } {
        match suite_in(&python, judges, words) {
            Ok(done) => return Ok(done),
            Err(error) => println!("{error:#}; once more"),
        }
    }
    suite_in(&python, judges, words)
}

/// Runs modules of the suite with the Python that has their packages.
pub(crate) fn suite_in(python: &Path, judges: &[Judge], words: &str) -> Result<Done> {
    let results = metadata::scratch("xtask")?.join(format!("results-{}.json", process::id()));
    let modules = judges
        .iter()
        .flat_map(|(_, modules)| modules.split_whitespace());
    let run = pytest(python)?
        .words("--quiet --no-header --tb=short")
        .words(words);
    let run = modules.fold(run, |run, module| {
        run.arg(format!("conformance/test_{module}.py"))
    });
    run.env("ZVF_RESULTS", &results)
        // The temporary folder of CI is in memory.
        .env("PYTEST_DEBUG_TEMPROOT", metadata::stores()?)
        .run()?;
    let text = fs::read_to_string(&results).context("the suite wrote no results")?;
    fs::remove_file(&results)?;
    outcome(&serde_json::from_str(&text)?)
}

/// Prepares pytest with the package of this folder and the environments of the suite.
fn pytest(python: &Path) -> Result<Run> {
    let environments = metadata::scratch("xtask")?;
    let run = program(python).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(run
        .env("ZVF_ENVIRONMENTS", environments)
        .env("ZVF_FEATURES", EVERYTHING)
        .env("ZVF_COMPILER", WRAPPER.1)
        .words("-m pytest"))
}

/// Tells a run that skipped everything, or a part, from one that passed.
fn outcome(results: &Value) -> Result<Done> {
    let skipped = results["skipped"].as_array().context("skipped")?;
    let passed = results["passed"].as_u64().context("passed")?;
    let first = skipped.first().and_then(Value::as_str);
    match (first, passed) {
        (None, 0) => bail!("no test was selected"),
        (None, _) => Ok(Done::Passed),
        (Some(why), 0) => Ok(Done::Skipped(why.to_owned())),
        (Some(why), _) => Ok(Done::InPart(why.to_owned())),
    }
}

/// Builds a binary or an example with the features of CI and prints its path.
pub(crate) fn print_built(bin: Option<String>, example: Option<String>) -> Result<Done> {
    let target = match (bin, example) {
        (Some(bin), None) => format!("--bin {bin}"),
        (None, Some(example)) => format!("--example {example}"),
        _ => bail!("name a program with --bin or --example"),
    };
    println!("{}", run::built_here(&target)?.display());
    Ok(Done::Passed)
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CorpusOptions {
    /// Write zarr-vectors-corpus.tar.gz to this folder
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Write it twice, compare the bytes, and score its runners outside the repository
    #[arg(long)]
    check: bool,
}

/// Packs the corpus of stores with its runners, which requires no Rust.
pub(crate) fn corpus(options: &CorpusOptions) -> Result<Done> {
    let script = program("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(workspace::root().join("conformance/protocol/pack.py"));
    match &options.export {
        Some(folder) => script.arg(folder).run()?,
        None => script.arg("--check").run()?,
    }
    Ok(Done::Passed)
}

/// Runs the tests named `golden_*`, built with the given cargo arguments, and prints what they
/// compared.
pub(crate) fn golden(build: Build) -> Result<Done> {
    let tests = build("test --quiet");
    let output = tests.words("--tests golden_ -- --nocapture").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = comparisons(&text);
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    for line in &counts {
        println!("{line}");
    }
    ensure!(output.status.success(), "golden tests: {}", output.status);
    if counts.is_empty() {
        return Ok(Done::Skipped("no golden_ test reported a count".to_owned()));
    }
    Ok(Done::Passed)
}

/// Finds the lines that the tests print; libtest may put a test's name in front.
fn comparisons(output: &str) -> Vec<String> {
    let lines = output.lines();
    let counts = lines.filter_map(|line| line.find(MARK).and_then(|at| line.get(at..)));
    counts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_counts_among_libtest_output() {
        let output =
            "running 2 tests\nconformance: a 12\ntest x::golden_b ... conformance: b 3\nok";
        assert_eq!(
            comparisons(output),
            ["conformance: a 12", "conformance: b 3"]
        );
    }

    #[test]
    fn a_run_in_which_nothing_passed_is_no_pass() {
        let of = |passed, skipped: &[&str]| outcome(&json!({"passed": passed, "skipped": skipped}));
        assert!(matches!(of(3, &[]), Ok(Done::Passed)));
        assert!(matches!(of(0, &["no browser"]), Ok(Done::Skipped(_))));
        assert!(matches!(of(3, &["no java"]), Ok(Done::InPart(why)) if why == "no java"));
        assert!(of(0, &[]).is_err());
    }
}
