//! Requests, bytes and time of queries beside the Python reference.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{metadata, python, stage::Done};

mod ours;
mod stores;
mod table;

use ours::Ours;
use stores::Stores;
use table::Table;

/// Measures the named stores, or all.
pub(super) fn run(names: &[String]) -> Result<Done> {
    let Some(stores) = Stores::make()? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = Ours::build()?;
    if ours.is_none() {
        println!("`zvf` has no command `query` yet: the reference alone is measured");
    }
    let mut records = Vec::new();
    for name in stores.choose(names)? {
        println!("reading {name}");
        records.extend(measure(&stores, name, ours.as_ref())?);
    }
    let path = metadata::scratch("xtask")?.join("reads.json");
    fs::write(&path, serde_json::to_string_pretty(&records)?)?;
    println!("\n{}", Table(&records));
    println!("{}\nwritten to {}", table::LEGEND, path.display());
    let wrong = records.iter().filter_map(wrong).collect::<Vec<_>>();
    ensure!(
        wrong.is_empty(),
        "wrong results of zvf:\n  {}",
        wrong.join("\n  ")
    );
    Ok(Done::Passed)
}

/// Measures each query of a store. Both sides alternate store by store, so that background load
/// affects both.
fn measure(stores: &Stores, name: &str, ours: Option<&Ours>) -> Result<Vec<Value>> {
    let about = stores.about(name)?;
    let queries = about["queries"].as_array().context("queries")?;
    let reference = stores.reference(name)?;
    ensure!(
        queries.len() == reference.len(),
        "count_reads.py returned {} of {} queries",
        reference.len(),
        queries.len()
    );
    let pairs = queries.iter().zip(reference);
    let records = pairs.map(|(query, reference)| {
        if query["query"] != reference["query"] {
            bail!("count_reads.py returned {}", reference["query"]);
        }
        let columns = match &reference["columns"] {
            Value::Null => &about["columns"],
            same => same,
        };
        let ours = ours.map(|ours| ours.measure(&stores.path(name), query, columns));
        let ours = ours.transpose();
        let ours = ours.with_context(|| format!("{name}, {}", query["query"]))?;
        Ok(json!({
            "store": name,
            "query": query["query"],
            "found": query["found"],
            "reference": reference,
            "ours": ours,
        }))
    });
    records.collect()
}

/// Describes a wrong result of zvf.
fn wrong(record: &Value) -> Option<String> {
    let ours = &record["ours"];
    let place = format!("{}, {}", record["store"], record["query"]);
    if let Some(error) = ours["error"].as_str() {
        return Some(format!("{place}: {error}"));
    }
    let (right, ours) = (record["found"].as_object()?, ours["found"].as_object()?);
    let differs = |(what, count): (&String, &Value)| {
        let found = ours.get(what)?;
        (found != count).then(|| format!("{found} {what}, not {count}"))
    };
    let differences = right.iter().filter_map(differs).collect::<Vec<_>>();
    (!differences.is_empty()).then(|| format!("{place}: {}", differences.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_what_both_sides_counted() {
        let record = |vertices: u64| {
            json!({
                "store": "mesh", "query": "whole level",
                "found": {"vertices": 5, "objects": 2},
                "ours": {"found": {"vertices": vertices, "links": 9}},
            })
        };
        assert_eq!(wrong(&record(5)), None);
        let complaint = wrong(&record(4)).unwrap();
        assert!(complaint.contains("4 vertices, not 5"), "{complaint}");
        assert_eq!(
            wrong(&json!({"found": {"vertices": 5}, "ours": null})),
            None
        );
    }
}
