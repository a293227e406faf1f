//! A store in memory, for tests of readers.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals are passed by value"
)]

use core::fmt::Debug;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zvf_format::vlen::{self, VlenFrame};
use zvf_model::{
    fetch::{
        AnyArray, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem,
        Fetched, MaybeSend, MaybeSync,
    },
    generation::Generation,
    key::Key,
    layout::Layout,
    root::RootMetadata,
    zarr::{Array, DataType, Node},
};

/// Uncompressed files by path, and the requests of each round trip. Changing a file discards what
/// readers have cached in `C`.
#[derive(Debug)]
pub struct MemoryStore<C> {
    /// Paths of the store's generation.
    pub layout: Layout,
    /// `true` if folders can be listed.
    pub lists: bool,
    /// The memory budget.
    pub budget: u64,
    /// Metadata of the root.
    pub root: RootMetadata,
    /// Parts of the store that readers have opened.
    pub opened: C,
    files: BTreeMap<String, Vec<u8>>,
    rounds: Mutex<Vec<Vec<String>>>,
}

struct MemoryStoreArray(Key, Arc<Array>);

impl CellSource for MemoryStoreArray {
    fn node(&self) -> &Key {
        &self.0
    }

    fn metadata(&self) -> &Arc<Array> {
        &self.1
    }

    fn is_plain(&self) -> bool {
        self.1.codecs.plain().is_some()
    }
}

impl<C: Default> MemoryStore<C> {
    /// Creates a store with two axes and two levels of this geometry kind.
    pub fn new(generation: Generation, kind: &str, convention: &str) -> Self {
        let dataset = |level: &str| {
            json!({"path": level, "coordinateTransformations": [
                {"type": "scale", "scale": [1.0, 1.0]},
                {"type": "translation", "translation": [5.0, 5.0]},
            ]})
        };
        let root = json!({
            "zarr_vectors": {
                "zv_version": "0.9.2", "chunk_shape": [10.0, 10.0],
                "bounds": [[0.0, 0.0], [40.0, 40.0]],
                "geometry_types": [kind], "links_convention": convention,
            },
            "multiscales": [{
                "axes": [{"name": "x", "type": "space"}, {"name": "y", "type": "space"}],
                "datasets": [dataset("0"), dataset("1")],
            }],
        });
        let mut memory = Self::of(generation, &root);
        for level in [0, 1] {
            let shape = [10.0 * f64::from(level + 1); 2];
            let attributes = json!({"level": level, "chunk_shape": shape});
            memory.group(
                &level.to_string(),
                json!({"zarr_vectors_level": attributes}),
            );
        }
        memory
    }

    /// Creates a 0.9 store with one axis whose level has objects.
    pub fn of_objects() -> Self {
        let root = json!({
            "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10], "bounds": [[0], [99]],
                "geometry_types": ["polyline"]},
            "multiscales": [{"axes": [{"name": "x"}], "datasets": []}],
        });
        let mut memory = Self::of(Generation::V0_9, &root);
        memory.group(
            "0",
            json!({"zarr_vectors_level": {"arrays_present": ["object_index"]}}),
        );
        memory
    }

    fn of(generation: Generation, root: &Json) -> Self {
        Self {
            layout: Layout::of(generation),
            lists: true,
            budget: 1 << 20,
            root: RootMetadata::parse(&Key::root(), root.as_object().unwrap()).unwrap(),
            files: BTreeMap::new(),
            rounds: Mutex::default(),
            opened: C::default(),
        }
    }

    /// Creates the store with another root.
    #[must_use]
    pub fn with_root_of(self, other: Self) -> Self {
        Self {
            root: other.root,
            opened: C::default(),
            ..self
        }
    }

    /// Adds a file.
    pub fn put(&mut self, path: &str, bytes: &[u8]) {
        self.opened = C::default();
        self.files.insert(path.to_owned(), bytes.to_vec());
    }

    /// Adds a group.
    pub fn group(&mut self, key: &str, attributes: Json) {
        let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        self.put(&node_path(key), node.to_string().as_bytes());
    }

    /// Adds an array of int64, with `more` metadata.
    pub fn array(&mut self, key: &str, shape: &[u64], chunk: &[u64], more: &Json) {
        let mut node = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "attributes": {},
            "data_type": "int64", "fill_value": 0, "codecs": ["bytes"],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"},
        });
        let (fields, more) = (node.as_object_mut().unwrap(), more.as_object().unwrap());
        fields.extend(more.clone());
        self.put(&node_path(key), node.to_string().as_bytes());
    }

    /// Replaces the attributes of a node.
    pub fn attributes(&mut self, key: &str, attributes: Json) {
        let mut node = self.node(key);
        node["attributes"] = attributes;
        self.put(&node_path(key), node.to_string().as_bytes());
    }

    fn node(&self, key: &str) -> Json {
        serde_json::from_slice(&self.files[&node_path(key)]).unwrap()
    }

    /// Adds an array of byte strings with 4 × 4 chunks.
    pub fn cells(&mut self, key: &str, mut attributes: Json, cells: &[([u64; 2], Vec<u8>)]) {
        let names = cells.iter().map(|([x, y], _)| format!("{x}.{y}"));
        attributes["nonempty_chunks"] = names.collect();
        let more = json!({"data_type": "variable_length_bytes", "fill_value": "",
            "codecs": ["vlen-bytes"], "attributes": attributes});
        self.array(key, &[4, 4], &[1, 1], &more);
        for (chunk, payload) in cells {
            self.cell(key, chunk, payload);
        }
    }

    /// Adds a child array for a cell.
    pub fn child(&mut self, key: &str, payload: Vec<u8>) {
        let size = [u64::try_from(payload.len()).unwrap()];
        self.array(key, &size, &size, &json!({"data_type": "uint8"}));
        self.cell(key, &[0], &payload);
    }

    /// Writes the chunk of an element.
    pub fn cell(&mut self, key: &str, element: &[u64], payload: &[u8]) {
        let path = cell_path(key, element);
        if self.node(key)["data_type"] == "variable_length_bytes" {
            self.put(&path, &vlen::encode(&[payload]).unwrap());
        } else {
            self.put(&path, payload);
        }
    }

    /// Removes a node and everything below it.
    pub fn remove(&mut self, key: &str) {
        self.opened = C::default();
        let below = format!("{key}/");
        self.files.retain(|path, _| !path.starts_with(&below));
    }

    /// Removes the chunk of an element.
    pub fn without_cell(&mut self, key: &str, element: &[u64]) {
        self.opened = C::default();
        self.files.remove(&cell_path(key, element)).unwrap();
    }

    /// Returns and clears the recorded requests, one list per round trip.
    pub fn rounds(&self) -> Vec<Vec<String>> {
        core::mem::take(&mut self.rounds.lock().unwrap())
    }
}

impl<C> MemoryStore<C> {
    fn round(&self, requested: impl Iterator<Item = String>) {
        self.rounds.lock().unwrap().push(requested.collect());
    }

    fn one(&self, wanted: &CellRequest) -> Result<Option<Fetched>, FetchError> {
        let path = path_of(wanted);
        let Some(bytes) = self.files.get(&path) else {
            return Ok(None);
        };
        let damaged = || failed(Key::parse(&path).unwrap(), FetchProblem::Damaged);
        if bytes == b"broken" {
            return Err(damaged());
        }
        let mut bytes = bytes.as_slice();
        if let CellRef::Element(array, _) = &wanted.cell
            && array.metadata().data_type == DataType::VariableBytes
            && array.metadata().chunk_shape.iter().all(|rows| *rows == 1)
        {
            bytes = VlenFrame::parse(bytes).unwrap().only().unwrap();
        }
        let size = u64::try_from(bytes.len()).unwrap();
        let part = wanted.part.clone().unwrap_or(0..size);
        let part = usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap();
        let bytes = Bytes::copy_from_slice(bytes.get(part).ok_or_else(damaged)?);
        Ok(Some(Fetched { bytes, size }))
    }
}

fn node_path(key: &str) -> String {
    format!("{key}/zarr.json")
}

fn cell_path(key: &str, element: &[u64]) -> String {
    let coords = element.iter().map(|number| format!("/{number}"));
    format!("{key}/c{}", coords.collect::<String>())
}

fn path_of(wanted: &CellRequest) -> String {
    match &wanted.cell {
        CellRef::Element(array, element) => {
            let key = array.metadata().chunk_key(array.node(), element);
            key.unwrap().to_string()
        }
        CellRef::Child(key) => cell_path(key.as_str(), &[0]),
    }
}

fn failed(key: Key, problem: FetchProblem) -> FetchError {
    FetchError {
        key,
        problem,
        source: "made so".into(),
    }
}

impl<C: Debug + MaybeSend + MaybeSync> Fetch for MemoryStore<C> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        Ok(AnyArray::new(MemoryStoreArray(node.clone(), array)))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.round(keys.iter().map(ToString::to_string));
        let nodes = keys.iter().map(|key| {
            let file = self.files.get(key.metadata().unwrap().as_str());
            file.map(|bytes| Node::parse(key, bytes).unwrap())
        });
        Ok(nodes.collect())
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        _options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.round(wanted.iter().map(|wanted| match &wanted.part {
            Some(part) => format!("{} {part:?}", path_of(wanted)),
            None => path_of(wanted),
        }));
        wanted.iter().map(|wanted| self.one(wanted)).collect()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        let prefix = format!("{key}/");
        self.round([prefix.clone()].into_iter());
        if !self.lists {
            return Err(failed(key.clone(), FetchProblem::Unlistable));
        }
        let nodes = self
            .files
            .keys()
            .filter_map(|path| path.strip_suffix("/zarr.json"));
        let below = nodes.filter_map(|node| node.strip_prefix(&prefix));
        let names: BTreeSet<String> = below
            .filter_map(|rest| rest.split('/').next())
            .map(str::to_owned)
            .collect();
        Ok(names.into_iter().collect())
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.round(keys.iter().map(ToString::to_string));
        let files = keys.iter().map(|key| self.files.get(key.as_str()));
        let sizes = files.map(|file| Some(u64::try_from(file?.len()).unwrap()));
        Ok(sizes.collect())
    }

    fn budget(&self) -> u64 {
        self.budget
    }
}
