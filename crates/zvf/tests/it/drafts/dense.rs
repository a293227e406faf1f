//! Object indexes with the layout `dense_manifests_v1`.

use serde_json::json;
use zvf::{
    Dataset, Design, Editor, ErrorKind, Geometry, GeometryBuilder, GeometryKind, LevelId,
    MigrateOptions, NumericColumn, OpenOptions, Query,
};
use zvf_build::WritePlan;
use zvf_store::ByteRange;
use zvf_testkit::golden::Files;

use super::{change, created, files_of, findings, in_memory, set_root};
use crate::block_on;

const INDEX: &str = "0/object_index";
/// Rows of a chunk of the arrays.
const ROWS: usize = 16;

/// A dense index of chunks with three coordinates.
#[derive(Clone, Default)]
struct Dense {
    ids: Vec<i64>,
    spans: Vec<[i64; 2]>,
    blocks: Vec<[i64; 4]>,
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

/// Creates polylines that cross chunks, without the copy of the nodes.
async fn paths() -> Files {
    written(zvf::ManifestForm::Manifests).await
}

/// Creates the same polylines with an index of this form.
async fn written(form: zvf::ManifestForm) -> Files {
    let at = |n: u16| [f32::from(n) * 4.0, 1.0, 1.0];
    let positions: Vec<f32> = (0..20).flat_map(at).collect();
    let geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .paths(vec![0, 7, 12, 20], vec![10, 30, 40]);
    let mut design = Design::new(GeometryKind::Polylines).object_index(form);
    design.chunk_shape = Some(vec![10.0; 3]);
    let mut files = created(geometry, design).await;
    change(&mut files, "zarr.json", |root| {
        root["attributes"]
            .as_object_mut()
            .unwrap()
            .remove("zvf_nodes");
    });
    files
}

/// Returns the index of a store in the dense form: the blocks of the last object first, between
/// blocks of no object, and an empty object 20.
async fn index_of(files: &Files) -> Dense {
    let dataset = Dataset::open(in_memory(files)).await.unwrap();
    let objects = dataset
        .catalog()
        .object_list(LevelId::FULL)
        .await
        .unwrap()
        .unwrap();
    let unused = [7, 7, 7, 7];
    let mut dense = Dense {
        blocks: vec![unused],
        ..Dense::default()
    };
    for place in (0..objects.len()).rev() {
        let start = count(dense.blocks.len());
        let fragments = objects.fragments(place);
        for fragment in fragments {
            let chunk = objects.chunk(fragment.chunk).unwrap().coords();
            dense
                .blocks
                .push([chunk[0], chunk[1], chunk[2], fragment.fragment.into()]);
        }
        dense.ids.insert(0, objects.id(place).unwrap());
        dense.spans.insert(0, [start, count(fragments.len())]);
    }
    dense.blocks.push(unused);
    // The start of an empty object is not read.
    dense.ids.insert(1, 20);
    dense.spans.insert(1, [-3, 0]);
    dense
}

fn array<const N: usize>(files: &mut Files, name: &str, rows: &[[i64; N]], rank: usize) {
    let row = [N][..rank - 1].to_vec();
    let with_row = |first: usize| [vec![first], row.clone()].concat();
    let node = json!({"zarr_format": 3, "node_type": "array", "shape": with_row(rows.len()),
        "data_type": "int64", "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": with_row(ROWS)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
    files.push((
        format!("{INDEX}/{name}/zarr.json"),
        node.to_string().into_bytes(),
    ));
    for (number, rows) in rows.chunks(ROWS).enumerate() {
        // The last chunk is stored whole. A chunk of zeros is not stored.
        let mut bytes: Vec<u8> = rows
            .iter()
            .flatten()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        bytes.resize(ROWS * N * 8, 0);
        if bytes.iter().any(|byte| *byte != 0) {
            let column = if rank > 1 { "/0" } else { "" };
            files.push((format!("{INDEX}/{name}/c/{number}{column}"), bytes));
        }
    }
}

/// Replaces the index of a store by a dense one.
fn with(files: &Files, dense: &Dense) -> Files {
    let mut files = files.clone();
    files.retain(|(key, _)| !key.starts_with("0/object_index/"));
    let attributes = json!({"zv_array": "object_index", "num_objects": dense.ids.len(),
        "num_present": dense.spans.iter().filter(|span| span[1] > 0).count(), "sid_ndim": 3,
        "layout": "dense_manifests_v1", "object_ids_sorted": true});
    let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    files.push((format!("{INDEX}/zarr.json"), node.to_string().into_bytes()));
    array(&mut files, "manifest_spans", &dense.spans, 2);
    array(&mut files, "manifest_blocks", &dense.blocks, 2);
    let ids: Vec<[i64; 1]> = dense.ids.iter().map(|id| [*id]).collect();
    array(&mut files, "object_ids", &ids, 1);
    set_root(
        &mut files,
        "format_capabilities",
        json!(["dense_manifests"]),
    );
    set_root(
        &mut files,
        "required_capabilities",
        json!(["dense_manifests"]),
    );
    set_root(&mut files, "manifest_layout", json!("dense"));
    files
}

/// Checks that a store with a dense index and one with manifests have the same results. `ids` are
/// objects to query, of those that exist.
async fn equal_to(twin: &Files, files: &Files, ids: &[i64]) -> Dataset {
    let twin = Dataset::open(in_memory(twin)).await.unwrap();
    let dataset = Dataset::open(in_memory(files)).await.unwrap();
    assert_eq!(dataset.root().manifest_layout.as_deref(), Some("dense"));
    let listed = twin
        .catalog()
        .object_list(LevelId::FULL)
        .await
        .unwrap()
        .unwrap();
    let listed: Vec<i64> = (0..listed.len()).filter_map(|at| listed.id(at)).collect();
    let ids: Vec<i64> = ids
        .iter()
        .copied()
        .filter(|id| listed.contains(id))
        .collect();
    for query in [
        Query::new(),
        Query::new().objects(ids),
        Query::new().region(zvf::Bbox::parse("5,0,0,30,9,9").unwrap()),
        Query::new().shape(zvf::Shape::Points),
    ] {
        let expected = twin.query(&query).await.unwrap();
        assert!(!expected.positions.is_empty());
        assert_eq!(dataset.query(&query).await.unwrap(), expected);
        // Also if the index is read for this query only.
        let fresh = Dataset::open(in_memory(files)).await.unwrap();
        assert_eq!(fresh.query(&query).await.unwrap(), expected);
    }
    dataset
}

#[test]
fn a_dense_index_answers_as_manifests_do() {
    block_on(async {
        let twin = paths().await;
        let dense = index_of(&twin).await;
        let files = with(&twin, &dense);
        assert_eq!(findings(&files).await, Vec::<String>::new());
        let dataset = equal_to(&twin, &files, &[40, 10]).await;
        let empty = dataset.query(&Query::new().objects([20])).await.unwrap();
        assert_eq!(empty.positions.len(), 0);
        let error = dataset
            .query(&Query::new().objects([21]))
            .await
            .unwrap_err();
        assert!(error.is_not_found(), "{error}");
        let info = dataset.info().await.unwrap();
        assert_eq!(info.levels[0].objects, Some(3));
    });
}

#[test]
fn a_dense_index_of_ours_answers_as_manifests_do() {
    block_on(async {
        let twin = paths().await;
        let files = written(zvf::ManifestForm::Dense).await;
        assert_eq!(findings(&files).await, Vec::<String>::new());
        let has = |name: &str| {
            files
                .iter()
                .any(|(key, _)| key.starts_with(&format!("{INDEX}/{name}/")))
        };
        assert!(has("manifest_spans") && has("manifest_blocks") && !has("manifests"));
        let node = files
            .iter()
            .find(|(key, _)| key == "0/object_index/manifest_blocks/zarr.json");
        let node: serde_json::Value = serde_json::from_slice(&node.unwrap().1).unwrap();
        let chunk = &node["chunk_grid"]["configuration"]["chunk_shape"];
        assert_eq!(
            (chunk, &node["data_type"]),
            (&json!([16_384, 4]), &json!("int64"))
        );
        equal_to(&twin, &files, &[40, 10]).await;
    });
}

/// Creates a store of many points, each an object with the id of its row plus `offset`.
async fn many(form: zvf::ManifestForm, offset: i64) -> Files {
    let points = 0..40_000_u32;
    let mut positions = Vec::new();
    for number in points.clone() {
        positions.extend([f64::from(number % 200), f64::from(number / 200)]);
    }
    let geometry = Geometry::builder(NumericColumn::float64(2, positions))
        .object_ids(points.map(|id| i64::from(id) + offset).collect());
    let mut design = Design::new(GeometryKind::Points).object_index(form);
    design.chunk_shape = Some(vec![50.0; 2]);
    design.compression = zvf::CellCompression::None;
    design.table_compression = Some(zvf::CellCompression::None);
    design.checksums = zvf::CellChecksums::Off;
    created(geometry, design).await
}

/// The spans and blocks of a few objects are read by ranges.
#[test]
fn a_few_objects_of_a_dense_index_are_read_by_ranges() {
    block_on(async {
        for offset in [0, 3] {
            let twin = many(zvf::ManifestForm::Manifests, offset).await;
            let twin = Dataset::open(in_memory(&twin)).await.unwrap();
            let mut files = many(zvf::ManifestForm::Dense, offset).await;
            let options = OpenOptions::default().record_requests(true);
            let store = options.from_memory(files.clone()).unwrap();
            let dataset = Dataset::open_with(store.clone(), &options).await.unwrap();
            for ids in [vec![17_000], vec![39_000, 20, 21, 20], vec![5]] {
                store.take_request_log();
                let query = Query::new().objects(ids.clone());
                let result = dataset.query(&query).await.unwrap();
                assert_eq!(result, twin.query(&query).await.unwrap(), "{ids:?}");
                let log = store.take_request_log().into_iter();
                let of_cells = log.filter(|read| {
                    let key = read.key.as_str();
                    key.contains("/manifest_") && key.contains("/c/")
                });
                let lengths = of_cells.map(|read| match read.range {
                    ByteRange::Bounded(range) => range.end - range.start,
                    range => panic!("{}: {range:?}", read.key),
                });
                let bytes: u64 = lengths.sum();
                // The whole index has 1.6 MB.
                assert!(bytes > 0 && bytes < 100_000, "{ids:?}: {bytes}");
            }
            let absent = Query::new().objects([17_000, 99_999]);
            assert!(dataset.query(&absent).await.unwrap_err().is_not_found());
            // The second span names a block past the end, the third a fragment below 0.
            let mut put = |name: &str, at: usize, value: i64| {
                let key = format!("{INDEX}/{name}/c/0/0");
                let (_, bytes) = files.iter_mut().find(|(other, _)| *other == key).unwrap();
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            };
            put("manifest_spans", 16, i64::MAX);
            put("manifest_blocks", 2 * 24 + 16, -1);
            let dataset = Dataset::open(in_memory(&files)).await.unwrap();
            for (row, is_damaged) in [(0, false), (1, true), (2, true), (3, false)] {
                let query = Query::new().objects([row + offset]);
                let result = dataset.query(&query).await;
                if is_damaged {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                    assert!(error.to_string().contains(&format!("row {row}")), "{error}");
                } else {
                    assert_eq!(result.unwrap().positions.len(), 1);
                }
            }
            let query = Query::new().objects([offset, offset + 1]).keep_going(true);
            let kept = dataset.query(&query).await.unwrap();
            assert_eq!((kept.positions.len(), kept.skipped.len()), (1, 1));
        }
    });
}

#[test]
fn only_stores_of_the_newest_generation_have_a_dense_index() {
    let design = Design::new(GeometryKind::Points)
        .profile(zvf::Profile::V08)
        .object_index(zvf::ManifestForm::Dense);
    let points = Geometry::new(NumericColumn::float32(3, [1.0, 2.0, 3.0]));
    let refused = WritePlan::new(points, design).unwrap_err();
    assert_eq!(refused, zvf_build::BuildError::DenseIndex);
}

/// The last chunk of spans is absent: its objects are empty.
#[test]
fn an_absent_chunk_of_spans_has_empty_objects() {
    block_on(async {
        let twin = paths().await;
        let mut dense = index_of(&twin).await;
        for id in 100..100 + count(2 * ROWS) {
            dense.ids.push(id);
            dense.spans.push([0, 0]);
        }
        let files = with(&twin, &dense);
        assert!(
            !files
                .iter()
                .any(|(key, _)| key.ends_with("manifest_spans/c/2/0"))
        );
        assert_eq!(findings(&files).await, Vec::<String>::new());
        let dataset = Dataset::open(in_memory(&files)).await.unwrap();
        let twin = Dataset::open(in_memory(&twin)).await.unwrap();
        let expected = twin.query(&Query::new()).await.unwrap();
        assert_eq!(dataset.query(&Query::new()).await.unwrap(), expected);
    });
}

#[test]
fn a_dense_index_is_migrated() {
    block_on(async {
        let twin = paths().await;
        let store = in_memory(&with(&twin, &index_of(&twin).await));
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new.zv").display().to_string();
        zvf::migrate(store, &target, &MigrateOptions::default())
            .await
            .unwrap();
        let migrated = Dataset::open(&*target).await.unwrap();
        let twin = Dataset::open(in_memory(&twin)).await.unwrap();
        let expected = twin.query(&Query::new()).await.unwrap();
        assert_eq!(migrated.query(&Query::new()).await.unwrap(), expected);
    });
}

/// Polylines with these ids through several chunks.
fn more_paths(ids: &[i64]) -> GeometryBuilder {
    let at = |n: u16| [f32::from(n) * 3.0, 1.0, 1.0];
    let parts = u16::try_from(ids.len()).unwrap();
    let positions: Vec<f32> = (0..parts).flat_map(|_| (0..9).flat_map(at)).collect();
    Geometry::builder(NumericColumn::float32(3, positions)).paths(
        (0..=u64::from(parts)).map(|part| part * 9).collect(),
        ids.to_vec(),
    )
}

/// Changes keep the layout, including that of an index of another writer, which has unused blocks,
/// an empty object and several chunks.
#[test]
fn a_dense_index_is_kept_by_changes() {
    block_on(async {
        let twin_files = paths().await;
        let mut other = index_of(&twin_files).await;
        for id in 100..100 + count(2 * ROWS) {
            other.ids.push(id);
            other.spans.push([0, 0]);
        }
        for files in [
            with(&twin_files, &other),
            written(zvf::ManifestForm::Dense).await,
        ] {
            let (store, twin) = (in_memory(&files), in_memory(&twin_files));
            let editors = [
                Editor::open(store.clone()).await.unwrap(),
                Editor::open(twin.clone()).await.unwrap(),
            ];
            for step in 0..5 {
                for editor in &editors {
                    let bounds = zvf::OutOfBounds::Reject;
                    let changed = match step {
                        0 => editor.remove(&[10]).await,
                        1 => {
                            editor
                                .append(&more_paths(&[500, 501]).build().unwrap(), bounds)
                                .await
                        }
                        2 => {
                            editor
                                .replace(&more_paths(&[30]).build().unwrap(), bounds)
                                .await
                        }
                        3 => editor.remove(&[500, 40]).await,
                        _ => editor.compact().await,
                    };
                    changed.unwrap();
                }
                let now = files_of(&store).await;
                assert_eq!(findings(&now).await, Vec::<String>::new(), "step {step}");
                equal_to(&files_of(&twin).await, &now, &[30, 501]).await;
                let node = now
                    .iter()
                    .find(|(key, _)| *key == format!("{INDEX}/zarr.json"));
                let node: serde_json::Value = serde_json::from_slice(&node.unwrap().1).unwrap();
                assert_eq!(node["attributes"]["layout"], "dense_manifests_v1");
                assert!(!now.iter().any(|(key, _)| key.contains("/manifests/")));
                // The chunks that the larger arrays had before the change are deleted.
                let chunks = now
                    .iter()
                    .filter(|(key, _)| key.contains("_index/manifest_spans/c/"));
                assert_eq!(chunks.count(), 1);
            }
            assert!(
                Editor::open(store)
                    .await
                    .unwrap()
                    .remove(&[10])
                    .await
                    .is_err()
            );
        }
    });
}

/// A change of a damaged index is an error and changes nothing.
#[test]
fn a_damaged_dense_index_is_not_changed() {
    block_on(async {
        let twin = paths().await;
        let healthy = index_of(&twin).await;
        let blocks = count(healthy.blocks.len());
        let check = async |files: Files, about: &str| {
            let store = in_memory(&files);
            let editor = Editor::open(store.clone()).await.unwrap();
            let error = editor.remove(&[40]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert!(error.to_string().contains(about), "{error}");
            let mut before = files.clone();
            let mut after = files_of(&store).await;
            before.sort();
            after.sort();
            assert!(before == after, "{error}");
        };
        for span in [
            [blocks - 1, 2],
            [-1, 1],
            [0, -1],
            [0, 1 << 62],
            [i64::MAX, i64::MAX],
        ] {
            let mut dense = healthy.clone();
            dense.spans[2] = span;
            check(with(&twin, &dense), "row 2").await;
        }
        for fragment in [-1, 1 << 40] {
            let mut dense = healthy.clone();
            let first = usize::try_from(dense.spans[2][0]).unwrap();
            dense.blocks[first][3] = fragment;
            check(with(&twin, &dense), "row 2").await;
        }
        // Spans that share blocks describe more blocks than the index stores.
        let mut dense = healthy.clone();
        dense.blocks.resize(1 << 14, [0, 0, 0, 0]);
        dense.ids = (0..1 << 12).collect();
        dense.spans = vec![[0, 1 << 14]; 1 << 12];
        let options = OpenOptions::default().budget(16 << 20);
        let store = options.from_memory(with(&twin, &dense)).unwrap();
        let editor = Editor::open(store).await.unwrap();
        let error = editor.remove(&[40]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
        // Arrays that declare rows which they do not have.
        for (name, rows) in [("manifest_spans", 1_u64 << 50), ("manifest_blocks", 3)] {
            let mut files = with(&twin, &healthy);
            change(&mut files, &format!("{INDEX}/{name}/zarr.json"), |node| {
                node["shape"][0] = json!(rows);
                node["chunk_grid"]["configuration"]["chunk_shape"][0] = json!(rows);
            });
            let store = in_memory(&files);
            let editor = Editor::open(store.clone()).await.unwrap();
            assert!(editor.remove(&[40]).await.is_err());
        }
    });
}

#[test]
fn a_damaged_dense_index_is_an_error_that_names_the_row() {
    block_on(async {
        let twin = paths().await;
        let healthy = index_of(&twin).await;
        let blocks = count(healthy.blocks.len());
        let query = Query::new();
        for span in [
            [blocks - 1, 2],
            [-1, 1],
            [0, -1],
            [0, 1 << 62],
            [i64::MAX, i64::MAX],
            [1 << 60, 1],
        ] {
            let mut dense = healthy.clone();
            dense.spans[2] = span;
            let files = with(&twin, &dense);
            let dataset = Dataset::open(in_memory(&files)).await.unwrap();
            let error = dataset.query(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            let text = error.to_string();
            assert!(
                text.contains("manifest_spans") && text.contains("row 2"),
                "{text}"
            );
            // Other objects are read if damage is skipped.
            let kept = dataset.query(&Query::new().keep_going(true)).await.unwrap();
            assert_eq!(
                (kept.parts.unwrap().objects, kept.skipped.len()),
                (vec![10, 40], 1)
            );
            let found = findings(&files).await;
            assert!(
                found.iter().any(|line| line.starts_with("ZV-L3-04")),
                "{found:#?}"
            );
        }
        for (column, value) in [(3, -1), (3, 1 << 40), (3, 9), (0, 99)] {
            let mut dense = healthy.clone();
            let first = usize::try_from(dense.spans[2][0]).unwrap();
            dense.blocks[first][column] = value;
            let files = with(&twin, &dense);
            let dataset = Dataset::open(in_memory(&files)).await.unwrap();
            let error = dataset.query(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            let found = findings(&files).await;
            assert!(!found.is_empty(), "{column} {value}");
        }
        // Many spans of all blocks exceed the budget before they exceed memory.
        let mut dense = healthy.clone();
        dense.blocks.resize(1 << 14, [0, 0, 0, 0]);
        dense.ids = (0..1 << 12).collect();
        dense.spans = vec![[0, 1 << 14]; 1 << 12];
        let files = with(&twin, &dense);
        let options = OpenOptions::default().budget(8 << 20);
        let store = options.from_memory(files.clone()).unwrap();
        let error = Dataset::open_with(store, &options)
            .await
            .unwrap()
            .query(&query)
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::OverBudget);
    });
}

#[test]
fn arrays_of_another_form_are_no_dense_index() {
    let refused = async |files: &Files, about: &str| {
        let dataset = Dataset::open(in_memory(files)).await.unwrap();
        let error = dataset.query(&Query::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(about), "{error}");
        assert!(!findings(files).await.is_empty());
    };
    block_on(async {
        let twin = paths().await;
        let healthy = with(&twin, &index_of(&twin).await);
        for name in ["manifest_spans", "manifest_blocks", "object_ids"] {
            let prefix = format!("{INDEX}/{name}");
            let mut files = healthy.clone();
            files.retain(|(key, _)| !key.starts_with(&prefix));
            refused(&files, name).await;
            let mut files = healthy.clone();
            change(&mut files, &format!("{prefix}/zarr.json"), |node| {
                node["data_type"] = json!("int32");
            });
            refused(&files, name).await;
        }
        let mut files = healthy.clone();
        change(
            &mut files,
            "0/object_index/manifest_blocks/zarr.json",
            |node| {
                node["shape"][1] = json!(3);
                node["chunk_grid"]["configuration"]["chunk_shape"][1] = json!(3);
            },
        );
        refused(&files, "manifest_blocks").await;
        for (layout, about) in [
            ("vlen_manifests_v2", "manifests: is missing"),
            (
                "dense_manifests_v9",
                "\"dense_manifests_v9\" is not a layout",
            ),
        ] {
            let mut files = healthy.clone();
            change(&mut files, "0/object_index/zarr.json", |node| {
                node["attributes"]["layout"] = json!(layout);
            });
            refused(&files, about).await;
        }
        let mut files = healthy.clone();
        let node = files
            .iter()
            .find(|(key, _)| key == "0/object_index/object_ids/zarr.json")
            .unwrap()
            .1
            .clone();
        files.push(("0/object_index/manifests/zarr.json".to_owned(), node));
        let found = findings(&files).await;
        assert!(
            found.iter().any(|line| line.starts_with("ZV-L2-013")),
            "{found:#?}"
        );
    });
}
