//! Numbers of the chunks in manifests.

use std::collections::HashMap;

use zvf_format::int64s::Int64s;
use zvf_model::grid::ChunkCoord;

/// Assigns numbers to chunks of one number of axes, in order of appearance.
///
/// Consecutive objects pass through the same chunks in the same order. The chunk that followed the
/// last time therefore serves most lookups, and a small direct-mapped cache with a cheap hash most
/// others; the map with its collision-resistant hash serves the rest.
#[derive(Debug)]
pub(super) struct ChunkInterner {
    chunks: Vec<ChunkCoord>,
    /// The coordinates of all chunks one after the other: comparing them reads no other memory.
    coords: Vec<i64>,
    by_chunk: HashMap<ChunkCoord, u32>,
    /// The number of the chunk last seen in each cache slot.
    recent: Vec<u32>,
    /// The number of the chunk last seen after each chunk.
    after: Vec<u32>,
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
            after: Vec::new(),
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

    /// Returns the number of a chunk that a manifest names after the chunk `last`, or `None` for a
    /// new chunk.
    pub(super) fn find_after(&mut self, last: Option<u32>, chunk: Int64s<'_>) -> Option<u32> {
        let at = last.and_then(|last| usize::try_from(last).ok());
        let after = at.and_then(|at| self.after.get(at).copied());
        if let Some(number) = [last, after]
            .into_iter()
            .flatten()
            .find(|n| self.is(*n, chunk))
        {
            return Some(number);
        }
        let number = self.find(chunk)?;
        if let Some(after) = at.and_then(|at| self.after.get_mut(at)) {
            *after = number;
        }
        Some(number)
    }

    /// Returns the number of a chunk, or `None` for a new chunk.
    fn find(&mut self, chunk: Int64s<'_>) -> Option<u32> {
        let slot = slot(chunk.iter());
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
        self.intern(coords)
    }

    /// Returns the number of a chunk, which is the next one for a new chunk; `None` if all numbers
    /// are in use.
    pub(super) fn intern(&mut self, chunk: ChunkCoord) -> Option<u32> {
        let slot = slot(chunk.coords().iter().copied());
        let recent = self.recent.get(slot).copied()?;
        let at = usize::try_from(recent).ok()?;
        if self.chunks.get(at) == Some(&chunk) {
            return Some(recent);
        }
        if let Some(number) = self.by_chunk.get(&chunk).copied() {
            self.remember(slot, number);
            return Some(number);
        }
        let number = u32::try_from(self.chunks.len()).ok()?;
        self.remember(slot, number);
        self.by_chunk.insert(chunk.clone(), number);
        self.coords.extend_from_slice(chunk.coords());
        self.after.push(number);
        self.chunks.push(chunk);
        Some(number)
    }

    /// Forgets the chunks from this number on.
    pub(super) fn truncate(&mut self, len: usize) {
        for chunk in self.chunks.drain(len.min(self.chunks.len())..) {
            self.by_chunk.remove(&chunk);
            self.after.pop();
            let rest = self.coords.len().saturating_sub(chunk.coords().len());
            self.coords.truncate(rest);
        }
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
fn slot(chunk: impl Iterator<Item = i64>) -> usize {
    let mixed = chunk.fold(0_u64, |mixed, coordinate| {
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
        numbers.truncate(3000);
        let [kept, forgotten] = [2999_u32, 3000].map(|at| {
            let blob = blob(i64::from(at % 70) - 35, i64::from(at / 70));
            numbers.find(Int64s::parse(&blob).unwrap())
        });
        assert_eq!((kept, forgotten), (Some(2999), None));
        assert_eq!(numbers.into_chunks().len(), 3000);
    }
}
