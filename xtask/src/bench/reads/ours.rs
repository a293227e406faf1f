//! Reads with the `zvf` command.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::run::{self, Run, cargo, program};

const REPEATS: usize = 3;

#[derive(Debug)]
pub(super) struct Ours {
    zvf: PathBuf,
}

impl Ours {
    /// Builds `zvf`; `None` if it has no `query`.
    pub(super) fn build() -> Result<Option<Self>> {
        let build = cargo("build --quiet --locked --release --package zvf-cli --bin zvf");
        let zvf = run::built(build)?;
        let help = program(&zvf).words("query --help").output()?;
        Ok(help.status.success().then_some(Self { zvf }))
    }

    /// Repeats a query and returns its cost and result, or `error`. The time includes the start of the
    /// program.
    pub(super) fn measure(&self, store: &Path, query: &Value, columns: &Value) -> Result<Value> {
        let words = arguments(query, columns)?;
        let mut times = Vec::new();
        let mut report = Value::Null;
        for _ in 0..REPEATS {
            let start = Instant::now();
            let output = self.query(store, &words).output()?;
            times.push(start.elapsed().as_secs_f64());
            if !output.status.success() {
                let error = String::from_utf8_lossy(&output.stderr);
                return Ok(json!({ "error": error.trim() }));
            }
            report = serde_json::from_slice(&output.stdout).context("zvf query --json")?;
        }
        times.sort_by(f64::total_cmp);
        let mut costs = costs(&query["found"], &report)?;
        costs.insert("seconds".to_owned(), times.get(REPEATS / 2).copied().into());
        Ok(costs.into())
    }

    fn query(&self, store: &Path, words: &[String]) -> Run {
        let run = program(&self.zvf).arg("query").arg(store);
        words.iter().fold(run.words("--json --quiet"), Run::arg)
    }
}

/// Extracts requests, bytes and the size of the result.
fn costs(known: &Value, report: &Value) -> Result<Map<String, Value>> {
    let missing = report["missing"].as_array();
    let whole = missing.is_some_and(Vec::is_empty);
    ensure!(whole, "zvf query --json has no empty `missing`");
    let requests = number(report, "requests")?.into();
    let bytes = number(report, "bytes_read")?.into();
    let found = found(known, report)?.into();
    let costs = [("requests", requests), ("bytes", bytes), ("found", found)];
    let costs = costs.map(|(key, value)| (key.to_owned(), value));
    Ok(costs.into_iter().collect())
}

/// Extracts the counts.
fn found(known: &Value, report: &Value) -> Result<Map<String, Value>> {
    let counted = ["vertices", "objects", "links"]
        .into_iter()
        .filter(|&what| what == "vertices" || !known[what].is_null());
    let counts = counted.map(|what| Ok((what.to_owned(), number(report, what)?.into())));
    counts.collect()
}

fn number(report: &Value, key: &str) -> Result<u64> {
    report[key]
        .as_u64()
        .with_context(|| format!("zvf query --json gave no `{key}`"))
}

/// Translates a query into options of `zvf query`.
fn arguments(query: &Value, columns: &Value) -> Result<Vec<String>> {
    let columns = strings(columns)?;
    let columns = columns.iter().map(|name| format!("vertex.{name}"));
    let columns = columns.collect::<Vec<_>>().join(",");
    let mut words = vec![format!("--select={columns}")];
    if query["names_objects"] == false {
        words.push("--no-objects".to_owned());
    }
    if let Some(corners) = query["box"].as_array() {
        let corners = corners.iter().map(numbers).collect::<Result<Vec<_>>>()?;
        words.push(format!("--bbox={}", corners.join(",")));
    }
    if let Some(mode) = query["mode"].as_str() {
        words.push(format!("--mode={mode}"));
    }
    for option in ["object", "group"] {
        if let Some(id) = query[option].as_u64() {
            words.push(format!("--{option}={id}"));
        }
    }
    if let nearest @ Value::Object(_) = &query["nearest"] {
        words.push(format!("--nearest={}", numbers(&nearest["place"])?));
        words.push(format!("--k={}", nearest["count"]));
    }
    if let condition @ Value::Object(_) = &query["where"] {
        let part = |name: &str| condition[name].as_str().with_context(|| name.to_owned());
        let (scope, name) = (part("scope")?, part("attribute")?);
        words.push(format!("--where={scope}.{name} > {}", condition["above"]));
    }
    Ok(words)
}

fn strings(list: &Value) -> Result<Vec<&str>> {
    let list = list.as_array().context("columns")?;
    let strings = list.iter().map(|one| one.as_str().context("column"));
    strings.collect()
}

fn numbers(list: &Value) -> Result<String> {
    let list = list.as_array().context("coordinates")?;
    let texts = list.iter().map(ToString::to_string).collect::<Vec<_>>();
    Ok(texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_equal_the_query_of_the_reference() {
        let query = json!({
            "query": "box, 1 %", "names_objects": false,
            "box": [[0.0, 1.5, -2.0], [10.0, 11.0, 12.0]], "mode": "within",
            "found": {"vertices": 3},
        });
        let words = arguments(&query, &json!(["a", "b"])).unwrap();
        assert_eq!(
            words,
            [
                "--select=vertex.a,vertex.b",
                "--no-objects",
                "--bbox=0.0,1.5,-2.0,10.0,11.0,12.0",
                "--mode=within"
            ]
        );
        let query = json!({
            "names_objects": true,
            "where": {"scope": "object", "attribute": "score", "above": 0.5},
        });
        let words = arguments(&query, &json!([])).unwrap();
        assert_eq!(words, ["--select=", "--where=object.score > 0.5"]);
        let query = json!({"nearest": {"place": [1.0, 2.0], "count": 10}, "object": 4});
        let words = arguments(&query, &json!([])).unwrap();
        assert_eq!(
            words,
            ["--select=", "--object=4", "--nearest=1.0,2.0", "--k=10"]
        );
    }

    #[test]
    fn keeps_the_counts_that_are_known() {
        let mut report = json!({
            "vertices": 3, "objects": 0, "links": 2,
            "requests": 7, "bytes_read": 90, "missing": [],
        });
        let known = json!({"vertices": 4, "links": 2});
        let kept = costs(&known, &report).unwrap();
        let right = json!({
            "requests": 7, "bytes": 90, "found": {"vertices": 3, "links": 2},
        });
        assert_eq!(Value::Object(kept), right);
        let kept = costs(&Value::Null, &report).unwrap();
        assert_eq!(kept["found"], json!({"vertices": 3}));
        report["missing"] = json!([{"key": "0/vertices/c/0"}]);
        assert!(costs(&known, &report).is_err());
        assert!(costs(&known, &json!({"missing": []})).is_err());
    }
}
