//! Reads the groups of links that belong to fragments.
//!
//! A level can declare that group k of the links inside a chunk has the links of its fragment k.
//! Where cells can be read in part, the links of a few objects are then read by ranges of rows.
//! A cell whose groups contradict the declaration is read whole.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join;
use zvf_model::fetch::{BoxFuture, CellRequest, Fetched};

use super::{
    AttributeCells, LinkCellForm, LinkCellSource, LinkRecords, LinkSet, LinkSource, LinkStorage,
    decode,
};
use crate::{
    catalog::Catalog,
    cell_rows::{CellRows, join, loaded_rows, value_rows},
    chunked_array::ChunkedArray,
    diagnostics::Diagnostics,
    error::CatalogError,
    fragments::{FragmentRows, FragmentTable},
    level::Level,
    objects::FragmentsByChunk,
    row_selection::RowSelection,
};

/// A cell of links of which some rows are read.
struct PartialCell<'s> {
    /// Its index in the result.
    at: usize,
    cell: &'s LinkCellSource,
    source: &'s LinkSource,
    links: &'s ChunkedArray,
    fragments: &'s [u32],
}

/// The rows of a cell that are requested.
struct PartialRequest<'p, 's> {
    partial: &'p PartialCell<'s>,
    table: Arc<FragmentTable>,
    rows: RowSelection,
    links: ArrayRequest,
    attributes: Vec<Option<ArrayRequest>>,
}

/// Requests for the rows of a cell of an array.
struct ArrayRequest {
    /// Positions of the responses.
    slots: Range<usize>,
    /// Size of a row in bytes; `None` if the cell is read whole.
    row: Option<u64>,
}

impl Catalog<'_> {
    /// Reads cells as [`link_cells`](Self::link_cells) does. If the level declares groups that
    /// follow fragments, only the groups of `members`, the fragments by chunk, are read of cells
    /// inside chunks. The caller compares the [number of groups](LinkRecords::groups) and the ends
    /// with the fragments.
    ///
    /// Takes two round trips if groups are read that are not in the cache, otherwise one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`link_cells`](Self::link_cells).
    pub fn member_links<'f>(
        &'f self,
        level: &'f Level,
        set: &'f LinkSet,
        cells: &'f [usize],
        members: &'f FragmentsByChunk,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Vec<LinkRecords>, CatalogError>> {
        Box::pin(async move {
            let Some(groups) = &set.groups else {
                return self.link_cells(level, set, cells, diagnostics).await;
            };
            let (mut partial, mut whole) = (Vec::new(), Vec::new());
            for (at, number) in cells.iter().enumerate() {
                match partial_cell(set, at, *number, groups, members) {
                    Some(cell) => partial.push(cell),
                    None => whole.push((at, *number)),
                }
            }
            let numbers: Vec<usize> = whole.iter().map(|(_, number)| *number).collect();
            let (read, parts) = try_join(
                self.link_cells(level, set, &numbers, diagnostics),
                self.read_groups(groups, &partial),
            )
            .await?;
            let mut records: Vec<Option<LinkRecords>> = cells.iter().map(|_| None).collect();
            let whole = whole.into_iter().map(|(at, _)| at);
            let found = whole.zip(read).map(|(at, records)| (at, Some(records)));
            for (at, read) in found.chain(parts) {
                if let Some(slot) = records.get_mut(at) {
                    *slot = read;
                }
            }
            // Cells whose groups cannot be used are read whole, which also reports damage.
            let again: Vec<usize> = records
                .iter()
                .zip(cells)
                .filter(|(read, _)| read.is_none())
                .map(|(_, number)| *number)
                .collect();
            let mut again = if again.is_empty() {
                Vec::new().into_iter()
            } else {
                let read = self.link_cells(level, set, &again, diagnostics);
                read.await?.into_iter()
            };
            let records = records.into_iter();
            Ok(records
                .filter_map(|read| read.or_else(|| again.next()))
                .collect())
        })
    }

    /// Reads the groups of these cells; `None` for a cell whose groups cannot be used.
    async fn read_groups(
        &self,
        groups: &ChunkedArray,
        cells: &[PartialCell<'_>],
    ) -> Result<Vec<(usize, Option<LinkRecords>)>, CatalogError> {
        let tables = self.group_tables(groups, cells).await;
        let mut wanted = Vec::new();
        let mut requested = Vec::with_capacity(cells.len());
        for (partial, table) in cells.iter().zip(tables) {
            requested.push(table.and_then(|table| request(partial, table, &mut wanted)));
        }
        let responses = if wanted.is_empty() {
            Vec::new()
        } else {
            self.fetch.cells(&wanted).await
        };
        let mut responses: Vec<Option<Fetched>> = responses
            .into_iter()
            .map(|response| response.ok().flatten())
            .collect();
        let budget = self.fetch.budget();
        let mut bytes = 0_u64;
        let mut read = Vec::with_capacity(cells.len());
        for (partial, requested) in cells.iter().zip(requested) {
            let records = requested.and_then(|requested| finish(&requested, &mut responses));
            bytes = bytes.saturating_add(records.as_ref().map_or(0, LinkRecords::size));
            if bytes > budget {
                return Err(CatalogError::OverBudget {
                    what: "links",
                    bytes,
                    budget,
                });
            }
            read.push((partial.at, records));
        }
        Ok(read)
    }

    /// Returns the rows of the groups of each cell; `None` if they cannot be read.
    async fn group_tables(
        &self,
        groups: &ChunkedArray,
        cells: &[PartialCell<'_>],
    ) -> Vec<Option<Arc<FragmentTable>>> {
        let known = cells
            .iter()
            .map(|partial| groups.fragment_tables.get(&partial.cell.at));
        let mut tables: Vec<Option<Arc<FragmentTable>>> = known.collect();
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for (at, (partial, table)) in cells.iter().zip(&tables).enumerate() {
            let request = groups.cell_request(&partial.cell.at, None);
            if let Some(request) = request.filter(|_| table.is_none()) {
                wanted.push(request);
                places.push((at, &partial.cell.at));
            }
        }
        if wanted.is_empty() {
            return tables;
        }
        let responses = self.fetch.cells(&wanted).await;
        for ((at, chunk), response) in places.into_iter().zip(responses) {
            let blob = response.ok().flatten();
            let table = blob.and_then(|blob| FragmentTable::parse(&blob.bytes).ok());
            let table = table.map(|table| groups.fragment_tables.insert(chunk, table));
            if let Some(slot) = tables.get_mut(at) {
                *slot = table;
            }
        }
        tables
    }
}

/// Returns the cell if its rows can be read by the groups of fragments.
fn partial_cell<'s>(
    set: &'s LinkSet,
    at: usize,
    number: usize,
    groups: &ChunkedArray,
    members: &'s FragmentsByChunk,
) -> Option<PartialCell<'s>> {
    let cell = set.cells.get(number)?;
    let source = set.sources.get(cell.source)?;
    let LinkStorage::Each(links) = &source.cells else {
        return None;
    };
    let is_flat = matches!(source.form, LinkCellForm::Flat(_));
    if !cell.is_inside || !is_flat || !links.is_plain() || !groups.has(&cell.at) {
        return None;
    }
    Some(PartialCell {
        at,
        cell,
        source,
        links,
        fragments: members.get(&cell.at)?,
    })
}

/// Requests the rows of the fragments. Returns `None` if the groups cannot be used, or if the
/// fragments have more than half of the rows.
fn request<'p, 's>(
    partial: &'p PartialCell<'s>,
    table: Arc<FragmentTable>,
    wanted: &mut Vec<CellRequest>,
) -> Option<PartialRequest<'p, 's>> {
    // Each row is in one group.
    if table.total() != table.extent() {
        return None;
    }
    let mut ranges = Vec::with_capacity(partial.fragments.len());
    for fragment in partial.fragments {
        match table.rows(*fragment)? {
            FragmentRows::Range(rows) => ranges.push(rows),
            FragmentRows::List(rows) => {
                ranges.extend(rows.iter().map(|row| *row..row.saturating_add(1)));
            }
        }
    }
    let rows = RowSelection::ascending(ranges);
    let read = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    if read.saturating_mul(2) > table.extent() {
        return None;
    }
    let at = &partial.cell.at;
    let mut request = |array: &ChunkedArray, row: Option<u64>| -> Option<ArrayRequest> {
        let start = wanted.len();
        match row {
            Some(row) => {
                for run in rows.runs() {
                    let rows = run.rows();
                    let part = rows.start.saturating_mul(row)..rows.end.saturating_mul(row);
                    wanted.push(array.cell_request(at, Some(part))?);
                }
            }
            None => wanted.push(array.cell_request(at, None)?),
        }
        let slots = start..wanted.len();
        Some(ArrayRequest { slots, row })
    };
    let links = request(partial.links, Some(row_of(partial.source)?))?;
    let attributes = partial.source.attributes.iter().map(|attribute| {
        let attribute = attribute.as_ref()?;
        let LinkStorage::Each(array) = &attribute.cells else {
            return None;
        };
        let row = array.is_plain().then(|| row_of_attribute(attribute));
        request(array, row)
    });
    Some(PartialRequest {
        attributes: attributes.collect(),
        partial,
        table,
        links,
        rows,
    })
}

/// Returns the records in the responses; `None` if a response is missing, or if the size of the
/// cell contradicts the groups.
fn finish(
    request: &PartialRequest<'_, '_>,
    responses: &mut [Option<Fetched>],
) -> Option<LinkRecords> {
    let (source, cell) = (request.partial.source, request.partial.cell);
    let extent = request.table.extent();
    let mut take = |array: &ArrayRequest| -> Option<Bytes> {
        let mut parts = Vec::with_capacity(array.slots.len());
        for slot in array.slots.clone() {
            let part = responses.get_mut(slot)?.take()?;
            let size = array.row.map(|row| extent.checked_mul(row));
            if size.is_some_and(|size| size != Some(part.size)) {
                return None;
            }
            parts.push(part.bytes);
        }
        Some(join(parts))
    };
    let payload = take(&request.links)?;
    let mut records = decode::records(source, cell, &payload, None).ok()?;
    if records.len() != request.rows.len() {
        return None;
    }
    records.node = request.partial.links.node.clone();
    records.groups = Some(request.table.len());
    for (attribute, requested) in source.attributes.iter().zip(&request.attributes) {
        let (Some(attribute), Some(requested)) = (attribute, requested) else {
            records.attributes.push(None);
            continue;
        };
        let LinkStorage::Each(array) = &attribute.cells else {
            return None;
        };
        let values =
            |bytes, rows| value_rows(&attribute.metadata, &array.node, &cell.at, bytes, rows).ok();
        let bytes = take(requested)?;
        let values = match requested.row {
            Some(_) => values(bytes, u64::try_from(request.rows.len()).ok()?)?,
            None => {
                let all: CellRows = values(bytes, extent)?;
                let size = attribute.metadata.dtype.size();
                let row = u64::from(all.columns).checked_mul(u64::try_from(size).ok()?)?;
                CellRows {
                    bytes: loaded_rows(&all.bytes, &request.rows, row),
                    columns: all.columns,
                }
            }
        };
        records.attributes.push(Some(values));
    }
    Some(records)
}

/// Returns the size of a row of links in bytes.
fn row_of(source: &LinkSource) -> Option<u64> {
    let LinkCellForm::Flat(dtype) = source.form else {
        return None;
    };
    u64::try_from(source.width.get().checked_mul(dtype.size())?).ok()
}

/// Returns the declared size of a row of an attribute in bytes.
fn row_of_attribute(attribute: &AttributeCells) -> u64 {
    let columns = attribute.metadata.declared_columns().unwrap_or(1);
    let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(1);
    columns.saturating_mul(size).max(1)
}
