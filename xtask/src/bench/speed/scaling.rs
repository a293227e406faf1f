//! Growth of costs with size and cores, and memory of streaming.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Times, ours, put_aside, worker::Worker};
use crate::run::{Run, exists, program};

/// Sizes, in vertices, over which exponents are fitted.
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Measures exponents, the memory of streaming, and the gain of a second core.
pub(super) fn measure(binary: &Path, scratch: &Path, quick: bool) -> Result<Value> {
    let sizes = SIZES.get(..if quick { 2 } else { 4 }).unwrap_or_default();
    let stores = scratch.join("scaling");
    let mut kinds = Map::new();
    for kind in ["points", "streamlines"] {
        let steps: &[&str] = match kind {
            "points" => &["write", "whole", "stream", "box 0.1"],
            _ => &["write", "whole", "stream", "box 0.1", "one"],
        };
        let mut rows = Vec::new();
        for size in sizes {
            let run = ours(binary, kind, *size, "auto", &stores);
            rows.push((*size, times(&mut Worker::start("zvf", run)?, steps)));
            put_aside(&stores)?;
        }
        kinds.insert(kind.to_owned(), fitted(steps, &rows));
    }
    Ok(json!({
        "sizes": sizes,
        "kinds": kinds,
        "cores": cores(binary, &stores, if quick { 100_000 } else { 1_000_000 })?,
    }))
}

fn times(worker: &mut Worker, steps: &[&str]) -> Map<String, Value> {
    let steps = steps.iter().map(|step| {
        let mut times = Times::default();
        for round in 0..3 {
            if !times.is_over {
                times.take(&worker.run(step), round == 0);
            }
        }
        ((*step).to_owned(), times.summary().unwrap_or_default())
    });
    steps.collect()
}

/// Returns, for each step, its times, its memory, and the exponent of its growth with the size of
/// the store; for boxes, with the number of vertices found.
fn fitted(steps: &[&str], rows: &[(u64, Map<String, Value>)]) -> Value {
    let steps = steps.iter().map(|step| {
        let pairs = rows.iter().filter_map(|(size, times)| {
            let time = &times[*step];
            let against = if step.starts_with("box") {
                time["found"].as_f64()?
            } else {
                *size as f64
            };
            Some((against, time["median"].as_f64()?))
        });
        let pairs: Vec<_> = pairs.collect();
        let of = |name: &str| {
            let values = rows.iter().map(|(_, times)| times[*step][name].clone());
            values.collect::<Vec<_>>()
        };
        let about = json!({
            "exponent": exponent(&pairs),
            "seconds": of("median"),
            "peaks": of("peak"),
            "found": of("found"),
        });
        ((*step).to_owned(), about)
    });
    Value::Object(steps.collect())
}

/// Fits a line through the logarithms and returns its slope.
fn exponent(pairs: &[(f64, f64)]) -> Option<f64> {
    let logs = pairs.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logs: Vec<_> = logs.map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let above: f64 = logs.iter().map(|pair| (pair.0 - x) * (pair.1 - y)).sum();
    let below: f64 = logs.iter().map(|pair| (pair.0 - x).powi(2)).sum();
    (logs.len() > 1 && below > 0.0).then(|| above / below)
}

/// Measures on one core and on all; `None` without `taskset`.
fn cores(binary: &Path, stores: &Path, vertices: u64) -> Result<Value> {
    if !exists("taskset") {
        eprintln!("SKIPPED one core beside all: taskset is missing");
        return Ok(Value::Null);
    }
    let mut kinds = Map::new();
    for kind in ["points", "streamlines", "skeletons", "mesh", "graph"] {
        let one = pinned(binary)
            .words("serve")
            .arg(kind)
            .arg(vertices.to_string());
        let one = one.arg("auto").arg(stores.join("one"));
        let mut one = Worker::start("one core", one)?;
        let run = ours(binary, kind, vertices, "auto", &stores.join("all"));
        let mut all = Worker::start("all cores", run)?;
        let mut steps = Map::new();
        for step in ["write", "whole", "validate", "pyramid"] {
            let mut sides = [Times::default(), Times::default()];
            for round in 0..4 {
                for (worker, times) in [&mut one, &mut all].into_iter().zip(&mut sides) {
                    if !times.is_over {
                        times.take(&worker.run(step), round == 0);
                    }
                }
            }
            let medians = sides.map(|times| times.summary().and_then(|s| s["median"].as_f64()));
            let [one, all] = medians;
            let gain = one.zip(all).map(|(one, all)| one / all);
            steps.insert(
                step.to_owned(),
                json!({"one": one, "all": all, "gain": gain}),
            );
        }
        kinds.insert(kind.to_owned(), Value::Object(steps));
        drop((one, all));
        put_aside(stores)?;
    }
    Ok(Value::Object(kinds))
}

fn pinned(binary: &Path) -> Run {
    program("taskset").words("-c 0").arg(binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_exponent_of_a_power() {
        let pairs = [(10.0, 300.0), (100.0, 30_000.0), (1000.0, 3_000_000.0)];
        assert!((exponent(&pairs).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(exponent(&pairs[..1]), None);
        assert_eq!(exponent(&[(5.0, 1.0), (5.0, 2.0)]), None);
    }
}
