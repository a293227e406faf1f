//! The damaged stores of `testdata/corpus`, and the rules that each of them breaks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::{
    damage::apply,
    golden::Files,
    golden::{Golden, testdata},
};

/// A recorded store, the edits that damage it, and the findings expected afterwards.
#[derive(Debug)]
pub struct Case {
    /// Unique name of the case.
    pub name: String,
    /// Name of the golden archive that holds the store.
    pub archive: String,
    /// Path of the store in the archive.
    pub store: String,
    /// Edits that damage the store, in order.
    pub edits: Vec<Json>,
    /// Codes of rules that must be reported.
    pub must: BTreeSet<String>,
    /// Codes of rules that must not be reported.
    pub must_not: BTreeSet<String>,
}

impl Case {
    /// Applies the edits of this case.
    ///
    /// # Panics
    ///
    /// Panics if an edit names a missing file or field.
    pub fn damage(&self, files: &mut Files) {
        for edit in &self.edits {
            apply(files, edit);
        }
    }
}

/// Returns every case of `damaged.json`. Cases recorded with the reference implementation take
/// their store and edits from the archive `zvf-09`.
///
/// # Panics
///
/// Panics if the file is malformed, names a case twice, or omits a recorded case.
pub fn cases() -> Vec<Case> {
    let golden = Golden::open("zvf-09");
    let recorded = golden.json("invalid_cases.json");
    let recorded: BTreeMap<String, &Json> = list(&recorded)
        .map(|case| (text(&case["name"]), case))
        .collect();
    let file = file("damaged.json");
    let mut names = BTreeSet::new();
    let cases: Vec<Case> = list(&file)
        .map(|entry| {
            let (name, archive, store, edits) = match entry.get("case") {
                Some(name) => {
                    let case = recorded[&text(name)];
                    let store = format!("{}/store.zarrvectors", text(&case["base"]));
                    (text(name), "zvf-09".to_owned(), store, &case["edits"])
                }
                None => {
                    let base = &entry["base"];
                    let (archive, store) = (text(&base["archive"]), text(&base["store"]));
                    (text(&entry["name"]), archive, store, &entry["edits"])
                }
            };
            assert!(
                names.insert(name.clone()),
                "the corpus has two cases {name}"
            );
            let codes = |field: &str| list(&entry[field]).map(text).collect();
            Case {
                name,
                archive,
                store,
                edits: list(edits).cloned().collect(),
                must: codes("must"),
                must_not: codes("must_not"),
            }
        })
        .collect();
    for name in recorded.keys() {
        assert!(
            names.contains(name),
            "the corpus lacks the recorded case {name}"
        );
    }
    cases
}

/// Returns a file of `testdata/corpus` as JSON.
///
/// # Panics
///
/// Panics if the file is missing or is not JSON.
pub fn file(name: &str) -> Json {
    let path = testdata().join("corpus").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().expect("a list in the corpus").iter()
}

fn text(json: &Json) -> String {
    json.as_str().expect("text in the corpus").to_owned()
}
