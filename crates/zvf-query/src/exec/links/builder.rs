//! The builder of the links of a result.

use zvf_format::links::LinkWidth;

use crate::{
    batch::columns::ColumnBuilder,
    catalog::cell_rows::CellRows,
    catalog::links::{LinkRecords, LinkSet},
    error::{Damage, QueryError},
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
    columns: Vec<(usize, ColumnBuilder)>,
    /// Cells and records whose attributes are not appended yet.
    waiting: Vec<(Option<usize>, Option<usize>)>,
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
            columns: columns.collect(),
            waiting: Vec::new(),
        }
    }

    /// Returns the size of ends and attributes in bytes.
    pub(crate) fn size(&self) -> u64 {
        let columns = self.columns.iter().map(|(_, column)| column.size());
        let ends = self.ends.len().saturating_mul(size_of::<u64>());
        u64::try_from(columns.fold(ends, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Reserves memory for ends: growing would copy all of them.
    pub(crate) fn reserve(&mut self, ends: usize) {
        self.ends.reserve(ends);
        zvf_pages::prefer_large(&mut self.ends);
    }

    /// Appends links of a cell with their attributes.
    pub(crate) fn push_cell(
        &mut self,
        records: &LinkRecords,
        links: &NumberedLinks,
    ) -> Result<(), QueryError> {
        self.ends.extend_from_slice(&links.ends);
        if self.columns.is_empty() {
            return Ok(());
        }
        let indices: Vec<Option<usize>> = match &links.records {
            Some(some) => some.iter().copied().map(Some).collect(),
            None => (0..records.len()).map(Some).collect(),
        };
        for (number, column) in &mut self.columns {
            let cell: Option<&CellRows> = records.attributes.get(*number).and_then(Option::as_ref);
            let pushed = column.push_indices(cell, &indices);
            pushed.map_err(|fault| Damage::new(&records.node, fault))?;
        }
        Ok(())
    }

    /// Appends a link that a record of a cell stores. [`end_cells`](Self::end_cells) appends its
    /// attributes.
    pub(crate) fn push_rows(&mut self, rows: &[usize], record: Option<(usize, usize)>) {
        let rows = rows
            .iter()
            .map(|row| u64::try_from(*row).unwrap_or(u64::MAX));
        self.ends.extend(rows);
        if !self.columns.is_empty() {
            self.waiting.push(record.unzip());
        }
    }

    /// Appends the attributes of links of many cells.
    pub(crate) fn end_cells(&mut self, records: &[LinkRecords]) -> Result<(), QueryError> {
        let waiting = core::mem::take(&mut self.waiting);
        for same in waiting.chunk_by(|a, b| a.0 == b.0) {
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
        for end in &mut self.ends {
            let old = usize::try_from(*end).ok();
            *end = old.and_then(|old| index.get(old)).copied().unwrap_or(*end);
        }
    }

    /// Sorts links by their first end, stably.
    pub(crate) fn sort_by_child(&mut self) {
        let links = self.ends.chunks_exact(self.width.max(1));
        if links.is_sorted_by_key(|ends| ends.first().copied()) {
            return;
        }
        if self.columns.is_empty() && self.width == 2 {
            let (links, _) = self.ends.as_chunks_mut::<2>();
            links.sort_by_key(|[child, _]| *child);
        } else {
            self.weave(core::iter::empty());
        }
    }

    /// Sorts links by their first end, stably, and merges them with others of two ends in that
    /// order.
    pub(crate) fn weave(&mut self, mut others: impl Iterator<Item = (u64, u64)>) {
        let width = self.width.max(1);
        let own = core::mem::take(&mut self.ends);
        let mut links: Vec<(usize, &[u64])> = own.chunks_exact(width).enumerate().collect();
        let child = |(_, ends): &(usize, &[u64])| ends.first().copied();
        if !links.is_sorted_by_key(child) {
            links.sort_by_key(child);
        }
        let max = others.size_hint().1.unwrap_or(0).saturating_mul(2);
        self.ends.reserve_exact(own.len().saturating_add(max));
        zvf_pages::prefer_large(&mut self.ends);
        // Indices of the links of the result; those after the own links are others.
        let mut indices = Vec::new();
        let (has_columns, first_other) = (!self.columns.is_empty(), links.len());
        let mut next_other = first_other;
        let mut links = links.into_iter();
        // Not `Peekable`: its `next_if` was not inlined, which took a tenth of reading skeletons.
        let (mut link, mut other) = (links.next(), others.next());
        loop {
            let before = link.as_ref().and_then(child);
            let is_next = |other: &(u64, u64)| before.is_none_or(|child| other.0 < child);
            let index = if let Some((child, parent)) = other.filter(is_next) {
                other = others.next();
                self.ends.extend([child, parent]);
                next_other = next_other.saturating_add(1);
                next_other.saturating_sub(1)
            } else if let Some((number, ends)) = link {
                link = links.next();
                self.ends.extend_from_slice(ends);
                number
            } else {
                break;
            };
            if has_columns {
                indices.push(index);
            }
        }
        for (_, column) in &mut self.columns {
            column.skip(next_other.saturating_sub(first_other));
            column.gather(&indices);
        }
    }

    /// Puts the links into a batch.
    pub(crate) fn finish(self, result: &mut QueryResult) {
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
