//! A table of medians.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use crate::{
    data::Data,
    measure::Sample,
    worker::{self, StoreForm, Worker},
};

/// Number of rounds after one warm-up round; a table shows their median.
const ROUNDS: usize = 5;

/// Measures all or some steps, and prints a table.
pub(crate) fn print(data: Data, words: &[&str]) -> Result<()> {
    let (mut form, mut chosen, mut keep, mut is_json) = (StoreForm::Plain, Vec::new(), None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--json" => is_json = true,
            "--keep" => {
                let folder = words.next().context("--keep takes a folder")?;
                keep = Some(PathBuf::from(folder));
            }
            word => match word.parse() {
                Ok(parsed) => form = parsed,
                Err(_) => chosen.push(word.replace("box-", "box ")),
            },
        }
    }
    let temporary = tempfile::tempdir()?;
    let folder = keep.as_deref().unwrap_or(temporary.path());
    let (kind, raw) = (data.kind, data.raw_bytes());
    let mut worker = Worker::new(data, form, folder)?;
    let steps = if chosen.is_empty() {
        worker::steps(kind, form)
    } else {
        chosen
    };
    let mut records = Vec::new();
    for step in &steps {
        let sample = rounds(&mut worker, step)?;
        if !is_json {
            println!("{}", shown(step, &sample, raw));
        }
        records.push(json!({"step": step, "sample": sample.json()}));
    }
    if is_json {
        println!(
            "{}",
            json!({"kind": kind.name(), "form": form.name(), "raw": raw, "steps": records})
        );
    } else {
        println!(
            "raw {} MB, stored {} MB",
            raw / 1_000_000,
            worker.size()? / 1_000_000
        );
    }
    Ok(())
}

fn rounds(worker: &mut Worker, step: &str) -> Result<Sample> {
    let first = worker.step(step)?;
    let mut sample = Sample {
        seconds: Vec::new(),
        ..first.clone()
    };
    // Long steps have no warm-up.
    if first.median() > 5.0 {
        return Ok(first);
    }
    for _ in 0..ROUNDS {
        sample.merge(worker.step(step)?);
    }
    Ok(sample)
}

fn shown(step: &str, sample: &Sample, raw: usize) -> String {
    let ends = sample.seconds.iter().copied();
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), s| {
        (low.min(s), high.max(s))
    });
    let median = sample.median();
    format!(
        "{step:10} {:>10.3} ms  ({:.3} to {:.3})  found {:>9}  peak {:>7.1} MB  {:>8.0} MB/s of raw",
        median * 1e3,
        low * 1e3,
        high * 1e3,
        sample.found,
        sample.peak.unwrap_or_default() as f64 / 1e6,
        raw as f64 / 1e6 / median,
    )
}
