//! Families that store a copy of each link in each of its chunks.

use std::collections::BTreeMap;

use zvf_model::{grid::ChunkCoord, key::Key};

use crate::{context::Context, rules::consistency as rules};

/// Checksums of copies, by family and set of chunks, then by the chunk that holds the copy. All
/// chunks of a link hold equal copies, so their sums must be equal. Memory is independent of the
/// number of links.
#[derive(Debug, Default)]
pub(super) struct Copies {
    sums: BTreeMap<(Key, Vec<ChunkCoord>), Sums>,
}

/// Number of copies in a chunk, and their checksum.
type Sums = BTreeMap<ChunkCoord, (u64, u128)>;

impl Copies {
    /// Adds a cell with copies of links between `slots`, stored in the first of them.
    pub(super) fn add(&mut self, family: &Key, slots: &[ChunkCoord], rows: u64, sum: u128) {
        let Some(lead) = slots.first() else {
            return;
        };
        let mut chunks = slots.to_vec();
        chunks.sort_unstable();
        chunks.dedup();
        let sums = self.sums.entry((family.clone(), chunks)).or_default();
        let (count, total) = sums.entry(lead.clone()).or_default();
        *count = count.saturating_add(rows);
        *total = total.wrapping_add(sum);
    }

    pub(super) fn finish(self, context: &Context<'_>) {
        for ((family, chunks), sums) in self.sums {
            let names: Vec<String> = chunks.iter().map(ToString::to_string).collect();
            let of = |chunk| sums.get(chunk).copied().unwrap_or_default();
            let counts: Vec<u64> = chunks.iter().map(|chunk| of(chunk).0).collect();
            let first = chunks.first().map(of);
            let message = if counts.windows(2).any(|pair| pair.first() != pair.last()) {
                format!("links between {} have {counts:?} copies", names.join(", "))
            } else if chunks.iter().any(|chunk| Some(of(chunk)) != first) {
                format!("copies of links between {} differ", names.join(", "))
            } else {
                continue;
            };
            context.report(&rules::LINK_COPIES, &family, message);
        }
    }
}
