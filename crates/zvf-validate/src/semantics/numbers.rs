//! Consecutive numbers of the vertices and fragments of a level.

use core::iter::Take;
use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{
    fragment::{FragmentIndex, Rows, RowsIter},
    manifest::{FragmentRef, ObjectManifest},
};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole};

use super::LevelView;
use crate::{
    batch,
    chunked_part::open_part,
    consistency::{LevelCounts, each_manifest},
};

/// Maximum number of rows that ranges of fragments may name in total, unless [`NAMES_PER_VERTEX`]
/// allows more. A range takes few bytes whatever its length, so a small hostile store could name each
/// row a million times.
const MAX_NAMED_ROWS: u64 = 1 << 28;
/// Number of times that ranges may name each vertex on average, however many vertices there are.
const NAMES_PER_VERTEX: u64 = 16;
/// Maximum number of fragments that ranges of manifests may name in total, as in L3.
const MAX_NAMED_FRAGMENTS: u64 = 1 << 32;

/// No vertex, fragment or object.
pub(super) const NONE: u32 = u32::MAX;
/// Several objects.
pub(super) const SEVERAL: u32 = u32::MAX - 1;

/// The numbers of the vertices and fragments of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberRange {
    pub(super) first: u32,
    pub(super) rows: u32,
    pub(super) first_fragment: u32,
    pub(super) fragments: u32,
}

impl NumberRange {
    /// Returns the number of a vertex.
    pub(super) fn vertex(self, row: u64) -> Option<u32> {
        let row = u32::try_from(row).ok().filter(|row| *row < self.rows)?;
        self.first.checked_add(row)
    }

    /// Returns the number of a fragment.
    pub(super) fn fragment(self, fragment: u32) -> Option<u32> {
        let fragment = Some(fragment).filter(|fragment| *fragment < self.fragments)?;
        self.first_fragment.checked_add(fragment)
    }
}

/// Numbering of a level: chunks in order, and rows in order within them.
#[derive(Debug, Default)]
pub(super) struct VertexNumbers {
    spans: BTreeMap<ChunkCoord, NumberRange>,
    pub(super) vertices: u32,
    pub(super) fragments: u32,
}

impl VertexNumbers {
    /// Returns `None` if there are more vertices or fragments than 32-bit numbers.
    pub(super) fn of(counts: &LevelCounts) -> Option<Self> {
        let mut numbers = Self::default();
        for (chunk, found) in &counts.chunks {
            let span = NumberRange {
                first: numbers.vertices,
                rows: u32::try_from(found.rows).ok()?,
                first_fragment: numbers.fragments,
                fragments: u32::try_from(found.fragments.unwrap_or(0)).ok()?,
            };
            numbers.vertices = numbers.vertices.checked_add(span.rows)?;
            numbers.fragments = numbers.fragments.checked_add(span.fragments)?;
            numbers.spans.insert(chunk.clone(), span);
        }
        let all = numbers.vertices.max(numbers.fragments);
        (all < SEVERAL).then_some(numbers)
    }

    /// Returns the numbers of a chunk.
    pub(super) fn span(&self, chunk: &ChunkCoord) -> Option<NumberRange> {
        self.spans.get(chunk).copied()
    }

    /// Returns the numbers of the chunk at some coordinates.
    pub(super) fn span_at(&self, coords: &[i64]) -> Option<NumberRange> {
        self.span(&ChunkCoord::new(coords))
    }
}

impl LevelView<'_, '_> {
    /// Returns the numbering of the level, or `None` after reporting that it does not exist.
    pub(super) fn numbers(&self) -> Option<VertexNumbers> {
        let numbers = VertexNumbers::of(self.counts);
        if numbers.is_none() {
            self.not_run("there are more vertices than 32-bit numbers");
        }
        numbers
    }

    /// Returns whether all vertices, fragments and manifests of the level are readable; reports it
    /// otherwise.
    pub(super) fn is_read(&self) -> bool {
        let unread = self.counts.unread || !self.counts.lost.is_empty();
        let mut chunks = self.counts.chunks.values();
        let is_read =
            !unread && chunks.all(|counts| counts.fragments.is_some() || counts.rows == 0);
        if !is_read {
            self.not_run("some vertices or fragments of the level cannot be read");
        }
        is_read
    }

    /// Calls `each` with the fragment index of each chunk.
    pub(super) async fn each_index(
        &self,
        numbers: &VertexNumbers,
        each: impl FnMut(NumberRange, &FragmentIndex<'_>) + Send,
    ) {
        self.each_index_except(numbers, &BTreeSet::new(), each)
            .await;
    }

    /// Calls `each` with the fragment index of each chunk, except for some chunks, whose cells are not
    /// read.
    pub(super) async fn each_index_except(
        &self,
        numbers: &VertexNumbers,
        except: &BTreeSet<ChunkCoord>,
        mut each: impl FnMut(NumberRange, &FragmentIndex<'_>) + Send,
    ) {
        let Some(cells) = open_part(&self.aside, self.scope, &ArrayRole::VertexFragments) else {
            return;
        };
        let mut chunks = cells.chunks();
        chunks.retain(|chunk| !except.contains(chunk));
        batch::each_chunk(&self.aside, &[&cells], &chunks, |chunk, cells| {
            let bytes = cells.first().and_then(|cell| cell.bytes());
            let index = bytes.and_then(|bytes| FragmentIndex::parse(bytes).ok());
            if let (Some(index), Some(span)) = (index, numbers.span(chunk)) {
                each(span, &index);
            }
        })
        .await;
    }

    /// Calls `each` with the number in its chunk and the rows of each fragment, except in some chunks,
    /// whose cells are not read. Returns whether all fragments were visited; reports it otherwise.
    pub(super) async fn each_fragment(
        &self,
        numbers: &VertexNumbers,
        except: &BTreeSet<ChunkCoord>,
        mut each: impl FnMut(NumberRange, u32, Take<RowsIter<'_>>) + Send,
    ) -> bool {
        let most = u64::from(numbers.vertices).saturating_mul(NAMES_PER_VERTEX);
        let mut left = NamesLeft::new(most.max(MAX_NAMED_ROWS));
        self.each_index_except(numbers, except, |span, index| {
            let own = u64::from(span.rows);
            let ranges = index.iter().map(|rows| match rows {
                Rows::Range(_) => rows.len().min(own),
                // Each row of a list takes bytes.
                Rows::List(_) => 0,
            });
            if !left.take(ranges.fold(0, u64::saturating_add)) {
                return;
            }
            let own = usize::try_from(span.rows).unwrap_or_default();
            for (fragment, rows) in (0..).zip(index.iter()) {
                each(span, fragment, rows.iter().take(own));
            }
        })
        .await;
        let is_whole = !left.is_exceeded();
        if !is_whole {
            self.not_run("fragments name too many rows to visit each");
        }
        is_whole
    }

    /// Calls `each` with the fragment numbers of each manifest. Returns whether all fragments were
    /// visited; reports it otherwise.
    pub(super) async fn each_object(
        &self,
        numbers: &VertexNumbers,
        mut each: impl FnMut(u64, &mut dyn Iterator<Item = u32>) + Send,
    ) -> bool {
        let mut left = NamesLeft::new(MAX_NAMED_FRAGMENTS);
        let visit = |row: u64, _: i64, manifest: &ObjectManifest<'_>| {
            if left.is_exceeded() {
                return;
            }
            let blocks = manifest.iter().filter_map(|block| {
                let coords: Vec<i64> = block.chunk.iter().collect();
                let span = numbers.span_at(&coords)?;
                let own = match block.fragments {
                    // The chunk bounds the range, whatever length it declares.
                    FragmentRef::Range(own) => {
                        let own = own.start..own.end.min(span.fragments);
                        let named = u64::try_from(own.len()).unwrap_or(u64::MAX);
                        left.take(named).then_some(FragmentRef::Range(own))?
                    }
                    own => own,
                };
                Some((span, own))
            });
            let mut fragments = blocks.flat_map(|(span, own)| {
                own.iter()
                    .filter_map(move |fragment| span.fragment(fragment))
            });
            each(row, &mut fragments);
        };
        each_manifest(&self.aside, self.scope, visit).await;
        let is_whole = !left.is_exceeded();
        if !is_whole {
            self.not_run("ranges of manifests name too many fragments to visit each");
        }
        is_whole
    }

    /// Returns the object of each fragment, by its row in the object index, or `None` after
    /// reporting that there are too many.
    async fn owners(&self, numbers: &VertexNumbers) -> Option<Vec<u32>> {
        let count = usize::try_from(numbers.fragments).unwrap_or_default();
        let mut owners = vec![NONE; count];
        let visit = |row: u64, fragments: &mut dyn Iterator<Item = u32>| {
            let row = u32::try_from(row).unwrap_or(SEVERAL);
            for fragment in fragments {
                if let Some(owner) = at_mut(&mut owners, fragment) {
                    *owner = match *owner {
                        NONE => row,
                        same if same == row => row,
                        _ => SEVERAL,
                    };
                }
            }
        };
        self.each_object(numbers, visit).await.then_some(owners)
    }

    /// Returns the object of each vertex, by its row in the object index, or `None` after reporting
    /// that fragments overlap too much.
    pub(super) async fn vertex_owners(&self, numbers: &VertexNumbers) -> Option<Vec<u32>> {
        let of_fragments = self.owners(numbers).await?;
        let count = usize::try_from(numbers.vertices).unwrap_or_default();
        let mut owners = vec![NONE; count];
        let visit = |span: NumberRange, fragment: u32, rows: Take<RowsIter<'_>>| {
            let owner = span
                .fragment(fragment)
                .and_then(|at| at_of(&of_fragments, at))
                .copied()
                .unwrap_or(NONE);
            for row in rows {
                let vertex = span.vertex(row);
                if let Some(at) = vertex.and_then(|vertex| at_mut(&mut owners, vertex)) {
                    *at = match *at {
                        NONE => owner,
                        same if same == owner => owner,
                        _ => SEVERAL,
                    };
                }
            }
        };
        let is_whole = self.each_fragment(numbers, &BTreeSet::new(), visit).await;
        is_whole.then_some(owners)
    }
}

/// The number of rows or fragments that ranges may still name.
struct NamesLeft(Option<u64>);

impl NamesLeft {
    fn new(most: u64) -> Self {
        Self(Some(most))
    }

    /// Takes names, and returns whether there were enough. Once there were not, there are none left.
    fn take(&mut self, names: u64) -> bool {
        self.0 = self.0.and_then(|left| left.checked_sub(names));
        self.0.is_some()
    }

    fn is_exceeded(&self) -> bool {
        self.0.is_none()
    }
}

/// Returns an item by number.
pub(super) fn at_of<T>(items: &[T], at: u32) -> Option<&T> {
    items.get(usize::try_from(at).ok()?)
}

/// Returns an item by number, for writing.
pub(super) fn at_mut<T>(items: &mut [T], at: u32) -> Option<&mut T> {
    items.get_mut(usize::try_from(at).ok()?)
}

/// A set of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    words: Vec<u64>,
}

impl Flags {
    pub(super) fn new(count: u32) -> Self {
        let words = usize::try_from(count.div_ceil(64)).unwrap_or_default();
        Self {
            words: vec![0; words],
        }
    }

    pub(super) fn set(&mut self, at: u32) {
        if let Some(word) = at_mut(&mut self.words, at / 64) {
            *word |= 1_u64 << (at % 64);
        }
    }

    pub(super) fn is_set(&self, at: u32) -> bool {
        let word = at_of(&self.words, at / 64);
        word.is_some_and(|word| word & (1_u64 << (at % 64)) != 0)
    }

    pub(super) fn count(&self) -> u64 {
        let ones = self.words.iter().map(|word| u64::from(word.count_ones()));
        ones.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_end_the_visit() {
        let mut left = NamesLeft::new(10);
        assert!(left.take(4) && left.take(6) && left.take(0));
        assert!(!left.is_exceeded());
        assert!(!left.take(1));
        assert!(left.is_exceeded());
        assert!(!left.take(0), "there are none left");
    }
}
