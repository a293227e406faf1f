//! Links on their way into an answer.

use zvf_format::links::LinkWidth;

use crate::{
    answer::{Answer, Links},
    build::ColumnBuilder,
    chunk::CellRows,
    error::{Damage, QueryError},
    links::{LinkRecords, LinkSet},
};

/// Links on their way into an answer.
pub(super) struct LinkBuilder {
    pub(super) width: usize,
    ends: Vec<u64>,
    columns: Vec<(usize, ColumnBuilder)>,
    /// Rows of attributes that wait for the end of their cell.
    waiting: Vec<(Option<usize>, Option<usize>)>,
}

impl LinkBuilder {
    pub(super) fn new<A>(set: Option<&LinkSet<A>>, shown: &[String]) -> Self {
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

    pub(super) fn len(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes of its ends and their attributes.
    pub(super) fn size(&self) -> u64 {
        let columns = self.columns.iter().map(|(_, column)| column.size());
        let ends = self.ends.len().saturating_mul(size_of::<u64>());
        u64::try_from(columns.fold(ends, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Appends a link; its attributes come with [`end_cell`](Self::end_cell).
    pub(super) fn push(&mut self, ends: &[u64], record: Option<(&LinkRecords, usize)>) {
        self.ends.extend_from_slice(ends);
        let at = record.map(|(_, at)| at);
        if self.columns.is_empty() {
            return;
        }
        match record {
            Some(_) => self.waiting.push((Some(0), at)),
            None => self
                .columns
                .iter_mut()
                .for_each(|(_, column)| column.skip(1)),
        }
    }

    /// The attributes of the links of a cell.
    pub(super) fn end_cell(&mut self, records: &LinkRecords) -> Result<(), QueryError> {
        let waiting = core::mem::take(&mut self.waiting);
        let places: Vec<Option<usize>> = waiting.into_iter().map(|(_, at)| at).collect();
        for (number, column) in &mut self.columns {
            let cell: Option<&CellRows> = records.attributes.get(*number).and_then(Option::as_ref);
            let pushed = column.push_places(cell, &places);
            pushed.map_err(|fault| Damage::new(&records.node, fault))?;
        }
        Ok(())
    }

    /// Appends a link of record `at` of a cell; its attributes come with
    /// [`end_cells`](Self::end_cells).
    pub(super) fn push_rows(&mut self, rows: &[usize], record: Option<(usize, usize)>) {
        let rows = rows
            .iter()
            .map(|row| u64::try_from(*row).unwrap_or(u64::MAX));
        self.ends.extend(rows);
        if !self.columns.is_empty() {
            self.waiting.push(record.unzip());
        }
    }

    /// The attributes of links of many cells.
    pub(super) fn end_cells(&mut self, records: &[LinkRecords]) -> Result<(), QueryError> {
        let waiting = core::mem::take(&mut self.waiting);
        for same in waiting.chunk_by(|a, b| a.0 == b.0) {
            let cell = same.first().and_then(|(cell, _)| records.get((*cell)?));
            let places: Vec<Option<usize>> = same.iter().map(|(_, at)| *at).collect();
            for (number, column) in &mut self.columns {
                let Some(records) = cell else {
                    column.skip(places.len());
                    continue;
                };
                let rows = records.attributes.get(*number).and_then(Option::as_ref);
                let pushed = column.push_places(rows, &places);
                pushed.map_err(|fault| Damage::new(&records.node, fault))?;
            }
        }
        Ok(())
    }

    pub(super) fn renumber(&mut self, place: &[u64]) {
        for end in &mut self.ends {
            let old = usize::try_from(*end).ok();
            *end = old.and_then(|old| place.get(old)).copied().unwrap_or(*end);
        }
    }

    /// Links by their first end, those of one end as they came.
    pub(super) fn sort_by_child(&mut self) {
        let width = self.width.max(1);
        let child = |link: &usize| self.ends.get(link.saturating_mul(width)).copied();
        let mut order: Vec<usize> = (0..self.len()).collect();
        if order.is_sorted_by_key(child) {
            return;
        }
        order.sort_by_key(child);
        let mut ends = Vec::with_capacity(self.ends.len());
        for link in &order {
            let start = link.saturating_mul(width);
            let of_link = self.ends.get(start..start.saturating_add(width));
            ends.extend_from_slice(of_link.unwrap_or_default());
        }
        self.ends = ends;
        self.columns
            .iter_mut()
            .for_each(|(_, column)| column.gather(&order));
    }

    pub(super) fn finish(self, answer: &mut Answer) {
        answer.links = Some(Links {
            width: u32::try_from(self.width).unwrap_or(u32::MAX),
            ends: self.ends,
        });
        answer.link = self
            .columns
            .into_iter()
            .map(|(_, column)| column.finish())
            .collect();
    }
}
