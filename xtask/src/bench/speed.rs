//! Speed beside other programs: in-process times, costs in a bucket, scaling.
#![expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts of figures that are shown with three digits"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::{
    metadata,
    run::{self, Run, cargo, exists, program},
    stage::Done,
    workspace,
};

mod bars;
mod peers;
mod report;
mod scaling;
mod worker;

use worker::Worker;

/// The file of the report.
const REPORT: &str = "docs/performance.md";

/// The extent of a run.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// A three-minute sample.
    pub(super) quick: bool,
    /// Everything, and stores of 10^8 vertices in a bucket.
    pub(super) huge: bool,
}

impl Extent {
    /// Kinds and sizes that are compared, and queried in a bucket.
    fn sets(self) -> Vec<(&'static str, u64)> {
        let kinds = ["points", "streamlines", "skeletons", "mesh", "graph"];
        kinds
            .map(|kind| (kind, if self.quick { 100_000 } else { 1_000_000 }))
            .to_vec()
    }

    /// Kinds and sizes whose comparison takes long.
    fn large_sets(self) -> &'static [(&'static str, u64)] {
        if self.quick {
            &[]
        } else {
            &[("points", 10_000_000), ("streamlines", 10_000_000)]
        }
    }

    /// Kinds and sizes that are only queried in a bucket.
    fn huge_sets(self) -> &'static [(&'static str, u64)] {
        if self.huge {
            &[("points", 100_000_000), ("streamlines", 100_000_000)]
        } else {
            &[]
        }
    }
}

/// Measures everything. Rewrites the figures and the report after each part, so that an interrupted
/// run keeps its results.
pub(super) fn run(extent: Extent) -> Result<Done> {
    let binary = run::built(cargo(
        "build --quiet --locked --release --package zvf-bench --bin zvf-bench",
    ))?;
    let scratch = metadata::scratch("xtask/speed")?;
    let mut run = Measured {
        python: peers::python(),
        versions: vec![format!("zvf {}", env!("CARGO_PKG_VERSION"))],
        sets: Vec::new(),
        buckets: Vec::new(),
        scaling: Value::Null,
        binary,
        scratch,
        extent,
    };
    for (kind, vertices) in extent.sets() {
        run.set(kind, vertices)?;
    }
    for (kind, vertices) in extent.sets() {
        run.bucket(kind, vertices)?;
    }
    println!("scaling");
    run.scaling = scaling::measure(&run.binary, &run.scratch, extent.quick)?;
    run.save()?;
    for (kind, vertices) in extent.large_sets() {
        run.set(kind, *vertices)?;
    }
    for (kind, vertices) in [extent.large_sets(), extent.huge_sets()].concat() {
        run.bucket(kind, vertices)?;
    }
    let done = run.scratch.join(DELETED);
    if done.exists() {
        fs::remove_dir_all(&done).with_context(|| done.display().to_string())?;
    }
    println!("written to {}", run.page().display());
    Ok(match run.python {
        Some(_) => Done::Passed,
        None => Done::InPart("no peers were measured".to_owned()),
    })
}

/// The measurements so far.
struct Measured {
    extent: Extent,
    binary: PathBuf,
    scratch: PathBuf,
    python: Option<PathBuf>,
    versions: Vec<String>,
    sets: Vec<Value>,
    buckets: Vec<Value>,
    scaling: Value,
}

impl Measured {
    fn set(&mut self, kind: &'static str, vertices: u64) -> Result<()> {
        println!("{kind}, {vertices} vertices");
        let set = Set {
            kind,
            vertices,
            binary: &self.binary,
            folder: self.scratch.join(format!("{kind}-{vertices}")),
        };
        let figures = set.measure(self.python.as_deref(), self.extent, &mut self.versions)?;
        self.sets.push(figures);
        self.save()
    }

    fn bucket(&mut self, kind: &str, vertices: u64) -> Result<()> {
        println!("{kind}, {vertices} vertices in a bucket");
        let command = program(&self.binary).words("bucket").arg(kind);
        let text = command.arg(vertices.to_string()).read()?;
        self.buckets.push(serde_json::from_str(&text)?);
        self.save()
    }

    fn save(&self) -> Result<()> {
        let all = json!({
            "machine": machine()?,
            "quick": self.extent.quick,
            "versions": self.versions,
            "sets": self.sets,
            "buckets": self.buckets,
            "scaling": self.scaling,
        });
        let figures = self.scratch.join("speed.json");
        fs::write(figures, serde_json::to_string_pretty(&all)?)?;
        fs::write(self.page(), report::written(&all)?)?;
        Ok(())
    }

    /// Writes the report. A quick run prints a summary and leaves the page unchanged.
    fn page(&self) -> PathBuf {
        if self.extent.quick {
            self.scratch.join("performance.md")
        } else {
            workspace::root().join(REPORT)
        }
    }
}

/// The folder that collects folders until they are deleted.
const DELETED: &str = "done";

/// Moves a scratch folder aside, to be deleted at the end of the run. ext4 creates files several
/// times more slowly in the minutes after many files were deleted.
fn put_aside(folder: &Path) -> Result<()> {
    let done = folder.with_file_name(DELETED);
    fs::create_dir_all(&done)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut places = (0..).map(|at| done.join(format!("{name}-{at}")));
    let free = places.find(|place| !place.exists());
    let free = free.context("no free name is left")?;
    fs::rename(folder, free).with_context(|| folder.display().to_string())
}

/// A kind of geometry and a size.
struct Set<'a> {
    kind: &'static str,
    vertices: u64,
    binary: &'a Path,
    folder: PathBuf,
}

/// The number of rounds; in each round every side runs once.
const ROUNDS: usize = 5;
/// A step that takes longer than this many seconds is not repeated.
const MAX_REPEATED_SECONDS: f64 = 2.0;

impl Set<'_> {
    fn measure(
        &self,
        python: Option<&Path>,
        extent: Extent,
        versions: &mut Vec<String>,
    ) -> Result<Value> {
        let (data, stores) = (self.folder.join("data"), self.folder.join("stores"));
        let vertices = self.vertices.to_string();
        let export = program(self.binary)
            .words("data")
            .arg(self.kind)
            .arg(&vertices);
        export.arg(&data).run()?;
        let mut sides = Vec::new();
        for form in ["plain", "auto"] {
            let run = ours(self.binary, self.kind, self.vertices, form, &stores);
            sides.push(Worker::start(&format!("zvf {form}"), run)?);
        }
        if let Some(python) = python {
            sides.extend(peers::started(python, self.kind, &data, &stores, versions)?);
        }
        let rounds = if extent.quick { 3 } else { ROUNDS };
        let mut steps = Map::new();
        for step in self.steps() {
            let times = in_turns(&mut sides, &step, rounds, |side| self.supports(side, &step));
            steps.insert(step, times);
        }
        let sizes = sides.iter_mut().map(|side| {
            let size = side.run("size");
            (side.name.clone(), size["bytes"].clone())
        });
        let sizes: Map<_, _> = sizes.collect();
        drop(sides);
        let about = fs::read_to_string(data.join("meta.json"))?;
        let about: Value = serde_json::from_str(&about)?;
        put_aside(&self.folder)?;
        Ok(json!({
            "kind": self.kind,
            "vertices": about["vertices"],
            "objects": about["objects"],
            "raw": about["raw_bytes"],
            "boxes": about["boxes"],
            "steps": steps,
            "sizes": sizes,
        }))
    }

    fn steps(&self) -> Vec<String> {
        let of_objects: &[&str] = match self.kind {
            "points" => &["filter"],
            "streamlines" | "skeletons" => &[
                "one",
                "one, nothing kept",
                "hundred",
                "hundred, nothing kept",
            ],
            _ => &[],
        };
        let first = ["write", "open", "whole", "stream", "floor"];
        let boxes = ["box 0.1", "box 0.1, nothing kept", "box 1", "box 10"];
        let steps = first.iter().chain(&boxes).chain(of_objects);
        let steps = steps.chain(&["validate", "pyramid"]);
        steps.map(ToString::to_string).collect()
    }

    /// Returns whether a side runs a step. Steps that take minutes run once.
    fn supports(&self, side: &str, step: &str) -> bool {
        match (side, step) {
            ("zvf plain", "validate" | "pyramid" | "floor") => false,
            ("zarr-vectors", "validate" | "pyramid") => self.vertices <= 1_000_000,
            ("zvf auto", _) => true,
            (_, "stream" | "floor") => side.starts_with("zvf"),
            _ if step.ends_with("nothing kept") => side.starts_with("zvf"),
            _ => true,
        }
    }
}

/// The zvf worker.
fn ours(binary: &Path, kind: &str, vertices: u64, form: &str, folder: &Path) -> Run {
    let run = program(binary)
        .words("serve")
        .arg(kind)
        .arg(vertices.to_string());
    run.arg(form).arg(folder)
}

/// Measures a step on all sides, alternating. The first round is a warm-up.
fn in_turns(
    sides: &mut [Worker],
    step: &str,
    rounds: usize,
    is_asked: impl Fn(&str) -> bool,
) -> Value {
    let mut all = vec![Times::default(); sides.len()];
    for round in 0..=rounds {
        for (side, times) in sides.iter_mut().zip(&mut all) {
            if times.is_over || !is_asked(&side.name) {
                continue;
            }
            times.take(&side.run(step), round == 0);
        }
    }
    let pairs = sides.iter().zip(all);
    let pairs = pairs.filter_map(|(side, times)| Some((side.name.clone(), times.summary()?)));
    Value::Object(pairs.collect())
}

/// The result of a step on one side.
#[derive(Clone, Default)]
struct Times {
    seconds: Vec<f64>,
    peak: Option<u64>,
    found: u64,
    why: Option<String>,
    is_over: bool,
}

impl Times {
    fn take(&mut self, response: &Value, warms_up: bool) {
        let seconds = response["seconds"].as_array();
        let seconds: Vec<f64> = seconds
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        if seconds.is_empty() {
            self.is_over = true;
            let why = response["error"].as_str();
            self.why = why.map(str::to_owned);
            return;
        }
        self.peak = self.peak.max(response["peak"].as_u64());
        self.found = response["found"].as_u64().unwrap_or(0);
        let is_slow = seconds.iter().any(|each| *each > MAX_REPEATED_SECONDS);
        if !warms_up || is_slow {
            self.seconds.extend(seconds);
        }
        self.is_over = is_slow;
    }

    fn summary(mut self) -> Option<Value> {
        if let Some(why) = self.why {
            return Some(json!({ "error": why }));
        }
        self.seconds.sort_by(f64::total_cmp);
        let (least, most) = (*self.seconds.first()?, *self.seconds.last()?);
        Some(json!({
            "median": median(&self.seconds),
            "min": least,
            "max": most,
            "n": self.seconds.len(),
            "peak": self.peak,
            "found": self.found,
        }))
    }
}

/// Returns the median of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    let middle = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    f64::midpoint(
        middle(sorted.len() / 2),
        middle(sorted.len().saturating_sub(1) / 2),
    )
}

/// Describes the machine.
fn machine() -> Result<Value> {
    let first = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map(|(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let rustc = program("rustc").words("--version").read()?;
    let system = if exists("uname") {
        program("uname").words("-sr").read()?
    } else {
        std::env::consts::OS.to_owned()
    };
    Ok(json!({
        "processor": first("/proc/cpuinfo", "model name"),
        "memory": first("/proc/meminfo", "MemTotal"),
        "cores": cores,
        "load": load,
        "rustc": rustc.trim(),
        "system": system.trim(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_warms_up_unless_it_is_slow() {
        let mut times = Times::default();
        times.take(&json!({"seconds": [9e-3], "peak": 5}), true);
        times.take(&json!({"seconds": [1e-3, 3e-3], "peak": 2}), false);
        let summary = times.summary().unwrap();
        assert_eq!(summary["median"], json!(2e-3));
        assert_eq!((&summary["n"], &summary["peak"]), (&json!(2), &json!(5)));
        let mut times = Times::default();
        times.take(&json!({"seconds": [7.0]}), true);
        assert!(times.is_over);
        assert_eq!(times.summary().unwrap()["median"], json!(7.0));
    }

    #[test]
    fn what_cannot_be_done_has_no_figures_and_what_fails_says_why() {
        let mut times = Times::default();
        times.take(&json!({"unable": "no such thing here"}), true);
        assert_eq!(times.summary(), None);
        let mut times = Times::default();
        times.take(&json!({"error": "broken"}), true);
        assert_eq!(times.summary(), Some(json!({"error": "broken"})));
    }
}
