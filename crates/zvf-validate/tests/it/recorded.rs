//! The recorded healthy stores: `testdata/corpus/known.json` explains their findings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf_testkit::{corpus, golden::Golden};
use zvf_validate::rules;

use crate::memory::{codes, lines};

/// Returns the folders of the stores in an archive.
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

/// Returns the explained codes of each store.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let file = corpus::file("known.json");
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in file.as_array().unwrap() {
        let texts = |name: &str| {
            let list = entry[name].as_array().unwrap().iter();
            list.map(|text| text.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for code in texts("codes") {
            assert!(rules::find(&code).is_some(), "{code} is not a rule");
            for store in texts("stores") {
                known.entry(store).or_default().insert(code.clone());
            }
        }
    }
    known
}

#[test]
fn recorded_stores_have_exactly_the_known_findings() {
    let mut known = known();
    let mut wrong = Vec::new();
    for archive in [
        "zvf-06",
        "zvf-07",
        "zvf-08",
        "zvf-09",
        "zvf-10",
        "zvf-examples",
        "zvf-padded",
    ] {
        let golden = Golden::open(archive);
        let names = stores(&golden);
        assert!(names.len() >= 9, "{archive}");
        for store in names {
            let name = format!("{archive}/{store}");
            let lines = lines(&golden.store(&store));
            let found = codes(&lines);
            let expected = known.remove(&name).unwrap_or_default();
            if found != expected {
                wrong.push(format!("{name}: {lines:#?}, known are {expected:?}"));
            }
        }
    }
    let absent: Vec<&String> = known.keys().collect();
    assert!(
        absent.is_empty(),
        "known.json names absent stores: {absent:?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_known_finding_has_a_reason() {
    let file = corpus::file("known.json");
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
        assert!(!entry["why"].as_str().unwrap().is_empty(), "{entry}");
    }
}
