//! Time, memory and errors of `zvf serve` and `zvf export precomputed` on large stores.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    metadata,
    run::{self, cargo, program},
    stage::Done,
};

mod client;
mod load;
mod requests;
mod server;

use load::Figures;
use server::Serving;

/// Kinds with their vertices.
const SETS: [(&str, u64); 5] = [
    ("points", 10_000_000),
    ("streamlines", 10_000_000),
    ("skeletons", 1_000_000),
    ("graph", 1_000_000),
    ("mesh", 1_000_000),
];
const CLIENTS: usize = 64;

/// Measures the named kinds, or all, and prints a table.
pub(super) fn run(names: &[String], quick: bool) -> Result<Done> {
    // One command, so that both are built with the same features of what they share.
    let build = cargo("build --quiet --locked --release --package zvf-cli --bin zvf");
    let built = run::built_all(build.words("--package zvf-bench --bin zvf-bench"))?;
    let named = |name: &str| -> Result<PathBuf> {
        let is_named = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == name);
        let path = built.iter().find(is_named);
        path.cloned()
            .with_context(|| format!("{name} was not built"))
    };
    let (zvf, bench) = (named("zvf")?, named("zvf-bench")?);
    let folder = metadata::scratch("xtask/serve-bench")?;
    let seconds = if quick { 5 } else { 60 };
    let mut rows = Vec::new();
    for (kind, vertices) in SETS {
        if !names.is_empty() && !names.iter().any(|name| name == kind) {
            continue;
        }
        let vertices = if quick { vertices / 20 } else { vertices };
        let store = made(&bench, &folder, kind, vertices)?;
        let export = exported(&zvf, &store, &folder)?;
        let mut server = Serving::start(&zvf, &store)?;
        for layer in server.layers()? {
            println!("{kind}, {layer}");
            let requests = requests::of(&server, &layer)?;
            let row = Row {
                kind,
                vertices,
                started: server.started,
                export,
                alone: load::run(&server, &requests, 1, Duration::from_secs(5))?,
                together: load::run(&server, &requests, CLIENTS, Duration::from_secs(seconds))?,
                memory: server.most_memory()?,
                layer,
            };
            println!("{row}");
            rows.push(row);
        }
        server.stop()?;
    }
    println!("\n{HEAD}");
    for row in &rows {
        println!("{row}");
    }
    let failed: u64 = rows
        .iter()
        .map(|row| row.together.errors + row.alone.errors)
        .sum();
    ensure!(failed == 0, "{failed} requests failed");
    Ok(Done::Passed)
}

const HEAD: &str = "\
| vertices | layer | until the link, s | 1 client: p50, p95, ms | 64 clients: requests/s, p95, ms | memory, MB | export, s |
|---|---|---|---|---|---|---|";

/// The figures of a layer.
struct Row {
    kind: &'static str,
    vertices: u64,
    layer: String,
    started: Duration,
    alone: Figures,
    together: Figures,
    /// The most that the server has taken so far, in bytes.
    memory: u64,
    export: Duration,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "| {} {} | {} | {:.1} | {:.1}, {:.1} | {:.0}, {:.0} | {} | {:.1} |",
            self.vertices,
            self.kind,
            self.layer,
            self.started.as_secs_f64(),
            milliseconds(self.alone.p50),
            milliseconds(self.alone.p95),
            self.together.per_second,
            milliseconds(self.together.p95),
            self.memory / 1_000_000,
            self.export.as_secs_f64(),
        )
    }
}

/// Returns a store of a kind, which is created unless it exists.
fn made(bench: &Path, folder: &Path, kind: &str, vertices: u64) -> Result<PathBuf> {
    let found = |folder: &Path| -> Result<Option<PathBuf>> {
        let prefix = format!("{kind}-");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(&prefix)) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    };
    let folder = folder.join(vertices.to_string());
    fs::create_dir_all(&folder)?;
    if let Some(store) = found(&folder)? {
        return Ok(store);
    }
    let command = program(bench)
        .words("serve")
        .arg(kind)
        .arg(vertices.to_string());
    let mut child = command.arg("plain").arg(&folder).spoken_to()?;
    let mut input = child.stdin.take().context("no input")?;
    std::io::Write::write_all(&mut input, b"write\n")?;
    drop(input);
    let output = child.wait_with_output()?;
    let response: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(response.get("error").is_none(), "{response}");
    found(&folder)?.with_context(|| format!("no store of {kind}"))
}

/// Returns the time of an export with shards.
fn exported(zvf: &Path, store: &Path, folder: &Path) -> Result<Duration> {
    let out = folder.join("exported");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let start = Instant::now();
    let command = program(zvf).words("export precomputed --quiet --sharded");
    command.arg(store).arg(&out).run()?;
    let took = start.elapsed();
    fs::remove_dir_all(&out)?;
    Ok(took)
}
