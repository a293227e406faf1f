//! A store of files in memory, as they would lie on a disk, that writes down what
//! each round trip asked for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::FutureExt;
use serde_json::{Value as Json, json};
use zvf_format::vlen::VlenFrame;
use zvf_model::{
    fetch::{CellOf, CellSource, Fetch, FetchError, FetchProblem, Fetched, Wanted},
    generation::Generation,
    key::Key,
    layout::Layout,
    root::RootMetadata,
    zarr::{Array, DataType, Node},
};

use crate::level::{Levels, Session};

/// Files by path, of arrays without compression.
#[derive(Debug)]
pub(crate) struct FileStore {
    files: BTreeMap<String, Vec<u8>>,
    pub(crate) budget: u64,
    rounds: Mutex<Vec<Vec<String>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FileArray(Key, Arc<Array>);

impl CellSource for FileArray {
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

impl FileStore {
    pub(crate) fn new() -> Self {
        let mut store = Self {
            files: BTreeMap::new(),
            budget: 1 << 20,
            rounds: Mutex::default(),
        };
        store.group(
            "0",
            &json!({"zarr_vectors_level": {"arrays_present": ["object_index"]}}),
        );
        store
    }

    pub(crate) fn group(&mut self, at: &str, attributes: &Json) {
        let json = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        self.put(&format!("{at}/zarr.json"), json.to_string().as_bytes());
    }

    /// An array of one dimension or two.
    pub(crate) fn array(&mut self, at: &str, shape: &[u64], chunk: &[u64], more: &Json) {
        let mut json = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "attributes": {},
            "data_type": "int64", "fill_value": 0, "codecs": ["bytes"],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"},
        });
        let (json_fields, more) = (json.as_object_mut().unwrap(), more.as_object().unwrap());
        json_fields.extend(more.clone());
        self.put(&format!("{at}/zarr.json"), json.to_string().as_bytes());
    }

    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) {
        self.files.insert(path.to_owned(), bytes.to_vec());
    }

    /// What was asked for since the last time.
    pub(crate) fn rounds(&self) -> Vec<Vec<String>> {
        core::mem::take(&mut self.rounds.lock().unwrap())
    }

    fn round(&self, asked: Vec<String>) {
        self.rounds.lock().unwrap().push(asked);
    }

    fn cell(&self, wanted: &Wanted<FileArray>) -> Result<Option<Fetched>, FetchError> {
        let CellOf::Element(array, cell) = &wanted.cell else {
            return Ok(None);
        };
        let key = array.1.chunk_key(&array.0, cell).unwrap();
        let problem = |problem| FetchError {
            key: key.clone(),
            problem,
            source: "as it was made".into(),
        };
        let Some(bytes) = self.files.get(key.as_str()) else {
            return Ok(None);
        };
        let strings = matches!(
            array.1.data_type,
            DataType::VariableBytes | DataType::VariableText
        );
        let mut bytes = bytes.as_slice();
        if bytes == b"broken" {
            return Err(problem(FetchProblem::Damaged));
        }
        if strings && array.1.chunk_shape == [1] {
            bytes = VlenFrame::parse(bytes).unwrap().only().unwrap();
        }
        let part = match &wanted.part {
            None => Some(bytes),
            Some(part) => {
                let start = usize::try_from(part.start).unwrap();
                bytes.get(start..usize::try_from(part.end).unwrap())
            }
        };
        let part = part.ok_or_else(|| problem(FetchProblem::Damaged))?;
        Ok(Some(Fetched {
            bytes: Bytes::copy_from_slice(part),
            size: u64::try_from(bytes.len()).unwrap(),
        }))
    }
}

impl Fetch for FileStore {
    type Array = FileArray;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<FileArray, FetchError> {
        Ok(FileArray(node.clone(), array))
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.round(keys.iter().map(ToString::to_string).collect());
        let nodes = keys.iter().map(|key| {
            let file = self.files.get(key.metadata().unwrap().as_str());
            file.map(|bytes| Node::parse(key, bytes).unwrap())
        });
        Ok(nodes.collect())
    }

    async fn cells(
        &self,
        wanted: &[Wanted<FileArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let name = |wanted: &Wanted<FileArray>| {
            let CellOf::Element(array, cell) = &wanted.cell else {
                return String::new();
            };
            let key = array.1.chunk_key(&array.0, cell).unwrap();
            let part = wanted.part.as_ref();
            part.map_or_else(|| key.to_string(), |part| format!("{key} {part:?}"))
        };
        self.round(wanted.iter().map(name).collect());
        wanted.iter().map(|wanted| self.cell(wanted)).collect()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.round(vec![format!("{key}/")]);
        Ok(Vec::new())
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.round(keys.iter().map(ToString::to_string).collect());
        let sizes = keys.iter().map(|key| self.files.get(key.as_str()));
        let size = |file: Option<&Vec<u8>>| file.and_then(|file| u64::try_from(file.len()).ok());
        Ok(sizes.map(size).collect())
    }

    fn budget(&self) -> u64 {
        self.budget
    }
}

/// What a session needs besides.
pub(crate) struct Open {
    layout: Layout,
    root: RootMetadata,
    pub(crate) levels: Levels<FileArray>,
}

impl Open {
    pub(crate) fn of(generation: Generation) -> Self {
        let attributes = json!({
            "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10], "bounds": [[0], [99]],
                "geometry_types": ["polyline"]},
            "multiscales": [{"axes": [{"name": "x"}], "datasets": []}],
        });
        let key = Key::root().metadata().unwrap();
        Self {
            layout: Layout::of(generation),
            root: RootMetadata::parse(&key, attributes.as_object().unwrap()).unwrap(),
            levels: Levels::default(),
        }
    }

    pub(crate) fn session<'a>(&'a self, memory: &'a FileStore) -> Session<'a, FileStore> {
        Session {
            fetch: memory,
            layout: &self.layout,
            root: &self.root,
            levels: &self.levels,
        }
    }
}

/// Files in memory never make anybody wait.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().unwrap()
}
