//! What the library answers: the one place that asks it.

use std::error::Error;

use serde_json::{Value, json};
use zvf::{
    Dataset,
    query::{Answer, Query},
};

use super::{Counts, Report};

/// What a query finds.
pub(super) async fn answer(dataset: &Dataset, query: &Query) -> Result<Answer, Box<dyn Error>> {
    Ok(dataset.query(query).await?)
}

/// How much a query finds.
pub(super) async fn count(
    dataset: &Dataset,
    query: &Query,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let found = dataset.count(query).await?;
    let counts = Counts {
        level: Some(found.level.number()),
        vertices: found.vertices,
        parts: found.parts,
        objects: found.objects.unwrap_or(0),
        links: found.links.unwrap_or(0),
    };
    report.count(counts, found.missing, found.notes);
    Ok(())
}

/// What a query would read: for people, and as JSON.
pub(super) async fn explain(
    dataset: &Dataset,
    query: &Query,
) -> Result<(String, Value), Box<dyn Error>> {
    let plan = dataset.explain(query).await?;
    let size = |bytes: Option<u64>| bytes.map_or("? bytes".to_owned(), |n| format!("{n} bytes"));
    let requests = plan.requests();
    let mut lines = vec![format!("first {requests} requests, {}", size(plan.bytes()))];
    for reads in &plan.first {
        let (array, requests) = (&reads.array, reads.requests);
        lines.push(format!(
            "  {array}: {requests} requests, {}",
            size(reads.bytes)
        ));
    }
    lines.extend(plan.then.iter().map(|then| format!("then {then}")));
    lines.push(format!(
        "at most {} in the chunks in question",
        size(plan.at_most)
    ));
    let first = plan.first.iter().map(|reads| {
        json!({
            "array": reads.array.as_str(), "requests": reads.requests, "bytes": reads.bytes,
        })
    });
    let json = json!({
        "requests": requests, "bytes": plan.bytes(), "first": first.collect::<Vec<_>>(),
        "then": plan.then, "at_most": plan.at_most,
    });
    Ok((lines.join("\n"), json))
}
