//! Reads the manifests of a few objects.

use core::ops::Range;
use std::{collections::BTreeMap, sync::Arc};

use zvf_format::int64s::Int64s;
use zvf_model::fetch::{BoxFuture, CellRequest};

use super::{
    ObjectCache, ObjectIdTable, ObjectSet, ObjectTable,
    builder::{ManifestFault, ObjectsBuilder},
    dense,
    read::{FetchResult, push, push_cell, push_unreadable, read_ids},
    table::Manifests,
};
use crate::{
    catalog::Catalog,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
    sync::lock,
    tables::{ByteStringArray, RowArray, RowRequest},
};

/// Maximum number of manifest cells that are all read at once, so that later queries need no
/// request.
const MAX_EAGER_CELLS: u64 = 4;
/// Maximum size of a dense index that is read whole, so that later queries need no request.
const MAX_EAGER_BYTES: u64 = 256 << 10;

/// The result of looking up objects by id.
#[derive(Clone, Debug)]
pub struct ObjectLookup {
    /// The objects found, possibly among others.
    pub objects: Arc<ObjectSet>,
    /// Position of each requested id, in the order of the request; `None` for an id without
    /// object.
    pub indices: Vec<Option<usize>>,
}

impl ObjectLookup {
    fn of(objects: Arc<ObjectSet>, ids: &[i64]) -> Self {
        let indices = ids.iter().map(|id| objects.find(*id)).collect();
        Self { objects, indices }
    }
}

/// State of the lookup of rows by id.
enum Rows {
    /// All ids are known.
    Known(Arc<ObjectIdTable>),
    /// The ids of the requested rows have been verified to equal the rows.
    Proven,
}

impl Rows {
    /// Returns the rows of the ids that exist, ascending.
    fn of(&self, ids: &[i64]) -> Vec<(u64, i64)> {
        let find = |id: &i64| match self {
            Self::Known(known) => known.find(*id).and_then(|row| u64::try_from(row).ok()),
            Self::Proven => u64::try_from(*id).ok(),
        };
        let mut found: Vec<(u64, i64)> =
            ids.iter().filter_map(|id| Some((find(id)?, *id))).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Returns the row that equals an id, if there is such a row.
fn row_like(table: &ObjectTable, id: i64) -> Option<u64> {
    u64::try_from(id).ok().filter(|row| *row < table.rows())
}

impl Catalog<'_> {
    /// Reads the objects with these ids, which may repeat. Damage is skipped if `diagnostics`
    /// allows it.
    ///
    /// Round trips after [`object_index`](Self::object_index):
    ///
    /// * none if all objects have been read, which happens if manifests take a few cells or a dense
    ///   index is small;
    /// * one if ids are rows, or prove to equal rows for the requested ids; the check reads eight
    ///   bytes per id from uncompressed arrays, and a failed check costs one more;
    /// * otherwise one for all ids on first use, and one for the manifests. If the manifests of the
    ///   rows that equal the ids were read beside the ids and prove right, there is only the first;
    /// * one more in a dense index, for the blocks of the objects.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoObjects`] if the level has no object index.
    pub fn lookup_objects<'f>(
        &'f self,
        level: &'f Level,
        ids: &'f [i64],
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<ObjectLookup, CatalogError>> {
        Box::pin(async move {
            let Some(table) = self.object_index(level).await? else {
                return Err(CatalogError::NoObjects(level.id()));
            };
            let cache = level.extension::<ObjectCache>();
            let known = lock(&cache.objects).clone();
            if let Some(objects) = known {
                table.note(diagnostics);
                return Ok(ObjectLookup::of(objects, ids));
            }
            let many = u64::try_from(ids.len())
                .unwrap_or(u64::MAX)
                .saturating_mul(8)
                > table.rows();
            match &table.manifests {
                Manifests::Items(manifests) if manifests.cells() <= MAX_EAGER_CELLS || !many => {
                    table.note(diagnostics);
                    let rows = match &table.ids {
                        None => Some(Arc::new(ObjectIdTable::Rows(table.len()?))),
                        Some(_) => lock(&cache.ids).clone(),
                    };
                    self.fetch_items(level, &table, manifests, rows, ids, diagnostics)
                        .await
                }
                Manifests::Dense { spans, blocks }
                    if !many
                        && spans.size(None).saturating_add(blocks.size(None)) > MAX_EAGER_BYTES =>
                {
                    table.note(diagnostics);
                    self.some_dense(level, &table, [spans, blocks], ids, diagnostics)
                        .await
                }
                _ => {
                    let objects = self.objects(level, diagnostics).await?;
                    Ok(ObjectLookup::of(objects.unwrap_or_default(), ids))
                }
            }
        })
    }

    /// Finds the rows of ids in one round trip if ids prove to equal rows, otherwise in up to two.
    /// The first also fetches `also`, whose results are returned. `parts` permits the proof, which
    /// reads the ids of the requested rows only. Returns no rows if ids are damaged and
    /// `diagnostics` skips the damage.
    async fn find_rows(
        &self,
        level: &Level,
        table: &ObjectTable,
        array: &RowArray,
        (ids, parts): (&[i64], bool),
        also: &[CellRequest],
        diagnostics: &Diagnostics,
    ) -> Result<(Option<Rows>, Vec<FetchResult>), CatalogError> {
        // Ids equal rows in most stores, so the check usually succeeds.
        let guess: Option<Vec<u64>> = ids.iter().map(|id| row_like(table, *id)).collect();
        let parts = parts && array.is_plain_cell() && table.index.ids_sorted;
        let guess = guess.filter(|_| parts);
        let mut request = match &guess {
            Some(guess) => array.request(Some(guess)),
            None => self.id_request(array)?,
        };
        let mut wanted = request.wanted.clone();
        wanted.extend(also.iter().cloned());
        let mut results = self.fetch.cells(&wanted).await;
        let rest = results.split_off(request.wanted.len().min(results.len()));
        if guess.is_some() {
            if ids_equal_rows(array, &request, results, ids) {
                return Ok((Some(Rows::Proven), rest));
            }
            request = self.id_request(array)?;
            results = self.fetch.cells(&request.wanted).await;
        }
        let known = keep_ids(level, table, array, (&request, results), diagnostics)?;
        Ok((known.map(Rows::Known), rest))
    }

    /// Reads the manifests of a few objects of a dense index: their spans, then their blocks.
    async fn some_dense(
        &self,
        level: &Level,
        table: &ObjectTable,
        [spans, blocks]: [&RowArray; 2],
        ids: &[i64],
        diagnostics: &Diagnostics,
    ) -> Result<ObjectLookup, CatalogError> {
        let Some(array) = &table.ids else {
            return Err(Damage::new(&table.node, Fault::Missing).into());
        };
        let known = lock(&level.extension::<ObjectCache>().ids).clone();
        let mut tried: Vec<u64> = ids.iter().filter_map(|id| row_like(table, *id)).collect();
        tried.sort_unstable();
        tried.dedup();
        let mut of_spans = spans.request(Some(&tried));
        let (rows, mut results) = match known {
            Some(ids) => (Some(Rows::Known(ids)), Vec::new()),
            None => {
                let also = &of_spans.wanted;
                self.find_rows(level, table, array, (ids, true), also, diagnostics)
                    .await?
            }
        };
        let Some(rows) = rows else {
            return Ok(without_ids(table, self.fetch.budget(), ids));
        };
        let found = rows.of(ids);
        if matches!(rows, Rows::Known(_)) {
            let wanted: Vec<u64> = found.iter().map(|(row, _)| *row).collect();
            of_spans = spans.request(Some(&wanted));
            results = self.fetch_cells(&of_spans).await;
        }
        let read = spans.finish(&of_spans, results);
        let damaged_spans = skip_each(read.damaged, diagnostics)?;
        let (each, _) = read.bytes.as_chunks::<16>();
        let mut ranges = Vec::with_capacity(found.len());
        for ((row, _), span) in found.iter().zip(each) {
            let range = dense::blocks_of(span).filter(|range| range.end <= blocks.rows);
            if range.is_none() {
                let source = Box::new(Fault::Range);
                let fault = Fault::Row { row: *row, source };
                diagnostics.skip(Damage::new(spans.node(), fault))?;
            }
            ranges
                .push(range.filter(|_| !overlaps(&damaged_spans, &(*row..row.saturating_add(1)))));
        }
        let lengths = ranges
            .iter()
            .flatten()
            .map(|range| range.end.saturating_sub(range.start));
        let total = lengths.fold(0, u64::saturating_add);
        // The rows are listed, eight bytes each, and then read.
        self.check_budget(total.saturating_mul(blocks.row().saturating_add(8)))?;
        let wanted: Vec<u64> = ranges.iter().flatten().cloned().flatten().collect();
        let of_blocks = blocks.request(Some(&wanted));
        let results = self.fetch_cells(&of_blocks).await;
        let read = blocks.finish(&of_blocks, results);
        let damaged_blocks = skip_each(read.damaged, diagnostics)?;
        let mut builder =
            ObjectsBuilder::new(table.index.sid_ndim, 0, self.fetch.budget()).with_rows();
        let mut rest = read.bytes.as_slice();
        for ((row, _), range) in found.iter().zip(ranges) {
            let Some(range) = range else {
                push_unreadable(&mut builder, *row, spans.node())?;
                continue;
            };
            let bytes = range.end.saturating_sub(range.start);
            let bytes = usize::try_from(bytes.saturating_mul(blocks.row())).unwrap_or(usize::MAX);
            let (own, after) = rest.split_at(bytes.min(rest.len()));
            rest = after;
            if overlaps(&damaged_blocks, &range) {
                push_unreadable(&mut builder, *row, blocks.node())?;
                continue;
            }
            match builder.push_blocks(*row, own) {
                Ok(()) => {}
                Err(ManifestFault::OverBudget(bytes)) => return Err(builder.over_budget(bytes)),
                Err(ManifestFault::Fault(fault)) => {
                    diagnostics.skip(Damage::new(spans.node(), fault))?;
                    push_unreadable(&mut builder, *row, spans.node())?;
                }
            }
        }
        let found = ObjectIdTable::new(found.iter().map(|(_, id)| *id).collect(), false)
            .map_err(|fault| Damage::new(&table.node, fault))?;
        Ok(ObjectLookup::of(Arc::new(builder.finish(found)), ids))
    }

    /// Fetches the cells of a request, which may be none.
    async fn fetch_cells(&self, request: &RowRequest) -> Vec<FetchResult> {
        match request.wanted.as_slice() {
            [] => Vec::new(),
            wanted => self.fetch.cells(wanted).await,
        }
    }

    async fn fetch_items(
        &self,
        level: &Level,
        table: &ObjectTable,
        manifests: &ByteStringArray,
        known: Option<Arc<ObjectIdTable>>,
        ids: &[i64],
        diagnostics: &Diagnostics,
    ) -> Result<ObjectLookup, CatalogError> {
        let mut cells: BTreeMap<u64, FetchResult> = BTreeMap::new();
        let few = manifests.cells() <= MAX_EAGER_CELLS;
        let row_of = |id: &i64| row_like(table, *id);
        let rows = match (known, &table.ids) {
            (Some(ids), _) => Rows::Known(ids),
            (None, None) => Rows::Known(Arc::new(ObjectIdTable::Rows(table.len()?))),
            (None, Some(array)) => {
                let tried: Vec<u64> = ids.iter().filter_map(row_of).collect();
                let first = wanted_cells(manifests, few, &tried);
                let also: Vec<_> = first
                    .iter()
                    .map(|cell| manifests.cell_request(*cell))
                    .collect();
                let (rows, results) = self
                    .find_rows(level, table, array, (ids, !few), &also, diagnostics)
                    .await?;
                cells.extend(first.into_iter().zip(results));
                match rows {
                    Some(rows) => rows,
                    None => return Ok(without_ids(table, self.fetch.budget(), ids)),
                }
            }
        };
        let found = rows.of(ids);
        let of_found: Vec<u64> = found.iter().map(|(row, _)| *row).collect();
        let mut missing = wanted_cells(manifests, few, &of_found);
        missing.retain(|cell| !cells.contains_key(cell));
        if !missing.is_empty() {
            let wanted: Vec<CellRequest> = missing
                .iter()
                .map(|cell| manifests.cell_request(*cell))
                .collect();
            let results = self.fetch.cells(&wanted).await;
            cells.extend(missing.into_iter().zip(results));
        }
        if let Rows::Known(known) = &rows
            && few
            && let Some(objects) = all_of(table, manifests, &cells, known, self.fetch.budget())
        {
            let objects = Arc::new(objects);
            *lock(&level.extension::<ObjectCache>().objects) = Some(Arc::clone(&objects));
            return Ok(ObjectLookup::of(objects, ids));
        }
        let objects = some_of(
            table,
            manifests,
            cells,
            &found,
            self.fetch.budget(),
            diagnostics,
        )?;
        Ok(ObjectLookup::of(Arc::new(objects), ids))
    }
}

/// Decodes and caches all ids; `None` if they are damaged and `diagnostics` skips the damage.
fn keep_ids(
    level: &Level,
    table: &ObjectTable,
    array: &RowArray,
    (request, results): (&RowRequest, Vec<FetchResult>),
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<ObjectIdTable>>, CatalogError> {
    match read_ids(array, request, results, table.index.ids_sorted) {
        Ok(ids) => {
            let ids = Arc::new(ids);
            *lock(&level.extension::<ObjectCache>().ids) = Some(Arc::clone(&ids));
            Ok(Some(ids))
        }
        Err(damage) => diagnostics.skip(damage).map(|()| None),
    }
}

/// Skips damage of rows, if `diagnostics` allows it, and returns the rows.
fn skip_each(
    damaged: Vec<(Range<u64>, Damage)>,
    diagnostics: &Diagnostics,
) -> Result<Vec<Range<u64>>, CatalogError> {
    let skipped = damaged.into_iter().map(|(rows, damage)| {
        diagnostics.skip(damage)?;
        Ok(rows)
    });
    skipped.collect()
}

/// Returns whether a range overlaps one of others.
fn overlaps(others: &[Range<u64>], range: &Range<u64>) -> bool {
    let mut others = others.iter();
    others.any(|other| other.start < range.end && range.start < other.end)
}

/// Returns the cells that hold these rows, ascending.
fn wanted_cells(manifests: &ByteStringArray, few: bool, rows: &[u64]) -> Vec<u64> {
    if few {
        return (0..manifests.cells()).collect();
    }
    let mut cells: Vec<u64> = rows.iter().map(|row| manifests.cell_of(*row)).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Returns whether the ids stored in the requested rows equal the rows.
fn ids_equal_rows(
    array: &RowArray,
    request: &RowRequest,
    results: Vec<FetchResult>,
    ids: &[i64],
) -> bool {
    let read = array.finish(request, results);
    let there = Int64s::parse(&read.bytes);
    read.damaged.is_empty() && there.is_ok_and(|there| there.iter().eq(ids.iter().copied()))
}

/// Returns the result if no id could be read.
fn without_ids(table: &ObjectTable, budget: u64, ids: &[i64]) -> ObjectLookup {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, 0, budget);
    builder.mark_incomplete();
    ObjectLookup::of(Arc::new(builder.finish(ObjectIdTable::default())), ids)
}

/// Reads all objects; `None` if any of them is damaged, because a query for one object must not
/// fail because of another.
fn all_of(
    table: &ObjectTable,
    manifests: &ByteStringArray,
    cells: &BTreeMap<u64, FetchResult>,
    ids: &ObjectIdTable,
    budget: u64,
) -> Option<ObjectSet> {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, ids.size(), budget);
    let strict = Diagnostics::new(false);
    let mut stored = false;
    for cell in 0..manifests.cells() {
        let result = cells.get(&cell)?.as_ref().ok()?;
        stored |= result.is_some();
        push_cell(
            &mut builder,
            table,
            manifests,
            cell,
            Ok(result.clone()),
            &strict,
        )
        .ok()?;
    }
    stored.then(|| builder.finish(ids.clone()))
}

/// Returns the objects of ascending rows.
fn some_of(
    table: &ObjectTable,
    manifests: &ByteStringArray,
    mut cells: BTreeMap<u64, FetchResult>,
    found: &[(u64, i64)],
    budget: u64,
    diagnostics: &Diagnostics,
) -> Result<ObjectSet, CatalogError> {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, 0, budget).with_rows();
    for found in found.chunk_by(|a, b| manifests.cell_of(a.0) == manifests.cell_of(b.0)) {
        let cell = found.first().map_or(0, |(row, _)| manifests.cell_of(*row));
        let (first, _) = manifests.rows_of(cell);
        let result = cells.remove(&cell);
        let mut payload = None;
        let damage = match result {
            Some(Ok(Some(fetched))) => {
                payload = Some(fetched.bytes);
                None
            }
            Some(Ok(None)) if table.requires(manifests, cell) => {
                Some(manifests.damage(cell, Fault::MissingCell))
            }
            Some(Ok(None)) => None,
            Some(Err(error)) => Some(manifests.damage(cell, Fault::Fetch(error))),
            None => Some(manifests.damage(cell, Fault::MissingCell)),
        };
        let indices = payload
            .as_ref()
            .map(|payload| manifests.item_offsets(cell, payload));
        let (indices, damage) = match indices.transpose() {
            Ok(indices) => (indices, damage),
            Err(damage) => (None, Some(damage)),
        };
        let damaged = damage.is_some();
        if let Some(damage) = damage {
            diagnostics.skip(damage)?;
        }
        for (row, _) in found {
            if damaged {
                push_unreadable(&mut builder, *row, manifests.node())?;
                continue;
            }
            // Empty bytes are an empty manifest.
            let at = usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX);
            let indices = payload.as_ref().zip(indices.as_ref());
            let item = indices.and_then(|(payload, indices)| indices.get(payload, at));
            let damaged = |fault| manifests.damage(cell, fault);
            push(
                &mut builder,
                *row,
                item.unwrap_or_default(),
                (0, diagnostics),
                damaged,
            )?;
        }
    }
    let ids = ObjectIdTable::new(found.iter().map(|(_, id)| *id).collect(), false)
        .map_err(|fault| Damage::new(&table.node, fault))?;
    Ok(builder.finish(ids))
}
