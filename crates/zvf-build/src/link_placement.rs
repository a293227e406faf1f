//! Where links go: which array, which cell, in which order.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    path::OffsetCoords,
};

use crate::{error::BuildError, vertex_layout::VertexLayout};

/// Links of a level, in the cells they are stored in.
#[derive(Debug)]
pub(crate) struct LinkPlacement {
    /// Ends of a link.
    pub(crate) width: LinkWidth,
    /// Links inside chunks: by chunk, rows in input order.
    pub(crate) inside: BTreeMap<u32, Cell>,
    /// Links between chunks: by the tuple of their chunks as stored.
    pub(crate) between: BTreeMap<Vec<u32>, Cell>,
    /// How many were given.
    pub(crate) logical: usize,
}

/// The links of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Which links they are.
    pub(crate) links: Vec<u32>,
    /// How each was put in order; of links inside a chunk nothing.
    pub(crate) codes: Vec<i64>,
    /// Vertex rows in stored order.
    pub(crate) ends: Vec<u32>,
}

/// Whether ends are kept in order, and how many copies there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) directed: bool,
    pub(crate) duplicate: bool,
}

impl LinkPlacement {
    /// No links yet.
    pub(crate) fn none(width: LinkWidth) -> Self {
        Self {
            width,
            inside: BTreeMap::new(),
            between: BTreeMap::new(),
            logical: 0,
        }
    }

    /// Files links given as vertices, but those that `skip` says fragments imply.
    pub(crate) fn new(
        layout: &VertexLayout,
        rows: &[u32],
        width: LinkWidth,
        links: &[i64],
        policy: Policy,
        skip: impl Fn(usize, usize) -> bool + Sync,
    ) -> Result<Self, BuildError> {
        let count = width.get();
        // Ranges of links, each on a core of its own, and put behind each other.
        let share = links.len() / count / rayon::current_num_threads().max(1);
        let share = share.max(LEAST) * count;
        let file = |(at, links): (usize, &[i64])| {
            let mut sorter = Sorter::new(width, policy, layout.chunks.len());
            let implied = |ends: &[i64]| count == 2 && skip(ends[0] as usize, ends[1] as usize);
            // Counted first, as cells that grow take up to twice their memory.
            for ends in links.chunks_exact(count).filter(|ends| !implied(ends)) {
                let chunk = layout.chunk_of[ends[0] as usize];
                let chunk_of = |end: &i64| layout.chunk_of[*end as usize];
                if ends[1..].iter().all(|end| chunk_of(end) == chunk) {
                    sorter.expected[chunk as usize] += 1;
                }
            }
            let first = (at * share / count) as u32;
            let mut record = [(0u32, 0u64); MOST_ENDS];
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

    /// Files a link between chunks: the copies whose first end is in a chunk that is
    /// `own`.
    pub(crate) fn cross(
        &mut self,
        link: u32,
        record: &[(u32, u64)],
        policy: Policy,
        own: impl Fn(u32) -> bool,
    ) -> Result<(), BuildError> {
        crossing(self.width, policy, record, |order| {
            let mut key = [0; MOST_ENDS];
            let chunks = placed(order, record, &mut key);
            if chunks.first().is_some_and(|chunk| own(*chunk)) {
                let cell = self.between.entry(chunks.to_vec()).or_default();
                cell.put(link, order, record);
            }
        })
    }

    /// Rows on disk.
    pub(crate) fn physical(&self) -> usize {
        let cells = self.inside.values().chain(self.between.values());
        cells.map(|cell| cell.links.len()).sum()
    }
}

/// Ends of a link at most.
const MOST_ENDS: usize = 8;
/// Links that are worth a core of their own.
const LEAST: usize = 1 << 15;

/// The orders in which copies of a link between chunks are stored.
fn crossing(
    width: LinkWidth,
    policy: Policy,
    record: &[(u32, u64)],
    mut put: impl FnMut(Permutation),
) -> Result<(), BuildError> {
    // Numbers of chunks ascend as their coordinates do.
    let wide = |_| BuildError::LinkWidth {
        kind: "links",
        expected: "1 to 8",
        found: record.len(),
    };
    match policy {
        Policy {
            duplicate: true, ..
        } => duplicates(record).map_err(wide)?.for_each(put),
        Policy { directed: true, .. } => put(Permutation::identity(width)),
        Policy { .. } => put(Permutation::sorting(record).map_err(wide)?),
    }
    Ok(())
}

/// The chunks of a link's ends in an order.
fn placed<'a>(
    order: Permutation,
    record: &[(u32, u64)],
    chunks: &'a mut [u32; MOST_ENDS],
) -> &'a [u32] {
    let slots = order.slots();
    for (chunk, slot) in chunks.iter_mut().zip(slots) {
        *chunk = record[usize::from(*slot)].0;
    }
    &chunks[..slots.len()]
}

/// Brings links together by cell, those of a cell in the order they come.
struct Sorter {
    width: LinkWidth,
    policy: Policy,
    logical: usize,
    inside: Vec<Cell>,
    /// How many links are to come for each of them.
    expected: Vec<usize>,
    /// Cells by their chunks, the rest of them zero.
    numbers: HashMap<[u32; MOST_ENDS], usize>,
    between: Vec<([u32; MOST_ENDS], Cell)>,
    /// The cell that came last: many links that follow each other are in one.
    last: usize,
}

impl Sorter {
    fn new(width: LinkWidth, policy: Policy, chunks: usize) -> Self {
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
            cell.links.push(link);
            cell.ends.extend(record.iter().map(|(_, row)| *row as u32));
            return Ok(());
        }
        crossing(self.width, self.policy, record, |order| {
            let mut key = [0; MOST_ENDS];
            placed(order, record, &mut key);
            self.cell(key).put(link, order, record);
        })
    }

    fn cell(&mut self, key: [u32; MOST_ENDS]) -> &mut Cell {
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

    /// Puts links behind these.
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
        let inside = (0u32..).zip(self.inside);
        let inside = inside.filter(|(_, cell)| !cell.links.is_empty());
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
    fn put(&mut self, link: u32, order: Permutation, record: &[(u32, u64)]) {
        self.links.push(link);
        self.codes.push(order.code());
        let slots = order.slots().iter();
        self.ends
            .extend(slots.map(|slot| record[usize::from(*slot)].1 as u32));
    }

    /// Makes room for so many links inside a chunk, and no more.
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

    /// The rows of links inside a chunk: nothing but their ends.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let ends = self.ends.iter().map(|end| i64::from(*end).to_le_bytes());
        ends.collect::<Vec<[u8; 8]>>().into_flattened()
    }

    /// The rows, with a column for the order in `Permuted` form.
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
            // Rows are below 2^32 and orders are put where the form has a place.
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

/// The last segment of the path of links whose ends are in these chunks, and the
/// offsets it stands for.
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

/// The fragment index of links that are all in one group.
pub(crate) fn single_group(links: u64) -> Vec<u8> {
    let mut builder = FragmentIndexBuilder::default();
    let pushed = builder.push_range(0..links);
    debug_assert!(pushed.is_ok());
    builder.finish()
}
