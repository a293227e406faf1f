//! Speed of the format crate beside the Python reference and `memcpy`.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{metadata, python, run::cargo, stage::Done};

const LEGEND: &str = "
Medians. ratio: the reference's time over ours. GB/s are index bytes; memcpy copies the same bytes.
rows: any fragment without preparation; ranked: with a rank directory, which the reference always builds.
walk: every fragment in order; ours borrows a list, the reference's `indices` copies it.";

/// An operation and the unit of its result.
const OPERATIONS: [(&str, Unit); 5] = [
    ("parse", Unit::Throughput),
    ("rows", Unit::PerCall),
    ("ranked", Unit::PerCall),
    ("walk", Unit::Throughput),
    ("encode", Unit::Throughput),
];

#[derive(Clone, Copy)]
enum Unit {
    /// Index bytes per second.
    Throughput,
    /// Nanoseconds per call.
    PerCall,
}

pub(super) fn run() -> Result<Done> {
    let data = metadata::scratch("bench-data")?;
    let criterion = metadata::scratch("bench-data/criterion")?;
    cargo("bench --locked --package zvf-format --bench format -- --quiet --noplot")
        .env("ZVF_BENCH_DATA", &data)
        .env("CRITERION_HOME", &criterion)
        .run()?;
    let Some(script) = python::script("bench_fragments.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let reference = script.arg(&data).read()?;
    let reference: Value = serde_json::from_str(&reference).context("bench_fragments.py")?;
    println!("{}", Row::HEADING);
    let cases = reference.as_object();
    for (name, case) in cases.context("bench_fragments.py gave no object")? {
        let memcpy = nanoseconds(&criterion, "memcpy", name)?;
        for (operation, unit) in OPERATIONS {
            let row = Row {
                name,
                operation,
                unit,
                bytes: case["bytes"].as_f64().context("bytes")?,
                ours: nanoseconds(&criterion, operation, name)?,
                reference: case[operation].as_f64().context(operation)?,
                memcpy,
            };
            println!("{row}");
        }
    }
    println!("{LEGEND}");
    Ok(Done::Passed)
}

/// Reads Criterion's estimate for one iteration.
fn nanoseconds(home: &Path, group: &str, name: &str) -> Result<f64> {
    let path = home.join(group).join(name).join("new/estimates.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: Value = serde_json::from_str(&text)?;
    let median = &estimates["median"]["point_estimate"];
    median.as_f64().context("an estimate without median")
}

/// Formats one line of the table; times are in nanoseconds.
struct Row<'a> {
    name: &'a str,
    operation: &'a str,
    unit: Unit,
    bytes: f64,
    ours: f64,
    reference: f64,
    memcpy: f64,
}

impl Row<'_> {
    const HEADING: &'static str = "\
        index          | operation |         ours |    reference |    ratio | memcpy\n\
        ---------------|-----------|--------------|--------------|----------|-----------";

    fn shown(&self, time: f64) -> String {
        match self.unit {
            // Bytes per nanosecond equal gigabytes per second.
            Unit::Throughput => format!("{:.2} GB/s", self.bytes / time),
            Unit::PerCall => format!("{time:.1} ns"),
        }
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, reference) = (self.shown(self.ours), self.shown(self.reference));
        let ratio = format!("{:.1}×", self.reference / self.ours);
        let memcpy = match self.unit {
            Unit::Throughput => self.shown(self.memcpy),
            Unit::PerCall => String::new(),
        };
        let (name, operation) = (self.name, self.operation);
        write!(
            f,
            "{name:14} | {operation:9} | {ours:>12} | {reference:>12} | {ratio:>8} | {memcpy:>10}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_throughput_and_time_in_their_units() {
        let row = Row {
            name: "mixed_100",
            operation: "parse",
            unit: Unit::Throughput,
            bytes: 4000.0,
            ours: 1000.0,
            reference: 8000.0,
            memcpy: 500.0,
        };
        let line = row.to_string();
        assert!(line.contains("4.00 GB/s") && line.contains("0.50 GB/s"));
        assert!(line.contains("8.0×") && line.contains("8.00 GB/s"));
        let lookup = Row {
            unit: Unit::PerCall,
            ..row
        };
        let line = lookup.to_string();
        assert!(line.contains("1000.0 ns") && !line.contains("GB/s"));
    }
}
