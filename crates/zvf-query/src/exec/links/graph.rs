//! Chunks and links that were read, and the links that are selected.

use zvf_model::grid::ChunkCoord;

use crate::{
    catalog::{chunk::Chunk, coordinates::Coordinates, links::LinkRecords},
    exec::filter::RowMarks,
    selection::RowSelection,
};

/// The chunks that were read, ascending; `None` for one that could not be read.
pub(crate) struct LinkGraph {
    pub(crate) chunks: Vec<(ChunkCoord, Option<LinkNode>)>,
}

impl LinkGraph {
    pub(crate) fn new(mut chunks: Vec<(ChunkCoord, Option<LinkNode>)>) -> Self {
        chunks.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { chunks }
    }

    /// Adds chunks that the graph does not contain.
    pub(crate) fn extend(&mut self, more: Vec<(ChunkCoord, Option<LinkNode>)>) {
        if !more.is_empty() {
            self.chunks.extend(more);
            self.chunks.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
    }

    /// Returns the number of a chunk.
    fn find(&self, chunk: &ChunkCoord) -> Option<usize> {
        self.chunks
            .binary_search_by(|(other, _)| other.cmp(chunk))
            .ok()
    }

    /// Returns the numbers of the chunks of a cell, by their numbers in the cell.
    pub(crate) fn numbers(&self, records: &LinkRecords) -> Vec<Option<usize>> {
        records
            .chunks
            .iter()
            .map(|chunk| self.find(chunk))
            .collect()
    }

    /// Returns a chunk by its number; `None` if it could not be read.
    pub(crate) fn node(&self, number: usize) -> Option<&LinkNode> {
        self.chunks.get(number)?.1.as_ref()
    }

    /// Returns the position of an end.
    pub(crate) fn position(&self, (number, index): &End) -> Option<&[f64]> {
        Some(self.node(*number)?.coordinates.at(*index))
    }
}

/// A chunk with marks of the selected vertices.
pub(crate) struct LinkNode {
    pub(crate) chunk: Chunk,
    /// Positions, if the region is tested against links.
    pub(crate) coordinates: Coordinates,
    /// True if all rows of the chunk were read.
    pub(crate) is_whole: bool,
    /// Vertices of the requested fragments.
    pub(crate) rows: RowSelection,
    pub(crate) marks: RowMarks,
}

impl LinkNode {
    pub(crate) fn new(chunk: Chunk, is_whole: bool) -> Self {
        Self {
            coordinates: Coordinates::default(),
            chunk,
            is_whole,
            rows: RowSelection::default(),
            marks: RowMarks::default(),
        }
    }

    pub(crate) fn position(&self, row: u64) -> Option<&[f64]> {
        let index = self.chunk.loaded.index_of(row)?;
        Some(self.coordinates.at(index))
    }
}

/// The end of a link: the number of its chunk, and its index among the rows in memory.
type End = (usize, usize);

/// Selected links of one cell or chunk, in order.
#[derive(Default)]
pub(crate) struct LinkRun {
    ends: Vec<End>,
    links: Vec<Link>,
}

/// A selected link: the range of its ends, and the cell and record that store it; `None` if a
/// fragment implies the link.
#[derive(Clone, Copy)]
struct Link {
    first: usize,
    width: usize,
    record: Option<(usize, usize)>,
}

impl LinkRun {
    /// Creates an empty list with capacity for links of `width` ends.
    pub(crate) fn with_capacity(links: usize, width: usize) -> Self {
        Self {
            ends: Vec::with_capacity(links.saturating_mul(width)),
            links: Vec::with_capacity(links),
        }
    }

    pub(crate) fn push(&mut self, ends: &[End], record: Option<(usize, usize)>) {
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

/// Selected links, cell by cell and chunk by chunk: concatenating them would need memory for all of
/// them again.
#[derive(Default)]
pub(crate) struct SelectedLinks(Vec<LinkRun>);

impl SelectedLinks {
    pub(crate) fn push(&mut self, more: LinkRun) {
        self.0.push(more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.links.is_empty())
    }

    /// Returns the number of ends of all links.
    pub(crate) fn ends(&self) -> usize {
        let ends = self.0.iter().map(|part| part.ends.len());
        ends.fold(0, usize::saturating_add)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[End], Option<(usize, usize)>)> {
        self.0.iter().flat_map(LinkRun::iter)
    }

    /// Keeps the first `max` links.
    pub(crate) fn truncate(&mut self, max: usize) {
        let mut left = max;
        for part in &mut self.0 {
            part.links.truncate(left);
            left = left.saturating_sub(part.links.len());
        }
    }

    /// Sorts links by the key of their first ends.
    pub(crate) fn sort_by_first_end<K: Ord>(&mut self, key: impl Fn(&End) -> K) {
        let mut all = LinkRun::default();
        for part in self.0.drain(..) {
            all.append(&part);
        }
        let mut links = core::mem::take(&mut all.links);
        links.sort_by_cached_key(|link| all.ends_of(link).first().map(&key));
        all.links = links;
        self.0.push(all);
    }

    /// Returns flags of the rows that are ends, by the number of their chunk.
    pub(crate) fn marks(&self, graph: &LinkGraph) -> Vec<Vec<bool>> {
        let rows = |node: Option<&LinkNode>| node.map_or(0, |node| node.marks.is_member.len());
        let nodes = graph.chunks.iter().map(|(_, node)| node.as_ref());
        let mut is_end: Vec<Vec<bool>> = nodes.map(|node| vec![false; rows(node)]).collect();
        for (number, index) in self.iter().flat_map(|(ends, _)| ends) {
            let flags = is_end.get_mut(*number);
            if let Some(flag) = flags.and_then(|flags| flags.get_mut(*index)) {
                *flag = true;
            }
        }
        is_end
    }
}
