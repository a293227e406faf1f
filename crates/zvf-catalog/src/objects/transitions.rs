//! Objects with consecutive fragments in two chunks.

use super::ObjectSet;

/// Pairs of chunks that hold consecutive fragments of objects, with the objects of each pair.
#[derive(Debug, Default)]
pub(super) struct ChunkTransitions {
    pairs: Vec<[u32; 2]>,
    /// Start of each pair's objects in `positions`, and the end of the last.
    starts: Vec<usize>,
    /// Ascending within a pair.
    positions: Vec<u32>,
}

impl ChunkTransitions {
    /// Maximum memory per fragment while the pairs are computed, in bytes.
    pub(super) const BYTES_PER_FRAGMENT: usize = size_of::<([u32; 2], u32)>();

    pub(super) fn of(objects: &ObjectSet) -> Self {
        let mut all: Vec<([u32; 2], u32)> = Vec::new();
        for (number, position) in (0_u32..).zip(0..objects.len()) {
            for pair in objects.fragments(position).windows(2) {
                if let [from, to] = pair
                    && from.chunk != to.chunk
                {
                    all.push(([from.chunk, to.chunk], number));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut transitions = Self::default();
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            if let Some((pair, _)) = same.first() {
                transitions.pairs.push(*pair);
                transitions.starts.push(transitions.positions.len());
                transitions
                    .positions
                    .extend(same.iter().map(|(_, position)| *position));
            }
        }
        transitions.starts.push(transitions.positions.len());
        transitions
    }

    /// Returns the positions of objects with a pair of chunks for which `is_candidate` holds. A
    /// position may repeat.
    pub(super) fn positions(
        &self,
        is_candidate: impl Fn([u32; 2]) -> bool,
    ) -> impl Iterator<Item = usize> {
        let ranges = self.starts.windows(2);
        let pairs = self
            .pairs
            .iter()
            .zip(ranges)
            .filter_map(move |(pair, range)| {
                let [start, end] = *range else { return None };
                let positions = self.positions.get(start..end)?;
                is_candidate(*pair).then_some(positions)
            });
        let positions = pairs.flatten();
        positions.map(|position| usize::try_from(*position).unwrap_or(usize::MAX))
    }
}
