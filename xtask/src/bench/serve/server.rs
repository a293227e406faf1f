//! A running `zvf serve`.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::client::Connection;
use crate::run::program;

pub(super) struct Serving {
    child: Child,
    pub(super) address: SocketAddr,
    state: Value,
    /// The time until the link is printed.
    pub(super) started: Duration,
}

impl Serving {
    pub(super) fn start(zvf: &Path, store: &Path) -> Result<Self> {
        let start = Instant::now();
        let command = program(zvf)
            .words("serve --port 0 --json --quiet")
            .arg(store);
        let mut child = command.spoken_to()?;
        let mut line = String::new();
        let output = child.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let started = start.elapsed();
        let value: Value = serde_json::from_str(&line).context("the server does not start")?;
        let address = value["address"].as_str().context("address")?;
        let host = address.trim_start_matches("http://").trim_end_matches('/');
        Ok(Self {
            child,
            address: host.parse()?,
            state: value["state"].clone(),
            started,
        })
    }

    /// Returns the paths of the layers.
    pub(super) fn layers(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        for layer in self.state["layers"].as_array().context("layers")? {
            let sources = match &layer["source"] {
                Value::Array(sources) => sources.clone(),
                one => vec![one.clone()],
            };
            for source in sources {
                let url = source["url"].as_str().or(source.as_str());
                let url = url.context("a layer without an address")?;
                let (_, host) = url.split_once("http://").context("address")?;
                let (_, path) = host.split_once('/').context("path")?;
                let path = path.split('|').next().unwrap_or(path).trim_end_matches('/');
                let path = format!("/{path}");
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        Ok(paths)
    }

    /// Returns the document at a path.
    pub(super) fn json(&self, path: &str) -> Result<Value> {
        let response = Connection::open(self.address)?.get(path)?;
        ensure!(response.status == 200, "{path}: {}", response.status);
        Ok(serde_json::from_slice(&response.body)?)
    }

    /// Returns the most memory that the process has taken, in bytes.
    pub(super) fn most_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.context("VmHWM")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }

    /// Ends the server with SIGINT.
    pub(super) fn stop(&mut self) -> Result<()> {
        let id = self.child.id().to_string();
        program("kill").arg("-INT").arg(id).run()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
