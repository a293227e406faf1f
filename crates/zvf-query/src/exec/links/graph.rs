//! Chunks and links that were read, and the links that are selected.

use zvf_catalog::{Chunk, Coordinates, LinkRecords, RowSelection, on_cores};
use zvf_model::grid::ChunkCoord;

use crate::{error::QueryError, exec::filter::RowMarks};

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
    pub(crate) fn position(&self, end: SelectedEnd) -> Option<&[f64]> {
        Some(self.node(end.chunk())?.coordinates.at(end.index()))
    }
}

/// A chunk with marks of the selected vertices.
pub(crate) struct LinkNode {
    pub(crate) chunk: Chunk,
    /// Positions, if the region is tested against links.
    pub(crate) coordinates: Coordinates,
    /// True if the chunk was requested, and false if single rows of it were, as ends of links.
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

    /// Returns whether all vertices of the requested fragments are selected by themselves.
    pub(crate) fn selects_all(&self) -> bool {
        self.marks.selects_all()
    }

    pub(crate) fn position(&self, row: u64) -> Option<&[f64]> {
        let index = self.chunk.loaded.index_of(row)?;
        Some(self.coordinates.at(index))
    }
}

/// The end of a link: the number of its chunk, and its index among the rows in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SelectedEnd {
    pub(crate) chunk: u32,
    pub(crate) index: u32,
}

impl SelectedEnd {
    /// # Errors
    ///
    /// [`QueryError::Unsupported`] if the chunk has more rows than an end can number.
    pub(crate) fn new(chunk: u32, index: usize) -> Result<Self, QueryError> {
        let index = u32::try_from(index).map_err(|_| TOO_MANY_ROWS)?;
        Ok(Self { chunk, index })
    }

    pub(crate) fn chunk(self) -> usize {
        usize::try_from(self.chunk).unwrap_or(usize::MAX)
    }

    pub(crate) fn index(self) -> usize {
        usize::try_from(self.index).unwrap_or(usize::MAX)
    }
}

const TOO_MANY_ROWS: QueryError =
    QueryError::Unsupported("selected links of a chunk of more than 4294967295 rows");

/// Selected links of one cell or chunk, in order. All have the same number of ends.
pub(crate) struct LinkRun {
    width: usize,
    ends: Vec<SelectedEnd>,
    records: Records,
    /// The chunk of all ends, if they are in one.
    chunk: Option<u32>,
}

/// The cell and record that store each link.
enum Records {
    /// None: fragments imply the links.
    Implied,
    /// Records of one cell.
    OfCell(usize, Vec<usize>),
    Each(Vec<Option<(usize, usize)>>),
}

impl LinkRun {
    /// Creates an empty list of links that a fragment of a chunk implies.
    pub(crate) fn implied(chunk: u32) -> Self {
        Self {
            width: 2,
            ends: Vec::new(),
            records: Records::Implied,
            chunk: Some(chunk),
        }
    }

    /// Creates an empty list of links of `width` ends that a cell stores. `chunk` is that of all
    /// ends, if they are in one.
    pub(crate) fn of_cell(cell: usize, width: usize, chunk: Option<u32>) -> Self {
        Self {
            width: width.max(1),
            ends: Vec::new(),
            records: Records::OfCell(cell, Vec::new()),
            chunk,
        }
    }

    /// Reserves memory for links.
    pub(crate) fn reserve(&mut self, links: usize) {
        self.ends.reserve_exact(links.saturating_mul(self.width));
        if let Records::OfCell(_, records) = &mut self.records {
            records.reserve_exact(links);
        }
    }

    /// Appends an implied link.
    pub(crate) fn push_implied(&mut self, ends: [SelectedEnd; 2]) {
        self.ends.extend(ends);
    }

    /// Appends the link of a record of the cell.
    pub(crate) fn push_record(&mut self, ends: &[SelectedEnd], record: usize) {
        self.ends.extend_from_slice(ends);
        if let Records::OfCell(_, records) = &mut self.records {
            records.push(record);
        }
    }

    pub(crate) fn ends(&self) -> &[SelectedEnd] {
        &self.ends
    }

    /// Returns the chunk of all ends, if they are in one.
    pub(crate) fn chunk(&self) -> Option<u32> {
        self.chunk
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns the cell and record of a link; `None` if a fragment implies it.
    fn record(&self, link: usize) -> Option<(usize, usize)> {
        match &self.records {
            Records::Implied => None,
            Records::OfCell(cell, records) => Some((*cell, *records.get(link)?)),
            Records::Each(records) => records.get(link).copied().flatten(),
        }
    }

    /// Returns the cell and record of each link; `None` if a fragment implies it.
    pub(crate) fn records(&self) -> impl Iterator<Item = Option<(usize, usize)>> {
        (0..self.len()).map(|link| self.record(link))
    }

    fn truncate(&mut self, links: usize) {
        self.ends.truncate(links.saturating_mul(self.width));
    }
}

/// Selected links, cell by cell and chunk by chunk: concatenating them would need memory for all of
/// them again.
#[derive(Default)]
pub(crate) struct SelectedLinks(Vec<LinkRun>);

impl SelectedLinks {
    pub(crate) fn push(&mut self, more: LinkRun) {
        if more.len() > 0 {
            self.0.push(more);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn runs(&self) -> &[LinkRun] {
        &self.0
    }

    /// Returns the ends of each link, and the cell and record that store it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[SelectedEnd], Option<(usize, usize)>)> {
        let runs = self.0.iter();
        runs.flat_map(|run| run.ends.chunks_exact(run.width).zip(run.records()))
    }

    /// Keeps the first `max` links.
    pub(crate) fn truncate(&mut self, max: usize) {
        let mut left = max;
        for run in &mut self.0 {
            run.truncate(left);
            left = left.saturating_sub(run.len());
        }
        self.0.retain(|run| run.len() > 0);
    }

    /// Sorts links by the key of their first ends, stably.
    pub(crate) fn sort_by_first_end<K: Ord>(&mut self, mut key: impl FnMut(SelectedEnd) -> K) {
        let mut links: Vec<_> = self.iter().collect();
        links.sort_by_cached_key(|(ends, _)| ends.first().copied().map(&mut key));
        let mut sorted: Vec<LinkRun> = Vec::new();
        for same in links.chunk_by(|(a, _), (b, _)| a.len() == b.len()) {
            let ends = same.iter().flat_map(|(ends, _)| ends.iter().copied());
            let records = same.iter().map(|(_, record)| *record);
            sorted.push(LinkRun {
                width: same.first().map_or(1, |(ends, _)| ends.len()),
                ends: ends.collect(),
                records: Records::Each(records.collect()),
                chunk: None,
            });
        }
        self.0 = sorted;
    }

    /// Returns flags of the rows that are ends, by the number of their chunk.
    pub(crate) fn marks(&self, graph: &LinkGraph) -> Vec<Vec<bool>> {
        let rows = |node: Option<&LinkNode>| node.map_or(0, |node| node.marks.is_member.len());
        let nodes = graph.chunks.iter().map(|(_, node)| node.as_ref());
        let mut is_end: Vec<Vec<bool>> = nodes.map(|node| vec![false; rows(node)]).collect();
        let mut of_chunk: Vec<Vec<&LinkRun>> = is_end.iter().map(|_| Vec::new()).collect();
        let mut bytes = 0_usize;
        for run in &self.0 {
            let chunk = run.chunk.and_then(|chunk| usize::try_from(chunk).ok());
            if let Some(runs) = chunk.and_then(|chunk| of_chunk.get_mut(chunk)) {
                bytes = bytes.saturating_add(size_of_val(run.ends.as_slice()));
                runs.push(run);
                continue;
            }
            for end in &run.ends {
                let flags = is_end.get_mut(end.chunk());
                if let Some(flag) = flags.and_then(|flags| flags.get_mut(end.index())) {
                    *flag = true;
                }
            }
        }
        let chunks = is_end.into_iter().zip(of_chunk).collect();
        on_cores(
            chunks,
            bytes,
            |(mut flags, runs): (Vec<bool>, Vec<&LinkRun>)| {
                for end in runs.iter().flat_map(|run| &run.ends) {
                    if let Some(flag) = flags.get_mut(end.index()) {
                        *flag = true;
                    }
                }
                flags
            },
        )
    }
}
