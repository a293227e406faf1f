//! Encoding of nodes and cells as objects of a store.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use rayon::prelude::*;
use zvf_build::{Output, Profile};
use zvf_dataset::{
    Failure,
    nodes::{cell_array, metadata, place},
};
use zvf_format::{fragment::FragmentIndex, fragment_lengths};
use zvf_model::{
    generation::Generation,
    key::Key,
    layout::{ArrayRole, GroupRole, VERTEX_FRAGMENTS},
    level::LevelId,
    metadata::Attributes,
    zarr::{GroupNode, Node},
};
use zvf_store::{CellArray, RowTable};

/// Arrays by key, and the generation whose form new nodes have.
#[derive(Clone, Debug)]
pub struct Arrays {
    generation: Generation,
    arrays: HashMap<Key, CellArray>,
}

impl Arrays {
    /// Returns no arrays, for a store of this generation.
    pub fn new(generation: Generation) -> Self {
        Self {
            generation,
            arrays: HashMap::new(),
        }
    }

    /// Returns the arrays among nodes, for a store of this generation.
    pub fn of(generation: Generation, outputs: &[Output]) -> Result<Self, Failure> {
        let mut arrays = HashMap::new();
        for output in outputs {
            if let Output::Node {
                key,
                node: Node::Array(array),
            } = output
            {
                arrays.insert(key.clone(), cell_array(key, array.clone())?);
            }
        }
        Ok(Self { generation, arrays })
    }

    /// Adds the arrays of `others`.
    pub fn extend(&mut self, others: Self) {
        self.arrays.extend(others.arrays);
    }

    /// Removes all arrays.
    pub fn clear(&mut self) {
        self.arrays.clear();
    }

    /// Returns the generation of the store.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns whether there is an array at `key`.
    pub fn has(&self, key: &Key) -> bool {
        self.arrays.contains_key(key)
    }

    /// Returns the array at `key`. An array of links or of their attributes that is not among the
    /// nodes has the form of the vertices.
    pub fn get(&self, key: &Key) -> Result<CellArray, Failure> {
        if let Some(array) = self.arrays.get(key) {
            return Ok(array.clone());
        }
        let keys = Profile::V09.keys(LevelId::FULL);
        let vertices = self.arrays.get(&place(keys.node(&ArrayRole::Vertices))?);
        for role in [GroupRole::Links, GroupRole::LinkAttributes] {
            let group = place(keys.group(role))?;
            if let Some(vertices) = vertices.filter(|_| key.is_below(&group)) {
                return cell_array(key, Arc::clone(vertices.metadata()));
            }
        }
        Err(Failure::NoCells { node: key.clone() })
    }
}

/// Encodes nodes and cells. All cells of a shard must be among them.
pub fn encoded(arrays: &Arrays, outputs: Vec<Output>) -> Result<Vec<(Key, Bytes)>, Failure> {
    let objects = unencoded(arrays, outputs)?.into_iter();
    objects.map(EncodeJob::encode).collect()
}

/// Encodes nodes and cells as [`encoded`], on all cores.
pub fn encoded_on_all_cores(
    arrays: &Arrays,
    outputs: Vec<Output>,
) -> Result<Vec<(Key, Bytes)>, Failure> {
    let objects: Vec<_> = unencoded(arrays, outputs)?
        .into_par_iter()
        .map(EncodeJob::encode)
        .collect();
    // Collecting twice returns the first error regardless of the scheduling of threads.
    objects.into_iter().collect()
}

/// An object to encode.
enum EncodeJob {
    Ready(Key, Bytes),
    Cell(Key, CellArray, Vec<u8>),
    /// Cells of a shard, with their numbers.
    Shard(Key, CellArray, Vec<(u64, Bytes)>),
}

impl EncodeJob {
    fn encode(self) -> Result<(Key, Bytes), Failure> {
        let (key, bytes) = match self {
            Self::Ready(key, bytes) => return Ok((key, bytes)),
            Self::Cell(key, array, payload) => (key, array.encode(&payload)),
            Self::Shard(key, array, cells) => (key, array.encode_shard(&cells)),
        };
        match bytes {
            Ok(bytes) => Ok((key, bytes)),
            Err(source) => Err(Failure::Encode { key, source }),
        }
    }
}

/// Groups nodes and cells into objects: nodes and single cells in their order, then shards, then row
/// tables.
fn unencoded(arrays: &Arrays, outputs: Vec<Output>) -> Result<Vec<EncodeJob>, Failure> {
    let mut objects = Vec::with_capacity(outputs.len());
    // Arrays of one cell come with their nodes.
    let own = Arrays::of(arrays.generation, &outputs)?;
    let mut shards: BTreeMap<Key, (CellArray, Vec<(u64, Bytes)>)> = BTreeMap::new();
    let mut rows: BTreeMap<Key, RowTable> = BTreeMap::new();
    for output in outputs {
        match output {
            Output::Node { key, node } => {
                let bytes = bytes_of(&key, node, arrays.generation);
                objects.push(EncodeJob::Ready(metadata(&key)?, bytes));
            }
            Output::Cell {
                array,
                index,
                payload,
            } => {
                let cells = match own.arrays.get(&array) {
                    Some(cells) => cells.clone(),
                    None => arrays.get(&array).or_else(|_| own.get(&array))?,
                };
                let location = cells.locate(&index).map_err(|source| Failure::Index {
                    node: cells.node().clone(),
                    source,
                })?;
                if array.name() == Some(VERTEX_FRAGMENTS)
                    && let Ok(index) = FragmentIndex::parse(&payload)
                    && let Some(lengths) = fragment_lengths::encode(&index)
                {
                    let (key, number) = &location;
                    let entry = rows.entry(key.clone());
                    let table = entry.or_insert_with(|| RowTable::new(key.clone()));
                    table.push(*number, &lengths);
                }
                match location {
                    (key, None) => objects.push(EncodeJob::Cell(key, cells, payload)),
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
    objects.extend(shards.map(|(key, (array, cells))| EncodeJob::Shard(key, array, cells)));
    let tables = rows.into_values().filter_map(RowTable::into_object);
    objects.extend(tables.map(|(key, bytes)| EncodeJob::Ready(key, bytes)));
    Ok(objects)
}

/// Encodes the node at `key` of a store of this generation.
pub fn bytes_of(key: &Key, node: impl Into<Node>, generation: Generation) -> Bytes {
    Bytes::from(node.into().in_generation(key, generation).to_bytes())
}

/// Encodes the root of a store of this generation with these attributes.
pub fn root_bytes(attributes: Attributes, generation: Generation) -> Bytes {
    bytes_of(&Key::root(), GroupNode::new(attributes), generation)
}
