//! Stores of drafts of the format after 0.9.2: each is read in full or refused.

mod additive;
mod dense;
mod fields;
mod groups;

use serde_json::{Value as Json, json};
use zvf::{
    CreateOptions, Dataset, Design, Editor, ErrorKind, GeometryBuilder, LevelChoice, LevelId,
    OpenOptions, Query, ValidateOptions, validate,
};
use zvf_build::WritePlan;
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

/// Creates a store in memory and returns its files.
pub(crate) async fn created(geometry: GeometryBuilder, design: Design) -> Files {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let options = CreateOptions::new().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    files_of(&store).await
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
        assert!(error.kind() == ErrorKind::Unsupported, "{error:?}");
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
            assert!(error.kind() == ErrorKind::Damaged, "{error:?}");
            assert!(
                error.to_string().contains("required_capabilities"),
                "{error}"
            );
        }
    });
}

/// The stores of the archive `zvf-drafts` are without findings, and have the contents of
/// `expected.json`: those of a twin without the draft, or vertices and objects of each level.
#[test]
fn recorded_stores_of_drafts_have_their_contents() {
    block_on(async {
        let golden = Golden::open("zvf-drafts");
        let expected = golden.json("expected.json");
        let opened = async |name: &str| {
            let files = golden.store(name);
            assert_eq!(findings(&files).await, Vec::<String>::new(), "{name}");
            Dataset::open(in_memory(&files)).await.unwrap()
        };
        let mut count = 0;
        for (name, expected) in expected.as_object().unwrap() {
            let dataset = opened(name).await;
            if let Some(twin) = expected["twin"].as_str() {
                let twin = opened(twin).await;
                let result = twin.query(&Query::new()).await.unwrap();
                assert_eq!(dataset.query(&Query::new()).await.unwrap(), result);
                for object in &result.objects {
                    let query = Query::new().objects([*object]);
                    let own = twin.query(&query).await.unwrap();
                    assert_eq!(dataset.query(&query).await.unwrap(), own, "{name}");
                }
                count += 1;
            }
            for object in expected["more_objects"].as_array().into_iter().flatten() {
                let query = Query::new().objects([object.as_i64().unwrap()]);
                assert_eq!(dataset.query(&query).await.unwrap().positions.len(), 0);
            }
            for (own, prefix) in [(false, ""), (true, "own_")] {
                let of = |what: &str| expected[format!("{prefix}{what}")].as_array();
                let (vertices, objects) = (of("vertices"), of("objects"));
                let levels = vertices.or(objects).map_or(0, Vec::len);
                for (number, level) in (0..levels).zip(0..) {
                    let query = Query::new()
                        .level(LevelChoice::Number(LevelId::new(level)))
                        .own_level(own);
                    let result = dataset.query(&query).await.unwrap();
                    if let Some(vertices) = vertices {
                        assert_eq!(json!(result.positions.len()), vertices[number], "{name}");
                    }
                    if let Some(objects) = objects {
                        assert_eq!(json!(result.objects), objects[number], "{name}");
                    }
                    count += 1;
                }
            }
        }
        assert_eq!(count, 3 * 6 + 3);
    });
}
