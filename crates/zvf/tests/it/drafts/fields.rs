//! Levels that are being built, the claim about groups of links, and fields that are kept.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use zvf::{
    CreateOptions, Dataset, Design, Editor, Error, ErrorKind, Geometry, GeometryBuilder,
    GeometryKind, MigrateOptions, NumericColumn, OutOfBounds, PyramidOptions, Query,
    ValidateOptions, build_pyramid, numeric::Kind, repair, validate,
};
use zvf_build::WritePlan;
use zvf_catalog::CatalogError;
use zvf_store::Store;
use zvf_testkit::golden::Files;

use super::{change, files_of, in_memory, recorded, set_level, set_root};
use crate::block_on;

async fn created(kind: GeometryKind, geometry: GeometryBuilder) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![10.0; 3]);
    design.bounds = Some((vec![0.0; 3], vec![100.0; 3]));
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let options = CreateOptions::new().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

/// Removes the copy of the nodes, which a change by hand does not keep.
fn without_copy(files: &mut Files) {
    change(files, "zarr.json", |root| {
        root["attributes"]
            .as_object_mut()
            .unwrap()
            .remove("zvf_nodes");
    });
}

fn json(files: &Files, key: &str) -> Json {
    let (_, bytes) = files.iter().find(|(name, _)| name == key).unwrap();
    serde_json::from_slice(bytes).unwrap()
}

async fn codes(store: &Store) -> Vec<&'static str> {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings;
    findings.iter().map(|found| found.rule.code).collect()
}

/// Triangles, each in an object of its own, all in one chunk.
fn triangles(ids: &[i64]) -> GeometryBuilder {
    let mut rows = Vec::new();
    for id in ids {
        let at = f32::from(u16::try_from(*id).unwrap());
        rows.extend([at, 1.0, 1.0, at + 0.5, 1.0, 1.0, at, 2.0, 1.0]);
    }
    Geometry::builder(NumericColumn::float32(3, rows))
        .object_ids(ids.iter().flat_map(|id| [*id; 3]).collect())
        .links(3, (0..i64::try_from(ids.len()).unwrap() * 3).collect())
}

/// A level that is being built is not empty, wherever the field stands.
#[test]
fn an_unfinished_level_is_refused() {
    block_on(async {
        let beside = |node: &mut Json| {
            node["attributes"]["zarr_vectors_presence"] = json!("deferred");
        };
        let within = |node: &mut Json| {
            node["attributes"]["zarr_vectors_level"]["zarr_vectors_presence"] = json!("deferred");
        };
        let changes: [&dyn Fn(&mut Json); 2] = [&beside, &within];
        for place in changes {
            let mut files = recorded("points_2d_bins");
            change(&mut files, "0/zarr.json", place);
            for array in ["0/vertices/zarr.json", "0/vertex_fragments/zarr.json"] {
                change(&mut files, array, |node| {
                    let attributes = node["attributes"].as_object_mut().unwrap();
                    attributes.remove("nonempty_chunks");
                });
            }
            let store = in_memory(&files);
            let dataset = Dataset::open(store.clone()).await.unwrap();
            let is_unfinished = |error: Error| {
                let is = matches!(error.cause(), Some(CatalogError::Unfinished(_)));
                assert!(is && error.kind() == ErrorKind::Conflict, "{error}");
                assert!(error.to_string().starts_with("0: the level is being built"));
            };
            is_unfinished(dataset.query(&Query::new()).await.unwrap_err());
            is_unfinished(
                dataset
                    .query(&Query::new().keep_going(true))
                    .await
                    .unwrap_err(),
            );
            is_unfinished(dataset.count(&Query::new()).await.unwrap_err());
            is_unfinished(dataset.info().await.unwrap_err());
            is_unfinished(Editor::open(store.clone()).await.unwrap_err());
            let target = tempfile::tempdir()
                .unwrap()
                .path()
                .join("new.zv")
                .display()
                .to_string();
            let options = MigrateOptions::default();
            let migrated = zvf::migrate(store.clone(), &target, &options).await;
            is_unfinished(migrated.unwrap_err());
            assert!(codes(&store).await.contains(&"ZV-L2-074"));
        }
        let mut files = recorded("points_2d_bins");
        set_level(&mut files, 0, "zarr_vectors_presence", json!("later"));
        let error = Dataset::open(in_memory(&files)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    });
}

/// Without a list of chunks an array is not empty for any reader or writer.
#[test]
fn an_array_without_a_list_of_chunks_is_read_and_changed() {
    block_on(async {
        let mut files = recorded("points_2d_bins");
        let listed = Dataset::open(in_memory(&files)).await.unwrap();
        let expected = listed.query(&Query::new()).await.unwrap();
        change(&mut files, "0/vertices/zarr.json", |node| {
            let attributes = node["attributes"].as_object_mut().unwrap();
            attributes.remove("nonempty_chunks");
        });
        let store = in_memory(&files);
        let dataset = Dataset::open(store.clone()).await.unwrap();
        assert_eq!(dataset.query(&Query::new()).await.unwrap(), expected);
        let level = dataset.info().await.unwrap().levels.remove(0);
        assert_eq!(level.chunks, listed.info().await.unwrap().levels[0].chunks);
        let editor = Editor::open(store.clone()).await.unwrap();
        let point = Geometry::new(NumericColumn::float32(2, [1.0, 1.0]));
        editor.append(&point, OutOfBounds::Reject).await.unwrap();
        let changed = editor.dataset().await.unwrap();
        let found = changed.query(&Query::new()).await.unwrap();
        assert_eq!(found.positions.len(), expected.positions.len() + 1);
        // The list that the change writes has all chunks.
        let files = files_of(&store).await;
        let (_, vertices) = files
            .iter()
            .find(|(key, _)| key == "0/vertices/zarr.json")
            .unwrap();
        let vertices: serde_json::Value = serde_json::from_slice(vertices).unwrap();
        let list = vertices["attributes"]["nonempty_chunks"]
            .as_array()
            .unwrap();
        assert_eq!(list.len() as u64, level.chunks);
    });
}

#[test]
fn a_claim_about_groups_of_links_is_checked_and_removed_by_changes() {
    block_on(async {
        let claimed = async |ids: &[i64]| {
            let mut files = files_of(&created(GeometryKind::Mesh, triangles(ids)).await).await;
            without_copy(&mut files);
            set_level(&mut files, 0, "fragment_link_groups", json!(true));
            set_root(
                &mut files,
                "format_capabilities",
                json!(["fragment_link_groups"]),
            );
            files
        };
        // One object: the only group has the links of the only fragment.
        let healthy = claimed(&[0]).await;
        let store = in_memory(&healthy);
        assert_eq!(codes(&store).await, Vec::<&str>::new());
        // Two objects, but one group of links.
        let damaged = in_memory(&claimed(&[0, 3]).await);
        assert_eq!(codes(&damaged).await, ["ZV-L3-122"]);
        let result = Dataset::open(damaged.clone())
            .await
            .unwrap()
            .query(&Query::new().objects([3]))
            .await
            .unwrap();
        assert_eq!(result.positions.len(), 3);
        repair(damaged.clone(), &ValidateOptions::default())
            .await
            .unwrap();
        assert_eq!(codes(&damaged).await, Vec::<&str>::new());
        // A change of the level ends the claim.
        let editor = Editor::open(store.clone()).await.unwrap();
        let claim = async |store: &Store| {
            let level = json(&files_of(store).await, "0/zarr.json");
            level["attributes"]["zarr_vectors_level"]
                .get("fragment_link_groups")
                .cloned()
        };
        assert_eq!(claim(&store).await, Some(json!(true)));
        editor
            .append(&triangles(&[5]).build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        assert_eq!(claim(&store).await, None);
        assert_eq!(codes(&store).await, Vec::<&str>::new());
        // So does a migration.
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new.zv").display().to_string();
        let options = MigrateOptions::default();
        zvf::migrate(in_memory(&healthy), &target, &options)
            .await
            .unwrap();
        let migrated = Dataset::open(&*target).await.unwrap();
        assert_eq!(claim(migrated.store()).await, None);
        assert_eq!(codes(migrated.store()).await, Vec::<&str>::new());
    });
}

/// A store that requires the capability opens: its rows have the same meaning without the claim.
#[test]
fn groups_of_links_may_be_required() {
    block_on(async {
        let mut files = recorded("points_2d_bins");
        set_root(
            &mut files,
            "required_capabilities",
            json!(["fragment_link_groups"]),
        );
        Dataset::open(in_memory(&files)).await.unwrap();
    });
}

#[test]
fn declared_shards_and_the_id_of_the_world_survive_changes() {
    block_on(async {
        let points = |at: f32| Geometry::builder(NumericColumn::float32(3, [at, 1.0, 1.0]));
        let mut files = files_of(&created(GeometryKind::Points, points(1.0)).await).await;
        without_copy(&mut files);
        set_root(&mut files, "shard_shape", json!([2, 2, 1]));
        change(&mut files, "zarr.json", |root| {
            let scene = &mut root["attributes"]["ome"]["attributes"]["scene"];
            scene["coordinateSystems"][0]["id"] = json!("world-1");
        });
        let store = in_memory(&files);
        assert_eq!(codes(&store).await, Vec::<&str>::new());
        let dataset = Dataset::open(store.clone()).await.unwrap();
        assert_eq!(dataset.root().shard_shape, Some(vec![2, 2, 1]));
        let editor = Editor::open(store.clone()).await.unwrap();
        editor
            .append(&points(15.0).build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new.zv").display().to_string();
        zvf::migrate(store.clone(), &target, &MigrateOptions::default())
            .await
            .unwrap();
        let migrated = Dataset::open(&*target).await.unwrap();
        for store in [&store, migrated.store()] {
            let root = json(&files_of(store).await, "zarr.json");
            let attributes = &root["attributes"];
            assert_eq!(attributes["zarr_vectors"]["shard_shape"], json!([2, 2, 1]));
            let world = &attributes["ome"]["attributes"]["scene"]["coordinateSystems"][0];
            assert_eq!(world["id"], json!("world-1"));
        }
        // A new level follows the declaration, also if the finer level is not sharded.
        let mut levels = zvf::AutoLevels::default();
        levels.levels = Some(1);
        let options = PyramidOptions::new().levels(levels);
        build_pyramid(&store, &options).await.unwrap();
        let chunks = |node: &Json| node["chunk_grid"]["configuration"]["chunk_shape"].clone();
        let built = files_of(&store).await;
        let [fine, coarse] =
            ["0", "1"].map(|level| json(&built, &format!("{level}/vertices/zarr.json")));
        assert_eq!(
            (chunks(&fine), chunks(&coarse)),
            (json!([1, 1, 1]), json!([2, 2, 1]))
        );
        // Repairs of the axes keep the id.
        change(&mut files, "zarr.json", |root| {
            let scene = &mut root["attributes"]["ome"]["attributes"]["scene"];
            scene["coordinateSystems"][0]["axes"] = json!([]);
        });
        let store = in_memory(&files);
        repair(store.clone(), &ValidateOptions::default())
            .await
            .unwrap();
        let root = json(&files_of(&store).await, "zarr.json");
        let world = &root["attributes"]["ome"]["attributes"]["scene"]["coordinateSystems"][0];
        assert_eq!(
            (&world["id"], world["axes"].as_array().unwrap().len()),
            (&json!("world-1"), 3)
        );
        // One number counts for all axes; a wrong value is noted and ignored.
        for (value, expected) in [
            (json!(4), Some(vec![4; 3])),
            (json!(0), None),
            (json!([1, 2]), None),
            (json!("x"), None),
        ] {
            let mut files = files.clone();
            set_root(&mut files, "shard_shape", value);
            let dataset = Dataset::open(in_memory(&files)).await.unwrap();
            assert_eq!(dataset.root().shard_shape, expected);
            assert_eq!(dataset.root().notes.is_empty(), expected.is_some());
        }
    });
}

/// Arrays that are added to a store have the shards that its root declares; existing arrays keep
/// their shards.
#[test]
fn added_arrays_follow_the_declared_shards() {
    block_on(async {
        // Edges of a graph, each within a chunk.
        let edges = |from: u16, crossing: bool| {
            let step = if crossing { 6.0 } else { 1.0 };
            let at = |n: u16| {
                [
                    f32::from(from + n / 2) * 10.0 + 1.0 + f32::from(n % 2) * step,
                    1.0,
                    1.0,
                ]
            };
            let rows: Vec<f32> = (0..8).flat_map(at).collect();
            let mut geometry =
                Geometry::builder(NumericColumn::float32(3, rows)).links(2, (0..8).collect());
            if crossing {
                geometry.links.ends.extend([1, 2, 3, 4]);
            }
            geometry
        };
        let files = files_of(&created(GeometryKind::Graphs, edges(0, false)).await).await;
        let mut declared = files.clone();
        without_copy(&mut declared);
        set_root(&mut declared, "shard_shape", json!([3, 2, 1]));
        let (plain, store) = (in_memory(&files), in_memory(&declared));
        for store in [&plain, &store] {
            let spec = zvf::AttributeSpec::new("height", Kind::Float64);
            let of_each = Arc::new(|positions: &[f64]| {
                let rows = positions.chunks_exact(3);
                Ok(rows.flat_map(|row| row[0].to_le_bytes()).collect())
            });
            zvf::write_vertex_attribute(store.clone(), &spec, of_each)
                .await
                .unwrap();
            let editor = Editor::open(store.clone()).await.unwrap();
            let dataset = editor.dataset().await.unwrap();
            let rows = dataset
                .query(&Query::new().row_ids(true))
                .await
                .unwrap()
                .row_ids
                .unwrap();
            let class = NumericColumn::float32(1, (0..8_u16).map(f32::from));
            let class = [zvf::Column::new("class", class)];
            let options = zvf::TableOptions::default();
            editor
                .write_vertex_attributes(&rows, &class, &options)
                .await
                .unwrap();
            // The first links between chunks.
            let mut more = edges(4, true);
            more.vertex = vec![
                zvf::Column::new("class", NumericColumn::float32(1, [9.0; 8])),
                zvf::Column::new("height", NumericColumn::float64(1, [7.0; 8])),
            ];
            editor
                .append(&more.build().unwrap(), OutOfBounds::Reject)
                .await
                .unwrap();
            editor.compact().await.unwrap();
        }
        let all = async |store: &Store| {
            let dataset = Dataset::open(store.clone()).await.unwrap();
            dataset.query(&Query::new()).await.unwrap()
        };
        assert_eq!(all(&store).await, all(&plain).await);
        assert_eq!(codes(&store).await, Vec::<&str>::new());
        let now = files_of(&store).await;
        let chunks = |path: &str| {
            let node = json(&now, &format!("0/{path}/zarr.json"));
            node["chunk_grid"]["configuration"]["chunk_shape"].clone()
        };
        assert_eq!(chunks("vertices"), json!([1, 1, 1]));
        let crossing: Vec<String> = now
            .iter()
            .filter_map(|(key, _)| {
                let segment = key.strip_prefix("0/links/0/")?.strip_suffix("/zarr.json")?;
                segment.contains('+').then(|| format!("links/0/{segment}"))
            })
            .collect();
        assert!(!crossing.is_empty());
        let added = ["vertex_attributes/height", "vertex_attributes/class"];
        for path in added.into_iter().chain(crossing.iter().map(String::as_str)) {
            assert_eq!(chunks(path), json!([3, 2, 1]), "{path}");
        }
        // A shard of too many chunks is refused.
        set_root(&mut declared, "shard_shape", json!(1 << 20));
        let store = in_memory(&declared);
        let spec = zvf::AttributeSpec::new("height", Kind::Float64);
        let zeros = Arc::new(|positions: &[f64]| Ok(vec![0; positions.len() / 3 * 8]));
        let refused = zvf::write_vertex_attribute(store.clone(), &spec, zeros).await;
        assert!(refused.is_err());
    });
}
