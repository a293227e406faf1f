//! Known ways in which writers lose data, one test each: everything written and not removed is
//! still stored. Those of killed or concurrent writers are in `killed`.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use zvf::{CreateOptions, Dataset, Editor, ErrorKind, ManifestForm, Query, Store};
use zvf_build::{
    BuildError, Column, ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OutOfBounds, VertexOwners, WritePlan, edit::EditError,
};
use zvf_format::numeric::Kind;
use zvf_model::key::Key;
use zvf_store::Read;
use zvf_store::{CommitError, CreateError};

use crate::block_on;

fn memory() -> Store {
    let none: [(&str, &[u8]); 0] = [];
    Store::from_memory(none).unwrap()
}

async fn store(geometry: GeometryBuilder, design: Design) -> Store {
    let store = memory();
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let options = CreateOptions::new().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

async fn read(store: &Store, query: &Query) -> zvf::QueryResult {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.query(query).await.unwrap()
}

fn design(kind: GeometryKind) -> Design {
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![10.0; 3]);
    design.bounds = Some((vec![0.0; 3], vec![100.0; 3]));
    design
}

fn points(count: usize) -> GeometryBuilder {
    let values = (0..count * 3).map(|at| (at * 7 % 100) as f32);
    Geometry::builder(NumericColumn::float32(3, values))
}

/// Returns streamlines of twenty vertices through two chunks.
fn streamlines(count: usize) -> GeometryBuilder {
    let values =
        (0..count).flat_map(|path| (0..20).flat_map(move |at| [at as f32, path as f32, 1.0]));
    let mut geometry = Geometry::builder(NumericColumn::float32(3, values)).paths(
        (0..=count as u64).map(|part| part * 20).collect(),
        (0..count as i64).collect::<Vec<_>>(),
    );
    let score = NumericColumn::float64(1, (0..count).map(|path| path as f64 / 2.0));
    geometry
        .object
        .push(attribute("score", ColumnValues::Numeric(score)));
    geometry
}

fn attribute(name: &str, values: ColumnValues) -> Column {
    Column::new(name.to_owned(), values)
}

const RAISE: OutOfBounds = OutOfBounds::Reject;

#[test]
fn w1_append_keeps_existing_data() {
    block_on(async {
        let store = store(points(1000), design(GeometryKind::Points)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor
            .append(&points(500).build().unwrap(), RAISE)
            .await
            .unwrap();
        assert_eq!(read(&store, &Query::new()).await.positions.len(), 1500);
    });
    block_on(async {
        let store = store(streamlines(30), design(GeometryKind::Streamlines)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let offsets = (0..=5).map(|part| part * 20).collect();
        let more = streamlines(5).paths(offsets, None);
        editor.append(&more.build().unwrap(), RAISE).await.unwrap();
        let result = read(&store, &Query::new()).await;
        assert_eq!(result.parts.unwrap().objects, (0..35).collect::<Vec<i64>>());
    });
}

/// Returns object 3 with its fifth vertex moved.
fn moved() -> GeometryBuilder {
    let mut geometry = streamlines(4);
    let first = 3 * 20 * 12;
    geometry.positions.bytes.drain(..first);
    geometry.positions.bytes[5 * 12 + 8..6 * 12].copy_from_slice(&7f32.to_le_bytes());
    geometry = geometry.paths(vec![0, 20], vec![3]);
    geometry.object.clear();
    geometry
}

#[test]
fn w2_moving_a_vertex_keeps_the_other_vertices() {
    block_on(async {
        let store = store(streamlines(10), design(GeometryKind::Streamlines)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor
            .replace(&moved().build().unwrap(), RAISE)
            .await
            .unwrap();
        let result = read(&store, &Query::new().objects([3])).await;
        assert_eq!(result.positions.bytes, moved().positions.bytes);
        assert_eq!(result.positions.len(), 20);
    });
}

#[test]
fn w3_replaced_objects_keep_their_ids() {
    block_on(async {
        let store = store(streamlines(10), design(GeometryKind::Streamlines)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let changed = editor
            .replace(&moved().build().unwrap(), RAISE)
            .await
            .unwrap();
        assert_eq!((changed.added, changed.removed), (20, 20));
        assert_eq!(changed.objects, [3]);
        let removed = editor.remove(&[9]).await.unwrap();
        assert_eq!(removed.objects, [9]);
        let result = read(&store, &Query::new()).await;
        assert_eq!(result.objects, (0..9).collect::<Vec<i64>>());
        assert_eq!(result.positions.len(), 180);
        // The object keeps its attributes.
        let ColumnValues::Numeric(scores) = &result.object[0].values else {
            panic!("scores are numbers")
        };
        assert_eq!(scores.bytes[3 * 8..4 * 8], 1.5f64.to_le_bytes());
    });
}

#[test]
fn w4_a_removed_object_is_neither_returned_nor_counted() {
    block_on(async {
        let store = store(streamlines(10), design(GeometryKind::Streamlines)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[4]).await.unwrap();
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let absent = dataset.query(&Query::new().objects([4])).await;
        assert!(absent.is_err(), "{absent:?}");
        let info = dataset.info().await.unwrap();
        assert_eq!(
            (info.levels[0].vertices, info.levels[0].objects),
            (Some(180), Some(9))
        );
        assert_eq!(read(&store, &Query::new()).await.positions.len(), 180);
        let again = editor.remove(&[4]).await;
        assert!(
            matches!(&again, Err(error) if matches!(error.cause(), Some(EditError::UnknownObject(4))))
        );
    });
}

#[test]
fn w5_compacting_keeps_the_members_of_groups() {
    block_on(async {
        let mut geometry = streamlines(10);
        geometry.groups.insert(0, vec![4, 5]);
        let store = store(geometry, design(GeometryKind::Streamlines)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[0, 2]).await.unwrap();
        let before = read(&store, &Query::new().groups([0])).await;
        editor.compact().await.unwrap();
        let after = read(&store, &Query::new().groups([0])).await;
        assert_eq!(after.objects, [4, 5]);
        assert_eq!(before.positions, after.positions);
        assert_eq!(before.object, after.object);
    });
}

#[test]
fn w6_positions_are_stored_in_the_declared_type() {
    let check = |positions: NumericColumn, dtype: Option<Kind>| {
        block_on(async {
            let mut design = Design::new(GeometryKind::Points);
            design.dtype = dtype;
            let kind = dtype.unwrap_or(positions.kind);
            let store = store(Geometry::builder(positions.clone()), design).await;
            let result = read(&store, &Query::new()).await;
            assert_eq!(result.positions.kind, kind);
            result.positions.bytes
        })
    };
    let precise = NumericColumn::float64(1, [5.123_456_789_012]);
    assert_eq!(check(precise.clone(), None), precise.bytes);
    let mut whole = NumericColumn::new(Kind::Int32, 1);
    whole.bytes = 16_777_217i32.to_le_bytes().to_vec();
    assert_eq!(check(whole.clone(), None), whole.bytes);
    let narrow = check(precise, Some(Kind::Float32));
    assert_eq!(narrow, 5.123_457f32.to_le_bytes());
}

/// Returns the same store with replaced text in a node.
async fn with_text(store: &Store, node: &str, from: &str, to: &str) -> Store {
    let key = Key::parse(node).unwrap();
    let bytes = store
        .read_one(Read::full(key.clone()))
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains(from), "{text}");
    let bytes = Bytes::from(text.replace(from, to));
    store.put_many(vec![(key, bytes)]).await.unwrap();
    store.clone()
}

#[test]
fn w7_unreadable_data_is_not_written() {
    block_on(async {
        let store = store(points(10), design(GeometryKind::Points)).await;
        let draco = with_text(&store, "0/vertices/zarr.json", "\"raw\"", "\"draco\"").await;
        let editor = Editor::open(draco).await.unwrap();
        let refused = editor.append(&points(5).build().unwrap(), RAISE).await;
        assert!(
            matches!(&refused, Err(error) if matches!(error.cause(), Some(EditError::Unsupported(_))))
        );
    });
}

#[test]
fn w8_a_damaged_store_is_not_edited() {
    block_on(async {
        let store = store(streamlines(10), design(GeometryKind::Streamlines)).await;
        let cell = Key::parse("0/vertex_fragments/c/0/0/0").unwrap();
        let whole = store
            .read_one(Read::full(cell.clone()))
            .await
            .unwrap()
            .unwrap();
        for damaged in [
            None,
            Some(whole.slice(..whole.len() / 2)),
            Some(Bytes::new()),
        ] {
            match damaged {
                None => store.delete_many(vec![cell.clone()]).await.unwrap(),
                Some(bytes) => store.put_many(vec![(cell.clone(), bytes)]).await.unwrap(),
            }
            let editor = Editor::open(store.clone()).await.unwrap();
            let writes = store.activity().writes;
            assert!(editor.remove(&[3]).await.is_err());
            assert!(editor.compact().await.is_err());
            assert_eq!(store.activity().writes, writes);
        }
    });
}

#[test]
fn w8_objects_whose_manifests_are_missing_are_not_emptied() {
    for form in [ManifestForm::default(), ManifestForm::Dense] {
        let name = match form {
            ManifestForm::Dense => "manifest_spans/c/0/0",
            _ => "manifests/c/0",
        };
        block_on(async {
            let mut design = design(GeometryKind::Polylines);
            design.object_index = form;
            let store = store(streamlines(3), design).await;
            let chunk = Key::parse(&format!("0/object_index/{name}")).unwrap();
            let read = Read::full(chunk.clone());
            assert!(store.read_one(read).await.unwrap().is_some());
            store.delete_many(vec![chunk]).await.unwrap();
            let editor = Editor::open(store.clone()).await.unwrap();
            let writes = store.activity().writes;
            let more = streamlines(1).paths(vec![0, 20], None);
            for refused in [
                editor.remove(&[1]).await,
                editor.append(&more.build().unwrap(), RAISE).await,
                editor.compact().await,
            ] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                assert!(
                    error.to_string().contains("0/object_index/manifest"),
                    "{error}"
                );
            }
            assert_eq!(store.activity().writes, writes);
        });
    }
}

#[test]
fn w9_a_store_of_an_unknown_version_is_not_changed() {
    for version in ["0.11.0", "1.0.0", "0.5.0", "garbage"] {
        block_on(async {
            let store = store(points(10), design(GeometryKind::Points)).await;
            let store = with_text(&store, "zarr.json", "0.9.2", version).await;
            let editor = Editor::open(store).await;
            assert!(editor.is_err(), "{version}");
        });
    }
}

#[track_caller]
fn refused(geometry: GeometryBuilder, kind: GeometryKind) -> BuildError {
    let plan = geometry
        .build()
        .and_then(|geometry| WritePlan::new(geometry, design(kind)));
    plan.unwrap_err()
}

#[test]
fn w10_inconsistent_lengths_and_indexes_are_rejected() {
    for rows in [5, 2, 0] {
        let mut geometry = points(3);
        let values = ColumnValues::Numeric(NumericColumn::float32(1, vec![0.0; rows]));
        geometry.vertex.push(attribute("a", values));
        let error = refused(geometry, GeometryKind::Points);
        let is_length =
            matches!(&error, BuildError::RowCount { found, expected: 3, .. } if *found == rows);
        assert!(is_length, "{error:?}");
    }
    for end in [-1, 3, i64::MAX] {
        let mut geometry = points(3);
        geometry = geometry.links(3, vec![0, 1, 2, 0, 1, end]);
        let error = refused(geometry, GeometryKind::Mesh);
        assert!(
            matches!(error, BuildError::LinkEndOutOfRange { link: 1, vertex, .. } if vertex == end)
        );
    }
    for name in ["", &"a".repeat(201), &"\u{e9}".repeat(50)] {
        let mut geometry = points(3);
        let values = ColumnValues::Numeric(NumericColumn::float32(1, vec![0.0; 3]));
        geometry.vertex.push(attribute(name, values));
        let error = refused(geometry, GeometryKind::Points);
        assert!(
            matches!(error, BuildError::InvalidName { .. }),
            "{name:?}: {error:?}"
        );
    }
    for value in [f32::NAN, f32::INFINITY] {
        let mut values = vec![1.0; 9];
        values[4] = value;
        let geometry = Geometry::builder(NumericColumn::float32(3, values));
        let error = refused(geometry, GeometryKind::Points);
        assert!(matches!(
            error,
            BuildError::NotFinite {
                vertex: 1,
                axis: 1,
                ..
            }
        ));
    }
    assert_eq!(refused(points(0), GeometryKind::Points), BuildError::Empty);
    for (chunk, bin) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (10.0, 3.0)] {
        let mut design = design(GeometryKind::Points);
        design.chunk_shape = Some(vec![chunk; 3]);
        design.bin_shape = Some(vec![bin; 3]);
        let error = WritePlan::new(points(3).build().unwrap(), design).unwrap_err();
        assert!(
            matches!(error, BuildError::ChunkShape(_) | BuildError::BinShape(_)),
            "{error:?}"
        );
    }
    let mut geometry = streamlines(2);
    *geometry.owners.ids_mut().unwrap() = vec![7, 7];
    let twice = refused(geometry, GeometryKind::Streamlines);
    assert_eq!(twice, BuildError::DuplicateObject(7));
}

#[test]
fn rejected_writes_leave_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let geometry = Geometry::new(NumericColumn::float32(3, [1.0, f32::NAN, 1.0]));
    let address = path.display().to_string();
    let design = design(GeometryKind::Points);
    let refused = block_on(zvf::create(
        &address,
        geometry,
        design,
        &CreateOptions::new().seal(false),
    ));
    assert!(matches!(&refused, Err(error) if error.cause::<BuildError>().is_some()));
    assert!(!path.exists());
}

/// A replacement that fails, here because another writer commits first, deletes what it staged.
#[test]
fn failed_replacements_leave_no_files() {
    let before = block_on(store(points(50), design(GeometryKind::Points)));
    let other = before.clone();
    let progress = Arc::new(move |done, _| {
        if done == 1 {
            let other = other.clone();
            let edit = move || {
                block_on(async {
                    let editor = Editor::open(other).await.unwrap();
                    let first = Query::new().limit(1);
                    editor.remove_selected(&first).await.unwrap();
                });
            };
            std::thread::spawn(edit).join().unwrap();
        }
    });
    block_on(async {
        let options = CreateOptions::new().overwrite(true).progress(progress);
        let plan =
            WritePlan::new(points(80).build().unwrap(), design(GeometryKind::Points)).unwrap();
        let refused = zvf::create_from_plan(&before, plan, &options).await;
        assert!(
            matches!(&refused, Err(error) if error.cause::<CommitError>().is_some()),
            "{refused:?}"
        );
        assert_eq!(read(&before, &Query::new()).await.positions.len(), 49);
        let files = before.list_to_delete(&Key::root(), 1 << 20).await.unwrap();
        let names = files.iter().map(|file| file.name.as_str());
        let staged: Vec<&str> = names.filter(|name| name.starts_with(".zvf/")).collect();
        assert_eq!(staged, Vec::<&str>::new());
    });
}

#[test]
fn links_are_not_appended_where_stored_link_values_are_missing() {
    block_on(async {
        let mut geometry = points(3);
        geometry.links.ends = vec![0, 1];
        let weights = |count: usize| {
            attribute(
                "w",
                ColumnValues::Numeric(NumericColumn::float32(1, vec![0.5; count])),
            )
        };
        geometry.link.push(weights(1));
        let mut design = design(GeometryKind::Graphs);
        design.chunk_shape = Some(vec![200.0; 3]);
        let store = store(geometry, design).await;
        let key = Key::parse("0/link_attributes/w/0/0.0.0/zarr.json").unwrap();
        let bytes = store
            .read_one(Read::full(key.clone()))
            .await
            .unwrap()
            .unwrap();
        let mut node: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            node["attributes"]["nonempty_chunks"],
            serde_json::json!(["0.0.0"])
        );
        node["attributes"]["nonempty_chunks"] = serde_json::json!([]);
        let bytes = Bytes::from(node.to_string());
        store.put_many(vec![(key, bytes)]).await.unwrap();
        let mut more = points(3);
        more.links.ends = vec![1, 2];
        more.link.push(weights(1));
        let editor = Editor::open(store).await.unwrap();
        let refused = editor.append(&more.build().unwrap(), RAISE).await;
        let missing = matches!(&refused, Err(error) if matches!(error.cause(), Some(EditError::Missing { node, .. }) if node.as_str().contains("/w/")));
        assert!(missing, "{refused:?}");
    });
}

#[test]
fn edits_that_would_lose_links_to_others_are_rejected() {
    block_on(async {
        let mut geometry = points(4);
        geometry.owners = VertexOwners::Vertices(vec![1, 1, 2, 2]);
        geometry.links.ends = vec![0, 1, 1, 2];
        let store = store(geometry, design(GeometryKind::Graphs)).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let mut one = points(2);
        one.owners = VertexOwners::Vertices(vec![1, 1]);
        let severed = editor.replace(&one.build().unwrap(), RAISE).await;
        assert!(
            matches!(&severed, Err(error) if matches!(error.cause(), Some(EditError::Severed { links: 1 })))
        );
        let both = [1, 2];
        let mut whole = points(4);
        whole.owners = VertexOwners::Vertices(vec![1, 1, 2, 2]);
        whole.links.ends = vec![0, 1, 1, 2];
        editor
            .replace_objects(&both, &whole.build().unwrap(), RAISE)
            .await
            .unwrap();
        let result = read(&store, &Query::new()).await;
        assert_eq!(result.links.unwrap().len(), 2);
    });
}

/// The files of a store in the folder of another made the other invalid.
#[test]
fn stores_are_not_created_in_the_folders_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let create = async |address: &str, overwrite: bool| {
        let options = CreateOptions::new().overwrite(overwrite);
        let points = points(2).build().unwrap();
        zvf::create(address, points, design(GeometryKind::Points), &options).await
    };
    block_on(async {
        create(&at("a.zv"), false).await.unwrap();
        let url = format!("file://{}", at("a.zv/b.zv"));
        let link = at("a.zv/0/../b.zv");
        for address in [at("a.zv/b.zv"), at("a.zv/0/vertices/b.zv"), link, url] {
            for overwrite in [false, true] {
                let error = create(&address, overwrite).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                let is_refused = matches!(error.cause(), Some(CreateError::InStore(store))
                        if Path::new(store).ends_with("a.zv"));
                assert!(is_refused, "{address}: {error:?}");
            }
        }
        assert!(!Path::new(&at("a.zv/b.zv")).exists());
        create(&at("a.zv"), true).await.unwrap();
        // Groups of other programs hold stores.
        std::fs::create_dir(at("group")).unwrap();
        let node = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}"#;
        std::fs::write(at("group/zarr.json"), node).unwrap();
        create(&at("group/a.zv"), false).await.unwrap();
    });
}
