//! Cells and what they say of each other.

mod damaged;
mod formulas;
mod healthy;
mod objects;
mod older;
mod small;

use serde_json::{Value, json};
use zvf::{
    OpenOptions, validate_store,
    validation::{Finding, Fix, ValidateOptions},
};
use zvf_testkit::damage::{Files, apply};

use crate::block_on;

/// What these rules find.
fn found(files: &Files) -> Vec<Finding> {
    let store = OpenOptions::default().from_memory(files.iter().cloned());
    let report = block_on(validate_store(store.unwrap(), &ValidateOptions::default())).unwrap();
    let own = |finding: &Finding| finding.rule.code.starts_with("ZV-L3-0");
    report.findings.into_iter().filter(own).collect()
}

/// Findings as code, path and place.
fn lines(findings: &[Finding]) -> Vec<String> {
    let lines = findings.iter().map(|finding| {
        let place = finding.location.as_deref().unwrap_or("-");
        format!("{} {} {place}", finding.rule.code, finding.path)
    });
    lines.collect()
}

/// Damages a store and compares all that is found; then does what findings say that
/// puts them right, after which nothing is found that could be.
#[track_caller]
fn check_of(mut files: Files, damage: impl FnOnce(&mut Files), expected: &[&str]) {
    damage(&mut files);
    let findings = found(&files);
    let messages: Vec<&str> = findings.iter().map(|f| f.message.as_str()).collect();
    assert_eq!(lines(&findings), expected, "{messages:#?}");
    let fixes: Vec<Fix> = findings.iter().filter_map(|f| f.fix.clone()).collect();
    if fixes.is_empty() {
        return;
    }
    for fix in &fixes {
        repair(&mut files, fix);
    }
    let left = found(&files);
    let again: Vec<&Finding> = left.iter().filter(|f| f.fix.is_some()).collect();
    assert!(again.is_empty(), "{again:#?}");
}

#[track_caller]
fn check(damage: impl FnOnce(&mut Files), expected: &[&str]) {
    check_of(small::small(), damage, expected);
}

fn repair(files: &mut Files, fix: &Fix) {
    match fix {
        Fix::Attribute { node, path, value } => {
            let file = match node.is_root() {
                true => "zarr.json".to_owned(),
                false => format!("{}/zarr.json", node.as_str()),
            };
            let path: Vec<Value> = ["attributes"]
                .into_iter()
                .chain(path.iter().map(String::as_str))
                .map(|name| json!(name))
                .collect();
            let edit = match value {
                Some(value) => json!({"op": "set", "file": file, "path": path, "value": value}),
                None => json!({"op": "del", "file": file, "path": path}),
            };
            apply(files, &edit);
        }
        Fix::Cell {
            array,
            element,
            payload,
        } => {
            let index: Vec<String> = element.iter().map(ToString::to_string).collect();
            let file = format!("{}/c/{}", array.as_str(), index.join("/"));
            small::cell(files, &file, |own| own.clone_from(payload));
        }
    }
}

#[test]
fn every_rule_is_found_by_a_test() {
    let tests = [
        include_str!("cells/damaged.rs"),
        include_str!("cells/formulas.rs"),
        include_str!("cells/objects.rs"),
        include_str!("cells/older.rs"),
    ];
    let own = zvf::validation::rules::all()
        .map(|rule| rule.code)
        .filter(|code| code.starts_with("ZV-L3-0"))
        // What stops everything, and what is not delivered, is tested elsewhere.
        .filter(|code| !["ZV-L3-000", "ZV-L3-003"].contains(code));
    let missing: Vec<&str> = own
        .filter(|code| !tests.iter().any(|test| test.contains(code)))
        .collect();
    assert_eq!(missing, [""; 0]);
}
