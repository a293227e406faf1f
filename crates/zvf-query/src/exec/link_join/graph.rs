//! Chunks and links that were read and may be selected.

use zvf_model::grid::ChunkCoord;

use crate::{
    catalog::chunk::Chunk, catalog::coordinates::Coordinates, catalog::links::LinkRecords,
    selection::RowRef,
};

/// Chunks that were read, ascending; `None` is one that could not be.
pub(super) struct Graph {
    pub(super) chunks: Vec<(ChunkCoord, Option<Node>)>,
}

impl Graph {
    pub(super) fn new(mut chunks: Vec<(ChunkCoord, Option<Node>)>) -> Self {
        chunks.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { chunks }
    }

    /// Adds chunks that are not in it yet.
    pub(super) fn extend(&mut self, more: Vec<(ChunkCoord, Option<Node>)>) {
        if !more.is_empty() {
            self.chunks.extend(more);
            self.chunks.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
    }

    /// The number of a chunk.
    fn find(&self, chunk: &ChunkCoord) -> Option<usize> {
        self.chunks
            .binary_search_by(|(other, _)| other.cmp(chunk))
            .ok()
    }

    /// The numbers of the chunks of a cell, by their numbers there.
    pub(super) fn numbers(&self, records: &LinkRecords) -> Vec<Option<usize>> {
        records
            .chunks
            .iter()
            .map(|chunk| self.find(chunk))
            .collect()
    }

    pub(super) fn node(&self, number: usize) -> Option<&Node> {
        self.chunks.get(number)?.1.as_ref()
    }
}

/// A chunk and which of its vertices are selected.
pub(super) struct Node {
    pub(super) chunk: Chunk,
    /// Where geometry says what a region selects.
    pub(super) coordinates: Coordinates,
    /// Whether all its rows were read.
    pub(super) is_whole: bool,
    pub(super) entries: Vec<RowRef>,
    /// By place: whether a fragment that is looked at has it.
    pub(super) there: Vec<bool>,
    /// By place: whether the filter holds.
    pub(super) holds: Vec<bool>,
    /// By place: whether it is in the region.
    pub(super) inside: Option<Vec<bool>>,
}

impl Node {
    pub(super) fn new(chunk: Chunk, is_whole: bool) -> Self {
        Self {
            coordinates: Coordinates::default(),
            chunk,
            is_whole,
            entries: Vec::new(),
            there: Vec::new(),
            holds: Vec::new(),
            inside: None,
        }
    }

    pub(super) fn position(&self, row: u64) -> Option<&[f64]> {
        let place = self.chunk.held.place(row)?;
        Some(self.coordinates.at(place))
    }

    pub(super) fn is_selected(&self, place: usize) -> bool {
        self.holds.get(place) == Some(&true)
            && self
                .inside
                .as_ref()
                .is_none_or(|inside| inside.get(place) == Some(&true))
    }
}

/// The end of a link: the number of its chunk, and its place there.
pub(super) type End = (usize, usize);

/// Links that are selected, in order.
#[derive(Default)]
pub(super) struct Selected {
    ends: Vec<End>,
    links: Vec<Link>,
}

/// A link that is selected: where its ends are, and which record it is; `None` is one
/// that a fragment implies.
#[derive(Clone, Copy)]
struct Link {
    first: usize,
    width: usize,
    record: Option<(usize, usize)>,
}

impl Selected {
    /// Room for so many links of so many ends.
    pub(super) fn with_room(links: usize, width: usize) -> Self {
        Self {
            ends: Vec::with_capacity(links.saturating_mul(width)),
            links: Vec::with_capacity(links),
        }
    }

    pub(super) fn push(&mut self, ends: &[End], record: Option<(usize, usize)>) {
        let (first, width) = (self.ends.len(), ends.len());
        self.ends.extend_from_slice(ends);
        self.links.push(Link {
            first,
            width,
            record,
        });
    }

    fn append(&mut self, other: &Self) {
        let before = self.ends.len();
        self.ends.extend_from_slice(&other.ends);
        self.links.extend(other.links.iter().map(|link| Link {
            first: link.first.saturating_add(before),
            ..*link
        }));
    }

    fn iter(&self) -> impl Iterator<Item = (&[End], Option<(usize, usize)>)> {
        self.links
            .iter()
            .map(|link| (self.ends_of(link), link.record))
    }

    fn ends_of(&self, link: &Link) -> &[End] {
        let end = link.first.saturating_add(link.width);
        self.ends.get(link.first..end).unwrap_or_default()
    }
}

/// Links that are selected, cell by cell and chunk by chunk: to put them behind each other
/// takes memory for all of them again.
#[derive(Default)]
pub(super) struct Links(Vec<Selected>);

impl Links {
    pub(super) fn push(&mut self, more: Selected) {
        self.0.push(more);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.links.is_empty())
    }

    /// How many ends they have.
    pub(super) fn ends(&self) -> usize {
        let ends = self.0.iter().map(|part| part.ends.len());
        ends.fold(0, usize::saturating_add)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[End], Option<(usize, usize)>)> {
        self.0.iter().flat_map(Selected::iter)
    }

    pub(super) fn truncate(&mut self, most: usize) {
        let mut left = most;
        for part in &mut self.0 {
            part.links.truncate(left);
            left = left.saturating_sub(part.links.len());
        }
    }

    /// Brings links into the order of what `key` says of their first ends.
    pub(super) fn sort_by_first_end<K: Ord>(&mut self, key: impl Fn(&End) -> K) {
        let mut all = Selected::default();
        for part in self.0.drain(..) {
            all.append(&part);
        }
        let mut links = core::mem::take(&mut all.links);
        links.sort_by_cached_key(|link| all.ends_of(link).first().map(&key));
        all.links = links;
        self.0.push(all);
    }
}
