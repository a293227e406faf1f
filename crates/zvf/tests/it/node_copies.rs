//! The copy of all nodes in the root: its savings and its consistency.

use core::time::Duration;

use serde_json::{Value as Json, json};
use zvf::{
    Bbox, CreateOptions, Dataset, Design, Editor, Error, Geometry, GeometryKind, NumericColumn,
    OpenOptions, OutOfBounds, Profile, Query, Store,
};
use zvf_build::WritePlan;
use zvf_model::error_chain::error_chain;
use zvf_model::{key::Key, node_copy::LONGEST};
use zvf_store::{Read, SimulatedNetwork};

use crate::{
    block_on,
    written::{edits, random},
};

type Files = Vec<(String, Vec<u8>)>;

/// Reads all files of a store.
async fn files(store: &Store) -> Files {
    let listed = store.list_all(&Key::root(), 1 << 20).await.unwrap();
    let reads: Vec<Read> = listed
        .iter()
        .map(|file| Read::full(Key::parse(&file.name).unwrap()))
        .collect();
    let read = store.read(&reads).await.unwrap().into_iter();
    let named = listed.into_iter().zip(read);
    named
        .map(|(file, bytes)| (file.name, bytes.unwrap().to_vec()))
        .collect()
}

fn options() -> OpenOptions {
    let no_time = SimulatedNetwork {
        latency: Duration::ZERO,
        bandwidth: 0,
    };
    OpenOptions::default()
        .simulate_network(no_time)
        .record_requests(true)
}

/// Returns a store with the same files and remote latency.
fn far(files: &Files) -> Store {
    options().from_memory(files.clone()).unwrap()
}

async fn open(store: &Store) -> Result<Dataset, Error> {
    Dataset::open(store.clone()).await
}

/// Returns the files of a graph store before and after an append.
async fn two_states() -> (Files, Files) {
    let mut case = random::case(3, GeometryKind::Graphs, Profile::V09);
    let store = edits::unsealed_store(&mut case).await;
    let before = files(&store).await;
    let editor = Editor::open(store.clone()).await.unwrap();
    let mut more = case.geometry.clone();
    for id in more.owners.ids_mut().into_iter().flatten() {
        *id += 1_000_000;
    }
    editor
        .append(&more.build().unwrap(), OutOfBounds::Reject)
        .await
        .unwrap();
    (before, files(&store).await)
}

fn root(files: &mut Files, change: impl FnOnce(&mut Json)) {
    let (_, bytes) = files
        .iter_mut()
        .find(|(name, _)| name == "zarr.json")
        .unwrap();
    let mut json = serde_json::from_slice(bytes).unwrap();
    change(&mut json);
    *bytes = json.to_string().into_bytes();
}

/// Lists the requested `zarr.json` files, except the root.
fn nodes_read(store: &Store) -> Vec<String> {
    let log = store
        .take_request_log()
        .into_iter()
        .map(|read| read.key.to_string());
    log.filter(|key| key.ends_with("/zarr.json")).collect()
}

#[test]
fn a_remote_store_opens_with_one_request_and_verifies_two_nodes() {
    block_on(async {
        let (files, _) = two_states().await;
        let store = far(&files);
        let dataset = open(&store).await.unwrap();
        assert_eq!(store.take_request_log().len(), 1);
        // Nothing is selected by name, so nothing is compared.
        let check = dataset.check_selection(&Query::new()).await;
        check.unwrap();
        assert!(store.take_request_log().is_empty());
        let result = dataset.query(&Query::new()).await.unwrap();
        assert_eq!(nodes_read(&store), ["0/zarr.json", "0/vertices/zarr.json"]);
        assert_eq!(store.activity().lists, 0);
        let near = Store::from_memory(files).unwrap();
        let near = Dataset::open(near).await.unwrap();
        assert_eq!(near.query(&Query::new()).await.unwrap(), result);
        // They are compared once.
        dataset.query(&Query::new()).await.unwrap();
        assert_eq!(nodes_read(&store), [""; 0]);
    });
}

#[test]
fn a_store_of_thousands_of_chunks_is_copied_whole() {
    block_on(async {
        let side = 15_u16;
        let places = (0..side.pow(3)).flat_map(|at| {
            let axes = [at / side / side, at / side % side, at % side];
            axes.map(|axis| f32::from(axis) + 0.5)
        });
        let points = Geometry::new(NumericColumn::float32(3, places));
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![1.0; 3]);
        let made = OpenOptions::default().create("memory:").unwrap();
        let written = CreateOptions::new().seal(false);
        zvf::create(&made, points, design, &written).await.unwrap();
        let files = files(&made).await;
        let of = |name: &str| files.iter().find(|(file, _)| file == name).unwrap().1.len();
        // As text, the list is longer than what is copied of a node.
        assert!(of("0/vertices/zarr.json") > LONGEST && of("zarr.json") < LONGEST);
        let store = far(&files);
        let dataset = open(&store).await.unwrap();
        let region = Bbox::new(&[3.0; 3], &[3.9; 3]).unwrap();
        let query = Query::new().region(region);
        store.take_request_log();
        let found = dataset.query(&query).await.unwrap();
        assert_eq!(found.positions.len(), 1);
        assert_eq!(nodes_read(&store), ["0/zarr.json", "0/vertices/zarr.json"]);
        let near = Dataset::open(Store::from_memory(files).unwrap())
            .await
            .unwrap();
        assert_eq!(near.query(&query).await.unwrap(), found);
        let whole = dataset.query(&Query::new()).await.unwrap();
        assert_eq!(near.query(&Query::new()).await.unwrap(), whole);
    });
}

#[test]
fn a_local_store_is_read_node_by_node() {
    block_on(async {
        let (files, _) = two_states().await;
        let store = OpenOptions::default()
            .record_requests(true)
            .from_memory(files)
            .unwrap();
        let dataset = open(&store).await.unwrap();
        dataset.query(&Query::new()).await.unwrap();
        assert!(nodes_read(&store).len() > 4);
    });
}

#[test]
fn the_node_copy_can_be_disabled() {
    block_on(async {
        let (files, _) = two_states().await;
        let store = options().node_copy(false).from_memory(files).unwrap();
        let dataset = open(&store).await.unwrap();
        dataset.query(&Query::new()).await.unwrap();
        assert!(nodes_read(&store).len() > 4);
    });
}

#[test]
fn a_stale_copy_is_detected_with_the_first_cells() {
    block_on(async {
        let (mut before, mut after) = two_states().await;
        let near = Store::from_memory(after.clone()).unwrap();
        let expected = open(&near)
            .await
            .unwrap()
            .query(&Query::new())
            .await
            .unwrap();
        let mut old = Json::Null;
        root(&mut before, |root| {
            old = root["attributes"]["zvf_nodes"].clone();
        });
        assert!(old.is_object());
        // A program that does not know the copy changes nodes without it.
        root(&mut after, |root| {
            old["transaction"] = root["attributes"]["zvf"]["transaction"].clone();
            root["attributes"]["zvf_nodes"] = old;
        });
        let store = far(&after);
        let dataset = open(&store).await.unwrap();
        assert_eq!(dataset.query(&Query::new()).await.unwrap(), expected);
        let counts = open(&store)
            .await
            .unwrap()
            .count(&Query::new())
            .await
            .unwrap();
        assert_eq!(counts.vertices, expected.positions.len() as u64);
    });
}

#[test]
fn a_copy_of_another_transaction_is_ignored() {
    block_on(async {
        let (_, mut files) = two_states().await;
        root(&mut files, |root| {
            root["attributes"]["zvf_nodes"] = json!({"transaction": 0, "forms": [], "nodes": {}});
        });
        let store = far(&files);
        let dataset = open(&store).await.unwrap();
        assert!(
            !dataset
                .query(&Query::new())
                .await
                .unwrap()
                .positions
                .is_empty()
        );
    });
}

#[test]
fn a_malformed_copy_is_an_error_that_names_its_location() {
    let group = json!([{"zarr_format": 3, "node_type": "group"}]);
    let bad = [
        (json!(7), "zvf_nodes: "),
        (
            json!({"forms": group, "nodes": {}}),
            "zvf_nodes.transaction: missing",
        ),
        (
            json!({"transaction": 0, "forms": [7], "nodes": {}}),
            "zvf_nodes.forms[0]",
        ),
        (
            json!({"transaction": 0, "forms": [], "nodes": {"0": [0]}}),
            "zvf_nodes.nodes.0[0]",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"0": [1]}}),
            "zvf_nodes.nodes.0[0]",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"0": [0, 1]}}),
            "zvf_nodes.nodes.0[1]",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"0": []}}),
            "zvf_nodes.nodes.0",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"0": {}}}),
            "zvf_nodes.nodes.0",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"../0": null}}),
            "zvf_nodes.nodes[\"../0\"]",
        ),
        (
            json!({"transaction": 0, "forms": group, "nodes": {"": null}}),
            "zvf_nodes.nodes",
        ),
    ];
    block_on(async {
        let (files, _) = two_states().await;
        for (copy, place) in bad {
            let mut files = files.clone();
            root(&mut files, |root| {
                root["attributes"]["zvf_nodes"] = copy.clone();
            });
            let error = open(&far(&files)).await.unwrap_err();
            let text = error_chain(&error);
            assert!(
                text.contains(place) && text.contains("zarr.json"),
                "{copy}: {text}"
            );
            // A local store is read without the copy.
            open(&Store::from_memory(files).unwrap()).await.unwrap();
        }
    });
}

#[test]
fn a_store_created_without_a_copy_stays_without_one() {
    block_on(async {
        let mut case = random::case(3, GeometryKind::Graphs, Profile::V09);
        let axes = case.geometry.axes();
        case.design.bounds = Some((vec![-200.0; axes], vec![200.0; axes]));
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(case.geometry.build().unwrap(), case.design).unwrap();
        let mut options = CreateOptions::new().seal(false);
        options.node_copy = false;
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.compact().await.unwrap();
        root(&mut files(&store).await, |root| {
            assert_eq!(root["attributes"].get("zvf_nodes"), None);
        });
    });
}
