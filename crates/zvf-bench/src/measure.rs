//! Measurement of time and memory.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The cost of one step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Seconds of each repetition.
    pub(crate) seconds: Vec<f64>,
    /// Largest increase of memory in bytes.
    pub(crate) peak: Option<u64>,
    /// Number of vertices found or written.
    pub(crate) found: usize,
}

impl Sample {
    pub(crate) fn json(&self) -> Value {
        json!({"seconds": self.seconds, "peak": self.peak, "found": self.found})
    }

    /// Adds another sample of the same step.
    pub(crate) fn merge(&mut self, other: Self) {
        self.seconds.extend(other.seconds);
        self.peak = self.peak.max(other.peak);
        self.found = other.found;
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.seconds)
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied();
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied();
    upper.zip(lower).map_or(f64::NAN, |(a, b)| a.midpoint(b))
}

/// Returns the seconds that `work` takes, and its result, which the caller drops.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed().as_secs_f64(), done))
}

/// Runs `work` once, and repeats it as often as fits into a short time.
pub(crate) fn repeated(
    mut work: impl FnMut() -> Result<(f64, usize)>,
) -> Result<(Vec<f64>, usize)> {
    const MIN_TIME: Duration = Duration::from_millis(20);
    const MAX_RUNS: usize = 200;
    let start = Instant::now();
    let mut seconds = Vec::new();
    loop {
        let (took, found) = work()?;
        seconds.push(took);
        if start.elapsed() > MIN_TIME || seconds.len() == MAX_RUNS {
            return Ok((seconds, found));
        }
    }
}

/// Memory use from a starting point on.
pub(crate) struct MemoryUse {
    before: Option<u64>,
}

impl MemoryUse {
    /// Starts measuring; `None` if the system does not report memory.
    pub(crate) fn watch() -> Self {
        // 5 resets the peak to the current use.
        let reset = fs::write("/proc/self/clear_refs", "5");
        Self {
            before: reset.ok().and_then(|()| line("VmRSS:").ok()),
        }
    }

    /// Returns the largest increase.
    pub(crate) fn peak(&self) -> Option<u64> {
        let peak = line("VmHWM:").ok()?;
        Some(peak.saturating_sub(self.before?))
    }
}

/// Returns a line of the process status, in bytes.
fn line(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("a status without memory")?.parse::<u64>()? * 1024)
}
