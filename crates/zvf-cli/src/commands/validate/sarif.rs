//! Findings as a SARIF 2.1.0 log.

use std::fmt::Write;

use serde_json::{Value, json};
use zvf::{Finding, Remedy, Severity};
use zvf_validate::rules;

use super::StoreValidation;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Page about the tool.
const INFORMATION: &str = "https://docs.rs/zvf-cli";
/// Base id of the locations in a store.
const BASE: &str = "STORE";

/// Returns the log of one run. `base` is the URI of the store, with a final slash.
pub fn sarif(validated: StoreValidation<'_>, base: &str) -> Value {
    let report = validated.report;
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "zvf",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": INFORMATION,
                "rules": rules::all().map(rule).collect::<Vec<Value>>(),
            }},
            "originalUriBaseIds": {(BASE): {"uri": base}},
            "invocations": [{"executionSuccessful": true}],
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "store": validated.store,
                "level": validated.depth.number(),
                "ok": report.is_ok(),
                "unlisted": report.unlisted,
            },
        }],
    })
}

fn rule(rule: &zvf::Rule) -> Value {
    let help = match rule.remedy {
        Remedy::Repair(text) => format!("zvf validate --repair: {text}."),
        Remedy::Advice(text) => format!("Remedy: {text}."),
    };
    json!({
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.meaning.trim()},
        "help": {"text": help},
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"level": rule.depth.number()},
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn result(finding: &Finding) -> Value {
    let index = rules::all().position(|rule| rule.code == finding.rule.code);
    let mut location = json!({"physicalLocation": {
        "artifactLocation": {"uri": encoded(&artifact(finding)), "uriBaseId": BASE},
    }});
    if let Some(place) = &finding.location {
        let kind = if is_json(place) {
            "property"
        } else {
            "element"
        };
        location["logicalLocations"] = json!([{"fullyQualifiedName": place, "kind": kind}]);
    }
    json!({
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": level(finding.rule.severity),
        "message": {"text": super::output::message(finding)},
        "locations": [location],
        "properties": {"fixable": finding.fix.is_some()},
    })
}

/// Returns the `zarr.json` of a finding in metadata, the file of a chunk, otherwise the folder of the
/// node.
fn artifact(finding: &Finding) -> String {
    let path = finding.path.as_str();
    let slash = if path.is_empty() { "" } else { "/" };
    match finding.location.as_deref().is_some_and(is_json) {
        true => format!("{path}{slash}zarr.json"),
        false if is_chunk(path) => path.to_owned(),
        false => format!("{path}{slash}"),
    }
}

/// Returns whether a path is that of a chunk or a shard: `c` and numbers below an array. An attribute may
/// have the name `c`, too.
fn is_chunk(path: &str) -> bool {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let numbers = path.rsplit('/').take_while(is_number).count();
    let mut above = path.rsplit('/').skip(numbers);
    let is_below_c = numbers > 0 && above.next() == Some("c");
    is_below_c
        && above
            .next()
            .is_some_and(|array| !array.ends_with("attributes"))
}

/// Returns whether a location lies in a `zarr.json`.
fn is_json(place: &str) -> bool {
    let members = ["attributes", "nonempty_chunks", "shape", "data_type"];
    let more = ["chunk_grid", "codecs", "fill_value", "node_type"];
    let first = place.split(['.', '[']).next().unwrap_or_default();
    members.contains(&first) || more.contains(&first)
}

/// Percent-encodes a path.
pub(super) fn encoded(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~/+:@!$&'()*,;=".contains(&byte);
        if plain {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
