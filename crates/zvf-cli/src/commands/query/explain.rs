//! Counting, explaining and analyzing a query, formatted as text and as JSON.

use serde_json::{Value, json};
use zvf::{Dataset, LevelUse, Query};

use super::{
    QueryOutput, ResultCounts,
    output::{contribution, named},
};

/// Counts the items that a query finds, and adds them to the report.
pub(super) async fn count(
    dataset: &Dataset,
    query: &Query,
    report: &mut QueryOutput,
) -> Result<(), zvf::Error> {
    let found = dataset.count(query).await?;
    let counts = ResultCounts {
        level: Some(found.level.number()),
        vertices: found.vertices,
        parts: found.parts,
        objects: found.objects.unwrap_or(0),
        links: found.links.unwrap_or(0),
    };
    report.count(counts, found.skipped, found.notes);
    report.levels(&found.levels);
    Ok(())
}

/// Explains the plan of a query as text and as JSON.
pub(super) async fn explain(
    dataset: &Dataset,
    query: &Query,
) -> Result<(String, Value), zvf::Error> {
    let plan = dataset.explain(query).await?;
    let size = |bytes: Option<u64>| bytes.map_or("? bytes".to_owned(), |n| format!("{n} bytes"));
    let requests = plan.requests();
    let about = if plan.is_exact { "" } else { "about " };
    let of_level = |level: &LevelUse| format!("{}: {about}{}", named(level), contribution(level));
    let mut lines: Vec<String> = plan.levels.iter().map(of_level).collect();
    lines.push(format!("first {requests} requests, {}", size(plan.bytes())));
    for reads in &plan.first {
        let (array, requests) = (&reads.array, reads.requests);
        lines.push(format!(
            "  {array}: {requests} requests, {}",
            size(reads.bytes)
        ));
    }
    lines.extend(plan.then.iter().map(|then| format!("then {then}")));
    lines.push(format!(
        "at most {} in the first round trip, if cells are read whole",
        size(plan.at_most)
    ));
    lines.extend(operator_lines(&plan.operators));
    lines.extend(plan.notes.iter().map(|note| format!("note: {note}")));
    let first = plan.first.iter().map(|reads| {
        json!({
            "array": reads.array.as_str(), "requests": reads.requests, "bytes": reads.bytes,
        })
    });
    let levels = plan.levels.iter().map(|level| {
        let chunks = level
            .chunks
            .iter()
            .map(|(chunk, vertices)| json!({ "chunk": chunk.to_string(), "vertices": vertices }));
        json!({
            "level": level.level.number(), "vertices": level.vertices,
            "chunks": chunks.collect::<Vec<_>>(),
        })
    });
    let mut json = json!({
        "requests": requests, "bytes": plan.bytes(), "first": first.collect::<Vec<_>>(),
        "then": plan.then, "operators": operators(&plan.operators), "at_most": plan.at_most,
    });
    if !plan.levels.is_empty() {
        json["levels"] = levels.collect();
        json["is_exact"] = plan.is_exact.into();
    }
    if !plan.notes.is_empty() {
        json["notes"] = plan.notes.clone().into();
    }
    Ok((lines.join("\n"), json))
}

/// Runs a query and returns its operators with their requests, as text and as JSON.
pub(super) async fn analyze(
    dataset: &Dataset,
    query: &Query,
) -> Result<(String, Value), zvf::Error> {
    let reports = dataset.analyze(query).await?;
    let text = operator_lines(&reports).join("\n");
    Ok((text, json!({ "operators": operators(&reports) })))
}

/// Returns the lines of trees of operators, with a heading for each level if there are several.
fn operator_lines(reports: &[zvf::OperatorReport]) -> Vec<String> {
    let several = reports.windows(2).any(|pair| match pair {
        [a, b] => a.level != b.level,
        _ => false,
    });
    let mut lines = Vec::new();
    for report in reports {
        if several && report.depth == 0 {
            lines.push(format!("level {}", report.level));
        }
        lines.push(report.to_string());
    }
    lines
}

/// Returns operators as JSON, each before its inputs.
fn operators(reports: &[zvf::OperatorReport]) -> Value {
    let reports = reports.iter().map(|report| {
        json!({
            "level": report.level.number(), "depth": report.depth, "name": report.name,
            "details": report.details, "requests": report.requests, "bytes": report.bytes,
            "round_trips": report.round_trips,
        })
    });
    reports.collect()
}
