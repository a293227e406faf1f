//! Values of vertices or fragments from a table, in their order in a chunk.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use zvf_build::edit::{EditError, StoredValues};
use zvf_catalog::StoredArray;
use zvf_dataset::Failure;
use zvf_model::{grid::ChunkCoord, row_id::RowId, scope::Scope};

use super::{Batch, cell_name};

/// Values of some vertices.
pub(super) struct RowValues {
    pub(super) name: String,
    pub(super) scope: Scope,
    /// Addresses with rows of `values`, ascending.
    pub(super) rows: Arc<Vec<(RowId, usize)>>,
    /// Chunks of the level, ascending.
    pub(super) chunks: Arc<[ChunkCoord]>,
    pub(super) values: StoredValues,
    /// Values of the other vertices, if the attribute exists.
    pub(super) old: Option<StoredArray>,
    /// Number of vertices without a value.
    pub(super) missing: AtomicU64,
}

impl RowValues {
    /// Returns the values of the vertices of a batch.
    pub(super) fn of(&self, batch: &Batch, row: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        for (at, (chunk, count)) in batch.rows.iter().enumerate() {
            let start = bytes.len();
            let size = count.saturating_mul(row);
            let old = batch.old.get(at).and_then(Option::as_ref);
            match (old, &self.values.filler) {
                (Some(old), _) if old.len() == size => bytes.extend_from_slice(old),
                (Some(_), _) => {
                    return Err(Failure::Attribute {
                        name: cell_name(&self.scope.array(&self.name), chunk),
                        why: "its size is not that of one value for each row",
                    });
                }
                (None, Some(filler)) => bytes.extend(filler.iter().cycle().take(size)),
                (None, None) => bytes.resize(start + size, 0),
            }
            let own = self.rows_of(chunk);
            for (id, from) in own {
                let to = usize::try_from(id.row()).unwrap_or(usize::MAX);
                let to = to
                    .checked_mul(row)
                    .filter(|to| *to < size)
                    .map(|to| start + to);
                let (slot, values) = to
                    .and_then(|to| bytes.get_mut(to..to + row))
                    .zip(self.values.numbers.row(*from))
                    .ok_or_else(|| EditError::UnknownRow {
                        chunk: chunk.to_string(),
                        row: id.row(),
                    })?;
                slot.copy_from_slice(values);
            }
            if old.is_none() && self.values.filler.is_none() {
                let missing = count.saturating_sub(own.len()) as u64;
                self.missing.fetch_add(missing, Ordering::Relaxed);
            }
        }
        Ok(bytes)
    }

    /// Returns the rows of a chunk.
    fn rows_of(&self, chunk: &ChunkCoord) -> &[(RowId, usize)] {
        let rank = self.chunks.binary_search(chunk).unwrap_or(usize::MAX) as u64;
        let start = self.rows.partition_point(|(id, _)| id.chunk() < rank);
        let end = self.rows.partition_point(|(id, _)| id.chunk() <= rank);
        &self.rows[start..end]
    }
}
