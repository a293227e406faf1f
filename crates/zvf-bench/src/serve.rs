//! Steps requested by another program.

use std::io::{self, BufRead, Write};

use anyhow::Result;
use serde_json::{Value, json};

use crate::worker::Worker;

/// Runs each requested step and prints its result as a line of JSON.
pub(crate) fn run(mut worker: Worker) -> Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let result = match line.as_str() {
            "size" => json!({"bytes": worker.size()?, "raw": worker.data.raw_bytes()}),
            step => worker
                .step(step)
                .map_or_else(refused, |sample| sample.json()),
        };
        writeln!(out, "{result}")?;
        out.flush()?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "of a Result")]
fn refused(error: anyhow::Error) -> Value {
    json!({"error": format!("{error:#}")})
}
