//! Steps of paths, which are stored as links on request and change nothing else.

use serde_json::{Value as Json, json};
use zvf::{
    CreateOptions, Dataset, Editor, LevelDesign, OpenOptions, PyramidLevels, PyramidOptions, Store,
    ValidateOptions, coarsen::CoarsenMethod,
};
use zvf_build::{
    Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, Profile,
    StepLinks, WritePlan,
};

use crate::{
    block_on,
    fetch::FromStore,
    links::{links, records},
    migrated::migrated,
    validated::{findings, own::is_sound, snapshot},
};

/// Returns a path with two vertices in each of a number of chunks of size 10.
fn path(chunks: u8) -> GeometryBuilder {
    let places = (0..chunks)
        .flat_map(|at| [f32::from(at) * 10.0 + 1.0, f32::from(at) * 10.0 + 8.0])
        .flat_map(|x| [x, 5.0]);
    Geometry::builder(NumericColumn::float32(2, places)).paths(vec![0, 2 * u64::from(chunks)], None)
}

/// Returns the number of links that a store declares; `None` if it declares none.
async fn declared(store: &Store) -> Option<u64> {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let info = dataset.info().await.unwrap();
    info.levels[0].links
}

/// Creates a store of a path through four chunks.
async fn created(step_links: StepLinks, profile: Profile) -> Store {
    let mut design = Design::new(GeometryKind::Streamlines)
        .chunk_shape([10.0; 2])
        .profile(profile);
    design.bounds = Some((vec![0.0; 2], vec![100.0; 2]));
    design.step_links = step_links;
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let plan = WritePlan::new(path(4).build().unwrap(), design).unwrap();
    let count = steps(4, step_links, profile);
    assert_eq!(plan.summary().links, count, "{step_links:?} {profile:?}");
    let options = CreateOptions::default().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

/// Returns the number of stored steps of a path through chunks with two vertices each.
fn steps(chunks: u64, stored: StepLinks, profile: Profile) -> u64 {
    match stored {
        StepLinks::All => 2 * chunks - 1,
        StepLinks::None if profile == Profile::V09 => 0,
        _ => chunks - 1,
    }
}

/// Checks the number of links of a store, which must be sound.
async fn has_links(store: &Store, count: u64, about: &str) {
    assert_eq!(declared(store).await.unwrap_or(0), count, "{about}");
    is_sound(store, about).await;
}

#[test]
fn links_between_pieces_are_stored_on_request() {
    for (step_links, profile) in [
        (StepLinks::None, Profile::V09),
        (StepLinks::Between, Profile::V09),
        (StepLinks::All, Profile::V09),
        (StepLinks::None, Profile::V08),
        (StepLinks::All, Profile::V08),
        (StepLinks::All, Profile::Padded),
    ] {
        let about = format!("{step_links:?} {profile:?}");
        let count = |chunks| steps(chunks, step_links, profile);
        block_on(async {
            let store = created(step_links, profile).await;
            has_links(&store, count(4), &about).await;
            if profile != Profile::V09 {
                return;
            }
            let editor = Editor::open(store.clone()).await.unwrap();
            let appended = editor
                .append(&path(6).build().unwrap(), OutOfBounds::Reject)
                .await
                .unwrap();
            assert_eq!(appended.added, 12);
            has_links(&store, count(4) + count(6), &about).await;
            editor.remove(&[0]).await.unwrap();
            has_links(&store, count(6), &about).await;
            editor.compact().await.unwrap();
            has_links(&store, count(6), &about).await;
        });
    }
}

/// Coarser levels have paths, and no links along them.
#[test]
fn levels_of_linked_paths_have_no_links() {
    block_on(async {
        let store = created(StepLinks::All, Profile::V09).await;
        let level = LevelDesign {
            method: CoarsenMethod::Stride { step: 2 },
            chunk_scale: vec![2; 2],
            sparsity: None,
            additive: false,
            sharding: None,
        };
        let levels = PyramidLevels::Explicit(vec![level]);
        let options = PyramidOptions::new().levels(levels);
        zvf::build_pyramid(&store, &options).await.unwrap();
        has_links(&store, steps(4, StepLinks::All, Profile::V09), "a pyramid").await;
        let dataset = Dataset::open(store).await.unwrap();
        let info = dataset.info().await.unwrap();
        assert_eq!((info.levels.len(), info.levels[1].links), (2, Some(0)));
    });
}

/// Returns the records of all links inside level 0.
fn stored(dataset: Dataset) -> Vec<String> {
    let found = links(&FromStore::new(dataset), 0, 0).unwrap().unwrap();
    let families = found.families.iter();
    let mut all: Vec<String> = families.flat_map(|family| records(Some(family))).collect();
    all.sort();
    all
}

/// The path goes through two rows of each chunk, and from the last row of each to the first of the
/// next.
#[test]
fn all_steps_are_links_in_the_order_of_the_path() {
    let all = [
        "0.0:0 0.0:1",
        "0.0:1 1.0:0",
        "1.0:0 1.0:1",
        "1.0:1 2.0:0",
        "2.0:0 2.0:1",
        "2.0:1 3.0:0",
        "3.0:0 3.0:1",
    ];
    for profile in Profile::ALL {
        let store = block_on(created(StepLinks::All, profile));
        let dataset = block_on(Dataset::open(store)).unwrap();
        assert_eq!(stored(dataset.clone()), all, "{profile:?}");
        for target in [Profile::V09, Profile::V08] {
            let about = format!("{profile:?} to {target:?}");
            let (moved, report) = block_on(migrated(&dataset, target)).unwrap();
            assert_eq!(report.repaired.len(), 0, "{about}");
            block_on(is_sound(moved.store(), &about));
            assert_eq!(stored(moved), all, "{about}");
        }
    }
}

/// The steps between chunks of a padded store are one array of pairs of numbers of vertices, which count
/// the rows of all chunks in order.
#[test]
fn steps_of_padded_paths_are_pairs_of_numbered_vertices() {
    let store = block_on(created(StepLinks::None, Profile::Padded));
    let files = block_on(snapshot(&store));
    let (_, bytes) = files
        .iter()
        .find(|(path, _)| path == "0/cross_chunk_links/c/0/0")
        .unwrap();
    let numbers: Vec<i64> = bytes
        .chunks_exact(8)
        .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let dataset = block_on(Dataset::open(store)).unwrap();
    let between = ["0.0:1 1.0:0", "1.0:1 2.0:0", "2.0:1 3.0:0"];
    let (_, report) = block_on(migrated(&dataset, Profile::V09)).unwrap();
    assert_eq!(report.lost, []);
    assert_eq!(stored(dataset), between);
    let options = ValidateOptions::default();
    assert_eq!(findings(&files, &options), Vec::<String>::new());
    // A number of no vertex, and a step that is none.
    for (number, code) in [(8_i64, "ZV-L3-1"), (0, "ZV-L4-011")] {
        let mut files = files.clone();
        let (_, bytes) = files
            .iter_mut()
            .find(|(path, _)| path == "0/cross_chunk_links/c/0/0")
            .unwrap();
        bytes[40..48].copy_from_slice(&number.to_le_bytes());
        let found = findings(&files, &options);
        assert!(found.iter().any(|line| line.contains(code)), "{found:?}");
        let store = OpenOptions::default().from_memory(files).unwrap();
        let dataset = block_on(Dataset::open(store)).unwrap();
        let read = links(&FromStore::new(dataset), 0, 0);
        assert_eq!(read.is_err(), number == 8, "{read:?}");
    }
    // Shapes that are not those of pairs.
    for shape in [json!([3, 3]), json!([6]), json!([1_u64 << 60, 2])] {
        let mut files = files.clone();
        let (_, bytes) = files
            .iter_mut()
            .find(|(path, _)| path == "0/cross_chunk_links/zarr.json")
            .unwrap();
        let mut node: Json = serde_json::from_slice(bytes).unwrap();
        let rank = shape.as_array().unwrap().len();
        node["chunk_grid"]["configuration"]["chunk_shape"] = json!(vec![1; rank]);
        node["shape"] = shape;
        *bytes = node.to_string().into_bytes();
        let found = findings(&files, &options);
        assert!(!found.is_empty(), "{node}");
        let store = OpenOptions::default().from_memory(files).unwrap();
        let dataset = block_on(Dataset::open(store)).unwrap();
        assert!(links(&FromStore::new(dataset), 0, 0).is_err(), "{node}");
    }
}
