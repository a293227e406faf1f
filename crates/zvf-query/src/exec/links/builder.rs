//! The builder of the links of a result.

use core::ops::Range;

use zvf_catalog::{CellRows, Damage, LinkRecords, LinkSet, on_cores};
use zvf_format::links::LinkWidth;
use zvf_model::fetch::{MaybeSend, MaybeSync};

use super::LinkRun;
use crate::{
    batch::columns::ColumnBuilder,
    error::QueryError,
    result::{Links, QueryResult},
};

/// Links of a cell with all ends in the result, by rows of the result.
pub(crate) struct NumberedLinks {
    /// Rows of the ends, link by link.
    pub(crate) ends: Vec<u64>,
    /// Records of the cell that the links are; `None` for all.
    pub(crate) records: Option<Vec<usize>>,
    /// Rows of first ends, also of links that are not in the result.
    pub(crate) children: Vec<u64>,
}

/// The links of a result under construction.
pub(crate) struct LinkBuilder {
    pub(crate) width: usize,
    ends: Vec<u64>,
    /// Number of ends; `ends` may have space for more.
    len: usize,
    columns: Vec<(usize, ColumnBuilder)>,
    /// Cells and records whose attributes are not appended yet.
    pending: Vec<(Option<usize>, Option<usize>)>,
}

impl LinkBuilder {
    pub(crate) fn new(set: Option<&LinkSet>, shown: &[String]) -> Self {
        let attributes = set
            .map_or(&[][..], |set| &set.attributes)
            .iter()
            .enumerate();
        let shown = attributes.filter(|(_, attribute)| shown.contains(&attribute.name));
        let columns = shown.filter_map(|(at, attribute)| {
            let metadata = attribute.metadata.as_ref()?;
            Some((at, ColumnBuilder::new(&attribute.name, metadata)))
        });
        let width = set.and_then(|set| set.width().ok().flatten());
        Self {
            width: width.map_or(2, LinkWidth::get),
            ends: Vec::new(),
            len: 0,
            columns: columns.collect(),
            pending: Vec::new(),
        }
    }

    /// Returns the size of ends and attributes in bytes.
    pub(crate) fn size(&self) -> u64 {
        let columns = self.columns.iter().map(|(_, column)| column.size());
        let ends = self.len.saturating_mul(size_of::<u64>());
        u64::try_from(columns.fold(ends, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Returns the space for `new` more ends. `expected` is the expected total number of ends.
    ///
    /// The system zeroes fresh memory on the core that first writes to it. Zeroing takes longer
    /// than writing, so it should happen on all cores.
    fn allocate(&mut self, new: usize, expected: usize) -> &mut [u64] {
        let (before, needed) = (self.len, self.len.saturating_add(new));
        if self.ends.len() < needed {
            let size = needed.saturating_add(before / 2).max(expected);
            let mut grown = vec![0; size];
            zvf_pages::prefer_large(&mut grown);
            let kept = self.ends.get(..before).unwrap_or_default();
            if let Some(start) = grown.get_mut(..kept.len()) {
                start.copy_from_slice(kept);
            }
            self.ends = grown;
        }
        self.len = needed;
        self.ends.get_mut(before..needed).unwrap_or_default()
    }

    /// Removes unused space at the end.
    fn trim(&mut self) {
        self.ends.truncate(self.len);
    }

    /// Appends links of cells with their attributes, on all cores. `expected` is the expected total
    /// number of ends.
    pub(crate) fn push_cells(
        &mut self,
        cells: &[(LinkRecords, NumberedLinks)],
        expected: usize,
    ) -> Result<(), QueryError> {
        let new = cells
            .iter()
            .map(|(_, links)| links.ends.len())
            .fold(0, usize::saturating_add);
        let mut rest = self.allocate(new, expected);
        let parts = cells.iter().map(|(_, links)| {
            let (to, after) = core::mem::take(&mut rest).split_at_mut(links.ends.len());
            rest = after;
            (links, to)
        });
        let bytes = new.saturating_mul(size_of::<u64>());
        on_cores(parts.collect(), bytes, |(links, to)| {
            to.copy_from_slice(&links.ends);
        });
        if self.columns.is_empty() {
            return Ok(());
        }
        for (records, links) in cells {
            let indices: Vec<Option<usize>> = match &links.records {
                Some(some) => some.iter().copied().map(Some).collect(),
                None => (0..records.len()).map(Some).collect(),
            };
            for (number, column) in &mut self.columns {
                let cell: Option<&CellRows> =
                    records.attributes.get(*number).and_then(Option::as_ref);
                let pushed = column.push_indices(cell, &indices);
                pushed.map_err(|fault| Damage::new(&records.node, fault))?;
            }
        }
        Ok(())
    }

    /// Appends a link that a record of a cell stores. [`end_cells`](Self::end_cells) appends its
    /// attributes.
    pub(crate) fn push_rows(&mut self, rows: &[usize], record: Option<(usize, usize)>) {
        let rows = rows
            .iter()
            .map(|row| u64::try_from(*row).unwrap_or(u64::MAX));
        self.trim();
        self.ends.extend(rows);
        self.len = self.ends.len();
        if !self.columns.is_empty() {
            self.pending.push(record.unzip());
        }
    }

    /// Appends selected links. `number` writes the rows of the ends of a run; runs are numbered on
    /// all cores. [`end_cells`](Self::end_cells) appends the attributes.
    pub(crate) fn push_runs(
        &mut self,
        runs: &[LinkRun],
        number: impl Fn(&LinkRun, &mut [u64]) + MaybeSend + MaybeSync,
    ) {
        let new = runs
            .iter()
            .map(|run| run.ends().len())
            .fold(0, usize::saturating_add);
        let mut rest = self.allocate(new, new);
        let parts = runs.iter().map(|run| {
            let (to, after) = core::mem::take(&mut rest).split_at_mut(run.ends().len());
            rest = after;
            (run, to)
        });
        let bytes = new.saturating_mul(size_of::<u64>());
        on_cores(parts.collect(), bytes, |(run, to)| number(run, to));
        if !self.columns.is_empty() {
            let records = runs.iter().flat_map(LinkRun::records);
            self.pending.extend(records.map(Option::unzip));
        }
    }

    /// Appends the attributes of links of many cells.
    pub(crate) fn end_cells(&mut self, records: &[LinkRecords]) -> Result<(), QueryError> {
        let pending = core::mem::take(&mut self.pending);
        for same in pending.chunk_by(|a, b| a.0 == b.0) {
            let cell = same.first().and_then(|(cell, _)| records.get((*cell)?));
            let indices: Vec<Option<usize>> = same.iter().map(|(_, at)| *at).collect();
            for (number, column) in &mut self.columns {
                let Some(records) = cell else {
                    column.skip(indices.len());
                    continue;
                };
                let rows = records.attributes.get(*number).and_then(Option::as_ref);
                let pushed = column.push_indices(rows, &indices);
                pushed.map_err(|fault| Damage::new(&records.node, fault))?;
            }
        }
        Ok(())
    }

    /// Replaces the rows of ends.
    pub(crate) fn renumber(&mut self, index: &[u64]) {
        self.trim();
        for end in &mut self.ends {
            let old = usize::try_from(*end).ok();
            *end = old.and_then(|old| index.get(old)).copied().unwrap_or(*end);
        }
    }

    /// Sorts links by their first end, stably.
    pub(crate) fn sort_by_child(&mut self) {
        self.trim();
        let links = self.ends.chunks_exact(self.width.max(1));
        if links.is_sorted_by_key(|ends| ends.first().copied()) {
            return;
        }
        if self.columns.is_empty() && self.width == 2 {
            let (links, _) = self.ends.as_chunks_mut::<2>();
            links.sort_by_key(|[child, _]| *child);
        } else {
            self.merge_implied(&UnstoredLinks::default());
        }
    }

    /// Sorts links by their first end, stably, and merges them with implied links in that order, on
    /// all cores.
    pub(crate) fn merge_implied(&mut self, implied: &UnstoredLinks<'_>) {
        self.trim();
        let width = self.width.max(1);
        let stored = core::mem::take(&mut self.ends);
        let mut own: Vec<OwnLink<'_>> = stored
            .chunks_exact(width)
            .enumerate()
            .map(|(number, ends)| OwnLink { number, ends })
            .collect();
        if !own.is_sorted_by_key(OwnLink::child) {
            own.sort_by_key(OwnLink::child);
        }
        let has_columns = !self.columns.is_empty();
        let blocks: Vec<LinkBlock<'_, '_>> = implied.blocks(&own).collect();
        let bytes = usize::try_from(implied.rows)
            .unwrap_or(usize::MAX)
            .saturating_mul(size_of::<u64>());
        let counts = on_cores(
            blocks.iter().collect(),
            bytes,
            |block: &LinkBlock<'_, '_>| block.implied.count(block.rows.clone()),
        );
        let len = |block: &LinkBlock<'_, '_>, implied: usize| {
            let own = block.own.len().saturating_mul(width);
            own.saturating_add(implied.saturating_mul(2))
        };
        let sizes = blocks.iter().zip(&counts);
        let size = sizes
            .map(|(block, implied)| len(block, *implied))
            .fold(0, usize::saturating_add);
        self.len = 0;
        let mut rest = self.allocate(size, size);
        let parts = blocks.into_iter().zip(&counts).map(|(block, implied)| {
            let size = len(&block, *implied);
            let (to, after) = core::mem::take(&mut rest).split_at_mut(size);
            rest = after;
            (block, to)
        });
        let unstored = own.len();
        let indices = on_cores(parts.collect(), bytes, |(block, rest)| {
            let mut writer = LinkWriter {
                rest,
                indices: has_columns.then(Vec::new),
                unstored,
            };
            block.write(&mut writer);
            writer.indices.unwrap_or_default()
        });
        if has_columns {
            let indices: Vec<usize> = indices.into_iter().flatten().collect();
            for (_, column) in &mut self.columns {
                // Implied links take the row after those of the stored links, which has no value.
                column.skip(1);
                column.gather(&indices);
            }
        }
    }

    /// Puts the links into a batch.
    pub(crate) fn finish(mut self, result: &mut QueryResult) {
        self.trim();
        result.links = Some(Links {
            width: u32::try_from(self.width).unwrap_or(u32::MAX),
            ends: self.ends,
        });
        result.link = self
            .columns
            .into_iter()
            .map(|(_, column)| column.finish())
            .collect();
    }
}

/// A link of a builder.
struct OwnLink<'l> {
    number: usize,
    ends: &'l [u64],
}

impl OwnLink<'_> {
    /// Returns the first end.
    fn child(&self) -> Option<u64> {
        self.ends.first().copied()
    }
}

/// Links between consecutive rows of fragments, which are not stored: each row that neither starts
/// a fragment nor is the first end of a stored link has one to the row before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnstoredLinks<'i> {
    /// Number of rows of the result.
    pub(crate) rows: u64,
    /// Rows that start a fragment, ascending.
    pub(crate) starts: &'i [u64],
    /// First ends of stored links, ascending.
    pub(crate) stored: &'i [u64],
    /// Rows whose stored links could not be read, and whose implied ones are therefore unknown.
    pub(crate) unreadable: &'i [Range<u64>],
}

/// Rows whose links one core merges.
const ROWS_PER_BLOCK: u64 = 1 << 15;

/// Consecutive rows, and the own links that start at them.
struct LinkBlock<'i, 'l> {
    implied: UnstoredLinks<'i>,
    rows: Range<u64>,
    own: &'l [OwnLink<'l>],
}

impl<'i> UnstoredLinks<'i> {
    /// Splits the rows of the result into blocks.
    fn blocks<'l>(self, own: &'l [OwnLink<'l>]) -> impl Iterator<Item = LinkBlock<'i, 'l>> {
        let mut rest = own;
        let count = self.rows.div_ceil(ROWS_PER_BLOCK).max(1);
        (0..count).map(move |at| {
            let start = at.saturating_mul(ROWS_PER_BLOCK);
            let end = start.saturating_add(ROWS_PER_BLOCK);
            let is_last = at.saturating_add(1) == count;
            let is_own = |link: &OwnLink<'_>| is_last || link.child().is_none_or(|row| row < end);
            let (own, after) = rest.split_at(rest.partition_point(is_own));
            rest = after;
            let rows = start..end.min(self.rows);
            LinkBlock {
                implied: self,
                rows,
                own,
            }
        })
    }

    /// Returns the number of implied links of rows.
    fn count(self, rows: Range<u64>) -> usize {
        let mut links = 0_u64;
        self.each(rows, &mut |range: Range<u64>| {
            links = links.saturating_add(range.end.saturating_sub(range.start));
        });
        usize::try_from(links).unwrap_or(usize::MAX)
    }

    /// Calls `push` with ascending ranges of the `rows` that have an implied link.
    fn each(self, rows: Range<u64>, push: &mut impl FnMut(Range<u64>)) {
        let mut push = |range: Range<u64>| {
            if self.unreadable.is_empty() {
                push(range);
                return;
            }
            let is_unreadable = |row: u64| {
                let at = self.unreadable.partition_point(|rows| rows.end <= row);
                self.unreadable
                    .get(at)
                    .is_some_and(|rows| rows.contains(&row))
            };
            for row in range.filter(|row| !is_unreadable(*row)) {
                push(row..row.saturating_add(1));
            }
        };
        let from = |sorted: &'i [u64]| {
            let first = sorted.partition_point(|row| *row < rows.start);
            sorted.get(first..).unwrap_or_default().iter().copied()
        };
        let (mut starts, mut stored) = (from(self.starts), from(self.stored));
        let (mut start, mut child) = (starts.next(), stored.next());
        // Row 0 has no row before it.
        let mut next = rows.start.max(1);
        while next < rows.end {
            let stop = start
                .into_iter()
                .chain(child)
                .min()
                .unwrap_or(rows.end)
                .min(rows.end);
            if next < stop {
                push(next..stop);
            }
            next = next.max(stop.saturating_add(1));
            while start.is_some_and(|row| row <= stop) {
                start = starts.next();
            }
            while child.is_some_and(|row| row <= stop) {
                child = stored.next();
            }
        }
    }
}

impl LinkBlock<'_, '_> {
    /// Writes the links of the block in the order of their first ends. A stored link comes before
    /// an implied one of the same first end.
    fn write(&self, writer: &mut LinkWriter<'_>) {
        let mut own = self.own.iter().peekable();
        self.implied
            .each(self.rows.clone(), &mut |rows: Range<u64>| {
                let mut next = rows.start;
                while let Some(link) = own.next_if(|link| link.child() < Some(rows.end)) {
                    let child = link.child().unwrap_or(next).max(next);
                    writer.write_implied(next..child);
                    writer.write_stored(link);
                    next = child;
                }
                writer.write_implied(next..rows.end);
            });
        own.for_each(|link| writer.write_stored(link));
    }
}

/// The buffers to which a core writes links.
struct LinkWriter<'w> {
    rest: &'w mut [u64],
    /// The number of each link, if there are columns to put in this order.
    indices: Option<Vec<usize>>,
    /// The number of implied links.
    unstored: usize,
}

impl<'w> LinkWriter<'w> {
    fn take(&mut self, ends: usize) -> &'w mut [u64] {
        let all = core::mem::take(&mut self.rest);
        let (now, rest) = all.split_at_mut(ends.min(all.len()));
        self.rest = rest;
        now
    }

    /// Writes the implied links of rows.
    fn write_implied(&mut self, rows: Range<u64>) {
        let links = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        let (pairs, _) = self.take(links.saturating_mul(2)).as_chunks_mut::<2>();
        for ([child, parent], row) in pairs.iter_mut().zip(rows) {
            (*child, *parent) = (row, row.saturating_sub(1));
        }
        if let Some(indices) = &mut self.indices {
            indices.extend(core::iter::repeat_n(self.unstored, links));
        }
    }

    fn write_stored(&mut self, link: &OwnLink<'_>) {
        self.take(link.ends.len()).copy_from_slice(link.ends);
        if let Some(indices) = &mut self.indices {
            indices.push(link.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges links row by row.
    fn merged(own: &[[u64; 2]], implied: &UnstoredLinks<'_>) -> Vec<u64> {
        let mut links: Vec<[u64; 2]> = own.to_vec();
        links.extend((1..implied.rows).filter_map(|row| {
            let is_unreadable = implied.unreadable.iter().any(|rows| rows.contains(&row));
            let is_there = is_unreadable
                || implied.starts.binary_search(&row).is_ok()
                || implied.stored.binary_search(&row).is_ok();
            (!is_there).then_some([row, row - 1])
        }));
        links.sort_by_key(|[child, _]| *child);
        links.into_flattened()
    }

    #[test]
    fn implied_links_are_merged_as_row_by_row() {
        let rows = 3 * ROWS_PER_BLOCK + 5;
        // Starts and children at, before and after the borders of blocks.
        let near = |at: u64| [at - 2, at - 1, at, at + 1];
        let borders = [1, 2, 3].map(|block| block * ROWS_PER_BLOCK);
        let starts: Vec<u64> = [0, 7, 8, 9]
            .into_iter()
            .chain(borders.into_iter().flat_map(near))
            .collect();
        let mut children: Vec<u64> = (0..rows).step_by(97).chain([8, 8, rows - 1]).collect();
        children.sort_unstable();
        let own: Vec<[u64; 2]> = children.iter().rev().map(|row| [*row, row / 2]).collect();
        let unreadable = [5..12, ROWS_PER_BLOCK - 3..ROWS_PER_BLOCK + 40];
        for (rows, starts, unreadable) in [
            (rows, &starts[..], &[][..]),
            (rows, &starts[..], &unreadable[..]),
            (rows, &[][..], &[][..]),
            (ROWS_PER_BLOCK, &starts[..4], &[][..]),
            (1, &starts[..1], &[][..]),
            (0, &[][..], &[][..]),
        ] {
            let is_in = |child: &u64| *child < rows;
            let stored: Vec<u64> = children.iter().copied().filter(is_in).collect();
            let own: Vec<[u64; 2]> = own.iter().copied().filter(|own| is_in(&own[0])).collect();
            let implied = UnstoredLinks {
                rows,
                starts,
                stored: &stored,
                unreadable,
            };
            let mut builder = LinkBuilder::new(None, &[]);
            for ends in &own {
                let ends = ends.map(|end| usize::try_from(end).unwrap());
                builder.push_rows(&ends, None);
            }
            builder.merge_implied(&implied);
            let mut result = QueryResult::default();
            builder.finish(&mut result);
            assert_eq!(result.links.unwrap().ends, merged(&own, &implied), "{rows}");
        }
    }
}
