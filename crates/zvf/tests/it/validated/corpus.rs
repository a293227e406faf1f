//! The damaged stores of `testdata/corpus`: what has to be found in each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf::validation::{ValidateOptions, rules};
use zvf_testkit::{
    damage::{Files, apply},
    golden::Golden,
};

use super::{codes, corpus_file, files, findings};

/// Depths at which nothing may be found but what a case says.
const EXACT: [&str; 2] = ["ZV-L1-", "ZV-L2-"];
/// Rules that damage to a store cannot break: something was not delivered, the store
/// cannot be listed, memory is short.
const NOT_DAMAGE: [&str; 3] = ["ZV-L1-006", "ZV-L1-007", "ZV-L3-003"];

/// A damaged store, and what is to be found.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) archive: String,
    pub(super) store: String,
    pub(super) edits: Vec<Json>,
    must: BTreeSet<String>,
    must_not: BTreeSet<String>,
}

/// All cases; those that were recorded with the reference are looked up by name.
pub(super) fn cases() -> Vec<Case> {
    let golden = Golden::open("zvf-09");
    let recorded = golden.json("invalid_cases.json");
    let recorded: BTreeMap<&str, &Json> = recorded
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["name"].as_str().unwrap(), case))
        .collect();
    let file = corpus_file("damaged.json");
    let mut names = BTreeSet::new();
    let cases = file.as_array().unwrap().iter().map(|entry| {
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let set = |name: &str| {
            let list = entry[name].as_array().unwrap().iter();
            let codes: BTreeSet<String> = list.map(text).collect();
            for code in &codes {
                assert!(rules::find(code).is_some(), "{code} is no rule: {entry}");
            }
            codes
        };
        let (name, archive, store, edits) = match entry.get("case") {
            Some(name) => {
                let case = recorded[name.as_str().unwrap()];
                let store = format!("{}/store.zarrvectors", case["base"].as_str().unwrap());
                (text(name), "zvf-09".to_owned(), store, &case["edits"])
            }
            None => {
                let base = &entry["base"];
                let (archive, store) = (text(&base["archive"]), text(&base["store"]));
                (text(&entry["name"]), archive, store, &entry["edits"])
            }
        };
        assert!(names.insert(name.clone()), "{name} is there twice");
        Case {
            name,
            archive,
            store,
            edits: edits.as_array().unwrap().clone(),
            must: set("must"),
            must_not: set("must_not"),
        }
    });
    let cases = cases.collect();
    for name in recorded.keys() {
        assert!(names.contains(*name), "{name} is not in the corpus");
    }
    cases
}

fn found(files: &Files) -> BTreeSet<String> {
    codes(&findings(files, &ValidateOptions::default()))
        .into_iter()
        .collect()
}

#[test]
fn what_is_damaged_is_found_and_nothing_else() {
    let mut archives: BTreeMap<String, Golden> = BTreeMap::new();
    let mut healthy: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let golden = archives
            .entry(case.archive.clone())
            .or_insert_with(|| Golden::open(&case.archive));
        let mut files = files(golden, &case.store);
        let base = format!("{}/{}", case.archive, case.store);
        // What is found in the store as it was recorded is no matter of the damage.
        let before = healthy.entry(base).or_insert_with(|| found(&files));
        for edit in &case.edits {
            apply(&mut files, edit);
        }
        let lines = findings(&files, &ValidateOptions::default());
        let after: BTreeSet<String> = codes(&lines).into_iter().collect();
        let is_exact = |code: &&String| EXACT.iter().any(|depth| code.starts_with(depth));
        let missed: Vec<&String> = case.must.difference(&after).collect();
        let new = after.difference(before);
        let new = new.filter(|code| !case.must.contains(*code));
        let extra: Vec<&String> = new
            .filter(|code| is_exact(code) || case.must_not.contains(*code))
            .collect();
        if !missed.is_empty() || !extra.is_empty() {
            let name = &case.name;
            wrong.push(format!(
                "{name}: missed {missed:?}, extra {extra:?}: {lines:#?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_case() {
    let cases = cases();
    let must: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| case.must.iter().map(String::as_str))
        .collect();
    let bare =
        rules::all().filter(|rule| !must.contains(rule.code) && !NOT_DAMAGE.contains(&rule.code));
    let bare: Vec<String> = bare
        .map(|rule| format!("{} {}", rule.code, rule.title))
        .collect();
    assert!(bare.is_empty(), "no damaged store for {bare:#?}");
}
