//! A store that counts its requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use serde_json::{Value as Json, json};
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, CellSource, Fetch, FetchError, Fetched},
    generation::Generation,
    zarr::{Array, Node},
};

use super::*;

struct Opened(Key, Arc<Array>);

impl CellSource for Opened {
    fn node(&self) -> &Key {
        &self.0
    }

    fn metadata(&self) -> &Arc<Array> {
        &self.1
    }

    fn is_plain(&self) -> bool {
        true
    }
}

/// Has one node.
struct Nodes {
    key: Key,
    json: Json,
    requested: AtomicUsize,
}

impl Fetch for Nodes {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        Ok(AnyArray::new(Opened(node.clone(), array)))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.requested.fetch_add(keys.len(), Ordering::Relaxed);
        let node = |key: &Key| (*key == self.key).then(|| node(key, &self.json));
        Ok(keys.iter().map(node).collect())
    }

    async fn cells(
        &self,
        _: &[CellRequest],
        _: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        unreachable!("no cell is wanted")
    }

    async fn children(&self, _: &Key) -> Result<Vec<String>, FetchError> {
        unreachable!("nothing is listed")
    }

    async fn sizes(&self, _: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        unreachable!("nothing is listed")
    }

    fn budget(&self) -> u64 {
        0
    }
}

fn node(key: &Key, json: &Json) -> Node {
    Node::parse(&key.metadata().unwrap(), json.to_string().as_bytes()).unwrap()
}

fn root() -> RootMetadata {
    let json = json!({
        "zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [1.0], "bounds": [[0.0], [1.0]],
            "geometry_types": ["point_cloud"],
        },
        "multiscales": [{"axes": [{"name": "x"}], "datasets": [{"path": "0"}]}],
    });
    RootMetadata::parse(&Key::root(), json.as_object().unwrap()).unwrap()
}

#[test]
fn a_node_that_was_read_is_not_read_again() {
    let vertices = json!({
        "zarr_format": 3, "node_type": "array", "data_type": "variable_length_bytes", "shape": [1],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "vlen-bytes"}], "fill_value": "",
        "attributes": {"zv_array": "vertices", "dtype": "float32", "nonempty_chunks": ["0"]},
    });
    let key = Key::parse("0/vertices").unwrap();
    let fetch = Nodes {
        key: key.clone(),
        json: vertices,
        requested: AtomicUsize::new(0),
    };
    let (layout, root, levels) = (Layout::of(Generation::V0_9), root(), LevelCache::default());
    let catalog = Catalog {
        fetch: Port::new(&fetch),
        layout: &layout,
        root: &root,
        levels: &levels,
    };
    let id = LevelId::FULL;
    let put = || {
        let no_attributes = zvf_model::metadata::Attributes::default();
        let metadata = LevelMetadata::parse(&Key::root(), id, &no_attributes, &root).unwrap();
        levels.insert(metadata);
    };
    let open = || {
        let level = catalog.level(id).now_or_never().unwrap().unwrap();
        let family = catalog
            .chunked_array(&level, &ArrayRole::Vertices)
            .now_or_never()
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(family.node, key);
        fetch.requested.load(Ordering::Relaxed)
    };
    // A node of a level that is not there goes nowhere.
    levels.insert_node(id, key.clone(), node(&key, &fetch.json));
    put();
    assert_eq!([open(), open()], [1, 1]);
    put();
    levels.insert_node(id, key.clone(), node(&key, &fetch.json));
    assert_eq!([open(), open()], [1, 1]);
}
