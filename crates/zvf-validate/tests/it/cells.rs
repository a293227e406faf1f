//! Cells of a small store, damaged: each damage breaks exactly the rules that a test names.

mod damaged;
mod formulas;
mod hostile;
mod objects;
mod older;
mod small;
mod withheld;

use serde_json::{Value, json};
use zvf_testkit::{damage::apply, golden::Files};
use zvf_validate::{Finding, Fix, ValidateOptions, rules};

use crate::memory::report;

/// Validates a store and returns the findings of L3 that are not about links.
pub(crate) fn found(files: &Files) -> Vec<Finding> {
    let findings = report(files, &ValidateOptions::default()).findings;
    let own = |finding: &Finding| finding.rule.code.starts_with("ZV-L3-0");
    findings.into_iter().filter(own).collect()
}

/// Formats findings as their code, path and location.
pub(crate) fn lines(findings: &[Finding]) -> Vec<String> {
    let lines = findings.iter().map(|finding| {
        let location = finding.location.as_deref().unwrap_or("-");
        format!("{} {} {location}", finding.rule.code, finding.path)
    });
    lines.collect()
}

/// Damages a store, compares all findings with `expected`, applies their fixes, and checks that no
/// fixable finding is left.
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
    let fixable: Vec<&Finding> = left.iter().filter(|f| f.fix.is_some()).collect();
    assert!(fixable.is_empty(), "{fixable:#?}");
}

#[track_caller]
fn check(damage: impl FnOnce(&mut Files), expected: &[&str]) {
    check_of(small::small(), damage, expected);
}

fn repair(files: &mut Files, fix: &Fix) {
    match fix {
        Fix::Attribute { node, path, value } => {
            let file = if node.is_root() {
                "zarr.json".to_owned()
            } else {
                format!("{}/zarr.json", node.as_str())
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
fn every_rule_about_cells_has_a_test_here() {
    let tests = [
        include_str!("cells/damaged.rs"),
        include_str!("cells/formulas.rs"),
        include_str!("cells/objects.rs"),
        include_str!("cells/older.rs"),
    ];
    let own = rules::all()
        .map(|rule| rule.code)
        .filter(|code| code.starts_with("ZV-L3-0"))
        // Skipped depths and failed reads are tested in `undelivered.rs`.
        .filter(|code| !["ZV-L3-000", "ZV-L3-003"].contains(code));
    let missing: Vec<&str> = own
        .filter(|code| !tests.iter().any(|test| test.contains(code)))
        .collect();
    assert_eq!(missing, [""; 0]);
}
