//! Names that the description of chunk arrays uses for parts of a level.

use serde_json::json;
use zvf::{
    Column, CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn, OpenOptions,
    Predicate, Profile, Query, QueryResult, Store, ValidateOptions,
};
use zvf_build::WritePlan;
use zvf_model::layout::PartNames;

use crate::{block_on, damage::is_same, migrated::migrated, validated};

type Files = Vec<(String, Vec<u8>)>;

/// Members of the groups of the store.
const GROUPS: [&[i64]; 3] = [&[0, 2], &[], &[1, 2, 3]];

/// Creates a padded store of points of four objects in groups, with an attribute.
fn written() -> Files {
    let rows: Vec<[f32; 2]> = (0..40_u8)
        .map(|row| [f32::from(row), f32::from(row % 7)])
        .collect();
    let mut geometry = Geometry::builder(NumericColumn::from(rows))
        .object_ids((0..40).map(|row| row / 10).collect());
    let values = (0..40_u8).map(f32::from);
    geometry.vertex = vec![Column::new("intensity", NumericColumn::float32(1, values))];
    let groups = (0..).zip(GROUPS);
    geometry.groups = groups.map(|(group, ids)| (group, ids.to_vec())).collect();
    let design = Design::new(GeometryKind::Points)
        .profile(Profile::Padded)
        .chunk_shape([10.0, 10.0]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        let options = CreateOptions::default().seal(false);
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
    files
}

async fn results(dataset: &Dataset) -> Vec<QueryResult> {
    let filter = Predicate::parse("vertex.intensity > 11.5").unwrap();
    let queries = [
        Query::new(),
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
    let findings = validated::findings(&other, &options);
    // The level lists the names of writers.
    let is_listed = |line: &String| line.starts_with("ZV-L1-020") || line.starts_with("ZV-L1-021");
    let unexpected = findings.iter().filter(|line| !is_listed(line));
    assert_eq!(unexpected.collect::<Vec<_>>(), Vec::<&String>::new());
    block_on(async {
        let open = |files: &Files| OpenOptions::default().from_memory(files.clone()).unwrap();
        let plain = Dataset::open(open(&files)).await.unwrap();
        let dataset = Dataset::open(open(&other)).await.unwrap();
        assert_eq!(dataset.layout().names, PartNames::DOCUMENTED);
        let expected = results(&plain).await;
        assert_eq!(expected[1].groups[0].members, GROUPS[2]);
        assert_eq!(expected[2].positions.len(), 28);
        for (found, expected) in results(&dataset).await.iter().zip(&expected) {
            assert!(is_same(found, expected), "{found:?}");
        }
        let (migrated, report) = migrated(&dataset, Profile::V09).await.unwrap();
        assert_eq!(report.lost, []);
        for (found, expected) in results(&migrated).await.iter().zip(&expected) {
            assert!(is_same(found, expected), "{found:?}");
        }
        let files = validated::snapshot(migrated.store()).await;
        let has = |folder: &str| files.iter().any(|(path, _)| path.starts_with(folder));
        assert!(has("0/vertex_attributes/") && has("0/groups"));
        assert!(!has("0/attributes/") && !has("0/groupings"));
    });
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
