//! Findings as text and as JSON.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Value, json};
use zvf::{Depth, Finding, Remedy, RepairReport, Rule, Severity, ValidationReport};
use zvf_validate::rules;

use super::StoreValidation;
use crate::display::{count_noun, group_digits};

/// Returns all findings as one JSON object.
pub fn object(validated: StoreValidation<'_>) -> Value {
    let StoreValidation {
        store,
        depth,
        report,
        repaired,
    } = validated;
    let findings = report.findings.iter().map(one);
    let mut object = json!({
        "store": store,
        "level": depth.number(),
        "ok": report.is_ok(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notes": report.count(Severity::Note),
        "findings": findings.collect::<Vec<Value>>(),
        "unlisted": report.unlisted,
        "cells": report.cells,
        "bytes": report.bytes,
    });
    if let Some(repaired) = repaired {
        let findings = repaired.repaired.iter().map(one);
        object["repaired"] = findings.collect();
        object["transaction"] = json!(repaired.transaction);
    }
    object
}

fn one(finding: &Finding) -> Value {
    json!({
        "code": finding.rule.code,
        "severity": finding.rule.severity.to_string(),
        "level": finding.rule.depth.number(),
        "path": finding.path,
        "place": finding.location,
        "message": message(finding),
        "fixable": finding.fix.is_some(),
    })
}

/// Formats all findings by rule, errors first, with the remedy of each rule.
pub fn table(validated: StoreValidation<'_>) -> String {
    let StoreValidation {
        store,
        depth,
        report,
        repaired,
    } = validated;
    let mut text = format!("{store}\n");
    if let Some(repaired) = repaired {
        text.push_str(&repairs(repaired));
    }
    for (rule, findings) in by_rule(report) {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n{severity}  {code}  {title}\n",
            severity = rule.severity,
            code = rule.code,
            title = rule.title
        );
        for finding in &findings {
            text.push_str(&line(finding));
        }
        if let Some(more) = report.unlisted.get(rule.code) {
            let _ = writeln!(text, "  and {} more", group_digits(*more));
        }
        let what = match rule.remedy {
            Remedy::Repair(_) => "repair",
            Remedy::Advice(_) => "remedy",
        };
        let _ = writeln!(text, "  {what}: {}", rule.remedy.text());
    }
    let _ = write!(text, "\n{}", verdict(depth, report));
    let fixable = report.findings.iter().filter(|found| found.fix.is_some());
    let fixable = u64::try_from(fixable.count()).unwrap_or(u64::MAX);
    if fixable > 0 && repaired.is_none() {
        let fixable = count_noun(fixable, "of these", "of these");
        let _ = write!(
            text,
            "\n{fixable} can be repaired: zvf validate --repair {store}"
        );
    }
    text
}

/// Formats the repairs.
fn repairs(repaired: &RepairReport) -> String {
    let Some(transaction) = repaired.transaction else {
        return "\nnothing can be repaired without guessing\n".to_owned();
    };
    let mut text = format!("\nrepaired in transaction {transaction}\n");
    for finding in &repaired.repaired {
        let _ = write!(text, "  {}", finding.rule.code);
        text.push_str(&line(finding));
    }
    text
}

/// Groups findings by rule: errors first, then by code.
fn by_rule(report: &ValidationReport) -> Vec<(&'static Rule, Vec<&Finding>)> {
    let mut rules_found: BTreeMap<&str, (&'static Rule, Vec<&Finding>)> = BTreeMap::new();
    for finding in &report.findings {
        let code = finding.rule.code;
        let (_, list) = rules_found
            .entry(code)
            .or_insert((finding.rule, Vec::new()));
        list.push(finding);
    }
    // With a limit of 0, findings are counted but not listed.
    for rule in report.unlisted.keys().filter_map(|code| rules::find(code)) {
        rules_found.entry(rule.code).or_insert((rule, Vec::new()));
    }
    let mut found: Vec<_> = rules_found.into_values().collect();
    found.sort_by_key(|(rule, _)| core::cmp::Reverse(rule.severity));
    found
}

fn line(finding: &Finding) -> String {
    let path = match finding.path.as_str() {
        "" => ".",
        path => path,
    };
    let message = message(finding);
    match &finding.location {
        Some(place) => format!("  {path}  {place}: {message}\n"),
        None => format!("  {path}: {message}\n"),
    }
}

/// Returns the message of a finding, with the reason why it is not repaired, if there is one.
pub(super) fn message(finding: &Finding) -> String {
    let message = &finding.message;
    match finding.obstacle() {
        Some(obstacle) => format!("{message}; not repaired before {obstacle}"),
        None => message.clone(),
    }
}

/// Formats the number of findings and the extent of the checks.
fn verdict(depth: Depth, report: &ValidationReport) -> String {
    let numbers = [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let counts: Vec<String> = numbers
        .into_iter()
        .filter_map(|(severity, singular, plural)| {
            let count = report.count(severity);
            (count > 0).then(|| count_noun(count, singular, plural))
        })
        .collect();
    let found = if counts.is_empty() {
        "nothing found".to_owned()
    } else {
        counts.join(", ")
    };
    let checked = match depth {
        Depth::Structure => "nodes".to_owned(),
        Depth::Metadata => "nodes and their metadata".to_owned(),
        _ => {
            let cells = count_noun(report.cells, "cell", "cells");
            format!("{cells}, {} bytes", group_digits(report.bytes))
        }
    };
    format!("{found}; checked to L{}: {checked}", depth.number())
}
