//! Opens the level that a change is applied to, as queries open it, and reads the cells that it needs.

use std::collections::{BTreeMap, BTreeSet};

use zvf_build::{
    Profile,
    edit::{LevelChange, LevelSnapshot},
};
use zvf_catalog::{Catalog, LevelCells};
use zvf_dataset::{
    Failure,
    base::check_whole_level,
    nodes::{NodeSource, cell_array, place},
    opening,
};
use zvf_model::{
    fetch::Port,
    generation::Generation,
    grid::ChunkCoord,
    key::Key,
    layout::{GroupRole, LevelKeys},
    level::LevelId,
    zarr::Node,
};

use super::recorded::RecordedReads;
use crate::writer::cell_writer::{CellWriter, Destination};

/// Number of cells read between two reports of progress.
const CELLS_PER_REPORT: usize = 1024;

/// Level 0 of a store, open for a change.
pub(super) struct OpenLevel<'a> {
    reads: &'a RecordedReads,
    opened: opening::Opened,
    cells: LevelCells,
}

impl<'a> OpenLevel<'a> {
    /// Opens the level of the store whose root is `root`. Returns also its nodes, and a snapshot
    /// without cells.
    pub(super) async fn open(
        reads: &'a RecordedReads,
        address: &str,
        root: &Node,
    ) -> Result<(Self, BTreeMap<Key, Node>, LevelSnapshot), Failure> {
        let opened = opening::below(reads, address, root).await?;
        if let Some(level) = opened.levels.get(LevelId::FULL) {
            check_whole_level(&level)?;
        }
        let catalog = catalog(reads, &opened);
        let (content, cells) = catalog.level_content(LevelId::FULL).await?;
        let keys = level_keys();
        // Queries do not read these nodes.
        let folders = [GroupRole::ObjectAttributes, GroupRole::GroupAttributes]
            .into_iter()
            .map(|role| place(keys.group(role)))
            .collect::<Result<Vec<_>, _>>()?;
        NodeSource::nodes(reads, &folders).await?;
        let nodes = reads.nodes_at(&place(keys.level())?);
        let attributes = root.attributes().clone();
        let image = LevelSnapshot::new(&opened.root, content, attributes, nodes.clone())?;
        let level = Self {
            reads,
            opened,
            cells,
        };
        Ok((level, nodes, image))
    }

    /// Returns the generation of the store.
    pub(super) fn generation(&self) -> Generation {
        self.opened.detection.layout.generation
    }

    /// Loads the cells that a change needs into the snapshot, and reports them as units of `writer`.
    pub(super) async fn load<D: Destination>(
        &self,
        image: &mut LevelSnapshot,
        change: &LevelChange,
        writer: &CellWriter<D>,
    ) -> Result<(), Failure> {
        let needs = change.needs(image)?;
        let catalog = catalog(self.reads, &self.opened);
        writer.expect(needs.len());
        for needs in needs.chunks(CELLS_PER_REPORT) {
            let wanted: Vec<_> = needs
                .iter()
                .map(|(key, chunk)| (key.clone(), ChunkCoord::new(chunk.as_slice())))
                .collect();
            let read = catalog.content_cells(&self.cells, &wanted).await?;
            for (cell, payload) in needs.iter().zip(read) {
                image.load(cell.clone(), payload.to_vec());
            }
            writer.done(needs.len());
        }
        Ok(())
    }
}

fn catalog<'s>(reads: &'s RecordedReads, opened: &'s opening::Opened) -> Catalog<'s> {
    Catalog {
        fetch: Port::new(reads),
        layout: &opened.detection.layout,
        root: &opened.root,
        levels: &opened.levels,
    }
}

/// Returns the keys of level 0, the only level that is edited.
fn level_keys() -> LevelKeys {
    Profile::V09.keys(LevelId::FULL)
}

/// Returns the chunks of the previous tables that `put` does not replace.
pub(super) fn tables_gone(
    before: &BTreeMap<Key, Node>,
    put: &BTreeSet<&Key>,
) -> Result<Vec<Key>, Failure> {
    let mut removed = Vec::new();
    let keys = level_keys();
    for (key, node) in before.iter().filter(|(key, _)| keys.is_table(key)) {
        let Node::Array(array) = node else { continue };
        let cells = cell_array(key, array.clone())?;
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
