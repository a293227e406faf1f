//! Opens the level that a change is applied to, as queries open it, and reads the cells that it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_build::edit::{LevelChange, LevelSnapshot};
use zvf_model::{
    fetch::Port,
    grid::ChunkCoord,
    key::Key,
    level::LevelId,
    zarr::{Array, Node},
};
use zvf_query::{LevelCells, Session};
use zvf_store::CellArray;

use super::recorded::RecordedReads;
use crate::{
    dataset::{check_whole_level, opening},
    failure::Failure,
    nodes::{self, NodeSource, cell_array, named},
    writer::cell_writer::{CellWriter, Destination},
};

/// Folders of tables, whose nodes queries do not read.
const TABLES: [&str; 2] = ["0/object_attributes", "0/group_attributes"];

/// Number of cells read between two reports of progress.
const CELLS_PER_REPORT: usize = 1024;

/// Level 0 of a store, open for a change.
pub(super) struct OpenLevel<'a> {
    reads: &'a RecordedReads,
    opened: opening::Opened,
    cells: LevelCells,
}

impl<'a> OpenLevel<'a> {
    /// Opens the level of the store whose root is `root`. Returns also the nodes by path, and a
    /// snapshot without cells.
    pub(super) async fn open(
        reads: &'a RecordedReads,
        address: &str,
        root: &Node,
    ) -> Result<(Self, BTreeMap<String, Value>, LevelSnapshot), Failure> {
        let opened = opening::below(reads, address, root).await?;
        if let Some(level) = opened.levels.get(LevelId::FULL) {
            check_whole_level(&level)?;
        }
        let session = session(reads, &opened);
        let (content, cells) = session.level_content(LevelId::FULL).await?;
        let folders = TABLES.map(|path| named(Key::parse(path), path));
        let folders = folders.into_iter().collect::<Result<Vec<_>, _>>()?;
        NodeSource::nodes(reads, &folders).await?;
        let nodes = reads.nodes_at("0");
        let attributes: Map<String, Value> = root.attributes().clone();
        let image = LevelSnapshot::new(&opened.root, content, attributes, nodes.clone())?;
        let level = Self {
            reads,
            opened,
            cells,
        };
        Ok((level, nodes, image))
    }

    /// Loads the cells that a change needs into the snapshot, and reports them as units of `writer`.
    pub(super) async fn load<D: Destination>(
        &self,
        image: &mut LevelSnapshot,
        change: &LevelChange,
        writer: &CellWriter<D>,
    ) -> Result<(), Failure> {
        let needs = change.needs(image)?;
        let session = session(self.reads, &self.opened);
        writer.expect(needs.len());
        for needs in needs.chunks(CELLS_PER_REPORT) {
            let wanted = needs.iter().map(|(path, chunk)| {
                let key = named(Key::parse(path), path)?;
                Ok((key, ChunkCoord::new(chunk.as_slice())))
            });
            let wanted = wanted.collect::<Result<Vec<_>, Failure>>()?;
            let read = session.content_cells(&self.cells, &wanted).await?;
            for (cell, payload) in needs.iter().zip(read) {
                image.load(cell.clone(), payload.to_vec());
            }
            writer.done(needs.len());
        }
        Ok(())
    }
}

fn session<'s>(reads: &'s RecordedReads, opened: &'s opening::Opened) -> Session<'s> {
    Session {
        fetch: Port::new(reads),
        layout: &opened.detection.layout,
        root: &opened.root,
        levels: &opened.levels,
    }
}

fn array(nodes: &BTreeMap<String, Value>, path: &str) -> Result<(Array, CellArray), Failure> {
    let key = named(Key::parse(path), path)?;
    let json = nodes.get(path).cloned().unwrap_or_default();
    let node = Node::from_json(&nodes::metadata(&key)?, json)?;
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
