//! The programs that are compared, and the geometry they support.

use std::path::Path;

use anyhow::Result;

use super::worker::Worker;
use crate::{python, run::program};

/// A program to compare with.
struct Peer {
    name: &'static str,
    script: &'static str,
    kinds: &'static [&'static str],
}

const ALL: &[&str] = &["points", "streamlines", "skeletons", "mesh", "graph"];

const PEERS: [Peer; 7] = [
    Peer {
        name: "npy",
        script: "npy_files.py",
        kinds: ALL,
    },
    Peer {
        name: "zarr-vectors",
        script: "zarr_vectors_store.py",
        kinds: ALL,
    },
    Peer {
        name: "lance",
        script: "lance_table.py",
        kinds: &["points"],
    },
    Peer {
        name: "laz",
        script: "laz_files.py",
        kinds: &["points"],
    },
    Peer {
        name: "parquet",
        script: "parquet_files.py",
        kinds: &["points", "graph"],
    },
    Peer {
        name: "trx",
        script: "trx_files.py",
        kinds: &["streamlines"],
    },
    Peer {
        name: "precomputed",
        script: "precomputed.py",
        kinds: &["skeletons", "mesh"],
    },
];

/// Returns the Python of the peers, or prints the reason that it cannot be created.
pub(super) fn python() -> Option<std::path::PathBuf> {
    let why = match python::peers() {
        Ok(Some(python)) => return Some(python),
        Ok(None) => python::MISSING.to_owned(),
        Err(error) => format!("{error:#}"),
    };
    eprintln!("SKIPPED all peers: {why}");
    None
}

/// Starts the peers for a kind of geometry. A peer that does not start is left out, with a message.
pub(super) fn started(
    python: &Path,
    kind: &str,
    data: &Path,
    folder: &Path,
    versions: &mut Vec<String>,
) -> Result<Vec<Worker>> {
    let mut workers = Vec::new();
    for peer in PEERS.iter().filter(|peer| peer.kinds.contains(&kind)) {
        let script = crate::workspace::root()
            .join("xtask/python/peers")
            .join(peer.script);
        let run = program(python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONWARNINGS", "ignore");
        let mut worker = Worker::start(peer.name, run.arg(script).arg(data).arg(folder))?;
        let version = worker.run("version");
        let Some(version) = version["version"].as_str() else {
            eprintln!("SKIPPED {}: {version}", peer.name);
            continue;
        };
        if !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
        workers.push(worker);
    }
    Ok(workers)
}
