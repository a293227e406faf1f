//! Changes of stores that other programs wrote: tables of types and fill values that this library
//! does not choose, absent chunks, big-endian numbers.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};
use zvf::{
    CreateOptions, Dataset, Editor, ErrorKind, IntoGeometry, ManifestForm, OpenOptions, Query,
    QueryResult, Store, TableOptions, ValidateOptions, validate,
};
use zvf_build::{
    Column, ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn,
    OutOfBounds, WritePlan,
};
use zvf_format::numeric::Kind;
use zvf_model::key::Key;
use zvf_store::Read;
use zvf_testkit::golden::Golden;

use crate::block_on;

const RAISE: OutOfBounds = OutOfBounds::Reject;

/// Returns one vertex for each id, with these object attributes.
fn points(ids: &[i64], object: Vec<Column>) -> GeometryBuilder {
    let values = ids.iter().flat_map(|id| [*id as f32, 1.0, 2.0]);
    Geometry::builder(NumericColumn::float32(3, values))
        .object_ids(ids.to_vec())
        .object(object)
}

/// Creates a store of the objects 1 to 3 with an attribute `a`.
async fn store() -> Store {
    let geometry = points(&[1, 2, 3], vec![column(Kind::UInt8, &[0, 1, 0])]);
    store_of(geometry, ManifestForm::default()).await
}

async fn store_of(geometry: GeometryBuilder, form: ManifestForm) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    design.bounds = Some((vec![0.0; 3], vec![100.0; 3]));
    design.object_index = form;
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let options = CreateOptions::new().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

fn column(kind: Kind, bytes: &[u8]) -> Column {
    let numbers = NumericColumn {
        bytes: bytes.to_vec(),
        ..NumericColumn::new(kind, 1)
    };
    Column::new("a", numbers)
}

async fn node(store: &Store, path: &str) -> Value {
    let key = Key::parse(&format!("{path}/zarr.json")).unwrap();
    let bytes = store.read_one(Read::full(key)).await.unwrap().unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

async fn put(store: &Store, path: &str, bytes: impl Into<Bytes>) {
    let key = Key::parse(path).unwrap();
    store.put_many(vec![(key, bytes.into())]).await.unwrap();
}

/// Replaces the values of the attribute `a` by uncompressed ones of another type.
async fn replace_values(
    store: &Store,
    data_type: Value,
    fill: Value,
    meaning: Option<&str>,
    bytes: Vec<u8>,
) {
    let path = "0/object_attributes/a";
    let mut json = node(store, path).await;
    json["attributes"]["dtype"] = data_type.clone();
    json["data_type"] = data_type;
    json["fill_value"] = fill;
    json["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let attributes = json["attributes"].as_object_mut().unwrap();
    attributes.remove("fill_sentinel_meaning");
    if let Some(meaning) = meaning {
        attributes.insert("fill_sentinel_meaning".to_owned(), json!(meaning));
    }
    put(store, &format!("{path}/zarr.json"), json.to_string()).await;
    put(store, &format!("{path}/c/0"), bytes).await;
}

async fn read(store: &Store) -> QueryResult {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.query(&Query::new()).await.unwrap()
}

/// Returns the ids of the objects, and the values of the attribute `a`.
async fn values(store: &Store) -> (Vec<i64>, Column) {
    let mut result = read(store).await;
    (result.objects, result.object.remove(0))
}

fn bytes_of(column: &Column) -> &[u8] {
    match &column.values {
        ColumnValues::Numeric(numbers) => &numbers.bytes,
        ColumnValues::Dictionary { .. } => panic!("{column:?}"),
    }
}

#[test]
fn bools_of_objects_stay_bools() {
    for meaning in [None, Some("absent")] {
        block_on(async {
            let store = store().await;
            replace_values(&store, json!("bool"), json!(false), meaning, vec![0, 1, 0]).await;
            let before = values(&store).await;
            assert_eq!(before.1, column(Kind::Bool, &[0, 1, 0]));
            let editor = Editor::open(store.clone()).await.unwrap();
            editor.compact().await.unwrap();
            assert_eq!(values(&store).await, before);
            let json = node(&store, "0/object_attributes/a").await;
            assert_eq!(json["data_type"], json!("bool"));
            assert_eq!(json["attributes"]["dtype"], json!("bool"));

            let more = points(&[4, 5], vec![column(Kind::Bool, &[1, 0])]);
            editor.append(&more.build().unwrap(), RAISE).await.unwrap();
            let expected = column(Kind::Bool, &[0, 1, 0, 1, 0]);
            assert_eq!(values(&store).await, (vec![1, 2, 3, 4, 5], expected));
            editor.remove(&[2]).await.unwrap();
            let expected = column(Kind::Bool, &[0, 0, 1, 0]);
            assert_eq!(values(&store).await, (vec![1, 3, 4, 5], expected));

            // A bool has no value for an object without one.
            editor
                .append(&points(&[6], Vec::new()).build().unwrap(), RAISE)
                .await
                .unwrap();
            let (ids, after) = values(&store).await;
            assert_eq!(ids, [1, 3, 4, 5, 6]);
            assert_eq!(bytes_of(&after)[..4], [0, 0, 1, 0]);
            let nulls = vec![false, false, false, false, true];
            assert_eq!(after.nulls, Some(nulls));
        });
    }
}

#[test]
fn fill_values_without_a_meaning_are_values() {
    let integers = |values: &[i32]| values.iter().flat_map(|n| n.to_le_bytes()).collect();
    block_on(async {
        let store = store().await;
        let bytes: Vec<u8> = integers(&[0, 7, 0]);
        replace_values(&store, json!("int32"), json!(0), None, bytes.clone()).await;
        let before = values(&store).await;
        assert_eq!(before.1, column(Kind::Int32, &bytes));
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.compact().await.unwrap();
        assert_eq!(values(&store).await, before);
        let json = node(&store, "0/object_attributes/a").await;
        assert_eq!(json["fill_value"], json!(0));
        assert_eq!(json["attributes"].get("fill_sentinel_meaning"), None);

        editor
            .append(&points(&[4], Vec::new()).build().unwrap(), RAISE)
            .await
            .unwrap();
        let (_, after) = values(&store).await;
        assert_eq!(bytes_of(&after)[..12], bytes);
        assert_eq!(after.nulls, Some(vec![false, false, false, true]));

        // All values of a type are in use.
        let all: Vec<i64> = (10..266).collect();
        let numbers: Vec<u8> = (0..=255).collect();
        let wide = self::store().await;
        replace_values(&wide, json!("uint8"), json!(0), None, vec![0, 1, 0]).await;
        let editor = Editor::open(wide.clone()).await.unwrap();
        let mut more = points(&all, vec![column(Kind::UInt8, &numbers)]);
        let ones = vec![1.0; all.len() * 3];
        more.positions = NumericColumn::float32(3, ones);
        editor.append(&more.build().unwrap(), RAISE).await.unwrap();
        editor.compact().await.unwrap();
        let (_, after) = values(&wide).await;
        assert_eq!(bytes_of(&after), [&[0, 1, 0], &*numbers].concat());
        assert_eq!(after.nulls, None);
    });
}

#[test]
fn text_keeps_empty_words_and_its_absent_rows() {
    let utf32 = |words: [&str; 3]| -> Vec<u8> {
        let letters = words.iter().flat_map(|word| {
            let padding = std::iter::repeat('\0');
            word.chars().chain(padding).take(2).collect::<Vec<char>>()
        });
        letters
            .flat_map(|letter| u32::from(letter).to_le_bytes())
            .collect()
    };
    let text = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
    for (fill, meaning, nulls) in [
        ("", None, [false, false, false]),
        ("", Some("absent"), [true, false, false]),
        ("no", Some("absent"), [false, false, true]),
    ] {
        block_on(async {
            let store = store().await;
            let bytes = utf32(["", "x", "no"]);
            replace_values(&store, text.clone(), json!(fill), meaning, bytes).await;
            let (_, before) = values(&store).await;
            for (at, null) in nulls.into_iter().enumerate() {
                assert_eq!(before.text_at(at), (!null).then_some(["", "x", "no"][at]));
            }
            let editor = Editor::open(store.clone()).await.unwrap();
            editor.compact().await.unwrap();
            editor
                .append(&points(&[4], Vec::new()).build().unwrap(), RAISE)
                .await
                .unwrap();
            let (_, after) = values(&store).await;
            let texts: Vec<Option<&str>> = after.texts().collect();
            assert_eq!(texts[..3], before.texts().collect::<Vec<_>>(), "{fill:?}");
            assert_eq!(texts[3], None, "{fill:?} {meaning:?}");
        });
    }
}

/// Stores of objects whose only id is the fill value, so that the ids have no chunk.
const WITHOUT_IDS: [&str; 9] = [
    "mesh_tri",
    "mesh_quad",
    "mesh_2d",
    "graph_3d",
    "graph_sharded",
    "graph_no_edges",
    "skeleton_2d",
    "edit_links",
    "pyramid_mesh",
];

/// Returns the rules that a store does not follow, with their nodes.
async fn findings(store: &Store) -> BTreeSet<(&'static str, String)> {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings.into_iter();
    findings
        .map(|found| (found.rule.code, found.path))
        .collect()
}

/// The content of an object, in a form that depends neither on other objects nor on the order of rows.
#[derive(Debug, PartialEq)]
struct ObjectContent {
    /// Position and attributes of each vertex, sorted.
    vertices: Vec<Vec<u8>>,
    /// Vertices of each link, sorted.
    links: Vec<Vec<Vec<u8>>>,
    /// Attributes of the object.
    attributes: Vec<Column>,
}

async fn object(store: &Store, id: i64) -> ObjectContent {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let result = dataset.query(&Query::new().objects([id])).await.unwrap();
    let vertex = |at: usize| {
        let mut bytes = result.positions.row(at).unwrap().to_vec();
        for column in &result.vertex {
            match &column.values {
                ColumnValues::Numeric(numbers) => bytes.extend_from_slice(numbers.row(at).unwrap()),
                texts @ ColumnValues::Dictionary { .. } => {
                    bytes.extend(texts.text_at(at).unwrap_or_default().bytes());
                }
            }
        }
        bytes
    };
    let mut vertices: Vec<_> = (0..result.positions.len()).map(vertex).collect();
    vertices.sort();
    let mut links = Vec::new();
    if let Some(all) = &result.links {
        for ends in all.ends.chunks_exact(all.width as usize) {
            let mut ends: Vec<_> = ends.iter().map(|end| vertex(*end as usize)).collect();
            ends.sort();
            links.push(ends);
        }
        links.sort();
    }
    ObjectContent {
        vertices,
        links,
        attributes: result.object,
    }
}

#[test]
fn stores_of_the_reference_with_one_object_can_be_changed() {
    let golden = Golden::open("zvf-09");
    for name in WITHOUT_IDS {
        let mut files = golden.store(&format!("{name}/store.zarrvectors"));
        if name == "mesh_tri" {
            // The reference declares one column for normals of three.
            let path = "0/vertex_attributes/n/zarr.json";
            let (_, bytes) = files.iter_mut().find(|(key, _)| key == path).unwrap();
            let mut json: Value = serde_json::from_slice(bytes).unwrap();
            json["attributes"]["row_shape"] = json!([3]);
            *bytes = json.to_string().into_bytes();
        }
        let is_absent = !files
            .iter()
            .any(|(key, _)| key == "0/object_index/object_ids/c/0");
        assert!(is_absent, "{name}");
        block_on(async {
            let store = OpenOptions::default().from_memory(files).unwrap();
            let known = findings(&store).await;
            let all = read(&store).await;
            let before = object(&store, 0).await;
            assert!(!before.vertices.is_empty(), "{name}");

            let mut geometry = all.clone().into_geometry().unwrap().into_builder();
            geometry.owners.ids_mut().unwrap().fill(1);
            geometry.objects = geometry.objects.map(|_| vec![1]);
            let geometry = geometry.build().unwrap();
            let editor = Editor::open(store.clone()).await.unwrap();
            let changed = editor
                .append(&geometry, RAISE)
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(changed.objects, [1], "{name}");
            let both = read(&store).await;
            assert_eq!(both.objects, [0, 1], "{name}");
            assert_eq!(both.positions.len(), 2 * all.positions.len(), "{name}");
            for id in [0, 1] {
                assert_eq!(object(&store, id).await, before, "{name} {id}");
            }
            let now = findings(&store).await;
            // The coarser level is out of date after any change.
            let is_stale = |found: &(&str, String)| *found == ("ZV-L4-059", "1".to_owned());
            let new: Vec<_> = now
                .difference(&known)
                .filter(|found| !is_stale(found))
                .collect();
            assert!(new.is_empty(), "{name}: {new:?}");

            editor.remove(&[0]).await.unwrap();
            assert_eq!(read(&store).await.objects, [1], "{name}");
            editor.compact().await.unwrap();
            assert_eq!(object(&store, 1).await, before, "{name}");
        });
    }
}

#[test]
fn absent_chunks_do_not_take_memory_without_limit() {
    block_on(async {
        let store = store().await;
        let path = "0/object_index/object_ids";
        let mut json = node(&store, path).await;
        let rows = 1_u64 << 40;
        json["shape"] = json!([rows]);
        json["chunk_grid"]["configuration"]["chunk_shape"] = json!([rows]);
        put(&store, &format!("{path}/zarr.json"), json.to_string()).await;
        let key = Key::parse(&format!("{path}/c/0")).unwrap();
        store.delete_many(vec![key]).await.unwrap();
        let editor = Editor::open(store).await.unwrap();
        let refused = editor.compact().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
        assert!(refused.to_string().contains(path), "{refused}");
    });
}

#[test]
fn big_endian_tables_are_converted() {
    block_on(async {
        let store = store().await;
        let swapped = |values: &[i32]| values.iter().flat_map(|n| n.to_be_bytes()).collect();
        let bytes: Vec<u8> = swapped(&[5, -1, 7]);
        replace_values(&store, json!("int32"), json!(0), Some("absent"), bytes).await;
        let ids: Vec<u8> = [1_i64, 2, 3].iter().flat_map(|n| n.to_be_bytes()).collect();
        for (path, bytes) in [
            ("0/object_index/object_ids", Some(ids)),
            ("0/object_attributes/a", None),
        ] {
            let mut json = node(&store, path).await;
            json["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
            put(&store, &format!("{path}/zarr.json"), json.to_string()).await;
            if let Some(bytes) = bytes {
                put(&store, &format!("{path}/c/0"), bytes).await;
            }
        }
        let expected = |values: &[i32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|n| n.to_le_bytes()).collect();
            column(Kind::Int32, &bytes)
        };
        assert_eq!(values(&store).await, (vec![1, 2, 3], expected(&[5, -1, 7])));
        let editor = Editor::open(store.clone()).await.unwrap();
        let more = points(&[9], vec![expected(&[11])]);
        editor
            .append(&more.clone().build().unwrap(), RAISE)
            .await
            .unwrap();
        editor.remove(&[2]).await.unwrap();
        assert_eq!(values(&store).await, (vec![1, 3, 9], expected(&[5, 7, 11])));
        let found = object(&store, 9).await;
        assert_eq!(found.vertices, [more.positions.bytes]);
    });
}

#[test]
fn unknown_attributes_of_tables_are_kept() {
    for form in [ManifestForm::default(), ManifestForm::Dense] {
        block_on(async {
            let mut geometry = points(&[1, 2, 3], vec![column(Kind::UInt8, &[0, 1, 0])]);
            geometry.groups.insert(0, vec![1, 2]);
            let size = NumericColumn::float32(1, [2.0]);
            geometry.group.push(Column::new("size", size));
            let store = store_of(geometry, form).await;
            let mut paths = vec![
                "0/object_index",
                "0/object_index/object_ids",
                "0/object_attributes",
                "0/object_attributes/a",
                "0/groups",
                "0/group_attributes",
                "0/group_attributes/size",
            ];
            match form {
                ManifestForm::Dense => paths.extend([
                    "0/object_index/manifest_spans",
                    "0/object_index/manifest_blocks",
                ]),
                _ => paths.push("0/object_index/manifests"),
            }
            for path in &paths {
                let mut json = node(&store, path).await;
                json["attributes"]["lab_note"] = json!(path);
                put(&store, &format!("{path}/zarr.json"), json.to_string()).await;
            }
            let known = findings(&store).await;
            let editor = Editor::open(store.clone()).await.unwrap();
            editor.remove(&[2]).await.unwrap();
            for path in &paths {
                let json = node(&store, path).await;
                assert_eq!(json["attributes"]["lab_note"], json!(path), "{path}");
            }
            let index = node(&store, "0/object_index").await;
            assert_eq!(index["attributes"]["num_objects"], json!(2));
            assert_eq!(index["attributes"]["num_present"], json!(2));
            let now = findings(&store).await;
            let new: Vec<_> = now.difference(&known).collect();
            assert!(new.is_empty(), "{new:?}");
        });
    }
}

#[test]
fn values_of_vertices_keep_the_shape_of_their_rows() {
    block_on(async {
        let mut geometry = points(&[1, 2, 3], Vec::new());
        let tensors = NumericColumn::float32(4, (0..12_u8).map(f32::from));
        geometry.vertex.push(Column::new("tensor", tensors.clone()));
        let store = store_of(geometry, ManifestForm::default()).await;
        let path = "0/vertex_attributes/tensor";
        let mut json = node(&store, path).await;
        assert_eq!(json["attributes"]["row_shape"], json!([4]));
        json["attributes"]["row_shape"] = json!([2, 2]);
        put(&store, &format!("{path}/zarr.json"), json.to_string()).await;

        let dataset = Dataset::open(store.clone()).await.unwrap();
        let all = dataset.query(&Query::new().row_ids(true)).await.unwrap();
        let rows = all.row_ids.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        let one = [Column::new(
            "tensor",
            NumericColumn::float32(4, [9.0, 8.0, 7.0, 6.0]),
        )];
        let options = TableOptions::default();
        let written = editor.write_vertex_attributes(&rows[..1], &one, &options);
        written.await.unwrap();
        let json = node(&store, path).await;
        assert_eq!(json["attributes"]["row_shape"], json!([2, 2]));
        let changed_store = read(&store).await;
        let after = changed_store
            .vertex
            .iter()
            .find(|column| column.name == "tensor");
        let mut expected = tensors.bytes;
        let changed = [9.0_f32, 8.0, 7.0, 6.0].map(f32::to_le_bytes);
        expected[..16].copy_from_slice(changed.as_flattened());
        assert_eq!(bytes_of(after.unwrap()), expected);
    });
}

#[test]
fn tables_with_repeated_keys_are_refused() {
    block_on(async {
        let store = store_of(points(&[7, 8, 9], Vec::new()), ManifestForm::default()).await;
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let all = dataset.query(&Query::new().row_ids(true)).await.unwrap();
        let mut rows = all.row_ids.unwrap();
        rows[1] = rows[0];
        let editor = Editor::open(store.clone()).await.unwrap();
        let column = [Column::new("class", NumericColumn::int64(1, [1, 2, 3]))];
        let options = TableOptions::default();
        let error = editor
            .write_vertex_attributes(&rows, &column, &options)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("a row id occurs twice"), "{error}");
        let error = editor
            .write_object_attributes(&[7, 8, 7], &column, &options)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("object id 7 occurs twice"), "{error}");
    });
}

#[test]
fn parts_report_objects_that_do_not_exist() {
    block_on(async {
        let store = store_of(points(&[7, 8, 9], Vec::new()), ManifestForm::default()).await;
        let dataset = Dataset::open(store).await.unwrap();
        let query = Query::new().objects([7, 9, 999]).keep_going(true);
        let parts = dataset.partitions(&query, 2).await.unwrap();
        let (mut vertices, mut skipped) = (0, Vec::new());
        for part in &parts {
            let result = dataset.query(&part.query(&query)).await.unwrap();
            vertices += result.positions.len();
            skipped.extend(result.skipped);
        }
        let whole = dataset.query(&query).await.unwrap();
        assert_eq!((vertices, skipped.len()), (2, 1));
        assert_eq!(skipped, whole.skipped);
    });
}

#[test]
fn a_fragment_whose_other_owners_are_removed_has_one_owner() {
    let golden = Golden::open("zvf-09");
    let files = golden.store("fragment_owner/store.zarrvectors");
    block_on(async {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let owners = async || {
            let key = Key::parse("0/fragment_attributes/object_id/c/0/0/0").unwrap();
            let bytes = store.read_one(Read::full(key)).await.unwrap().unwrap();
            let values = bytes[8..]
                .chunks_exact(8)
                .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()));
            values.collect::<Vec<i64>>()
        };
        assert_eq!(owners().await, [3, -2, -1, 5]);
        let known = findings(&store).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[8]).await.unwrap();
        assert_eq!(owners().await, [3, 3, -1, 5]);
        let now = findings(&store).await;
        let new: Vec<_> = now.difference(&known).collect();
        assert!(new.is_empty(), "{new:?}");
    });
}

/// Regression test: the reference declares one column for attributes that have several. Their values
/// could not be changed at all.
#[test]
fn values_are_as_wide_as_the_cells_of_their_attribute() {
    let golden = Golden::open("zvf-09");
    let files = golden.store("polylines_reentrant/store.zarrvectors");
    block_on(async {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let known = findings(&store).await;
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let before = dataset.query(&Query::new().row_ids(true)).await.unwrap();
        let rows = before.row_ids.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        let write = |numbers| {
            let (editor, row) = (&editor, &rows[1..2]);
            let columns = [Column::new("uv", numbers)];
            async move {
                let options = TableOptions::default();
                editor
                    .write_vertex_attributes(row, &columns, &options)
                    .await
            }
        };
        let narrow = write(NumericColumn::float32(1, [9.0])).await.unwrap_err();
        assert!(narrow.to_string().contains("2 x float32"), "{narrow}");
        write(NumericColumn::float32(2, [9.0, 8.0])).await.unwrap();
        let attributes = node(&store, "0/vertex_attributes/uv").await["attributes"].clone();
        assert_eq!(attributes["row_shape"], json!([2]));
        let of = |columns: &[Column]| {
            let column = columns.iter().find(|column| column.name == "uv").unwrap();
            bytes_of(column).to_vec()
        };
        let mut expected = of(&before.vertex);
        let changed = [9.0_f32, 8.0].map(f32::to_le_bytes);
        expected[8..16].copy_from_slice(changed.as_flattened());
        assert_eq!(of(&read(&store).await.vertex), expected);
        let now = findings(&store).await;
        let new: Vec<_> = now.difference(&known).collect();
        assert!(new.is_empty(), "{new:?}");
    });
}

/// Regression test: the reference declares one column for attributes that have several. One column
/// was accepted, after which the store could not be read, and two were refused.
#[test]
fn attributes_are_as_wide_as_their_cells() {
    let golden = Golden::open("zvf-09");
    let files = golden.store("polylines_reentrant/store.zarrvectors");
    block_on(async {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let attributes = node(&store, "0/vertex_attributes/uv").await["attributes"].clone();
        assert_eq!(attributes["row_shape"], json!([]));
        let before = read(&store).await.positions.len();
        let known = findings(&store).await;
        let chunk = Dataset::open(store.clone())
            .await
            .unwrap()
            .root()
            .chunk_shape
            .extents()
            .to_vec();
        let editor = Editor::open(store.clone()).await.unwrap();
        // A chunk with vertices, and one without.
        for (id, first) in [(101, 0.1), (102, 2.1)] {
            let place = |by: f64| {
                chunk.iter().enumerate().map(move |(axis, extent)| {
                    let first = if axis == 0 { first } else { 0.1 };
                    ((first + by) * extent) as f32
                })
            };
            let places: Vec<f32> = place(0.0).chain(place(0.1)).collect();
            let mut path = Geometry::builder(NumericColumn::float32(3, places))
                .paths(vec![0, 2], vec![id])
                .vertex(vec![Column::new(
                    "uv",
                    NumericColumn::float32(1, [1.0, 2.0]),
                )]);
            let error = editor
                .append(&path.clone().build().unwrap(), OutOfBounds::Expand)
                .await
                .unwrap_err();
            let text = format!("{error:?}");
            assert!(
                text.contains("2 x float32") && text.contains("1 x float32"),
                "{text}"
            );
            let values = NumericColumn::float32(2, [1.0, 2.0, 3.0, 4.0]);
            path.vertex = vec![Column::new("uv", values.clone())];
            editor
                .append(&path.build().unwrap(), OutOfBounds::Expand)
                .await
                .unwrap();
            let dataset = Dataset::open(store.clone()).await.unwrap();
            let found = dataset.query(&Query::new().objects([id])).await.unwrap();
            assert_eq!(found.vertex[0].values, ColumnValues::Numeric(values));
        }
        assert_eq!(read(&store).await.positions.len(), before + 4);
        let now = findings(&store).await;
        let new: Vec<_> = now.difference(&known).collect();
        assert!(new.is_empty(), "{new:?}");
    });
}
