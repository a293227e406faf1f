//! Reads the nodes, tables and cells that a change needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_build::edit::{LevelChange, LevelSnapshot};
use zvf_model::{key::Key, zarr::Array};
use zvf_store::{CellArray, CellRead, CellReader, Read, Store};

use crate::{
    failure::Failure,
    nodes::{self, cell_array, element, named},
    writer::cell_writer::{CellWriter, Destination},
};

/// Families whose members are found by listing, with the depth of their arrays.
const FAMILIES: [(&str, usize); 6] = [
    ("0/vertex_attributes", 1),
    ("0/fragment_attributes", 1),
    ("0/links", 2),
    ("0/link_attributes", 3),
    ("0/object_attributes", 1),
    ("0/group_attributes", 1),
];

/// Nodes with a fixed path, each of which may be absent.
const SINGLE: [&str; 10] = [
    "0",
    "0/vertices",
    "0/vertex_fragments",
    "0/link_fragments",
    "0/object_index",
    "0/object_index/manifests",
    "0/object_index/manifest_spans",
    "0/object_index/manifest_blocks",
    "0/object_index/object_ids",
    "0/groups",
];

/// Number of cells read between two reports of progress.
const CELLS_PER_REPORT: usize = 1024;

/// Upper bound on the chunks of a table.
const MAX_CHUNKS: u64 = 1 << 20;

/// Reads the nodes and tables of level 0. Returns the nodes, and a snapshot without cells.
pub(super) async fn image(
    store: &Store,
    reader: &CellReader,
    root: &Map<String, Value>,
) -> Result<(BTreeMap<String, Value>, LevelSnapshot), Failure> {
    let mut paths: Vec<String> = SINGLE.iter().map(|path| (*path).to_owned()).collect();
    for (family, depth) in FAMILIES {
        let mut open = vec![family.to_owned()];
        paths.push(family.to_owned());
        for below in 0..depth {
            let mut next = Vec::new();
            for path in open {
                let key = named(Key::parse(&path), &path)?;
                let listing = nodes::children(store, &key).await?;
                // Folders below an array hold its chunks. A family is a group, and one of its
                // attributes may have the name `c`.
                let is_node = |name: &&String| below == 0 || *name != "c";
                let names = listing.folders.iter().filter(is_node);
                next.extend(names.map(|name| format!("{path}/{name}")));
            }
            paths.extend(next.iter().cloned());
            open = next;
        }
    }
    let keys = paths.iter().map(|path| {
        let key = named(Key::parse(path), path)?;
        nodes::metadata(&key)
    });
    let reads = keys
        .map(|key| key.map(Read::full))
        .collect::<Result<Vec<_>, _>>()?;
    let found = store.read(&reads).await?;
    let mut nodes = BTreeMap::new();
    for ((path, read), bytes) in paths.into_iter().zip(&reads).zip(found) {
        let Some(bytes) = bytes else {
            continue;
        };
        let json = serde_json::from_slice(&bytes);
        let json = json.map_err(|source| Failure::Json {
            key: read.key.clone(),
            source,
        })?;
        nodes.insert(path, json);
    }
    let mut image = LevelSnapshot::new(root.clone(), nodes.clone())?;
    for path in image.table_paths() {
        let (array, cells) = array(&nodes, &path)?;
        let chunks = table(reader, &array, &cells).await?;
        image.load_table(&path, chunks)?;
    }
    image.finish_tables()?;
    Ok((nodes, image))
}

/// Reads all chunks of a table.
async fn table(
    reader: &CellReader,
    array: &Array,
    cells: &CellArray,
) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    let grid = array.grid_shape();
    let count = grid.first().copied().unwrap_or(0);
    if grid.iter().skip(1).any(|extent| *extent > 1) || count > MAX_CHUNKS {
        return Err(Failure::TooManyCells {
            node: cells.node().clone(),
            cells: count,
        });
    }
    let indexes: Vec<Vec<u64>> = (0..count)
        .map(|at| {
            [at].into_iter()
                .chain(grid.iter().skip(1).map(|_| 0))
                .collect()
        })
        .collect();
    let wanted: Vec<CellRead<'_>> = indexes
        .iter()
        .map(|index| CellRead {
            array: cells,
            index,
            part: None,
        })
        .collect();
    let found = reader.read(&wanted).await?;
    Ok(found
        .into_iter()
        .map(|bytes| Some(bytes?.to_vec()))
        .collect())
}

/// Loads the cells that a change needs into the snapshot, and reports them as units of `writer`.
pub(super) async fn cells<D: Destination>(
    reader: &CellReader,
    before: &BTreeMap<String, Value>,
    image: &mut LevelSnapshot,
    change: &LevelChange,
    writer: &CellWriter<D>,
) -> Result<(), Failure> {
    let needs = change.needs(image)?;
    let mut arrays: BTreeMap<&str, CellArray> = BTreeMap::new();
    for (path, _) in &needs {
        if !arrays.contains_key(path.as_str()) {
            arrays.insert(path, array(before, path)?.1);
        }
    }
    let mut indexes = Vec::with_capacity(needs.len());
    for (path, chunk) in &needs {
        indexes.push(element(&arrays[path.as_str()], chunk)?);
    }
    let wanted: Vec<CellRead<'_>> = needs
        .iter()
        .zip(&indexes)
        .map(|((path, _), index)| CellRead {
            array: &arrays[path.as_str()],
            index,
            part: None,
        })
        .collect();
    writer.expect(needs.len());
    let batches = needs.chunks(CELLS_PER_REPORT);
    for (needs, wanted) in batches.zip(wanted.chunks(CELLS_PER_REPORT)) {
        let found = reader.read(wanted).await?;
        for ((path, chunk), bytes) in needs.iter().zip(found) {
            let Some(bytes) = bytes else {
                return Err(Failure::MissingCell {
                    node: named(Key::parse(path), path)?,
                    cell: format!("{chunk:?}"),
                });
            };
            image.load((path.clone(), chunk.clone()), bytes.to_vec());
        }
        writer.done(needs.len());
    }
    Ok(())
}

fn array(nodes: &BTreeMap<String, Value>, path: &str) -> Result<(Array, CellArray), Failure> {
    let key = named(Key::parse(path), path)?;
    let json = nodes.get(path).cloned().unwrap_or_default();
    let node = zvf_model::zarr::Node::from_json(&nodes::metadata(&key)?, json)?;
    let array = node.as_array().cloned();
    let array = array.ok_or_else(|| Failure::NoCells { node: key.clone() })?;
    let cells = cell_array(&key, array.clone())?;
    Ok((array, cells))
}

/// Returns the chunks that an array declares as non-empty.
pub(super) fn present(nodes: &BTreeMap<String, Value>, path: &str) -> Vec<Vec<i64>> {
    let node = nodes.get(path);
    let names = node.and_then(|node| node["attributes"]["nonempty_chunks"].as_array());
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let chunks = names.map(|name| name.split('.').filter_map(|at| at.parse().ok()).collect());
    chunks.collect()
}

/// Returns the chunks of the previous tables that `put` does not replace.
pub(super) fn tables_gone(
    before: &BTreeMap<String, Value>,
    put: &BTreeSet<&Key>,
) -> Result<Vec<Key>, Failure> {
    let mut removed = Vec::new();
    for path in before.keys() {
        let is_table = ["0/object_", "0/group"]
            .iter()
            .any(|family| path.starts_with(family));
        let is_array = before[path]["node_type"].as_str() == Some("array");
        if !is_table || !is_array {
            continue;
        }
        let (array, cells) = array(before, path)?;
        let count = array.grid_shape().first().copied().unwrap_or(0);
        let tail = array.rank().saturating_sub(1);
        for at in 0..count {
            let index: Vec<u64> = [at]
                .into_iter()
                .chain(core::iter::repeat_n(0, tail))
                .collect();
            let location = cells.locate(&index).map_err(|source| Failure::Index {
                node: cells.node().clone(),
                source,
            })?;
            if !put.contains(&location.0) {
                removed.push(location.0);
            }
        }
    }
    Ok(removed)
}
