//! Consecutive numbers of the vertices and fragments of a level.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{
    fragment::FragmentIndex,
    manifest::{FragmentRef, ObjectManifest},
};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole};

use super::LevelView;
use crate::{
    batch,
    chunked_part::open_part,
    consistency::{LevelCounts, each_manifest},
};

/// No vertex, fragment or object.
pub(super) const NONE: u32 = u32::MAX;
/// Several objects.
pub(super) const SEVERAL: u32 = u32::MAX - 1;

/// The numbers of the vertices and fragments of a chunk.
#[derive(Clone, Copy, Debug, Default)]
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

    /// Calls `each` with the fragment numbers of each manifest.
    pub(super) async fn each_object(
        &self,
        numbers: &VertexNumbers,
        mut each: impl FnMut(u64, &mut dyn Iterator<Item = u32>) + Send,
    ) {
        let visit = |row: u64, _: i64, manifest: &ObjectManifest<'_>| {
            let blocks = manifest.iter().filter_map(|block| {
                let coords: Vec<i64> = block.chunk.iter().collect();
                let span = numbers.span_at(&coords)?;
                let own = match block.fragments {
                    // The chunk bounds the range, whatever length it declares.
                    FragmentRef::Range(own) => {
                        FragmentRef::Range(own.start..own.end.min(span.fragments))
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
    }

    /// Returns the object of each fragment, by its row in the object index.
    pub(super) async fn owners(&self, numbers: &VertexNumbers) -> Vec<u32> {
        let count = usize::try_from(numbers.fragments).unwrap_or_default();
        let mut owners = vec![NONE; count];
        self.each_object(numbers, |row, fragments| {
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
        })
        .await;
        owners
    }

    /// Returns the object of each vertex, by its row in the object index.
    pub(super) async fn vertex_owners(&self, numbers: &VertexNumbers) -> Vec<u32> {
        let of_fragments = self.owners(numbers).await;
        let count = usize::try_from(numbers.vertices).unwrap_or_default();
        let mut owners = vec![NONE; count];
        self.each_index(numbers, |span, index| {
            for (fragment, rows) in (0..).zip(index.iter()) {
                let owner = span
                    .fragment(fragment)
                    .and_then(|at| at_of(&of_fragments, at));
                let owner = owner.copied().unwrap_or(NONE);
                for row in rows
                    .iter()
                    .take(usize::try_from(span.rows).unwrap_or_default())
                {
                    let vertex = span.vertex(row);
                    if let Some(at) = vertex.and_then(|vertex| at_mut(&mut owners, vertex)) {
                        *at = match *at {
                            NONE => owner,
                            same if same == owner => owner,
                            _ => SEVERAL,
                        };
                    }
                }
            }
        })
        .await;
        owners
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
