//! Benchmarks beside other programs: the scripts of `benchmarks`, with optimized builds.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{
    metadata, python,
    run::{self, Run, cargo},
    stage::Done,
    workspace,
};

pub(crate) mod kernels;

/// The programs that are compared.
const PEERS: &str = "benchmarks/requirements-peers.txt";
const PAGE: &str = "docs/performance.md";

#[derive(clap::Args)]
pub(crate) struct BenchOptions {
    #[command(subcommand)]
    only: Option<Only>,
    /// A three-minute sample that leaves the page unchanged
    #[arg(long)]
    quick: bool,
    /// Also stores of 10^8 vertices in a bucket
    #[arg(long)]
    huge: bool,
    /// Also the Python package, which is installed beside the other programs
    #[arg(long)]
    package: bool,
    /// Only instruction counts of inner loops, compared with this file
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Only {
    /// Instruction counts, compared with xtask/kernels.json
    Kernels {
        /// Replace that file
        #[arg(long)]
        write: bool,
    },
    /// Slices of dense arrays beside python-blosc2, Tetration and zarr-python
    Dense {
        /// Numbers of threads
        threads: Vec<String>,
    },
    /// Reading and writing files beside nibabel, zvtools, laspy, trimesh and navis
    Files {
        /// Vertices, and names of files
        words: Vec<String>,
    },
    /// Time and memory of the server and of exports, with 64 clients
    Serve {
        /// Kinds of geometry
        kinds: Vec<String>,
        /// Smaller stores
        #[arg(long)]
        quick: bool,
    },
}

pub(crate) fn from_options(options: &BenchOptions) -> Result<Done> {
    if let Some(base) = &options.compare {
        return kernels::compare(base);
    }
    match &options.only {
        None => speed(options),
        Some(Only::Kernels { write }) => kernels::run(*write),
        Some(Only::Dense { threads }) => {
            let ours = optimized("--package zvf-dense --example b2nd", "b2nd")?;
            let several = if threads.is_empty() { "" } else { "--threads" };
            let folder = scratch("dense")?;
            let list = "benchmarks/requirements-dense.txt";
            script("dense", list, threads, |script| {
                script.arg(ours).arg(folder).words(several)
            })
        }
        Some(Only::Files { words }) => {
            let zvf = optimized("--package zvf-cli --bin zvf", "zvf")?;
            let read = "--package zvf-files --features geoparquet --example read";
            let (read, folder) = (optimized(read, "read")?, scratch("files")?);
            let list = "benchmarks/requirements-files.txt";
            script("files", list, words, |script| {
                script.arg(folder).arg(zvf).arg(read)
            })
        }
        Some(Only::Serve { kinds, quick }) => {
            // One command, so that both are built with the same features of what they share.
            let both = "--package zvf-cli --bin zvf --package zvf-bench --bin zvf-bench";
            let (zvf, bench) = (optimized(both, "zvf")?, optimized(both, "zvf-bench")?);
            let (quick, folder) = (if *quick { "--quick" } else { "" }, scratch("serve")?);
            script("serve", PEERS, kinds, |script| {
                script.arg(zvf).arg(bench).arg(folder).words(quick)
            })
        }
    }
}

/// Compares times in warm processes, costs in a bucket and scaling, and writes the page.
fn speed(options: &BenchOptions) -> Result<Done> {
    let binary = optimized("--package zvf-bench --bin zvf-bench", "zvf-bench")?;
    let peers = match python::environment(PEERS) {
        Ok(Some(python)) => Ok(python),
        Ok(None) => Err(python::MISSING.to_owned()),
        Err(error) => Err(format!("{error:#}")),
    };
    let (python, peers) = match peers {
        Ok(python) => (python, "--peers"),
        Err(why) => {
            eprintln!("SKIPPED all peers: {why}");
            (PathBuf::from("python3"), "")
        }
    };
    if options.package {
        let pip = run::program(&python).words("-m pip install --quiet --disable-pip-version-check");
        pip.arg(workspace::root()).run()?;
    }
    let version = concat!("--version=zvf ", env!("CARGO_PKG_VERSION"));
    let flags = [
        ("--quick", options.quick),
        ("--huge", options.huge),
        ("--package", options.package),
    ]
    .into_iter()
    .filter(|(_, is_given)| *is_given);
    let script = python::running(&python, "benchmarks/run.py")
        .arg(binary)
        .arg(scratch("speed")?)
        .arg(workspace::root().join(PAGE))
        .arg(version)
        .words(peers);
    flags
        .fold(script, |script, (flag, _)| script.arg(flag))
        .run()?;
    Ok(match peers {
        "" => Done::InPart("no peers were measured".to_owned()),
        _ => Done::Passed,
    })
}

/// Runs a script of `benchmarks` with the Python that has the listed packages.
fn script(
    name: &str,
    requirements: &'static str,
    words: &[String],
    add: impl FnOnce(Run) -> Run,
) -> Result<Done> {
    let Some(python) = python::environment(requirements)? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let script = add(python::running(&python, &format!("benchmarks/{name}.py")));
    words.iter().fold(script, Run::arg).run()?;
    Ok(Done::Passed)
}

fn scratch(name: &str) -> Result<PathBuf> {
    metadata::scratch(&format!("xtask/{name}-bench"))
}

/// Builds optimized programs and returns the one of this name.
fn optimized(targets: &str, name: &str) -> Result<PathBuf> {
    let build = cargo("build --quiet --locked --release").words(targets);
    let built = run::built_all(build)?;
    let is_named = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    let path = built.into_iter().find(is_named);
    path.with_context(|| format!("{name} was not built"))
}
