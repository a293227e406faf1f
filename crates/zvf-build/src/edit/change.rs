//! What is to change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    error::EditError,
    image::{CellKey, LevelSnapshot},
    links,
};
use crate::{output::Output, plan::WritePlan};

/// What goes from a level and what comes. What comes under the id of an object
/// that goes replaces it: its place in groups stays, and its attributes do where
/// no others are given.
#[derive(Debug, Default)]
pub struct LevelChange {
    /// Objects that go.
    pub remove: BTreeSet<i64>,
    /// Rows that go, by chunk: vertices of points without objects.
    pub remove_rows: BTreeMap<Vec<i64>, BTreeSet<u64>>,
    /// What comes, planned with [`LevelSnapshot::design`].
    pub add: Option<WritePlan>,
    /// Whether fragments without rows go too, and numbers become dense.
    pub compact: bool,
}

impl LevelChange {
    /// The chunks whose vertices change.
    ///
    /// # Errors
    ///
    /// [`EditError`] when an object that is to go is not there, or the object index
    /// is damaged.
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

    /// The cells that have to be loaded to apply it.
    ///
    /// # Errors
    ///
    /// As for [`chunks`](Self::chunks).
    pub fn needs(&self, image: &LevelSnapshot) -> Result<Vec<CellKey>, EditError> {
        let chunks = self.chunks(image)?;
        let mut needs = BTreeSet::new();
        for (path, array) in &image.arrays {
            let of_links = path.starts_with("0/link");
            if of_links {
                continue;
            }
            let own = chunks.iter().filter(|chunk| array.present.contains(*chunk));
            needs.extend(own.map(|chunk| (path.clone(), chunk.clone())));
        }
        for (path, segment, offsets) in links::arrays(image)? {
            let array = &image.arrays[&path];
            for source in &array.present {
                if links::touches(source, &offsets, &chunks) {
                    needs.extend(links::of_cell(image, &segment, source));
                }
            }
            // What is added goes to cells that exist, whatever they touch.
            if let Some(plan) = &self.add {
                for source in &plan.layout.chunks {
                    if array.present.contains(source) {
                        needs.extend(links::of_cell(image, &segment, source));
                    }
                }
            }
        }
        Ok(needs.into_iter().collect())
    }
}

/// What a change makes of a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits {
    /// Nodes that are new or say something else, by path.
    pub nodes: BTreeMap<String, Value>,
    /// Cells that are new or hold something else; `None` for those that go.
    pub cells: BTreeMap<CellKey, Option<Vec<u8>>>,
    /// Tables, written anew: nodes and cells. Other chunks of their arrays go.
    pub tables: Vec<Output>,
    /// Attributes of the root.
    pub root: Map<String, Value>,
    /// What another change at the same time must not have touched: chunks and
    /// objects.
    pub touched: BTreeSet<String>,
    /// Vertices that came.
    pub added: u64,
    /// Vertices that went.
    pub removed: u64,
    /// Links that went because one of their ends did, though others stayed.
    pub severed: usize,
    /// Objects that came.
    pub objects: Vec<i64>,
}
