//! Removal of objects and rows from a level.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{numeric::Kind, path::ChunkCoords};
use zvf_model::{key::Key, object_ids::Owner};

use super::{
    change::{Edits, LevelChange},
    chunk::{Chunk, Fragment},
    error::{EditError, damaged},
    image::LevelSnapshot,
};

impl LevelSnapshot {
    /// Returns the fragments used by removed objects only, by chunk.
    pub(super) fn fragments_gone(
        &self,
        change: &LevelChange,
    ) -> Result<BTreeMap<Vec<i64>, BTreeSet<u32>>, EditError> {
        let mut removed: BTreeMap<Vec<i64>, BTreeSet<u32>> = BTreeMap::new();
        if change.remove.is_empty() {
            return Ok(removed);
        }
        for id in &change.remove {
            let row = self
                .tables
                .row_of
                .get(id)
                .ok_or(EditError::UnknownObject(*id))?;
            for (chunk, number) in self.tables.manifest(*row, self.axes)? {
                removed.entry(chunk).or_default().insert(number);
            }
        }
        for (row, id) in self.tables.ids.iter().flatten().enumerate() {
            if change.remove.contains(id) {
                continue;
            }
            for (chunk, number) in self.tables.manifest(row, self.axes)? {
                if let Some(numbers) = removed.get_mut(&chunk) {
                    numbers.remove(&number);
                }
            }
        }
        Ok(removed)
    }

    /// Updates the owners of fragments in the attribute `object_id`, if the level has it: a fragment
    /// that several objects shared may have one owner left.
    pub(super) fn update_owners(
        &self,
        chunks: &mut BTreeMap<Vec<i64>, Chunk>,
    ) -> Result<(), EditError> {
        let array = self.arrays.get(&self.keys.owners);
        let dtype = array.and_then(|array| array.cells.dtype());
        if dtype.is_none_or(|dtype| dtype.kind() != Kind::Int64) {
            return Ok(());
        }
        let mut owners: BTreeMap<(Vec<i64>, u32), i64> = BTreeMap::new();
        for (row, id) in self.tables.ids.iter().flatten().enumerate() {
            for (chunk, number) in self.tables.manifest(row, self.axes)? {
                if chunks.contains_key(&chunk) {
                    let owner = owners.entry((chunk, number)).or_insert(*id);
                    if owner != id {
                        *owner = Owner::SEVERAL;
                    }
                }
            }
        }
        for ((coords, number), owner) in owners {
            let chunk = chunks.get_mut(&coords);
            let values = chunk.and_then(|chunk| chunk.fragment.get_mut(&self.keys.owners));
            let start = (number as usize).saturating_mul(8);
            let value = values.and_then(|bytes| bytes.get_mut(start..start.saturating_add(8)));
            if let Some(value) = value {
                value.copy_from_slice(&owner.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Removes rows from chunks: listed rows, rows of removed fragments that no other fragment contains,
/// and, if the level is compacted, rows that no fragment contains. Damage names `manifests`.
pub(super) fn remove_rows(
    manifests: &Key,
    chunks: &mut BTreeMap<Vec<i64>, Chunk>,
    change: &LevelChange,
    removed: &BTreeMap<Vec<i64>, BTreeSet<u32>>,
    edits: &mut Edits,
) -> Result<BTreeMap<Vec<i64>, Vec<Option<u64>>>, EditError> {
    let mut moved = BTreeMap::new();
    for (coords, chunk) in chunks.iter_mut() {
        let mut rows = vec![false; usize::try_from(chunk.rows).unwrap_or(0)];
        let mut wanted = false;
        if let Some(numbers) = removed.get(coords) {
            for number in numbers {
                let fragment = chunk.fragments.get(*number as usize).ok_or_else(|| {
                    let why = format!(
                        "an object names fragment {number} of chunk {}",
                        ChunkCoords(coords)
                    );
                    damaged(manifests, why)
                })?;
                fragment.rows().for_each(|row| rows[row as usize] = true);
                wanted = true;
            }
            for (number, fragment) in (0u32..).zip(&chunk.fragments) {
                if !numbers.contains(&number) {
                    fragment.rows().for_each(|row| rows[row as usize] = false);
                }
            }
        }
        if let Some(own) = change.remove_rows.get(coords) {
            for row in own {
                let slot = usize::try_from(*row).ok().and_then(|row| rows.get_mut(row));
                *slot.ok_or_else(|| EditError::UnknownRow {
                    chunk: ChunkCoords(coords).to_string(),
                    row: *row,
                })? = true;
                wanted = true;
            }
        }
        if change.compact {
            let mut used = vec![false; rows.len()];
            for fragment in &chunk.fragments {
                fragment.rows().for_each(|row| used[row as usize] = true);
            }
            for (removed, used) in rows.iter_mut().zip(&used) {
                *removed |= !used;
                wanted |= !used;
            }
        }
        if !wanted {
            continue;
        }
        edits.removed += rows.iter().filter(|removed| **removed).count() as u64;
        // A removed fragment keeps its number and loses its rows.
        for number in removed.get(coords).into_iter().flatten() {
            if let Some(fragment) = chunk.fragments.get_mut(*number as usize) {
                let start = fragment.rows().next().unwrap_or(0);
                *fragment = match fragment {
                    Fragment::Range(start, end) if (*start..*end).all(|row| rows[row as usize]) => {
                        Fragment::Range(*start, *end)
                    }
                    _ => Fragment::Range(start, start),
                };
            }
        }
        moved.insert(coords.clone(), chunk.without(&rows));
    }
    Ok(moved)
}
