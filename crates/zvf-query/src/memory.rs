//! A store in memory, to test plans without one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zvf_model::{
    fetch::{CellOf, CellSource, Fetch, FetchError, FetchProblem, Fetched, Wanted},
    generation::Generation,
    key::Key,
    layout::Layout,
    root::RootMetadata,
    zarr::{Array, Node},
};

use crate::level::{Levels, Session};

/// Nodes and payloads by key, and what was asked of them.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) layout: Layout,
    pub(crate) lists: bool,
    pub(crate) budget: u64,
    root: RootMetadata,
    nodes: BTreeMap<String, Json>,
    cells: BTreeMap<(String, Vec<u64>), Vec<u8>>,
    /// One word for each round trip.
    rounds: Mutex<Vec<&'static str>>,
    levels: Levels<MemoryArray>,
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryArray(Key, Arc<Array>);

impl CellSource for MemoryArray {
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

impl Memory {
    /// A store of two axes with two levels, of such geometry.
    pub(crate) fn new(generation: Generation, kind: &str, convention: &str) -> Self {
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
        let root = RootMetadata::parse(&Key::root(), root.as_object().unwrap()).unwrap();
        let mut memory = Self {
            layout: Layout::of(generation),
            lists: true,
            budget: u64::MAX,
            root,
            nodes: BTreeMap::new(),
            cells: BTreeMap::new(),
            rounds: Mutex::default(),
            levels: Levels::default(),
        };
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

    /// The same with nothing opened yet.
    pub(crate) fn reopened(self) -> Self {
        Self {
            levels: Levels::default(),
            ..self
        }
    }

    /// The same with the root of another.
    pub(crate) fn with_root_of(self, other: Self) -> Self {
        Self {
            root: other.root,
            ..self
        }
    }

    pub(crate) fn session(&self) -> Session<'_, Self> {
        Session {
            fetch: self,
            layout: &self.layout,
            root: &self.root,
            levels: &self.levels,
        }
    }

    pub(crate) fn group(&mut self, key: &str, attributes: Json) {
        let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        self.nodes.insert(key.to_owned(), node);
    }

    /// An array of any numbers.
    pub(crate) fn numbers(&mut self, key: &str, kind: &str, shape: &[u64], chunk: &[u64]) {
        self.put(key, kind, shape, chunk, json!({}));
    }

    fn put(&mut self, key: &str, kind: &str, shape: &[u64], chunk: &[u64], attributes: Json) {
        let codec = match kind {
            "variable_length_bytes" => json!({"name": "vlen-bytes", "configuration": {}}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        let fill = match kind {
            "variable_length_bytes" => json!(""),
            _ => json!(0),
        };
        let node = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill, "codecs": [codec], "attributes": attributes,
        });
        self.nodes.insert(key.to_owned(), node);
    }

    /// The attributes of a node.
    pub(crate) fn attributes(&mut self, key: &str) -> &mut Json {
        &mut self.nodes.get_mut(key).unwrap()["attributes"]
    }

    /// An array of 4 × 4 chunks of byte strings.
    pub(crate) fn cells(&mut self, key: &str, mut attributes: Json, cells: &[([u64; 2], Vec<u8>)]) {
        let names = cells.iter().map(|([x, y], _)| format!("{x}.{y}"));
        attributes["nonempty_chunks"] = names.collect();
        self.put(key, "variable_length_bytes", &[4, 4], &[1, 1], attributes);
        for (chunk, payload) in cells {
            self.cell(key, chunk, payload.clone());
        }
    }

    /// An array of its own for a cell.
    pub(crate) fn child(&mut self, key: &str, payload: Vec<u8>) {
        let size = [u64::try_from(payload.len()).unwrap()];
        self.numbers(key, "uint8", &size, &size);
        self.cell(key, &[0], payload);
    }

    pub(crate) fn cell(&mut self, key: &str, element: &[u64], payload: Vec<u8>) {
        self.cells
            .insert((key.to_owned(), element.to_vec()), payload);
    }

    /// Takes a node away, and all below it.
    pub(crate) fn remove(&mut self, key: &str) {
        let below = format!("{key}/");
        self.nodes
            .retain(|node, _| node != key && !node.starts_with(&below));
    }

    pub(crate) fn without_cell(&mut self, key: &str, element: &[u64]) {
        self.cells.remove(&(key.to_owned(), element.to_vec()));
    }

    /// The rounds since this was last asked.
    pub(crate) fn take_rounds(&self) -> Vec<&'static str> {
        core::mem::take(&mut self.rounds.lock().unwrap())
    }

    fn one(&self, wanted: &Wanted<MemoryArray>) -> Result<Option<Fetched>, FetchError> {
        let (key, element) = match &wanted.cell {
            CellOf::Element(array, element) => (array.0.clone(), element.clone()),
            CellOf::Child(key) => (key.clone(), vec![0]),
        };
        let Some(payload) = self.cells.get(&(key.as_str().to_owned(), element)) else {
            return Ok(None);
        };
        let size = u64::try_from(payload.len()).unwrap();
        let part = wanted.part.clone().unwrap_or(0..size);
        if part.end > size {
            return Err(failed(&key, FetchProblem::Damaged));
        }
        let (start, end): (usize, usize) =
            (part.start.try_into().unwrap(), part.end.try_into().unwrap());
        let bytes = Bytes::copy_from_slice(payload.get(start..end).unwrap());
        Ok(Some(Fetched { bytes, size }))
    }
}

fn failed(key: &Key, problem: FetchProblem) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: "made so".into(),
    }
}

impl Fetch for Memory {
    type Array = MemoryArray;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<MemoryArray, FetchError> {
        Ok(MemoryArray(node.clone(), array))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.rounds.lock().unwrap().push("nodes");
        let nodes = keys.iter().map(|key| {
            let node = self.nodes.get(key.as_str())?;
            Some(Node::parse(key, node.to_string().as_bytes()).unwrap())
        });
        Ok(nodes.collect())
    }

    async fn cells(
        &self,
        wanted: &[Wanted<MemoryArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.rounds.lock().unwrap().push("cells");
        wanted.iter().map(|wanted| self.one(wanted)).collect()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.rounds.lock().unwrap().push("children");
        if !self.lists {
            return Err(failed(key, FetchProblem::Unlistable));
        }
        let prefix = format!("{key}/");
        let below = self
            .nodes
            .keys()
            .filter_map(|key| key.strip_prefix(&prefix));
        let names = below.filter_map(|rest| rest.split('/').next());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        Ok(names.into_iter().collect())
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.rounds.lock().unwrap().push("sizes");
        Ok(vec![None; keys.len()])
    }

    fn budget(&self) -> u64 {
        self.budget
    }
}
