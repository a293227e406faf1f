//! Names and forms that the description of chunk arrays gives to parts of a level.

use serde_json::{Value, json};
use zvf::{
    Bbox, CellCompression, Column, CreateOptions, Dataset, Design, ErrorKind, Geometry,
    GeometryKind, NumericColumn, OpenOptions, Predicate, Profile, Query, QueryResult, Store,
    ValidateOptions,
};
use zvf_build::WritePlan;
use zvf_format::vlen::VlenFrame;
use zvf_model::{
    generation::Generation,
    layout::{ObjectIndexForm, PartNames, TableForm},
};

use crate::{block_on, damage::is_same, migrated::migrated, validated};

type Files = Vec<(String, Vec<u8>)>;

/// Members of the groups of the store.
const GROUPS: [&[i64]; 3] = [&[0, 2], &[], &[1, 2, 3]];

/// Creates a padded store of points of four objects in groups, with an attribute.
fn written() -> Files {
    written_in(Profile::Padded)
}

fn written_in(profile: Profile) -> Files {
    let rows: Vec<[f32; 2]> = (0..40_u8)
        .map(|row| [f32::from(row), f32::from(row % 7)])
        .collect();
    let mut geometry = Geometry::builder(NumericColumn::from(rows))
        .object_ids((0..40).map(|row| row / 10).collect());
    let values = (0..40_u8).map(f32::from);
    geometry.vertex = vec![Column::new("intensity", NumericColumn::float32(1, values))];
    let weights = [0.5, 1.5, 2.5, 3.5];
    geometry.object = vec![Column::new("weight", NumericColumn::float32(1, weights))];
    let groups = (0..).zip(GROUPS);
    geometry.groups = groups.map(|(group, ids)| (group, ids.to_vec())).collect();
    let design = Design::new(GeometryKind::Points)
        .profile(profile)
        .compression(CellCompression::None)
        .chunk_shape([10.0, 10.0]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        let options = CreateOptions::default().seal(false).node_copy(false);
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        validated::snapshot(&store).await
    })
}

/// Renames the parts, and stores groups as rows of ids.
fn documented(files: &Files) -> Files {
    let old = "0/vertex_attributes/";
    let kept = files
        .iter()
        .filter(|(path, _)| !path.starts_with("0/groups/"));
    let mut files: Files = kept
        .map(|(path, bytes)| (path.replacen(old, "0/attributes/", 1), bytes.clone()))
        .collect();
    files.retain(|(path, _)| !path.starts_with(".zvf/"));
    let (rows, columns) = (GROUPS.len(), 3);
    let array = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [rows, columns],
        "data_type": "int64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows, columns]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": -1,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"zv_array": "groups"},
    });
    let ids = GROUPS.iter().flat_map(|ids| {
        let row = ids.iter().copied().chain([-1; 3]);
        row.take(columns)
    });
    files.push((
        "0/groupings/zarr.json".to_owned(),
        array.to_string().into_bytes(),
    ));
    files.push((
        "0/groupings/c/0/0".to_owned(),
        ids.flat_map(i64::to_le_bytes).collect(),
    ));
    change(&mut files, "0", |level| {
        let present = &mut level["attributes"]["zarr_vectors_level"]["arrays_present"];
        *present = json!(["vertices", "attributes", "groupings", "object_index"]);
    });
    files
}

async fn results(dataset: &Dataset) -> Vec<QueryResult> {
    let filter = Predicate::parse("vertex.intensity > 11.5").unwrap();
    let area = Bbox::new(&[12.0, 0.0], &[18.0, 9.0]).unwrap();
    let queries = [
        Query::new(),
        Query::new().region(area),
        Query::new().groups([2]),
        Query::new().filter(filter),
    ];
    let mut results = Vec::new();
    for query in queries {
        results.push(dataset.query(&query).await.unwrap());
    }
    results
}

#[test]
fn parts_are_read_under_the_names_of_documents() {
    let files = written();
    let other = documented(&files);
    assert!(
        other
            .iter()
            .any(|(path, _)| path.starts_with("0/attributes/intensity/"))
    );
    let options = ValidateOptions::default();
    assert_eq!(validated::findings(&files, &options), Vec::<String>::new());
    assert_eq!(validated::findings(&other, &options), Vec::<String>::new());
    let mut tagged = other.clone();
    change(&mut tagged, "0/groupings", |node| {
        node["attributes"]["zv_array"] = json!("groupings");
    });
    assert_eq!(validated::findings(&tagged, &options), Vec::<String>::new());
    block_on(async {
        let open = |files: &Files| OpenOptions::default().from_memory(files.clone()).unwrap();
        let plain = Dataset::open(open(&files)).await.unwrap();
        let dataset = Dataset::open(open(&other)).await.unwrap();
        assert_eq!(dataset.layout().names, PartNames::DOCUMENTED);
        let expected = results(&plain).await;
        assert_eq!(expected[2].groups[0].members, GROUPS[2]);
        assert_eq!(expected[3].positions.len(), 28);
        for (found, expected) in results(&dataset).await.iter().zip(&expected) {
            assert!(is_same(found, expected), "{found:?}");
        }
        for profile in [Profile::V09, Profile::V08] {
            let (migrated, report) = migrated(&dataset, profile).await.unwrap();
            assert_eq!(report.lost, []);
            for (found, expected) in results(&migrated).await.iter().zip(&expected) {
                assert!(is_same(found, expected), "{found:?}");
            }
            let files = validated::snapshot(migrated.store()).await;
            let report = zvf::validate(migrated.store(), &options).await.unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            let has = |folder: &str| files.iter().any(|(path, _)| path.starts_with(folder));
            assert!(has("0/vertex_attributes/") && has("0/groups"));
            assert!(!has("0/attributes/") && !has("0/groupings"));
        }
    });
}

/// Manifests one after another, and attributes of objects as arrays of numbers, are the documents'
/// form of 0.8.0, with vertices of either form.
#[test]
fn objects_are_stored_as_in_documents() {
    for profile in [Profile::V08, Profile::Padded] {
        let written = written_in(profile);
        let files = with_open_manifests(&written);
        let options = ValidateOptions::default();
        assert_eq!(validated::findings(&files, &options), Vec::<String>::new());
        block_on(async {
            let open = |files: Files| OpenOptions::default().from_memory(files).unwrap();
            let plain = Dataset::open(open(written)).await.unwrap();
            let dataset = Dataset::open(open(files)).await.unwrap();
            let layout = dataset.layout();
            assert_eq!(layout.generation, Generation::V0_8_0);
            assert_eq!(layout.object_index, ObjectIndexForm::Open);
            assert_eq!(layout.tables, TableForm::Array);
            let (moved, _) = migrated(&dataset, Profile::V09).await.unwrap();
            let expected = results(&plain).await;
            for dataset in [dataset, moved] {
                for (found, expected) in results(&dataset).await.iter().zip(&expected) {
                    assert!(is_same(found, expected), "{profile:?}: {found:?}");
                }
            }
        });
    }
}

/// Stores manifests in `data` with `offsets`, and the attribute of objects as numbers.
fn with_open_manifests(files: &Files) -> Files {
    let decoded = |path: &str| {
        let file = files.iter().find(|(name, _)| name == path);
        let (_, bytes) = file.unwrap_or_else(|| panic!("{path}"));
        zstd::decode_all(bytes.as_slice()).unwrap()
    };
    let frame = decoded("0/object_index/manifests/c/0");
    let manifests = VlenFrame::parse(&frame).unwrap();
    let mut data = Vec::new();
    let mut offsets = Vec::new();
    for manifest in manifests {
        offsets.extend(i64::try_from(data.len()).unwrap().to_le_bytes());
        data.extend_from_slice(manifest);
    }
    let values = decoded("0/object_attributes/weight/data/c/0");
    let replaced = ["0/object_index/manifests/", "0/object_attributes/weight/"];
    let mut other: Files = files.clone();
    other.retain(|(path, _)| !replaced.iter().any(|folder| path.starts_with(folder)));
    change(&mut other, "0/object_index", |node| {
        node["attributes"].as_object_mut().unwrap().remove("layout");
    });
    let weight = json!({
        "zv_array": "object_attribute", "name": "weight", "dtype": "float32",
        "fill_sentinel_meaning": "absent",
    });
    let none = json!({});
    let arrays = [
        ("0/object_index/data", "uint8", data.len(), data, &none),
        (
            "0/object_index/offsets",
            "uint8",
            offsets.len(),
            offsets,
            &none,
        ),
        (
            "0/object_attributes/weight",
            "float32",
            values.len() / 4,
            values,
            &weight,
        ),
    ];
    for (path, dtype, rows, bytes, attributes) in arrays {
        let array = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [rows],
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": attributes,
        });
        other.push((format!("{path}/zarr.json"), array.to_string().into_bytes()));
        other.push((format!("{path}/c/0"), bytes));
    }
    other
}

/// Ids of members are checked in rows as well.
#[test]
fn members_of_groups_in_rows_are_objects() {
    let mut files = documented(&written());
    let (_, bytes) = files
        .iter_mut()
        .find(|(path, _)| path == "0/groupings/c/0/0")
        .unwrap();
    bytes[..8].copy_from_slice(&77_i64.to_le_bytes());
    let findings = validated::findings(&files, &ValidateOptions::default());
    assert!(
        findings
            .iter()
            .any(|line| line.contains("groupings group 0")),
        "{findings:?}"
    );
}

/// Arrays with a row for each vertex.
const OF_VERTICES: [&str; 2] = ["0/vertices", "0/vertex_attributes/intensity"];

/// Changes the node of an array.
fn change(files: &mut Files, array: &str, change: impl Fn(&mut Value)) {
    let path = format!("{array}/zarr.json");
    let (_, bytes) = files.iter_mut().find(|(name, _)| *name == path).unwrap();
    let mut node: Value = serde_json::from_slice(bytes).unwrap();
    change(&mut node);
    *bytes = node.to_string().into_bytes();
}

/// Returns the store with `rows` rows in a chunk of an array. Leaves out chunks of zeros, as
/// zarr-python does by default.
fn resized(files: &Files, rows: usize) -> Files {
    let mut files = files.clone();
    for (array, row) in OF_VERTICES.into_iter().zip([8, 4]) {
        change(&mut files, array, |node| {
            let chunk = &mut node["chunk_grid"]["configuration"]["chunk_shape"];
            assert_eq!(chunk[2], 10);
            chunk[2] = json!(rows);
        });
        let cells = format!("{array}/c/");
        let (old, kept): (Files, Files) = files
            .into_iter()
            .partition(|(path, _)| path.starts_with(&cells));
        files = kept;
        for (path, mut bytes) in old {
            let (chunk, columns) = path.split_at(cells.len() + "0/0/".len());
            bytes.resize(bytes.len().next_multiple_of(rows * row), 0);
            for (at, bytes) in bytes.chunks(rows * row).enumerate() {
                if bytes.iter().any(|byte| *byte != 0) {
                    let path = format!("{chunk}{at}{}", &columns[1..]);
                    files.push((path, bytes.to_vec()));
                }
            }
        }
    }
    files
}

/// A resized array keeps its chunks, so the rows of a chunk of the grid are in several.
#[test]
fn padded_arrays_are_read_across_their_chunks() {
    let files = written();
    let options = ValidateOptions::default();
    block_on(async {
        let open = async |files: &Files| {
            let store = OpenOptions::default().from_memory(files.clone()).unwrap();
            Dataset::open(store).await
        };
        let expected = results(&open(&files).await.unwrap()).await;
        for rows in [1, 3, 5, 10, 16] {
            let dataset = open(&resized(&files, rows)).await.unwrap();
            let report = zvf::validate(dataset.store(), &options).await.unwrap();
            assert!(report.findings.is_empty(), "{rows}: {:?}", report.findings);
            let (moved, report) = migrated(&dataset, Profile::V09).await.unwrap();
            assert_eq!(report.lost, [], "{rows}");
            for dataset in [dataset, moved] {
                for (found, expected) in results(&dataset).await.iter().zip(&expected) {
                    assert!(is_same(found, expected), "{rows}: {found:?}");
                }
            }
        }
        // Other chunks are refused.
        for chunk in [json!([2, 1, 10, 2]), json!([1, 1, 10, 1])] {
            let mut other = files.clone();
            change(&mut other, OF_VERTICES[0], |node| {
                node["chunk_grid"]["configuration"]["chunk_shape"] = chunk.clone();
            });
            let dataset = open(&other).await.unwrap();
            let error = dataset.query(&Query::new()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            let message = error.to_string();
            assert!(message.contains("0/vertices"), "{message}");
            let report = zvf::validate(dataset.store(), &options).await.unwrap();
            let mut codes = report.findings.iter().map(|finding| finding.rule.code);
            assert!(codes.any(|code| code == "ZV-L2-046"));
        }
    });
}

/// Writers leave out chunks of fill values, whatever their vertices.
#[test]
fn absent_chunks_of_padded_arrays_hold_the_fill_value() {
    let mut files = written();
    files.retain(|(path, _)| !path.starts_with("0/vertex_attributes/intensity/c/"));
    change(&mut files, OF_VERTICES[1], |node| {
        node["fill_value"] = json!(7.5);
    });
    let options = ValidateOptions::default();
    assert_eq!(validated::findings(&files, &options), Vec::<String>::new());
    block_on(async {
        let open = |files: &Files| {
            Dataset::open(OpenOptions::default().from_memory(files.clone()).unwrap())
        };
        let dataset = open(&files).await.unwrap();
        let (moved, _) = migrated(&dataset, Profile::V09).await.unwrap();
        for dataset in [dataset, moved] {
            let filter = Predicate::parse("vertex.intensity == 7.5").unwrap();
            let found = dataset.query(&Query::new().filter(filter)).await.unwrap();
            assert_eq!(found.positions.len(), 40);
        }
        // The memory for absent rows is bounded.
        for array in OF_VERTICES {
            change(&mut files, array, |node| {
                node["shape"][2] = json!(1_u64 << 40);
                node["chunk_grid"]["configuration"]["chunk_shape"][2] = json!(1_u64 << 40);
            });
        }
        files.retain(|(path, _)| !path.starts_with("0/vertices/c/"));
        let dataset = open(&files).await.unwrap();
        let error = dataset.query(&Query::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget);
    });
}
