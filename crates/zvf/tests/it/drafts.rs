//! Stores of drafts of the format after 0.9.2: each is read in full or refused.

mod additive;
mod dense;
mod fields;

use serde_json::{Value as Json, json};
use zvf::{Dataset, Editor, Error, ErrorKind, OpenOptions, ValidateOptions, validate};
use zvf_model::key::Key;
use zvf_store::{Read, Store};
use zvf_testkit::golden::{Files, Golden};

use crate::block_on;

/// Returns a recorded store of 0.9.
fn recorded(name: &str) -> Files {
    let golden = Golden::open("zvf-09");
    golden.store(&format!("{name}/store.zarrvectors"))
}

fn in_memory(files: &Files) -> Store {
    let options = OpenOptions::default().record_requests(true);
    options.from_memory(files.clone()).unwrap()
}

fn change(files: &mut Files, key: &str, change: impl FnOnce(&mut Json)) {
    let (_, bytes) = files.iter_mut().find(|(name, _)| name == key).unwrap();
    let mut json = serde_json::from_slice(bytes).unwrap();
    change(&mut json);
    *bytes = json.to_string().into_bytes();
}

/// Returns the codes and messages of validation.
async fn findings(files: &Files) -> Vec<String> {
    let report = validate(in_memory(files), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings;
    let line = |found: &zvf::Finding| format!("{} {}", found.rule.code, found.message);
    findings.iter().map(line).collect()
}

/// Returns all files of a store.
async fn files_of(store: &Store) -> Files {
    let listed = store.list_all(&Key::root(), usize::MAX).await.unwrap();
    let keys = listed.iter().map(|file| Key::parse(&file.name).unwrap());
    let reads: Vec<Read> = keys.map(Read::full).collect();
    let read = store.read(&reads).await.unwrap().into_iter();
    let named = listed.into_iter().zip(read);
    let files = named.map(|(file, bytes)| (file.name, bytes.unwrap().to_vec()));
    files.collect()
}

/// Sets a field of the block of a level.
fn set_level(files: &mut Files, level: u32, field: &str, value: Json) {
    change(files, &format!("{level}/zarr.json"), |node| {
        node["attributes"]["zarr_vectors_level"][field] = value;
    });
}

/// Sets a field of the block of the root.
fn set_root(files: &mut Files, field: &str, value: Json) {
    change(files, "zarr.json", |root| {
        root["attributes"]["zarr_vectors"][field] = value;
    });
}

#[test]
fn a_store_that_requires_an_unknown_capability_does_not_open() {
    let store_requiring = |value: Json| {
        let mut files = recorded("points_2d_bins");
        set_root(&mut files, "required_capabilities", value);
        in_memory(&files)
    };
    block_on(async {
        let known = store_requiring(json!(["fragment_index"]));
        Dataset::open(known).await.unwrap();
        let store = store_requiring(json!(["fragment_index", "from_the_future"]));
        let error = Dataset::open(store.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
        assert_eq!(
            error.to_string(),
            ".: attributes.zarr_vectors.required_capabilities: the store requires \
             from_the_future, which this version does not implement; use a newer version"
        );
        // Nothing but the root is read.
        assert_eq!(store.take_request_log().len(), 1);
        let error = Editor::open(store).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        for value in [
            json!("fragment_index"),
            json!([["fragment_index"]]),
            json!(1),
        ] {
            let error = Dataset::open(store_requiring(value)).await.unwrap_err();
            assert!(matches!(error, Error::Damaged(_)), "{error:?}");
            assert!(
                error.to_string().contains("required_capabilities"),
                "{error}"
            );
        }
    });
}
