//! The requests that opening a store takes.

use serde_json::{Value as Json, json};
use zvf::{Dataset, Error, Generation, LevelId, OpenOptions, Query, Selection, Shape};
use zvf_model::detection::GenerationError;
use zvf_store::Store;
use zvf_testkit::golden::Golden;

use crate::block_on;

pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Returns the recorded stores of an archive by name.
pub(crate) fn recorded(archive: &str) -> Vec<(String, Files)> {
    let golden = Golden::open(archive);
    let roots = golden.files().filter_map(|(path, _)| {
        let store = path.strip_suffix("/zarr.json")?;
        let (_, end) = store.rsplit_once('.')?;
        matches!(end, "zv" | "zarrvectors").then_some(store)
    });
    let stores = roots.map(|store| {
        let prefix = format!("{store}/");
        let files = golden.files().filter_map(|(path, bytes)| {
            Some((path.strip_prefix(&prefix)?.to_owned(), bytes.to_vec()))
        });
        (store.to_owned(), files.collect())
    });
    stores.collect()
}

fn store(archive: &str, name: &str) -> Files {
    let stores = recorded(archive).into_iter();
    let mut found = stores.filter(|(store, _)| store.starts_with(name));
    found.next().unwrap().1
}

fn in_memory(files: Files) -> Store {
    let options = OpenOptions::default().record_requests(true);
    options.from_memory(files).unwrap()
}

fn open(store: &Store) -> Result<Dataset, Error> {
    block_on(Dataset::open(store.clone()))
}

/// Returns requests since the last call, and listings since the start.
fn take_requests(store: &Store) -> (Vec<String>, u64) {
    let log = store
        .take_request_log()
        .into_iter()
        .map(|read| format!("{} {}", read.key, read.range));
    (log.collect(), store.activity().lists)
}

fn change(files: &mut Files, key: &str, change: impl FnOnce(&mut Json)) {
    let (_, bytes) = files.iter_mut().find(|(name, _)| name == key).unwrap();
    let mut json = serde_json::from_slice(bytes).unwrap();
    change(&mut json);
    *bytes = json.to_string().into_bytes();
}

const OF_0_9: [&str; 3] = [
    "zarr.json all bytes",
    "0/zarr.json all bytes",
    "0/vertices/zarr.json all bytes",
];

#[test]
fn every_recorded_store_of_0_9_opens_with_three_requests() {
    let stores = recorded("zvf-09");
    assert!(stores.len() > 50, "{}", stores.len());
    for (name, files) in stores {
        let store = in_memory(files);
        let dataset = open(&store).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            take_requests(&store),
            (OF_0_9.map(str::to_owned).to_vec(), 0),
            "{name}"
        );
        assert_eq!(dataset.detection().generation, Generation::V0_9, "{name}");
    }
}

/// A grid at the origin has no offset in the metadata, and its shards look like those of 0.8.1.
#[test]
fn shards_at_the_origin_follow_the_declared_version() {
    for (version, generation, lists) in [
        ("0.9.0", Generation::V0_9, false),
        ("0.8.1", Generation::V0_8_1, true),
    ] {
        let mut files = store("zvf-09", "points_sharded/");
        change(&mut files, "zarr.json", |root| {
            root["attributes"]["zarr_vectors"]["zv_version"] = json!(version);
        });
        change(&mut files, "0/vertices/zarr.json", |array| {
            let attributes = array["attributes"].as_object_mut().unwrap();
            attributes.remove("chunk_grid_origin").unwrap();
        });
        let store = in_memory(files);
        let dataset = open(&store).unwrap();
        assert_eq!(dataset.detection().generation, generation);
        assert_eq!(store.activity().lists > 0, lists);
    }
}

/// Detection from one array equals detection from all nodes, except for the layout of the object
/// index.
#[test]
fn detection_from_one_array_equals_detection_from_all_nodes() {
    for (name, files) in recorded("zvf-09") {
        let short = open(&in_memory(files.clone())).unwrap();
        // Without a list of levels in the root, nothing is assumed.
        let mut files = files;
        change(&mut files, "zarr.json", |root| {
            root["attributes"]["multiscales"][0]["datasets"] = json!([]);
        });
        let store = in_memory(files);
        let long = open(&store).unwrap();
        assert!(store.activity().lists > 0, "{name}");
        let (short_layout, mut long_layout) = (*short.layout(), *long.layout());
        long_layout.object_index = short_layout.object_index;
        assert_eq!(short_layout, long_layout, "{name}");
        assert_eq!(short.detection().notes, long.detection().notes, "{name}");
        assert_eq!(short.levels(), long.levels(), "{name}");
        for id in short.levels() {
            let mut long = block_on(long.level(*id)).unwrap();
            let short = block_on(short.level(*id)).unwrap();
            long.bin_shape.clone_from(&short.bin_shape);
            long.bin_ratio.clone_from(&short.bin_ratio);
            long.notes.clone_from(&short.notes);
            assert_eq!(short, long, "{name}");
        }
    }
}

#[test]
fn older_stores_are_probed() {
    let store = in_memory(store("zvf-07", "graph.zv"));
    open(&store).unwrap();
    let (requests, lists) = take_requests(&store);
    let expected = [
        "zarr.json",
        "0/zarr.json",
        "parametric/objects/zarr.json",
        "0/vertices/zarr.json",
        "0/object_index/zarr.json",
        "0/groups/zarr.json",
        "0/object_attributes/label/zarr.json",
        "0/links/0/zarr.json",
        "0/links/0/0.0.0/zarr.json",
        "0/cross_chunk_links/0/zarr.json",
        "0/cross_chunk_links/0/data/zarr.json",
    ];
    let mut sorted = requests.clone();
    sorted.sort();
    let mut expected: Vec<String> = expected.map(|key| format!("{key} all bytes")).to_vec();
    expected.sort();
    assert_eq!(sorted, expected);
    assert_eq!(requests[0], "zarr.json all bytes");
    assert_eq!(lists, 7);
}

#[test]
fn an_unsupported_version_is_rejected_from_the_root_alone() {
    let mut files = store("zvf-07", "graph.zv");
    change(&mut files, "zarr.json", |root| {
        root["attributes"]["zarr_vectors"]["zv_version"] = json!("0.4.1");
    });
    let store = in_memory(files);
    assert!(
        open(&store)
            .unwrap_err()
            .cause::<GenerationError>()
            .is_some()
    );
    assert_eq!(
        take_requests(&store),
        (vec!["zarr.json all bytes".to_owned()], 0)
    );
}

#[test]
fn levels_are_read_on_demand() {
    let store = in_memory(store("zvf-09", "pyramid_points/"));
    let dataset = open(&store).unwrap();
    let ids = [0, 1, 2].map(LevelId::new);
    assert_eq!(dataset.levels(), ids);
    take_requests(&store);
    for (id, cost) in [(0, None), (2, Some("2/zarr.json all bytes")), (2, None)] {
        let level = block_on(dataset.level(LevelId::new(id))).unwrap();
        assert_eq!(level.level, LevelId::new(id));
        assert_eq!(
            take_requests(&store).0,
            cost.into_iter().collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_missing_level_is_an_error_on_access() {
    let mut files = store("zvf-09", "pyramid_points/");
    files.retain(|(key, _)| !key.starts_with("1/"));
    let dataset = open(&in_memory(files)).unwrap();
    assert_eq!(dataset.levels().len(), 3);
    for id in [1, 7] {
        let error = block_on(dataset.level(LevelId::new(id))).unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert_eq!(error.to_string(), format!("memory: has no level {id}"));
    }
    // `info` counts what is stored.
    let info = block_on(dataset.info()).unwrap();
    let ids: Vec<u32> = info
        .levels
        .iter()
        .map(|level| level.level.number())
        .collect();
    assert_eq!(ids, [0, 2]);
}

#[test]
fn a_level_missing_from_the_root_is_counted() {
    let mut files = store("zvf-09", "pyramid_points/");
    change(&mut files, "zarr.json", |root| {
        let datasets = &mut root["attributes"]["multiscales"][0]["datasets"];
        datasets
            .as_array_mut()
            .unwrap()
            .retain(|dataset| dataset["path"] != "1");
    });
    let store = in_memory(files);
    let dataset = open(&store).unwrap();
    assert_eq!(
        take_requests(&store),
        (OF_0_9.map(str::to_owned).to_vec(), 0)
    );
    assert_eq!(dataset.levels(), [0, 2].map(LevelId::new));
    let info = block_on(dataset.info()).unwrap();
    assert_eq!(info.levels.len(), 3);
}

/// A store of 0.9 whose first level is a coarser one.
#[test]
fn detection_uses_the_first_existing_level() {
    let mut files = store("zvf-09", "pyramid_points/");
    files.retain(|(key, _)| !key.starts_with("0/"));
    let named = in_memory(files.clone());
    let dataset = open(&named).unwrap();
    assert!(named.activity().lists > 0);
    assert_eq!(dataset.levels(), [1, 2].map(LevelId::new));
    change(&mut files, "zarr.json", |root| {
        let datasets = &mut root["attributes"]["multiscales"][0]["datasets"];
        datasets.as_array_mut().unwrap().remove(0);
    });
    let store = in_memory(files);
    open(&store).unwrap();
    let expected = OF_0_9.map(|line| line.replace("0/", "1/"));
    assert_eq!(take_requests(&store), (expected.to_vec(), 0));
}

/// Stores with an edited version, and stores without the data that confirms their version.
#[test]
fn a_contradicted_version_is_probed() {
    let mut files = store("zvf-07", "graph.zv");
    change(&mut files, "zarr.json", |root| {
        root["attributes"]["zarr_vectors"]["zv_version"] = json!("0.9.2");
    });
    let seen = in_memory(files);
    let dataset = open(&seen).unwrap();
    assert!(dataset.detection().generation < Generation::V0_8_0);
    assert_eq!(dataset.detection().notes.len(), 1);

    let mut files = store("zvf-09", "graph_3d/");
    files.retain(|(key, _)| !key.starts_with("0/vertices/"));
    let seen = in_memory(files);
    open(&seen).unwrap();
    assert!(seen.activity().lists > 0);

    // Without its attributes, the level may be chunked differently.
    let mut files = store("zvf-09", "graph_3d/");
    files.retain(|(key, _)| key != "0/zarr.json");
    let seen = in_memory(files);
    let dataset = open(&seen).unwrap();
    assert!(seen.activity().lists > 0);
    let level = block_on(dataset.level(LevelId::FULL)).unwrap();
    assert_eq!(level.notes.len(), 1);
}

/// Early stores of 0.9 stored cross-chunk links in the layout of 0.8.
#[test]
fn links_of_an_older_generation_are_not_lost() {
    let old = |archive, name| {
        let files = store(archive, name).into_iter();
        files.filter(|(key, _)| key.starts_with("0/cross_chunk_links/"))
    };
    let mut files = store("zvf-09", "graph_3d/");
    let store_of = |files: &Files| {
        let store = in_memory(files.clone());
        (open(&store).unwrap(), store)
    };
    let delta = zvf_format::path::Delta::INTRA;
    let (dataset, store) = store_of(&files);
    let catalog = dataset.catalog();
    for _ in 0..2 {
        assert!(!block_on(catalog.has_legacy_links(LevelId::FULL, delta)).unwrap());
    }
    assert_eq!(
        take_requests(&store),
        (OF_0_9.map(str::to_owned).to_vec(), 1)
    );
    files.extend(old("zvf-08", "0.8.0/graph.zv"));
    let (dataset, store) = store_of(&files);
    let catalog = dataset.catalog();
    for _ in 0..2 {
        assert!(block_on(catalog.has_legacy_links(LevelId::FULL, delta)).unwrap());
    }
    assert_eq!(take_requests(&store).1, 2);
    // `info` inspects everything.
    let error = block_on(dataset.info()).unwrap_err();
    assert!(error.cause::<GenerationError>().is_some(), "{error}");
}

/// All points of the first level, without attributes.
pub(crate) fn places() -> Query {
    let mut query = Query::default();
    query.shape = Some(Shape::Points);
    query.columns = Selection::Named(Vec::new());
    query.owners = false;
    query
}

#[test]
fn a_query_reuses_what_opening_read() {
    let store = in_memory(store("zvf-09", "points_3d/"));
    let dataset = open(&store).unwrap();
    let result = block_on(dataset.query(&places())).unwrap();
    assert!(!result.positions.is_empty());
    let (requests, lists) = take_requests(&store);
    assert_eq!(requests[..3], OF_0_9);
    let mut once = requests.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), requests.len(), "{requests:?}");
    assert_eq!(lists, 0);
}
