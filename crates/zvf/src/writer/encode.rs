//! Encoding of nodes and cells as objects of a store.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use rayon::prelude::*;
use serde_json::Value;
use zvf_build::Output;
use zvf_model::{key::Key, zarr::Node};
use zvf_store::CellArray;

use crate::{
    failure::Failure,
    nodes::{cell_array, named},
};

/// Arrays by path.
#[derive(Clone, Default)]
pub(crate) struct Arrays(HashMap<String, CellArray>);

impl Arrays {
    /// Returns the arrays among nodes.
    pub(crate) fn of(outputs: &[Output]) -> Result<Self, Failure> {
        let mut arrays = HashMap::new();
        for output in outputs {
            if let Output::Node { path, json } = output
                && let Some(array) = array(path, json)?
            {
                arrays.insert(path.clone(), array);
            }
        }
        Ok(Self(arrays))
    }

    /// Adds the arrays of `others`.
    #[cfg(feature = "pyramid")]
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns whether there is an array at `path`.
    #[cfg(feature = "pyramid")]
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Returns the array at `path`. An array of links or of their attributes that is not among the
    /// nodes has the form of the vertices.
    pub(crate) fn get(&self, path: &str) -> Result<CellArray, Failure> {
        if let Some(array) = self.0.get(path) {
            return Ok(array.clone());
        }
        let key = named(Key::parse(path), path)?;
        let vertices = self
            .0
            .get("0/vertices")
            .filter(|_| path.starts_with("0/links/0/") || path.starts_with("0/link_attributes/"));
        match vertices {
            Some(vertices) => cell_array(&key, Arc::clone(vertices.metadata())),
            None => Err(Failure::NoCells { node: key }),
        }
    }
}

/// Returns the array that a node describes; `None` for a group.
fn array(path: &str, json: &Value) -> Result<Option<CellArray>, Failure> {
    if json.get("node_type").and_then(Value::as_str) != Some("array") {
        return Ok(None);
    }
    let key = named(Key::parse(path), path)?;
    match Node::from_json(&named(key.metadata(), path)?, json.clone())? {
        Node::Array(array) => cell_array(&key, array).map(Some),
        Node::Group(_) => Ok(None),
    }
}

/// Encodes nodes and cells. All cells of a shard must be among them.
pub(crate) fn encoded(arrays: &Arrays, outputs: Vec<Output>) -> Result<Vec<(Key, Bytes)>, Failure> {
    let objects = unencoded(arrays, outputs)?.into_iter();
    objects.map(Unencoded::encode).collect()
}

/// Encodes nodes and cells as [`encoded`], on all cores.
pub(crate) fn encoded_on_all_cores(
    arrays: &Arrays,
    outputs: Vec<Output>,
) -> Result<Vec<(Key, Bytes)>, Failure> {
    let objects = unencoded(arrays, outputs)?.into_par_iter();
    let objects: Vec<_> = objects.map(Unencoded::encode).collect();
    // Collecting twice returns the first error regardless of the scheduling of threads.
    objects.into_iter().collect()
}

/// An object to encode.
enum Unencoded {
    Node(Key, Value),
    Cell(Key, CellArray, Vec<u8>),
    /// Cells of a shard, with their numbers.
    Shard(Key, CellArray, Vec<(u64, Bytes)>),
}

impl Unencoded {
    fn encode(self) -> Result<(Key, Bytes), Failure> {
        let (key, bytes) = match self {
            Self::Node(key, json) => return Ok((key, text(&json))),
            Self::Cell(key, array, payload) => (key, array.encode(&payload)),
            Self::Shard(key, array, cells) => (key, array.encode_shard(&cells)),
        };
        match bytes {
            Ok(bytes) => Ok((key, bytes)),
            Err(source) => Err(Failure::Encode { key, source }),
        }
    }
}

/// Groups nodes and cells into objects: nodes and single cells in their order, then shards.
fn unencoded(arrays: &Arrays, outputs: Vec<Output>) -> Result<Vec<Unencoded>, Failure> {
    let mut objects = Vec::with_capacity(outputs.len());
    // Arrays of one cell come with their nodes.
    let own = Arrays::of(&outputs)?;
    let mut shards: BTreeMap<Key, (CellArray, Vec<(u64, Bytes)>)> = BTreeMap::new();
    for output in outputs {
        match output {
            Output::Node { path, json } => {
                let key = named(Key::parse(&path).and_then(|key| key.metadata()), &path)?;
                objects.push(Unencoded::Node(key, json));
            }
            Output::Cell {
                array,
                index,
                payload,
            } => {
                let cells = match own.0.get(&array) {
                    Some(cells) => cells.clone(),
                    None => arrays.get(&array).or_else(|_| own.get(&array))?,
                };
                let location = cells.locate(&index).map_err(|source| Failure::Index {
                    node: cells.node().clone(),
                    source,
                })?;
                match location {
                    (key, None) => objects.push(Unencoded::Cell(key, cells, payload)),
                    (key, Some(number)) => {
                        let shard = shards.entry(key);
                        let (_, cells) = shard.or_insert_with(|| (cells, Vec::new()));
                        cells.push((number, Bytes::from(payload)));
                    }
                }
            }
        }
    }
    let shards = shards.into_iter();
    objects.extend(shards.map(|(key, (array, cells))| Unencoded::Shard(key, array, cells)));
    Ok(objects)
}

/// Encodes a node as indented JSON, as other writers do.
pub(crate) fn text(json: &Value) -> Bytes {
    // Serialization cannot fail: keys of a `Value` are strings.
    let text = serde_json::to_vec_pretty(json).unwrap_or_default();
    Bytes::from(text)
}
