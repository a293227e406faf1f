//! Where links go: which array, which cell, in which order.

use std::collections::BTreeMap;

use zvf_format::{
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    path::OffsetCoords,
};

use crate::{arrange::Arranged, refusal::Refusal};

/// Links of a level, in the cells they are stored in.
#[derive(Debug)]
pub(crate) struct Filed {
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

impl Filed {
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
        arranged: &Arranged,
        rows: &[u32],
        width: LinkWidth,
        links: &[i64],
        policy: Policy,
        skip: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, Refusal> {
        let mut filed = Self::none(width);
        let count = width.get();
        let mut record: Vec<(u32, u64)> = Vec::with_capacity(count);
        let mut slot: Option<(u32, Cell)> = None;
        for (link, ends) in (0u32..).zip(links.chunks_exact(count)) {
            if count == 2 && skip(ends[0] as usize, ends[1] as usize) {
                continue;
            }
            filed.logical += 1;
            record.clear();
            record.extend(ends.iter().map(|end| {
                let vertex = *end as usize;
                (arranged.chunk_of[vertex], u64::from(rows[vertex]))
            }));
            let first = record[0].0;
            if record.iter().all(|(chunk, _)| *chunk == first) {
                // Links come chunk by chunk as a rule: the last cell is kept at hand.
                if slot.as_ref().is_none_or(|(chunk, _)| *chunk != first) {
                    if let Some((chunk, cell)) = slot.take() {
                        filed.inside.insert(chunk, cell);
                    }
                    slot = Some((first, filed.inside.remove(&first).unwrap_or_default()));
                }
                if let Some((_, cell)) = &mut slot {
                    cell.links.push(link);
                    cell.ends.extend(record.iter().map(|(_, row)| *row as u32));
                }
                continue;
            }
            filed.cross(link, &record, policy, |_| true)?;
        }
        if let Some((chunk, cell)) = slot {
            filed.inside.insert(chunk, cell);
        }
        Ok(filed)
    }

    /// Files a link between chunks: the copies whose first end is in a chunk that is
    /// `own`.
    pub(crate) fn cross(
        &mut self,
        link: u32,
        record: &[(u32, u64)],
        policy: Policy,
        own: impl Fn(u32) -> bool,
    ) -> Result<(), Refusal> {
        let mut put = |order: Permutation| {
            let slots = order.slots().iter();
            let placed: Vec<(u32, u64)> = slots.map(|slot| record[usize::from(*slot)]).collect();
            let chunks: Vec<u32> = placed.iter().map(|(chunk, _)| *chunk).collect();
            if !chunks.first().is_some_and(|chunk| own(*chunk)) {
                return;
            }
            let cell = self.between.entry(chunks).or_default();
            cell.links.push(link);
            cell.codes.push(order.code());
            cell.ends.extend(placed.iter().map(|(_, row)| *row as u32));
        };
        // Numbers of chunks ascend as their coordinates do.
        let wide = |_| Refusal::LinkWidth {
            kind: "links",
            expected: "1 to 8",
            found: record.len(),
        };
        match policy {
            Policy { duplicate: true, .. } => duplicates(record).map_err(wide)?.for_each(put),
            Policy { directed: true, .. } => put(Permutation::identity(self.width)),
            Policy { .. } => put(Permutation::sorting(record).map_err(wide)?),
        }
        Ok(())
    }

    /// Rows on disk.
    pub(crate) fn physical(&self) -> usize {
        let cells = self.inside.values().chain(self.between.values());
        cells.map(|cell| cell.links.len()).sum()
    }
}

impl Cell {
    /// The rows, with a column for the order in `Permuted` form.
    pub(crate) fn rows(&self, width: LinkWidth, form: RowForm) -> Result<LinkRowsBuilder, Refusal> {
        let mut builder = LinkRowsBuilder::new(width, form);
        let mut stored = Vec::with_capacity(width.get());
        for (at, ends) in self.ends.chunks_exact(width.get()).enumerate() {
            stored.clear();
            stored.extend(ends.iter().map(|end| u64::from(*end)));
            let code = self.codes.get(at).copied().unwrap_or(0);
            let order = Permutation::from_code(width, code);
            let order = order.unwrap_or(Permutation::identity(width));
            // Rows are below 2^32 and orders are put where the form has a place.
            let order = match form {
                RowForm::Plain => Permutation::identity(width),
                RowForm::Permuted => order,
            };
            builder.push(order, &stored).map_err(|_| Refusal::LinkEnds {
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
        chunk.iter().zip(*source).map(|(at, from)| at - from).collect()
    };
    let offsets: Vec<Vec<i64>> = others.iter().map(offset).collect();
    (OffsetCoords(&offsets).to_string(), offsets)
}
