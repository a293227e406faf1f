//! Families that have a copy of each link in each of its chunks.

use std::collections::BTreeMap;

use zvf_model::{grid::ChunkCoord, key::Key};

use crate::{context::Context, rules::consistency as rules};

/// Sums of copies: by family and all chunks of a link, then by the chunk that has
/// the copy. Links between the same chunks have the same copies in each, so that
/// the sums are equal; nothing is kept of single links.
#[derive(Debug, Default)]
pub(super) struct Copies {
    sums: BTreeMap<(Key, Vec<ChunkCoord>), Sums>,
}

/// How many copies a chunk has, and their sum.
type Sums = BTreeMap<ChunkCoord, (u64, u128)>;

impl Copies {
    /// A cell with copies of links between `slots`, the first of which has them.
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
                format!(
                    "of links between {} there are {counts:?} copies",
                    names.join(", ")
                )
            } else if chunks.iter().any(|chunk| Some(of(chunk)) != first) {
                format!("copies of links between {} differ", names.join(", "))
            } else {
                continue;
            };
            context.find(&rules::LINK_COPIES, &family, message);
        }
    }
}
