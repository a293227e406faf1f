//! The recorded stores that are healthy: nothing is found in them but what is known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf::validation::{ValidateOptions, rules};
use zvf_testkit::golden::Golden;

use super::{codes, corpus_file, files, findings};

/// The recorded stores of an archive, by their folder.
fn stores(golden: &Golden) -> BTreeSet<String> {
    let roots = golden.files().filter_map(|(path, _)| {
        let folder = path.strip_suffix("/zarr.json")?;
        let (_, end) = folder.rsplit_once('.')?;
        ["zv", "zarrvectors"]
            .contains(&end)
            .then(|| folder.to_owned())
    });
    roots.collect()
}

/// Codes by store; of all stores where the name is `*`.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let file = corpus_file("known.json");
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in file.as_array().unwrap() {
        let texts = |name: &str| {
            let list = entry[name].as_array().unwrap().iter();
            list.map(|text| text.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert!(!entry["why"].as_str().unwrap().is_empty(), "{entry}");
        for code in texts("codes") {
            assert!(rules::find(&code).is_some(), "{code} is no rule");
            for store in texts("stores") {
                known.entry(store).or_default().insert(code.clone());
            }
        }
    }
    known
}

/// Every finding of every recorded store is known, and every known one is found.
#[test]
fn nothing_is_found_in_healthy_stores_but_what_is_known() {
    let mut known = known();
    let options = ValidateOptions::default();
    let mut wrong = Vec::new();
    for archive in ["zvf-06", "zvf-07", "zvf-08", "zvf-09", "zvf-examples"] {
        let golden = Golden::open(archive);
        let names = stores(&golden);
        assert!(names.len() >= 10, "{archive}");
        for store in names {
            let name = format!("{archive}/{store}");
            let lines = findings(&files(&golden, &store), &options);
            let found: BTreeSet<String> = codes(&lines).into_iter().collect();
            let expected = known.remove(&name).unwrap_or_default();
            if found != expected {
                wrong.push(format!("{name}: {lines:#?}, known are {expected:?}"));
            }
        }
    }
    let nowhere: Vec<&String> = known.keys().collect();
    assert!(nowhere.is_empty(), "no such stores: {nowhere:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A table of what is known has to be read to be believed.
#[test]
fn the_table_of_known_findings_says_why() {
    let file = corpus_file("known.json");
    for entry in file.as_array().unwrap() {
        let fields: BTreeSet<&str> = entry
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            fields,
            BTreeSet::from(["codes", "stores", "why"]),
            "{entry}"
        );
        assert!(matches!(entry["codes"], Json::Array(_)));
    }
}
