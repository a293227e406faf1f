//! Attributes of links between chunks in one array, beside cells of links.

use serde_json::{Value as Json, json};
use zvf::{
    Column, CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn, OpenOptions,
    Profile, Query, Scope, Store, ValidateOptions,
};
use zvf_build::{BuildError, WritePlan};

use crate::{
    block_on,
    damage::is_same,
    migrated::migrated,
    validated::{findings, snapshot},
};

type Files = Vec<(String, Vec<u8>)>;

/// A chain of vertices through 12 chunks, with links back: chunk 10 comes before chunk 2
/// in the order of keys.
fn chain() -> Geometry {
    let places = (0..12_u8).flat_map(|at| [f32::from(at) * 10.0 + 2.0, f32::from(at) * 10.0 + 7.0]);
    let places = places.flat_map(|x| [x, 5.0]);
    let forth = (0..23).flat_map(|at| [at, at + 1]);
    let back = (0..11).flat_map(|at| [2 * at + 3, 2 * at]);
    let links: Vec<i64> = forth.chain(back).collect();
    let mut geometry = Geometry::builder(NumericColumn::float32(2, places));
    let count = u8::try_from(links.len() / 2).unwrap();
    geometry.links.ends = links;
    let pairs = (0..count).flat_map(|at| [f32::from(at), -f32::from(at)]);
    geometry.link = vec![
        Column::new("weight", NumericColumn::float32(2, pairs)),
        Column::new(
            "number",
            NumericColumn::float32(1, (0..count).map(f32::from)),
        ),
        Column::text(
            "word",
            (0..count).map(|at| Some(["a", "b"][usize::from(at % 2)])),
        ),
    ];
    geometry.build().unwrap()
}

fn design(profile: Profile, is_flat: bool) -> Design {
    Design::new(GeometryKind::Graphs)
        .chunk_shape([10.0; 2])
        .profile(profile)
        .flat_link_attributes(is_flat)
}

fn created(is_flat: bool) -> Files {
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(chain(), design(Profile::V08, is_flat)).unwrap();
        let options = CreateOptions::default().seal(false);
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        snapshot(&store).await
    })
}

const DATA: &str = "0/cross_chunk_link_attributes/weight/0/data/c/0";

fn open(files: &Files) -> Dataset {
    let store = OpenOptions::default().from_memory(files.clone()).unwrap();
    block_on(Dataset::open(store)).unwrap()
}

#[test]
fn values_of_links_between_chunks_may_be_one_array() {
    let (cells, flat) = (created(false), created(true));
    assert!(flat.iter().any(|(path, _)| path == DATA));
    let options = ValidateOptions::default();
    assert_eq!(findings(&flat, &options), Vec::<String>::new());
    let (cells, flat) = (open(&cells), open(&flat));
    let whole = |dataset: &Dataset| block_on(dataset.query(&Query::new())).unwrap();
    let expected = whole(&cells);
    let links = expected.links.as_ref().unwrap();
    assert_eq!((links.len(), expected.columns(Scope::Link).len()), (34, 3));
    let found = whole(&flat);
    assert!(is_same(&found, &expected), "{found:#?}");
    for profile in [Profile::V09, Profile::V08] {
        let (one, report) = block_on(migrated(&flat, profile)).unwrap();
        assert_eq!(report.lost, []);
        let (other, _) = block_on(migrated(&cells, profile)).unwrap();
        assert!(is_same(&whole(&one), &whole(&other)), "{profile:?}");
        let files = block_on(snapshot(one.store()));
        assert_eq!(findings(&files, &options), Vec::<String>::new());
    }
}

#[test]
fn one_array_of_values_has_a_row_for_each_link() {
    let files = created(true);
    let options = ValidateOptions::default();
    let changed = |change: &dyn Fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        let found = findings(&files, &options);
        let result = block_on(open(&files).query(&Query::new()));
        (found, result.is_err())
    };
    let edit = |files: &mut Files, name: &str, value: Json| {
        let path = "0/cross_chunk_link_attributes/weight/0/zarr.json";
        let (_, bytes) = files.iter_mut().find(|(name, _)| name == path).unwrap();
        let mut node: Json = serde_json::from_slice(bytes).unwrap();
        node["attributes"][name] = value;
        *bytes = node.to_string().into_bytes();
    };
    let (found, _) = changed(&|files| edit(files, "num_links", json!(21)));
    assert!(
        found.iter().any(|line| line.contains("ZV-L3-119")),
        "{found:?}"
    );
    let (found, _) = changed(&|files| edit(files, "shape", json!([22, 3])));
    assert!(
        found.iter().any(|line| line.contains("shape declares")),
        "{found:?}"
    );
    let (found, is_refused) = changed(&|files| files.retain(|(path, _)| path != DATA));
    assert!(is_refused && !found.is_empty(), "{found:?}");
    // Cells beside the array of all values.
    let (found, is_refused) = changed(&|files| {
        let folder = "0/cross_chunk_link_attributes/weight/0";
        let own: Files = files
            .iter()
            .filter_map(|(path, bytes)| {
                let rest = path.strip_prefix(&format!("{folder}/data/"))?;
                Some((format!("{folder}/0.0.1.0/{rest}"), bytes.clone()))
            })
            .collect();
        files.extend(own);
    });
    assert!(is_refused && !found.is_empty(), "{found:?}");
}

#[test]
fn one_array_of_values_is_a_form_before_0_9() {
    for profile in [Profile::V09, Profile::V10] {
        let refused = WritePlan::new(chain(), design(profile, true)).unwrap_err();
        assert!(
            matches!(refused, BuildError::UnsupportedOption { .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains("0.8"), "{refused}");
    }
}
