//! `zvf validate` as a user runs it, and its output.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};
use zvf::{Depth, Finding, ValidationReport};
use zvf_cli::commands::validate::{
    StoreValidation, object, rules_as_json, rules_as_text, sarif, table,
};
use zvf_validate::{Fix, rules};

use crate::{text, unpack, zvf};

/// Returns a report with a note, two errors of one rule, one of them repairable, and further
/// findings.
fn report() -> ValidationReport {
    let finding = |code: &str, path: &str, location: &str, message: &str| {
        Finding::new(rules::find(code).unwrap(), path, message).location(location)
    };
    let capability = finding(
        "ZV-L2-023",
        "",
        "attributes.zarr_vectors.format_capabilities",
        "\"x\"",
    );
    let presence = finding(
        "ZV-L3-005",
        "0/vertex attributes/é",
        "nonempty_chunks[3]",
        "7 is not text",
    )
    .fix(Fix::Attribute {
        node: zvf_model::key::Key::parse("0/vertices").unwrap(),
        path: vec!["nonempty_chunks".to_owned()],
        value: None,
    });
    let checksum = finding("ZV-L3-002", "0/vertices", "chunk -1.0", "crc32c differs");
    let mut report = ValidationReport::default();
    report.findings = vec![capability, presence, checksum];
    report.unlisted = [("ZV-L3-002", 1200)].into();
    report.bytes = 123_456;
    report.cells = 12;
    report
}

fn validated(report: &ValidationReport) -> StoreValidation<'_> {
    StoreValidation {
        store: "tracts.zv",
        depth: Depth::Consistency,
        report,
        repaired: None,
    }
}

#[test]
fn text_output_is_a_table_by_rule_with_the_worst_first() {
    let expected = "\
tracts.zv

error  ZV-L3-002  a cell cannot be decoded
  0/vertices  chunk -1.0: crc32c differs
  and 1 200 more
  remedy: restore the file from a backup; otherwise the data of the chunk are lost

error  ZV-L3-005  a wrong list of chunks
  0/vertex attributes/é  nonempty_chunks[3]: 7 is not text
  repair: rebuilds the list from the stored cells, unless the grid of the array may be wrong

note  ZV-L2-023  an unknown capability
  .  attributes.zarr_vectors.format_capabilities: \"x\"
  remedy: no action is needed; readers ignore unknown capabilities

1 202 errors, 1 note; checked to L3: 12 cells, 123 456 bytes
1 of these can be repaired: zvf validate --repair tracts.zv";
    assert_eq!(table(validated(&report())), expected);
    let empty = ValidationReport::default();
    let expected = "tracts.zv\n\nnothing found; checked to L3: 0 cells, 0 bytes";
    assert_eq!(table(validated(&empty)), expected);
}

#[test]
fn json_output_is_one_object() {
    let found = object(validated(&report()));
    let listed = json!([
        {
            "code": "ZV-L2-023", "severity": "note", "level": 2, "path": "",
            "place": "attributes.zarr_vectors.format_capabilities", "message": "\"x\"",
            "fixable": false,
        },
        {
            "code": "ZV-L3-005", "severity": "error", "level": 3, "path": "0/vertex attributes/é",
            "place": "nonempty_chunks[3]", "message": "7 is not text", "fixable": true,
        },
        {
            "code": "ZV-L3-002", "severity": "error", "level": 3, "path": "0/vertices",
            "place": "chunk -1.0", "message": "crc32c differs", "fixable": false,
        },
    ]);
    let expected = json!({
        "store": "tracts.zv", "level": 3, "ok": false,
        "errors": 1202, "warnings": 0, "notes": 1,
        "findings": listed, "unlisted": {"ZV-L3-002": 1200},
        "cells": 12, "bytes": 123_456,
    });
    assert_eq!(found, expected);
}

#[test]
fn sarif_output_lists_rules_and_results() {
    let log = sarif(validated(&report()), "file:///data/tracts.zv/");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(
        run["originalUriBaseIds"]["STORE"]["uri"],
        "file:///data/tracts.zv/"
    );
    let declared = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(declared.len(), rules::all().count());
    let ids: BTreeSet<&str> = declared
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), declared.len());
    for rule in declared {
        assert!(
            rule["help"]["text"].as_str().unwrap().ends_with('.'),
            "{rule}"
        );
    }
    let results = run["results"].as_array().unwrap();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(declared[index]["id"], result["ruleId"]);
    }
    let place = |uri: &str, name: &str, kind: &str| {
        json!([{
            "physicalLocation": {"artifactLocation": {"uri": uri, "uriBaseId": "STORE"}},
            "logicalLocations": [{"fullyQualifiedName": name, "kind": kind}],
        }])
    };
    let capabilities = "attributes.zarr_vectors.format_capabilities";
    assert_eq!(results[0]["level"], "note");
    assert_eq!(
        results[0]["locations"],
        place("zarr.json", capabilities, "property")
    );
    let uri = "0/vertex%20attributes/%C3%A9/zarr.json";
    assert_eq!(
        results[1]["locations"],
        place(uri, "nonempty_chunks[3]", "property")
    );
    assert_eq!(results[1]["properties"], json!({"fixable": true}));
    assert_eq!(
        results[2]["locations"],
        place("0/vertices/", "chunk -1.0", "element")
    );
    assert_eq!(results[2]["message"]["text"], "crc32c differs");
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["informationUri"], "https://docs.rs/zvf-cli");
}

/// A file has no slash at its end, which is the mark of a folder.
#[test]
fn sarif_output_names_files_and_folders() {
    for (path, uri) in [
        ("0/vertex_fragments/c/1/1/1", "0/vertex_fragments/c/1/1/1"),
        ("0/vertex_fragments", "0/vertex_fragments/"),
        ("0/links/0/+1.0", "0/links/0/+1.0/"),
        ("0/link_attributes/c/0", "0/link_attributes/c/0/"),
        ("0/vertex_attributes/c/c/0", "0/vertex_attributes/c/c/0"),
        ("0/cross_chunk_links/0/junk", "0/cross_chunk_links/0/junk/"),
        ("", ""),
    ] {
        let mut found = report();
        found.findings = vec![Finding::new(rules::find("ZV-L3-002").unwrap(), path, "")];
        let log = sarif(validated(&found), "file:///data/tracts.zv/");
        let location = &log["runs"][0]["results"][0]["locations"][0];
        let found = &location["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(found, uri);
    }
}

/// Creates a store with a changed field in the root metadata.
fn damaged(folder: &Path, field: &str, value: Value) {
    unpack("zvf-09", "points_2d_bins/store.zarrvectors", folder);
    let file = folder.join("zarr.json");
    let mut root: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    root["attributes"]["zarr_vectors"][field] = value;
    fs::write(file, serde_json::to_vec(&root).unwrap()).unwrap();
}

#[test]
fn errors_exit_with_1_and_anything_else_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    damaged(folder.path(), "links_convention", json!("telepathy"));
    let output = zvf(&["validate", address, "--json"]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["ok"], false);
    let codes = found["findings"].as_array().unwrap().iter();
    assert!(
        codes
            .map(|finding| &finding["code"])
            .any(|code| code == "ZV-L2-010"),
        "{found}"
    );
    // The metadata alone has no errors.
    let output = zvf(&["validate", address, "--level", "1"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = format!("{address}\n\nnothing found; checked to L1: nodes\n");
    assert_eq!(text(&output.stdout), expected);
    // A warning is not an error.
    damaged(folder.path(), "geometry_types", json!(["blob"]));
    let output = zvf(&["validate", address, "--level", "2", "--limit", "0"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("and 1 more\n"));
    assert!(text(&output.stdout).ends_with("1 warning; checked to L2: nodes and their metadata\n"));
}

#[test]
fn addresses_that_cannot_be_validated_exit_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let output = zvf(&["validate", gone.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    for wrong in [
        &["validate"][..],
        &["validate", "x", "--level", "5"],
        &["validate", "x", "--json", "--sarif"],
    ] {
        assert_eq!(zvf(wrong).status.code(), Some(2), "{wrong:?}");
    }
    // An existing folder without a store can be validated.
    let output = zvf(&["validate", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("ZV-L1-001"));
}

#[test]
fn sarif_paths_are_relative_to_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a store.zv");
    unpack("zvf-07", "graph.zv", &store);
    let output = zvf(&["validate", store.to_str().unwrap(), "--sarif", "--quiet"]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let base = log["runs"][0]["originalUriBaseIds"]["STORE"]["uri"]
        .as_str()
        .unwrap();
    assert!(
        base.starts_with("file:///") && base.ends_with("/a%20store.zv/"),
        "{base}"
    );
}

#[test]
fn rules_are_listed() {
    let output = zvf(&["validate", "--rules"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).trim_end(), rules_as_text());
    assert_eq!(rules_as_text().lines().count(), rules::all().count());
    let first = "ZV-L1-001  error    no zarr.json at the root";
    assert_eq!(rules_as_text().lines().next(), Some(first));
    let output = zvf(&["validate", "--rules", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found, rules_as_json());
    let rule = json!({
        "code": "ZV-L1-001", "severity": "error", "level": 1, "title": "no zarr.json at the root",
        "meaning": "The root has no `zarr.json`: the address does not name a store, or names a folder inside or above one.",
        "remedy": "give the address of the folder that holds the store's zarr.json", "repairs": false,
    });
    assert_eq!(found["rules"][0], rule);
}

#[test]
fn repair_fixes_repairable_findings() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-09", "lines_mixed/store.zarrvectors", folder.path());
    let level = folder.path().join("0/zarr.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&level).unwrap()).unwrap();
    json["attributes"]["zarr_vectors_level"]["fragments_tile"] = json!(true);
    json["attributes"]["zarr_vectors_level"]["arrays_present"] = json!(["vertices", "dreams"]);
    fs::write(&level, json.to_string()).unwrap();
    let address = folder.path().to_str().unwrap();
    let before = zvf(&["validate", address, "--json"]);
    let before: Value = serde_json::from_str(text(&before.stdout)).unwrap();
    let codes = |report: &Value, list: &str| -> BTreeSet<String> {
        let findings = report[list].as_array().unwrap().iter();
        findings
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(codes(&before, "findings").contains("ZV-L1-020"), "{before}");
    assert_eq!(before.get("repaired"), None);
    let output = zvf(&["validate", "--repair", address, "--json"]);
    let after: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(after["transaction"], 1, "{after}");
    assert!(codes(&after, "repaired").contains("ZV-L1-020"), "{after}");
    assert!(!codes(&after, "findings").contains("ZV-L1-020"), "{after}");
    let again = zvf(&["validate", "--repair", address]);
    let again = text(&again.stdout);
    assert!(again.contains("nothing can be repaired"), "{again}");
}

/// Depth 2 does not compare a store with its inventory, so damage would be sealed.
#[test]
fn a_store_is_not_sealed_after_checks_of_metadata_only() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-09", "lines_mixed/store.zarrvectors", folder.path());
    let address = folder.path().to_str().unwrap();
    assert!(zvf(&["validate", address, "--seal"]).status.success());
    for level in ["1", "2"] {
        let output = zvf(&["validate", address, "--level", level, "--seal"]);
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains(&format!("omit --level {level}")), "{error}");
    }
    assert!(
        zvf(&["validate", address, "--level", "3", "--seal"])
            .status
            .success()
    );
}

#[test]
fn a_repair_says_what_to_resolve_first() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-09", "lines_mixed/store.zarrvectors", folder.path());
    let address = folder.path().to_str().unwrap();
    assert!(
        zvf(&["validate", address, "--repair", "--seal"])
            .status
            .success()
    );
    let level = folder.path().join("0/zarr.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&level).unwrap()).unwrap();
    json["attributes"]["zarr_vectors_level"]["arrays_present"] = json!(["vertices", "dreams"]);
    fs::write(&level, json.to_string()).unwrap();
    let output = zvf(&["validate", "--repair", address]);
    assert_eq!(output.status.code(), Some(1));
    let output = text(&output.stdout);
    let reason = "not repaired before ZV-L3-123 of 0/zarr.json";
    assert!(output.contains(reason), "{output}");
    let output = zvf(&["validate", "--repair", "--trust-files", "--seal", address]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    let warning = "1 file differed from the inventory";
    assert!(
        text(&output.stderr).contains(warning),
        "{}",
        text(&output.stderr)
    );
    assert!(zvf(&["validate", address]).status.success());
}
