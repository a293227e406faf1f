//! Which objects go from one chunk straight to another.

use super::Objects;

/// Pairs of chunks that hold consecutive fragments of objects, with the objects of each pair.
#[derive(Debug, Default)]
pub(super) struct ChunkTransitions {
    pairs: Vec<[u32; 2]>,
    /// Where the places of each pair begin; one more than there are pairs.
    starts: Vec<usize>,
    /// Ascending within a pair.
    places: Vec<u32>,
}

impl ChunkTransitions {
    /// Bytes that a piece takes at most while they are found.
    pub(super) const PIECE: usize = size_of::<([u32; 2], u32)>();

    pub(super) fn of(objects: &Objects) -> Self {
        let mut all: Vec<([u32; 2], u32)> = Vec::new();
        for (number, place) in (0_u32..).zip(0..objects.len()) {
            for pair in objects.fragments(place).windows(2) {
                if let [from, to] = pair
                    && from.chunk != to.chunk
                {
                    all.push(([from.chunk, to.chunk], number));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut steps = Self::default();
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            if let Some((pair, _)) = same.first() {
                steps.pairs.push(*pair);
                steps.starts.push(steps.places.len());
                steps.places.extend(same.iter().map(|(_, place)| *place));
            }
        }
        steps.starts.push(steps.places.len());
        steps
    }

    /// Places of the objects with a step for which `may` holds, some more than once.
    pub(super) fn places(&self, may: impl Fn([u32; 2]) -> bool) -> impl Iterator<Item = usize> {
        let ranges = self.starts.windows(2);
        let pairs = self
            .pairs
            .iter()
            .zip(ranges)
            .filter_map(move |(pair, range)| {
                let [start, end] = *range else { return None };
                let places = self.places.get(start..end)?;
                may(*pair).then_some(places)
            });
        let places = pairs.flatten();
        places.map(|place| usize::try_from(*place).unwrap_or(usize::MAX))
    }
}
