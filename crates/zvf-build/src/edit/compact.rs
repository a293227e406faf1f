//! Compaction of chunks after removals.

use std::collections::BTreeMap;

use super::{
    chunk::Chunk,
    error::{EditError, damaged},
    image::LevelSnapshot,
};

impl LevelSnapshot {
    /// Drops fragments without rows and sorts objects. Returns whether the tables changed.
    pub(super) fn compact(
        &mut self,
        chunks: &mut BTreeMap<Vec<i64>, Chunk>,
    ) -> Result<bool, EditError> {
        if self.tables.ids.is_none() {
            return Ok(false);
        }
        let mut numbers: BTreeMap<&[i64], Vec<Option<u32>>> = BTreeMap::new();
        for (coords, chunk) in chunks.iter_mut() {
            let mut next = 0;
            let keep: Vec<Option<u32>> = chunk
                .fragments
                .iter()
                .map(|fragment| {
                    let number = fragment.rows().next().is_some().then_some(next);
                    next += u32::from(number.is_some());
                    number
                })
                .collect();
            let before = chunk.fragments.len().max(1);
            for bytes in chunk.fragment.values_mut() {
                let size = (bytes.len() / before).max(1);
                let kept = bytes
                    .chunks_exact(size)
                    .zip(&keep)
                    .filter(|(_, keep)| keep.is_some());
                *bytes = kept.flat_map(|(row, _)| row).copied().collect();
            }
            let mut at = 0;
            chunk.fragments.retain(|_| {
                at += 1;
                keep[at - 1].is_some()
            });
            numbers.insert(coords, keep);
        }
        let ids = self.tables.ids.clone().unwrap_or_default();
        let mut manifests = Vec::with_capacity(ids.len());
        for (row, id) in ids.iter().enumerate() {
            let mut fragments = Vec::new();
            for (chunk, number) in self.tables.manifest(row, self.axes)? {
                let keep = numbers
                    .get(chunk.as_slice())
                    .and_then(|keep| keep.get(number as usize));
                match keep {
                    Some(Some(number)) => fragments.push((chunk, *number)),
                    Some(None) => {}
                    None => {
                        let why = format!("object {id} lists a fragment that does not exist");
                        return Err(damaged(&self.tables.manifests_node, why));
                    }
                }
            }
            manifests.push(self.tables.encoded(&fragments, self.axes)?);
        }
        let is_same = self.tables.manifests == manifests && ids.is_sorted();
        if is_same {
            return Ok(false);
        }
        self.tables.manifests = manifests;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|row| ids[*row]);
        let sorted =
            |rows: &Vec<Option<Vec<u8>>>| order.iter().map(|row| rows[*row].clone()).collect();
        for table in self.tables.object.values_mut() {
            table.rows = sorted(&table.rows);
        }
        let manifests = std::mem::take(&mut self.tables.manifests);
        self.tables.manifests = order.iter().map(|row| manifests[*row].clone()).collect();
        self.tables.ids = Some(order.iter().map(|row| ids[*row]).collect());
        self.tables.row_of = self.tables.ids.iter().flatten().copied().zip(0..).collect();
        Ok(true)
    }
}
