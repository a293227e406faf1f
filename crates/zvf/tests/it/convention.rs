//! Stores of 0.10: what the engine writes is what the table of the specification makes of the same store of
//! 0.9, after a creation, changes, pyramids and migrations, and both give equal answers.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value as Json, json};
use zvf::{
    CreateOptions, Dataset, Editor, ErrorKind, MigrateOptions, NumericColumn, OpenOptions,
    OutOfBounds, Profile, Query, Store, ValidateOptions, build_pyramid, repair, validate,
};
use zvf_build::{GeometryKind, WritePlan};
use zvf_format::numeric::Kind;
use zvf_model::{generation::Generation, key::Key, zarr::Node};
use zvf_testkit::{
    golden::{Files, Golden},
    stores::{Random, Recipe, RecipeProfile, StoreKind, as_convention, make},
};

use crate::{
    block_on, golden,
    pyramids::random::wanted,
    validated::{findings, snapshot},
    written::random::{Case, case},
};

/// Nodes by key, in a form that only differs where their meaning does; and all other files.
type Comparable = (BTreeMap<String, Json>, BTreeMap<String, Vec<u8>>);

fn comparable(files: &Files) -> Comparable {
    let (mut nodes, mut others) = (BTreeMap::new(), BTreeMap::new());
    for (key, bytes) in files {
        if key.starts_with(".zvf/") {
            continue;
        }
        if !key.ends_with("zarr.json") {
            others.insert(key.clone(), bytes.clone());
            continue;
        }
        let mut node: Json = serde_json::from_slice(bytes).unwrap();
        let attributes = &mut node["attributes"];
        // Which members an entry has besides the identity is up to its writer.
        for entry in attributes["zarr_conventions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            *entry = json!({"uuid": entry["uuid"]});
        }
        if let Json::Object(attributes) = attributes {
            attributes.retain(|name, value| name != "zvf" && !value.is_null());
        }
        nodes.insert(key.clone(), node);
    }
    (nodes, others)
}

/// Compares a store of 0.10 with the same of 0.9.
#[track_caller]
fn same(old: Files, new: &Files, at: &str) {
    let (expected, cells) = comparable(&as_convention(old));
    let (nodes, found) = comparable(new);
    let keys = |all: &BTreeMap<String, Json>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&nodes), keys(&expected), "{at}");
    for (key, node) in &nodes {
        assert_eq!(node, &expected[key], "{at}: {key}");
    }
    assert!(found == cells, "{at}: cells");
}

/// Checks every node with a role as the specification has it, without the code of the engine.
fn check_nodes(files: &Files, at: &str) {
    for (key, bytes) in files {
        if !key.ends_with("zarr.json") || key.starts_with(".zvf/") {
            continue;
        }
        let node: Json = serde_json::from_slice(bytes).unwrap();
        let attributes = node["attributes"].as_object().unwrap();
        let is_declared = attributes.contains_key("zarr_conventions");
        let kind = attributes
            .get("zarr_vectors")
            .and_then(|block| block["kind"].as_str());
        assert_eq!(is_declared, kind.is_some(), "{at}: {key}");
        for old in ["zarr_vectors_level", "zv_array", "dtype", "nonempty_chunks"] {
            assert!(!attributes.contains_key(old), "{at}: {key} has {old}");
        }
        // A writer puts no key of a program inside the object.
        let members = attributes.get("zarr_vectors").and_then(Json::as_object);
        for name in members.into_iter().flat_map(|members| members.keys()) {
            assert!(!name.starts_with("zvf"), "{at}: {key} has {name}");
        }
        let path = key.trim_end_matches("zarr.json").trim_end_matches('/');
        match path {
            "" => assert_eq!(kind, Some("root"), "{at}"),
            path if path.parse::<u64>().is_ok() => assert_eq!(kind, Some("level"), "{at}: {path}"),
            _ => {}
        }
    }
}

async fn created(case: &Case) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = OpenOptions::default().from_memory(none).unwrap();
    let geometry = case.geometry.clone().build().unwrap();
    let plan = WritePlan::new(geometry, case.design.clone()).unwrap();
    let options = CreateOptions::new().node_copy(false).seal(false);
    zvf::create_from_plan(store.clone(), plan, &options)
        .await
        .unwrap();
    store
}

/// Returns all rows of a store, and its links.
async fn answers(store: &Store) -> String {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let mut answers = Vec::new();
    for level in dataset.levels() {
        let query = Query::new()
            .level(zvf::LevelChoice::Number(*level))
            .owners(true)
            .row_ids(level.number() == 0);
        // Damage is the same, too, except for the places of attributes.
        let found = dataset.query(&query).await.map_err(|error| error.kind());
        let counts = dataset.count(&query).await.map_err(|error| error.kind());
        answers.push(format!("{found:?} {counts:?}"));
    }
    answers.join("\n")
}

/// Runs a change on the store of each generation.
macro_rules! both {
    ($stores:ident, $store:ident => $change:expr) => {
        for $store in &$stores {
            $change;
        }
    };
}

async fn compare(stores: &[Store; 2], at: &str) {
    let [old, new] = stores;
    let (before, after) = (snapshot(old).await, snapshot(new).await);
    check_nodes(&after, at);
    same(before, &after, at);
    assert_eq!(answers(old).await, answers(new).await, "{at}");
    let options = ValidateOptions::default();
    let report = |store: &Store| validate(store.clone(), &options);
    let lines = |report: zvf::ValidationReport| -> Vec<String> {
        let findings = report.findings.into_iter();
        findings
            .map(|found| format!("{} {}", found.rule.code, found.path))
            .collect()
    };
    let expected = lines(Box::pin(report(old)).await.unwrap());
    assert_eq!(
        lines(Box::pin(report(new)).await.unwrap()),
        expected,
        "{at}"
    );
}

#[test]
fn creations_and_changes_are_those_of_0_9_in_another_dialect() {
    for kind in GeometryKind::ALL {
        for seed in 0..6 {
            let at = format!("{kind} {seed}");
            block_on(async {
                let mut old = case(seed, kind, Profile::V09);
                let new = case(seed, kind, Profile::V10);
                let stores = [created(&old).await, created(&new).await];
                compare(&stores, &format!("{at} created")).await;
                let mut random = Random::new(seed);
                let more = old.more(&mut random, 20, 1000).build().unwrap();
                let mut appended = Vec::new();
                both!(stores, store => {
                    let editor = Editor::open(store.clone()).await.unwrap();
                    let change = editor.append(&more, OutOfBounds::Expand).await;
                    appended.push(change.map(drop).map_err(|error| error.to_string()));
                });
                assert_eq!(appended[0], appended[1], "{at}");
                compare(&stores, &format!("{at} appended")).await;
                let ids = more.owners().ids().unwrap_or_default().to_vec();
                if let (Some(id), Ok(())) = (ids.first(), &appended[0]) {
                    both!(stores, store => {
                        let editor = Editor::open(store.clone()).await.unwrap();
                        editor.remove(&[*id]).await.unwrap();
                        editor.compact().await.unwrap();
                    });
                    compare(&stores, &format!("{at} removed")).await;
                }
                let spec = zvf::AttributeSpec::new("height", Kind::Float64);
                let axes = old.geometry.axes();
                both!(stores, store => {
                    let of_each = Arc::new(move |positions: &[f64]| {
                        let rows = positions.chunks_exact(axes);
                        Ok(rows.flat_map(|row| row[0].to_le_bytes()).collect())
                    });
                    zvf::write_vertex_attribute(store.clone(), &spec, of_each).await.unwrap();
                });
                compare(&stores, &format!("{at} sampled")).await;
            });
        }
    }
}

#[test]
fn pyramids_are_those_of_0_9_in_another_dialect() {
    for kind in GeometryKind::ALL {
        for seed in [2, 3] {
            block_on(async {
                let mut stores = Vec::new();
                for profile in [Profile::V09, Profile::V10] {
                    let wanted = wanted(seed, kind, profile).await;
                    build_pyramid(&wanted.store, &wanted.options).await.unwrap();
                    // The copy of the nodes is of one dialect.
                    let mut files = snapshot(&wanted.store).await;
                    without_copy(&mut files);
                    stores.push(OpenOptions::default().from_memory(files).unwrap());
                }
                let stores: [Store; 2] = stores.try_into().unwrap();
                compare(&stores, &format!("{kind} {seed}")).await;
            });
        }
    }
}

fn without_copy(files: &mut Files) {
    for (key, bytes) in files {
        if key == "zarr.json" {
            let mut root: Json = serde_json::from_slice(bytes).unwrap();
            let attributes = root["attributes"].as_object_mut().unwrap();
            attributes.retain(|name, _| !name.starts_with("zvf"));
            *bytes = root.to_string().into_bytes();
        }
    }
}

#[test]
fn recorded_stores_of_0_9_are_read_alike_as_0_10() {
    let archive = Golden::open("zvf-09");
    for (name, _) in golden::stores(&archive) {
        let files = archive.store(&name);
        block_on(async {
            let opened = |files: Files| OpenOptions::default().from_memory(files).unwrap();
            let new = opened(as_convention(files.clone()));
            let dataset = Dataset::open(new.clone()).await.unwrap();
            assert_eq!(dataset.detection().generation, Generation::V0_10, "{name}");
            assert_eq!(answers(&new).await, answers(&opened(files)).await, "{name}");
        });
    }
}

#[test]
fn stores_are_migrated_in_place_in_one_transaction() {
    let in_place = |store: Store, profile| async move {
        let mut options = MigrateOptions::new(profile).overwrite(true);
        options.node_copy = false;
        options.seal = false;
        zvf::migrate(store.clone(), store, &options).await.unwrap()
    };
    for kind in StoreKind::ALL {
        let recipe = Recipe {
            seed: 5,
            kind,
            ..Recipe::default()
        };
        let files = make(&recipe.clone().possible()).files;
        block_on(async {
            let store = OpenOptions::default().from_memory(files).unwrap();
            // A migration makes the links of skeletons undirected.
            in_place(store.clone(), Profile::V09).await;
            let expected = answers(&store).await;
            let report = in_place(store.clone(), Profile::V10).await;
            assert_eq!((report.lost, report.from), (vec![], Generation::V0_9));
            check_nodes(&snapshot(&store).await, kind.geometry_type());
            assert_eq!(answers(&store).await, expected, "{kind:?}");
            let report = in_place(store.clone(), Profile::V09).await;
            assert_eq!((report.lost, report.from), (vec![], Generation::V0_10));
            let dataset = Dataset::open(store.clone()).await.unwrap();
            assert_eq!(dataset.layout().profile(), "0.9");
            assert_eq!(answers(&store).await, expected, "{kind:?}");
            for (key, bytes) in snapshot(&store).await {
                let is_free = !String::from_utf8_lossy(&bytes).contains("zarr_conventions");
                assert!(is_free, "{key}");
            }
        });
    }
}

/// Changes the attributes of a node.
fn edit(files: &mut Files, path: &str, change: impl Fn(&mut Json)) {
    let (_, bytes) = files.iter_mut().find(|(key, _)| key == path).unwrap();
    let mut node: Json = serde_json::from_slice(bytes).unwrap();
    change(&mut node["attributes"]);
    *bytes = node.to_string().into_bytes();
}

#[test]
fn chunks_that_are_not_listed_are_taken_from_the_store() {
    for profile in [RecipeProfile::V09, RecipeProfile::V10] {
        for kind in StoreKind::ALL {
            for cells in zvf_testkit::stores::Cells::ALL {
                let recipe = Recipe {
                    seed: 11,
                    kind,
                    profile,
                    cells,
                    ..Recipe::default()
                };
                let files = make(&recipe.clone().possible()).files;
                let mut unlisted = files.clone();
                for (key, bytes) in &mut unlisted {
                    if key.ends_with("zarr.json") {
                        let mut node: Json = serde_json::from_slice(bytes).unwrap();
                        let attributes = &mut node["attributes"];
                        for block in ["/zarr_vectors", ""] {
                            if let Some(Json::Object(members)) = attributes.pointer_mut(block) {
                                members.remove("nonempty_chunks");
                            }
                        }
                        *bytes = node.to_string().into_bytes();
                    }
                }
                let at = format!("{recipe:?}");
                if profile == RecipeProfile::V10 {
                    // Validation reads the same cells with a list and without.
                    let options = ValidateOptions::default();
                    let mut found = findings(&unlisted, &options);
                    found.retain(|line| !line.starts_with("ZV-L2-076"));
                    assert_eq!(found, findings(&files, &options), "{at}");
                    let (key, cell) = unlisted
                        .iter_mut()
                        .find(|(key, _)| key.contains("/vertices/c/"))
                        .unwrap();
                    let key = key.clone();
                    let kept = core::mem::take(cell);
                    cell.extend(vec![0xff; kept.len()]);
                    let damage = findings(&unlisted, &options);
                    let is_found = damage.iter().any(|line| line.contains("0/vertices"));
                    assert!(is_found, "{at}: {key}: {damage:#?}");
                    unlisted.iter_mut().find(|(one, _)| *one == key).unwrap().1 = kept;
                }
                block_on(async {
                    let opened = |files: Files| OpenOptions::default().from_memory(files).unwrap();
                    let (listed, store) = (opened(files), opened(unlisted));
                    assert_eq!(answers(&store).await, answers(&listed).await, "{at}");
                    let info = |store: Store| async move {
                        Dataset::open(store).await.unwrap().info().await.unwrap()
                    };
                    let (found, expected) = (info(store.clone()).await, info(listed).await);
                    for (found, expected) in found.levels.iter().zip(&expected.levels) {
                        // The nodes are shorter.
                        assert!(found.bytes < expected.bytes, "{at}");
                        let counts = |level: &zvf::LevelInfo| {
                            (level.vertices, level.chunks, level.objects, level.links)
                        };
                        assert_eq!(counts(found), counts(expected), "{at}");
                    }
                });
            }
        }
    }
}

#[test]
fn an_undeclared_convention_is_found_and_repaired() {
    let mut files = make(&Recipe {
        profile: RecipeProfile::V10,
        ..Recipe::default()
    })
    .files;
    let complete = files.clone();
    for path in ["zarr.json", "0/zarr.json", "0/vertices/zarr.json"] {
        edit(&mut files, path, |attributes| {
            attributes
                .as_object_mut()
                .unwrap()
                .remove("zarr_conventions");
        });
    }
    let options = ValidateOptions::default();
    let found = findings(&files, &options);
    let of_conventions = found.iter().filter(|line| line.starts_with("ZV-L2-075"));
    assert_eq!(of_conventions.count(), 3, "{found:#?}");
    block_on(async {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let report = repair(store.clone(), &ValidateOptions::default())
            .await
            .unwrap();
        assert!(report.left.is_ok(), "{:?}", report.left);
        same_conventions(&snapshot(&store).await, &complete);
    });
}

fn same_conventions(found: &Files, expected: &Files) {
    let conventions = |files: &Files| {
        let nodes = comparable(files).0.into_iter();
        let lists = nodes.map(|(key, node)| (key, node["attributes"]["zarr_conventions"].clone()));
        lists.collect::<Vec<_>>()
    };
    assert_eq!(conventions(found), conventions(expected));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let made = make(&Recipe {
        kind: StoreKind::Polylines,
        profile: RecipeProfile::V10,
        ..Recipe::default()
    })
    .files;
    let refused_as = |kind: ErrorKind, path: &str, change: &dyn Fn(&mut Json)| {
        let mut files = made.clone();
        let (_, bytes) = files.iter_mut().find(|(key, _)| key == path).unwrap();
        let mut node: Json = serde_json::from_slice(bytes).unwrap();
        change(&mut node);
        *bytes = node.to_string().into_bytes();
        let report = findings(&files, &ValidateOptions::default());
        assert!(!report.is_empty(), "{path}");
        block_on(async {
            let options = OpenOptions::default().record_requests(true);
            let store = options.from_memory(files).unwrap();
            let found = match Dataset::open(store.clone()).await {
                Ok(dataset) => dataset.query(&Query::new()).await.map(drop),
                Err(error) => Err(error),
            };
            let error = found.unwrap_err();
            for read in store.take_request_log() {
                assert!(
                    !read.key.as_str().contains("/c/"),
                    "{read:?}: a cell is read"
                );
            }
            assert_eq!(error.kind(), kind, "{error:?}");
            zvf_model::error_chain::error_chain(&error)
        })
    };
    let refused =
        |path: &str, change: &dyn Fn(&mut Json)| refused_as(ErrorKind::Unsupported, path, change);
    let octree = refused("0/zarr.json", &|node| {
        node["attributes"]["zarr_vectors"]["octree_chunks"] = json!({"max_depth": 2});
    });
    assert!(octree.contains("leaves of octrees"), "{octree}");
    let capability = refused("zarr.json", &|node| {
        node["attributes"]["zarr_vectors"]["required_capabilities"] = json!(["octree_chunks"]);
    });
    assert!(capability.contains("octree_chunks"), "{capability}");
    let codec = refused("0/vertices/zarr.json", &|node| {
        node["codecs"] = json!([{"name": "octree_sharding", "configuration": {}}]);
    });
    assert!(codec.contains("octree_sharding"), "{codec}");
    let convention = refused("zarr.json", &|node| {
        let entry = json!({"name": "quantum", "uuid": "7", "must_understand": true});
        let list = node["attributes"]["zarr_conventions"].as_array_mut();
        list.unwrap().push(entry);
    });
    assert!(convention.contains("quantum"), "{convention}");
    let layout = refused_as(ErrorKind::Damaged, "0/object_index/zarr.json", &|node| {
        node["attributes"]["zarr_vectors"]["layout"] = json!("vlen_manifests_v3");
    });
    assert!(layout.contains("vlen_manifests_v3"), "{layout}");
    let blocks = refused("0/object_index/zarr.json", &|node| {
        let block = &mut node["attributes"]["zarr_vectors"];
        block["layout"] = json!("dense_manifests_v1");
        block["manifest_block_dtype"] = json!("uint16");
    });
    assert!(blocks.contains("uint16"), "{blocks}");
    let version = refused("zarr.json", &|node| {
        node["attributes"]["zarr_vectors"]["zv_version"] = json!("0.11.0");
    });
    assert!(version.contains("0.11.0"), "{version}");
}

#[test]
fn a_store_without_ome_has_a_warning() {
    block_on(async {
        let store = created(&case(1, GeometryKind::Points, Profile::V10)).await;
        let mut files = snapshot(&store).await;
        edit(&mut files, "zarr.json", |attributes| {
            attributes.as_object_mut().unwrap().remove("ome");
        });
        let store = OpenOptions::default().from_memory(files).unwrap();
        let report = validate(store, &ValidateOptions::default()).await.unwrap();
        let codes: Vec<&str> = report
            .findings
            .iter()
            .map(|found| found.rule.code)
            .collect();
        assert_eq!(codes, ["ZV-L2-034"]);
    });
}

#[test]
fn the_reserved_token_is_not_written() {
    for (from, to) in [(Profile::V09, Profile::V10), (Profile::V10, Profile::V10)] {
        block_on(async {
            let source = created(&case(1, GeometryKind::Points, from)).await;
            let mut files = snapshot(&source).await;
            edit(&mut files, "zarr.json", |attributes| {
                for name in ["format_capabilities", "required_capabilities"] {
                    attributes["zarr_vectors"][name] = json!(["fragment_index"]);
                }
            });
            let store = OpenOptions::default().from_memory(files).unwrap();
            let none: [(&str, &[u8]); 0] = [];
            let target = OpenOptions::default().from_memory(none).unwrap();
            let options = MigrateOptions::new(to);
            zvf::migrate(store, target.clone(), &options).await.unwrap();
            let root = &snapshot(&target).await[0];
            let text = String::from_utf8_lossy(&root.1);
            assert!(!text.contains("\"fragment_index\""), "{text}");
        });
    }
}

#[test]
fn parsed_nodes_are_written_as_they_were() {
    for kind in StoreKind::ALL {
        let recipe = Recipe {
            kind,
            profile: RecipeProfile::V10,
            ..Recipe::default()
        };
        for (key, bytes) in make(&recipe.possible()).files {
            if key.ends_with("zarr.json") {
                let json: Json = serde_json::from_slice(&bytes).unwrap();
                let node = Node::parse(&Key::parse(&key).unwrap(), &bytes).unwrap();
                assert_eq!(node.to_json(), json, "{key}");
            }
        }
    }
}

#[test]
fn appended_positions_are_found_by_a_box() {
    block_on(async {
        let recipe = Recipe {
            profile: RecipeProfile::V10,
            attributes: false,
            ..Recipe::default()
        };
        let files = make(&recipe).files;
        let store = OpenOptions::default().from_memory(files).unwrap();
        let points = zvf::Geometry::new(NumericColumn::float32(3, [1.0, 2.0, 3.0]));
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.append(&points, OutOfBounds::Expand).await.unwrap();
        let region = zvf::Bbox::parse("1,2,3,1,2,3").unwrap();
        let dataset = Dataset::open(store).await.unwrap();
        let found = dataset.query(&Query::new().region(region)).await.unwrap();
        assert!(!found.positions.is_empty());
    });
}
