//! Input and output of a change.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::{key::Key, metadata::Attributes, zarr::Node};

use super::{
    error::EditError,
    image::{CellId, LevelSnapshot},
    links,
};
use crate::{output::Output, plan::WritePlan};

/// Objects and rows to remove from a level, and geometry to add. An added object with the id of a
/// removed one replaces it: it keeps its groups, and its attributes unless new ones are given.
#[derive(Debug, Default)]
pub struct LevelChange {
    /// Objects to remove.
    pub remove: BTreeSet<i64>,
    /// Rows to remove by chunk, of points, graphs and meshes. Objects may lose all of their vertices.
    pub remove_rows: BTreeMap<Vec<i64>, BTreeSet<u64>>,
    /// Geometry to add, planned with [`LevelSnapshot::design`].
    pub add: Option<WritePlan>,
    /// Stored objects that join groups with the objects of `add`, by group number.
    pub groups: BTreeMap<u32, Vec<i64>>,
    /// `true` to drop fragments without rows and renumber the others.
    pub compact: bool,
}

impl LevelChange {
    /// Returns the chunks whose vertices change.
    ///
    /// # Errors
    ///
    /// [`EditError`] when an object to remove does not exist, or the object index is damaged.
    pub fn chunks(&self, image: &LevelSnapshot) -> Result<BTreeSet<Vec<i64>>, EditError> {
        let mut chunks: BTreeSet<Vec<i64>> = self.remove_rows.keys().cloned().collect();
        for id in &self.remove {
            let row = image
                .tables
                .row_of
                .get(id)
                .ok_or(EditError::UnknownObject(*id))?;
            let manifest = image.tables.manifest(*row, image.axes)?;
            chunks.extend(manifest.into_iter().map(|(chunk, _)| chunk));
        }
        if let Some(plan) = &self.add {
            chunks.extend(plan.layout.chunks.iter().cloned());
        }
        if self.compact {
            chunks.extend(image.chunks().cloned());
        }
        Ok(chunks)
    }

    /// Returns the cells that must be loaded before the change is applied.
    ///
    /// # Errors
    ///
    /// See [`chunks`](Self::chunks).
    pub fn needs(&self, image: &LevelSnapshot) -> Result<Vec<CellId>, EditError> {
        let chunks = self.chunks(image)?;
        let mut needs = BTreeSet::new();
        for (key, array) in &image.arrays {
            if image.keys.is_of_links(key) {
                continue;
            }
            let own = chunks.iter().filter(|chunk| array.present.contains(*chunk));
            needs.extend(own.map(|chunk| (key.clone(), chunk.clone())));
        }
        for (key, offsets) in links::arrays(image)? {
            let array = &image.arrays[&key];
            for source in &array.present {
                if links::touches(source, &offsets, &chunks) {
                    needs.extend(links::of_cell(image, &key, source));
                }
            }
            // Additions append to existing cells, even where no end is touched.
            if let Some(plan) = &self.add {
                for source in &plan.layout.chunks {
                    if array.present.contains(source) {
                        needs.extend(links::of_cell(image, &key, source));
                    }
                }
            }
        }
        if self.add.is_some() {
            image.sample(&mut needs)?;
        }
        Ok(needs.into_iter().collect())
    }
}

/// Nodes and cells that a change writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits {
    /// The nodes of the level after the change, except for those of tables.
    pub nodes: BTreeMap<Key, Node>,
    /// New and changed cells; `None` deletes a cell.
    pub cells: BTreeMap<CellId, Option<Vec<u8>>>,
    /// Rewritten tables: nodes and cells. Other chunks of these arrays are deleted. Empty if all
    /// tables stay as they are.
    pub tables: Vec<Output>,
    /// Attributes of the root.
    pub root: Attributes,
    /// Chunks that conflict with concurrent changes.
    pub touched: BTreeSet<Vec<i64>>,
    /// Objects that conflict with concurrent changes.
    pub touched_objects: BTreeSet<i64>,
    /// Chunks that lost links. Their vertices may be unchanged.
    pub unlinked: BTreeSet<Vec<i64>>,
    /// Number of added vertices.
    pub added: u64,
    /// Number of removed vertices.
    pub removed: u64,
    /// Number of links removed because only some of their ends were removed.
    pub severed: usize,
    /// Number of links removed because an end was removed.
    pub links: usize,
    /// Ids of the objects that were added or replaced; after a removal, ids of the removed objects.
    pub objects: Vec<i64>,
}
