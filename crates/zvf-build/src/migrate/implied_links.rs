//! Links between runs of paths, derived from object manifests.

use std::collections::{BTreeMap, HashMap};

/// First and last row of each fragment of a chunk; `None` for one without rows.
pub type FragmentEnds = Vec<Option<(u64, u64)>>;

/// Links implied where paths change chunk, from the last vertex of a run to the first of the next.
///
/// Writers up to 0.7 stored row 0 for all of these links, and writers of lines stored fragment
/// numbers. If as many links are stored from one chunk to another as paths imply, each stored link
/// is taken to be the next implied one.
#[derive(Clone, Debug, Default)]
pub struct ImpliedLinks {
    chunks: HashMap<Vec<i64>, u32>,
    between: HashMap<(u32, u32), Vec<(u64, u64)>>,
}

/// Result of repairing the links between two chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRepair {
    /// Number of links with corrected rows.
    Rows(u64),
    /// Number of stored links, which differs from the implied number.
    Unexplained(u64),
}

impl ImpliedLinks {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    fn number(&mut self, chunk: &[i64]) -> u32 {
        if let Some(number) = self.chunks.get(chunk) {
            return *number;
        }
        let next = self.chunks.len() as u32;
        self.chunks.insert(chunk.to_vec(), next);
        next
    }

    /// Adds a path: the chunk of each run, and its first and last row.
    pub fn path<'a>(&mut self, pieces: impl IntoIterator<Item = (&'a [i64], (u64, u64))>) {
        let mut before: Option<(u32, u64)> = None;
        for (chunk, (first, last)) in pieces {
            let chunk = self.number(chunk);
            if let Some((from, row)) = before
                && from != chunk
            {
                self.between
                    .entry((from, chunk))
                    .or_default()
                    .push((row, first));
            }
            before = Some((chunk, last));
        }
    }

    /// Returns the number of implied links from one chunk to another.
    pub fn count(&self, from: &[i64], to: &[i64]) -> usize {
        self.between(from, to).map_or(0, Vec::len)
    }

    /// Returns all links by their two chunks, which ascend. An end is the number of a chunk, 0 or 1,
    /// and a row.
    pub fn by_chunks(&self) -> BTreeMap<[&[i64]; 2], Vec<(u32, u64)>> {
        let mut coords: Vec<&[i64]> = vec![&[]; self.chunks.len()];
        for (chunk, number) in &self.chunks {
            coords[*number as usize] = chunk;
        }
        let all = self
            .between
            .iter()
            .map(|((from, to), rows)| ([coords[*from as usize], coords[*to as usize]], rows));
        // Equal input gives equal output.
        let all: BTreeMap<[&[i64]; 2], &Vec<(u64, u64)>> = all.collect();
        let mut pairs: BTreeMap<[&[i64]; 2], Vec<(u32, u64)>> = BTreeMap::new();
        for ([from, to], rows) in all {
            let (chunks, first) = if from < to {
                ([from, to], 0)
            } else {
                ([to, from], 1)
            };
            let ends = rows
                .iter()
                .flat_map(|(last, next)| [(first, *last), (1 - first, *next)]);
            pairs.entry(chunks).or_default().extend(ends);
        }
        pairs
    }

    fn between(&self, from: &[i64], to: &[i64]) -> Option<&Vec<(u64, u64)>> {
        let numbers = (self.chunks.get(from)?, self.chunks.get(to)?);
        self.between.get(&(*numbers.0, *numbers.1))
    }

    /// Corrects the rows of links from one chunk to another.
    pub(crate) fn repair(&self, from: &[i64], to: &[i64], stored: &mut [(u64, u64)]) -> LinkRepair {
        let implied = self
            .between(from, to)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if implied.len() != stored.len() {
            return LinkRepair::Unexplained(stored.len() as u64);
        }
        let sorted = |rows: &[(u64, u64)]| {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            rows
        };
        // A different order of equal links is correct.
        if sorted(implied) == sorted(stored) {
            return LinkRepair::Rows(0);
        }
        let mut wrong = 0;
        for (stored, implied) in stored.iter_mut().zip(implied) {
            wrong += u64::from(stored != implied);
            *stored = *implied;
        }
        LinkRepair::Rows(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two paths, one of which turns back: chunks 0, 1, 0 and chunks 0, 1.
    fn bridges() -> ImpliedLinks {
        let mut bridges = ImpliedLinks::new();
        let piece = |chunk: &'static [i64], first, last| (chunk, (first, last));
        bridges.path([piece(&[0], 0, 3), piece(&[1], 5, 6), piece(&[0], 4, 4)]);
        bridges.path([piece(&[0], 7, 8), piece(&[0], 9, 9), piece(&[1], 0, 2)]);
        bridges
    }

    #[test]
    fn zero_rows_are_replaced_by_implied_rows() {
        let mut stored = [(0, 0), (0, 0)];
        let repair = bridges().repair(&[0], &[1], &mut stored);
        assert_eq!((repair, stored), (LinkRepair::Rows(2), [(3, 5), (9, 0)]));
        let mut back = [(6, 0)];
        assert_eq!(bridges().repair(&[1], &[0], &mut back), LinkRepair::Rows(1));
        assert_eq!(back, [(6, 4)]);
    }

    #[test]
    fn links_are_listed_by_chunks() {
        let bridges = bridges();
        let found: Vec<_> = bridges.by_chunks().into_iter().collect();
        let chunks: [&[i64]; 2] = [&[0], &[1]];
        let ends = vec![(0, 3), (1, 5), (0, 9), (1, 0), (1, 6), (0, 4)];
        assert_eq!(found, [(chunks, ends)]);
    }

    #[test]
    fn correct_rows_keep_their_order() {
        let mut stored = [(9, 0), (3, 5)];
        assert_eq!(
            bridges().repair(&[0], &[1], &mut stored),
            LinkRepair::Rows(0)
        );
        assert_eq!(stored, [(9, 0), (3, 5)]);
    }

    #[test]
    fn unexplained_links_are_kept() {
        let mut stored = [(0, 0)];
        let repair = bridges().repair(&[0], &[1], &mut stored);
        assert_eq!((repair, stored), (LinkRepair::Unexplained(1), [(0, 0)]));
        assert_eq!(
            bridges().repair(&[1], &[2], &mut stored),
            LinkRepair::Unexplained(1)
        );
        assert_eq!(bridges().count(&[0], &[1]), 2);
    }
}
