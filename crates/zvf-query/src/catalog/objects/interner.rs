//! Numbers of the chunks in manifests.

use std::collections::HashMap;

use zvf_format::int64s::Int64s;
use zvf_model::grid::ChunkCoord;

/// Assigns numbers to chunks of one number of axes, in order of appearance.
///
/// Consecutive objects pass through the same chunks. A small direct-mapped cache with a cheap hash
/// therefore answers most lookups; the map with its collision-resistant hash answers the others.
#[derive(Debug)]
pub(super) struct ChunkInterner {
    chunks: Vec<ChunkCoord>,
    /// The coordinates of all chunks one after the other: comparing them reads no other memory.
    coords: Vec<i64>,
    by_chunk: HashMap<ChunkCoord, u32>,
    /// The number of the chunk last seen in each cache slot.
    recent: Vec<u32>,
}

/// Binary logarithm of the number of cache slots.
const BITS: u32 = 12;

impl ChunkInterner {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            coords: Vec::new(),
            by_chunk: HashMap::new(),
            recent: vec![0; 1 << BITS],
        }
    }

    /// Returns the number of chunks.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns whether `chunk` has this number.
    pub(super) fn is(&self, number: u32, chunk: Int64s<'_>) -> bool {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let start = at.saturating_mul(chunk.len());
        let known = self.coords.get(start..start.saturating_add(chunk.len()));
        let is_known = at < self.chunks.len();
        is_known && known.is_some_and(|known| chunk.iter().eq(known.iter().copied()))
    }

    /// Returns the number of a chunk, or `None` for a new chunk.
    pub(super) fn find(&mut self, chunk: Int64s<'_>) -> Option<u32> {
        let slot = slot(chunk);
        let recent = self.recent.get(slot).copied()?;
        if self.is(recent, chunk) {
            return Some(recent);
        }
        let coords: Vec<i64> = chunk.iter().collect();
        let number = *self.by_chunk.get(coords.as_slice())?;
        self.remember(slot, number);
        Some(number)
    }

    /// Assigns the next number to a new chunk. Returns `None` if all numbers are in use.
    pub(super) fn add(&mut self, chunk: Int64s<'_>) -> Option<u32> {
        let coords = ChunkCoord::new(chunk.iter().collect::<Vec<i64>>());
        let number = self.intern(coords)?;
        self.remember(slot(chunk), number);
        Some(number)
    }

    /// Returns the number of a chunk, which is the next one for a new chunk; `None` if all numbers
    /// are in use.
    pub(super) fn intern(&mut self, chunk: ChunkCoord) -> Option<u32> {
        if let Some(number) = self.by_chunk.get(&chunk) {
            return Some(*number);
        }
        let number = u32::try_from(self.chunks.len()).ok()?;
        self.by_chunk.insert(chunk.clone(), number);
        self.coords.extend_from_slice(chunk.coords());
        self.chunks.push(chunk);
        Some(number)
    }

    fn remember(&mut self, slot: usize, number: u32) {
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = number;
        }
    }

    /// Returns the chunks in order of their numbers.
    pub(super) fn into_chunks(self) -> Vec<ChunkCoord> {
        self.chunks
    }
}

/// Returns the cache slot of a chunk.
fn slot(chunk: Int64s<'_>) -> usize {
    let mixed = chunk.iter().fold(0_u64, |mixed, coordinate| {
        // Fibonacci hashing: 2^64 divided by the golden ratio spreads neighbouring chunks.
        (mixed ^ coordinate.cast_unsigned())
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    let slot = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS);
    usize::try_from(slot).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_beyond_the_size_of_the_cache() {
        let blob = |x: i64, y: i64| [x.to_le_bytes(), y.to_le_bytes()].concat();
        let mut numbers = ChunkInterner::new();
        for round in 0..3 {
            for at in 0..5000_u32 {
                let blob = blob(i64::from(at % 70) - 35, i64::from(at / 70));
                let chunk = Int64s::parse(&blob).unwrap();
                let number = match numbers.find(chunk) {
                    None => numbers.add(chunk).unwrap(),
                    Some(number) => {
                        assert!(round > 0);
                        number
                    }
                };
                assert_eq!(number, at);
                assert!(numbers.is(at, chunk) && !numbers.is(at + 1, chunk));
            }
        }
        assert_eq!(numbers.into_chunks().len(), 5000);
    }
}
