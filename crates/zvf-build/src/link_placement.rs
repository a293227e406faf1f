//! Assignment of links to arrays and cells, and the order of their ends.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    path::OffsetCoords,
};

use crate::{GeometryKind, design::Design, error::BuildError, vertex_layout::VertexLayout};

/// Links of a level by cell.
#[derive(Debug)]
pub(crate) struct LinkPlacement {
    /// Number of ends of a link.
    pub(crate) width: LinkWidth,
    /// Links inside chunks by chunk, in input order.
    pub(crate) inside: BTreeMap<u32, Cell>,
    /// Links between chunks by the tuple of chunks in stored order.
    pub(crate) between: BTreeMap<Vec<u32>, Cell>,
    /// Number of placed links, without copies.
    pub(crate) logical: usize,
}

/// Links of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Indices of the links.
    pub(crate) links: Vec<u32>,
    /// Permutation code of each link; empty inside a chunk.
    pub(crate) codes: Vec<i64>,
    /// Vertex rows in stored order.
    pub(crate) ends: Vec<u32>,
    /// Number of links without an index: of a cell that is written already, and of steps of paths.
    counted: u32,
}

/// Order and copies of links between chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossChunkPolicy {
    pub(crate) directed: bool,
    pub(crate) duplicate: bool,
}

impl CrossChunkPolicy {
    /// Returns the policy of a design.
    ///
    /// Ignores `directed` for skeletons. Readers of 0.9 expect directed skeletons to come from the
    /// streaming writer, whose links between chunks name the parent first; the permutation that
    /// undirected links store already keeps child and parent apart.
    pub(crate) fn of(design: &Design) -> Self {
        Self {
            directed: design.directed && design.kind != GeometryKind::Skeletons,
            duplicate: design.duplicate,
        }
    }
}

impl LinkPlacement {
    /// Creates an empty placement.
    pub(crate) fn none(width: LinkWidth) -> Self {
        Self {
            width,
            inside: BTreeMap::new(),
            between: BTreeMap::new(),
            logical: 0,
        }
    }

    /// Places links given as vertices, except those for which `skip` returns true because fragments
    /// imply them.
    pub(crate) fn new(
        layout: &VertexLayout,
        rows: &[u32],
        width: LinkWidth,
        links: &[i64],
        policy: CrossChunkPolicy,
        skip: impl Fn(usize, usize) -> bool + Sync,
    ) -> Result<Self, BuildError> {
        let count = width.get();
        // Ranges of links are sorted in parallel and appended in order.
        let per_thread = links.len() / count / rayon::current_num_threads().max(1);
        let share = per_thread.max(MIN_LINKS) * count;
        let file = |(at, links): (usize, &[i64])| {
            let mut sorter = Sorter::new(width, policy, layout.chunks.len());
            let implied = |ends: &[i64]| count == 2 && skip(ends[0] as usize, ends[1] as usize);
            // Counted first: growing vectors take up to twice their final memory.
            for ends in links.chunks_exact(count).filter(|ends| !implied(ends)) {
                let chunk = layout.chunk_of[ends[0] as usize];
                let chunk_of = |end: &i64| layout.chunk_of[*end as usize];
                if ends[1..].iter().all(|end| chunk_of(end) == chunk) {
                    sorter.expected[chunk as usize] += 1;
                }
            }
            let first = (at * share / count) as u32;
            let mut record = [(0u32, 0u64); MAX_ENDS];
            for (link, ends) in (first..).zip(links.chunks_exact(count)) {
                if implied(ends) {
                    continue;
                }
                let record = &mut record[..count];
                for (place, end) in record.iter_mut().zip(ends) {
                    let vertex = *end as usize;
                    *place = (layout.chunk_of[vertex], u64::from(rows[vertex]));
                }
                sorter.file(link, record)?;
            }
            Ok(sorter)
        };
        let sorters: Result<Vec<Sorter>, BuildError> =
            links.par_chunks(share).enumerate().map(file).collect();
        let mut sorters = sorters?.into_iter();
        let Some(mut all) = sorters.next() else {
            return Ok(Self::none(width));
        };
        let others: Vec<Sorter> = sorters.collect();
        for (at, cell) in all.inside.iter_mut().enumerate() {
            let more = others.iter().map(|other| other.inside[at].links.len());
            cell.reserve(more.sum(), count);
        }
        for other in others {
            all.append(other);
        }
        Ok(all.finish())
    }

    /// Places the copies of a link whose first end is in a chunk for which `own` returns true.
    pub(crate) fn place(
        &mut self,
        link: u32,
        record: &[(u32, u64)],
        policy: CrossChunkPolicy,
        own: impl Fn(u32) -> bool,
    ) -> Result<(), BuildError> {
        if let Some((chunk, _)) = record.first()
            && record.iter().all(|(other, _)| other == chunk)
        {
            if own(*chunk) {
                let cell = self.inside.entry(*chunk).or_default();
                cell.put_inside(link, record);
            }
            return Ok(());
        }
        crossing(self.width, policy, record, |order| {
            let mut key = [0; MAX_ENDS];
            let chunks = placed(order, record, &mut key);
            if chunks.first().is_some_and(|chunk| own(*chunk)) {
                let cell = self.between.entry(chunks.to_vec()).or_default();
                cell.put(link, order, record);
            }
        })
    }

    /// Adds the steps of paths inside chunks: a link from each row of a fragment to the next.
    pub(crate) fn add_steps_inside(&mut self, layout: &VertexLayout) {
        let cell = |chunk: usize| {
            let (mut ends, mut start) = (Vec::new(), 0);
            for fragment in layout.fragments(chunk) {
                let end = start + fragment.rows;
                ends.extend((start + 1..end).flat_map(|row| [row - 1, row]));
                start = end;
            }
            let cell = Cell {
                counted: (ends.len() / 2) as u32,
                ends,
                ..Cell::default()
            };
            (chunk as u32, cell)
        };
        let chunks = (0..layout.chunks.len()).into_par_iter();
        let cells: Vec<(u32, Cell)> = chunks.map(cell).collect();
        for (chunk, cell) in cells.into_iter().filter(|(_, cell)| cell.len() > 0) {
            self.logical += cell.len();
            self.inside.insert(chunk, cell);
        }
    }

    /// Returns the number of stored rows, copies included.
    pub(crate) fn physical(&self) -> usize {
        let cells = self.inside.values().chain(self.between.values());
        cells.map(Cell::len).sum()
    }
}

/// Upper bound on ends of a link.
pub(crate) const MAX_ENDS: usize = 8;
/// Lower bound on links of a parallel range.
const MIN_LINKS: usize = 1 << 15;

/// Calls `put` with the order of the ends of each stored copy of a link between chunks.
pub(crate) fn crossing(
    width: LinkWidth,
    policy: CrossChunkPolicy,
    record: &[(u32, u64)],
    mut put: impl FnMut(Permutation),
) -> Result<(), BuildError> {
    // Chunk numbers ascend with chunk coordinates, so comparing numbers is enough.
    let wide = |_| BuildError::LinkWidth {
        kind: "links",
        expected: "1 to 8",
        found: record.len(),
    };
    match policy {
        CrossChunkPolicy {
            duplicate: true, ..
        } => duplicates(record).map_err(wide)?.for_each(put),
        CrossChunkPolicy { directed: true, .. } => put(Permutation::identity(width)),
        CrossChunkPolicy { .. } => put(Permutation::sorting(record).map_err(wide)?),
    }
    Ok(())
}

/// Returns the chunks of the ends in a given order.
fn placed<'a>(
    order: Permutation,
    record: &[(u32, u64)],
    chunks: &'a mut [u32; MAX_ENDS],
) -> &'a [u32] {
    let slots = order.slots();
    for (chunk, slot) in chunks.iter_mut().zip(slots) {
        *chunk = record[usize::from(*slot)].0;
    }
    &chunks[..slots.len()]
}

/// Groups links by cell, in input order within a cell.
struct Sorter {
    width: LinkWidth,
    policy: CrossChunkPolicy,
    logical: usize,
    inside: Vec<Cell>,
    /// Expected number of links inside each chunk.
    expected: Vec<usize>,
    /// Cells between chunks by their chunks, padded with zeros.
    numbers: HashMap<[u32; MAX_ENDS], usize>,
    between: Vec<([u32; MAX_ENDS], Cell)>,
    /// Index of the last cell: consecutive links often share one.
    last: usize,
}

impl Sorter {
    fn new(width: LinkWidth, policy: CrossChunkPolicy, chunks: usize) -> Self {
        Self {
            width,
            policy,
            logical: 0,
            inside: vec![Cell::default(); chunks],
            expected: vec![0; chunks],
            numbers: HashMap::new(),
            between: Vec::new(),
            last: 0,
        }
    }

    fn file(&mut self, link: u32, record: &[(u32, u64)]) -> Result<(), BuildError> {
        self.logical += 1;
        let first = record[0].0;
        if record.iter().all(|(chunk, _)| *chunk == first) {
            let cell = &mut self.inside[first as usize];
            let expected = core::mem::take(&mut self.expected[first as usize]);
            if expected > 0 {
                cell.reserve(expected, record.len());
            }
            cell.put_inside(link, record);
            return Ok(());
        }
        crossing(self.width, self.policy, record, |order| {
            let mut key = [0; MAX_ENDS];
            placed(order, record, &mut key);
            self.cell(key).put(link, order, record);
        })
    }

    fn cell(&mut self, key: [u32; MAX_ENDS]) -> &mut Cell {
        if self
            .between
            .get(self.last)
            .is_none_or(|(last, _)| *last != key)
        {
            let next = self.between.len();
            self.last = *self.numbers.entry(key).or_insert(next);
            if self.last == next {
                self.between.push((key, Cell::default()));
            }
        }
        &mut self.between[self.last].1
    }

    /// Appends the links of another sorter.
    fn append(&mut self, other: Self) {
        self.logical += other.logical;
        for (cell, other) in self.inside.iter_mut().zip(other.inside) {
            cell.append(other);
        }
        for (key, other) in other.between {
            self.cell(key).append(other);
        }
    }

    fn finish(self) -> LinkPlacement {
        let inside = (0u32..)
            .zip(self.inside)
            .filter(|(_, cell)| !cell.links.is_empty());
        let width = self.width.get();
        let between = self.between.into_iter();
        LinkPlacement {
            width: self.width,
            inside: inside.collect(),
            between: between
                .map(|(key, cell)| (key[..width].to_vec(), cell))
                .collect(),
            logical: self.logical,
        }
    }
}

impl Cell {
    /// Creates a cell of which only the number of links is known.
    pub(crate) fn counted(links: u32) -> Self {
        Self {
            counted: links,
            ..Self::default()
        }
    }

    /// Returns the number of links.
    pub(crate) fn len(&self) -> usize {
        self.links.len() + self.counted as usize
    }

    fn put_inside(&mut self, link: u32, record: &[(u32, u64)]) {
        self.links.push(link);
        self.ends.extend(record.iter().map(|(_, row)| *row as u32));
    }

    fn put(&mut self, link: u32, order: Permutation, record: &[(u32, u64)]) {
        self.links.push(link);
        self.codes.push(order.code());
        let slots = order.slots().iter();
        self.ends
            .extend(slots.map(|slot| record[usize::from(*slot)].1 as u32));
    }

    /// Reserves exact capacity for links inside a chunk.
    fn reserve(&mut self, links: usize, width: usize) {
        self.links.reserve_exact(links);
        self.ends.reserve_exact(links.saturating_mul(width));
    }

    fn append(&mut self, mut other: Self) {
        if self.links.is_empty() {
            *self = other;
            return;
        }
        self.links.append(&mut other.links);
        self.codes.append(&mut other.codes);
        self.ends.append(&mut other.ends);
    }

    /// Encodes links inside a chunk: their ends alone.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let ends = self.ends.iter().map(|end| i64::from(*end).to_le_bytes());
        ends.collect::<Vec<[u8; 8]>>().into_flattened()
    }

    /// Encodes rows, with a permutation column in `Permuted` form.
    pub(crate) fn rows(
        &self,
        width: LinkWidth,
        form: RowForm,
    ) -> Result<LinkRowsBuilder, BuildError> {
        let mut builder = LinkRowsBuilder::new(width, form);
        let mut stored = Vec::with_capacity(width.get());
        for (at, ends) in self.ends.chunks_exact(width.get()).enumerate() {
            stored.clear();
            stored.extend(ends.iter().map(|end| u64::from(*end)));
            // Every code was made by a permutation of this width.
            let order = match (form, self.codes.get(at)) {
                (RowForm::Permuted, Some(code)) => Permutation::from_code(width, *code),
                _ => Ok(Permutation::identity(width)),
            };
            let order = order.unwrap_or(Permutation::identity(width));
            builder
                .push(order, &stored)
                .map_err(|_| BuildError::PartialLink {
                    ends: ends.len(),
                    width: width.get(),
                })?;
        }
        Ok(builder)
    }
}

/// Returns the path segment and chunk offsets of links whose ends are in these chunks.
pub(crate) fn offsets(chunks: &[&[i64]]) -> (String, Vec<Vec<i64>>) {
    let Some((source, others)) = chunks.split_first() else {
        return (String::new(), Vec::new());
    };
    let offset = |chunk: &&[i64]| -> Vec<i64> {
        chunk
            .iter()
            .zip(*source)
            .map(|(at, from)| at - from)
            .collect()
    };
    let offsets: Vec<Vec<i64>> = others.iter().map(offset).collect();
    (OffsetCoords(&offsets).to_string(), offsets)
}

/// Encodes a fragment index of ranges with these numbers of rows.
pub(crate) fn ranges(rows: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    let mut start = 0;
    for rows in rows {
        let end = start + rows;
        // The push cannot fail: fragments and rows are below 2^32.
        let pushed = builder.push_range(start..end);
        debug_assert!(pushed.is_ok());
        start = end;
    }
    builder.finish()
}
