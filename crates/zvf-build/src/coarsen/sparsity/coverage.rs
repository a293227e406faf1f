//! Greedy cover of chunks by objects.

use super::ObjectFacts;

/// Returns the first `count` objects of a greedy cover; ties go to the first in `rows`, and objects
/// without chunks come last.
pub(super) fn covering(objects: &[ObjectFacts], rows: &[u32], count: usize) -> Vec<u32> {
    let mut cover = Cover::new(objects, rows);
    // Indices of `rows` from here on, which also give the order of ties.
    let mut chosen: Vec<u32> = Vec::with_capacity(count);
    let mut is_chosen = vec![false; rows.len()];
    let mut wanted = 1_u32;
    while chosen.len() < count && cover.members.iter().any(|members| *members > 0) {
        cover.fill(wanted, &mut is_chosen, |index| {
            chosen.push(index);
            chosen.len() == count
        });
        wanted = wanted.saturating_mul(2);
    }
    let nowhere = (0..)
        .zip(&is_chosen)
        .filter(|(_, is_chosen)| !**is_chosen)
        .map(|(index, _)| index);
    let missing = count - chosen.len();
    chosen.extend(nowhere.take(missing));
    chosen.iter().map(|index| rows[*index as usize]).collect()
}

/// State of the cover.
struct Cover {
    /// Chunks of all objects, concatenated.
    chunks: Vec<u32>,
    /// End of each object's chunks.
    ends: Vec<usize>,
    /// Number of chosen objects in each chunk.
    reached: Vec<u32>,
    /// Number of other objects in each chunk.
    members: Vec<u32>,
}

impl Cover {
    fn new(objects: &[ObjectFacts], rows: &[u32]) -> Self {
        let mut chunks = Vec::new();
        let ends = rows
            .iter()
            .map(|row| {
                chunks.extend_from_slice(&objects[*row as usize].chunks);
                chunks.len()
            })
            .collect();
        let last = chunks.iter().max();
        let mut members = vec![0; last.map_or(0, |last| *last as usize + 1)];
        for chunk in &chunks {
            members[*chunk as usize] += 1;
        }
        Self {
            chunks,
            ends,
            reached: vec![0; members.len()],
            members,
        }
    }

    fn chunks_of(&self, index: u32) -> core::ops::Range<usize> {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[index]
    }

    /// Returns the number of an object's chunks that are reached fewer than `wanted` times.
    fn gain(&self, index: u32, wanted: u32) -> usize {
        let chunks = self.chunks[self.chunks_of(index)].iter();
        chunks
            .filter(|chunk| self.reached[**chunk as usize] < wanted)
            .count()
    }

    /// Chooses objects until every chunk is reached `wanted` times or by all its objects, or
    /// `choose` returns true.
    ///
    /// Gains only decrease, so objects wait in buckets by their last known gain and move down when
    /// it has fallen. Each object is examined at most once for each of its chunks.
    fn fill(&mut self, wanted: u32, is_chosen: &mut [bool], mut choose: impl FnMut(u32) -> bool) {
        let wants = |reached: u32, members: u32| reached < wanted && members > 0;
        let chunks = self.reached.iter().zip(&self.members);
        let mut open = chunks
            .filter(|(reached, members)| wants(**reached, **members))
            .count();
        let mut waiting: Vec<Vec<u32>> = Vec::new();
        let left = (0..)
            .zip(is_chosen.iter())
            .filter(|(_, is_chosen)| !**is_chosen);
        for (index, _) in left {
            let gain = self.gain(index, wanted);
            if waiting.len() <= gain {
                waiting.resize_with(gain + 1, Vec::new);
            }
            waiting[gain].push(index);
        }
        while let Some(mut best) = waiting.pop() {
            let expected = waiting.len();
            #[expect(
                clippy::stable_sort_primitive,
                reason = "objects that moved down from one bucket are sorted, and a stable sort is fast on sorted runs"
            )]
            best.sort();
            for index in best {
                if open == 0 {
                    return;
                }
                let gain = self.gain(index, wanted);
                if gain < expected {
                    waiting[gain].push(index);
                    continue;
                }
                is_chosen[index as usize] = true;
                for at in self.chunks_of(index) {
                    let chunk = self.chunks[at] as usize;
                    let (reached, members) = (&mut self.reached[chunk], &mut self.members[chunk]);
                    let did_want = wants(*reached, *members);
                    *reached += 1;
                    *members -= 1;
                    open -= usize::from(did_want && !wants(*reached, *members));
                }
                if choose(index) {
                    return;
                }
            }
        }
    }
}
