//! Reads all objects of a level.

use std::sync::Arc;

use zvf_format::{int64s::Int64s, open_rows::OpenRows};
use zvf_model::{
    fetch::{BoxFuture, CellRequest, FetchError, FetchProblem, Fetched},
    key::Key,
};

use super::{
    ObjectCache, ObjectIdTable, ObjectSet, ObjectTable,
    builder::{ManifestFault, ObjectsBuilder},
    table::Manifests,
};
use crate::{
    catalog::Catalog,
    cores::{cores, on_cores},
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
    sync::lock,
    tables::{ByteStringArray, RowArray, RowRequest},
};

/// Number of manifests per request: about ten megabytes of typical ones.
const BATCH_ROWS: u64 = 1 << 18;

/// Number of parts for each core that manifests are decoded in, so that all cores finish together.
/// Each part numbers its chunks anew.
const PARTS_PER_CORE: usize = 4;

/// Maximum number of damaged manifests reported one by one per cell.
const MAX_REPORTED_ROWS: u64 = 8;

pub(super) type FetchResult = Result<Option<Fetched>, FetchError>;

impl Catalog<'_> {
    /// Reads all objects of a level; `None` if it has no object index. Takes one round trip per
    /// 262,144 objects after [`object_index`](Self::object_index), and none once the objects are
    /// cached. Damage is skipped if `diagnostics` allows it: a single manifest, or all manifests
    /// of a cell.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] for other damage, or if the objects exceed the memory budget.
    pub fn objects<'f>(
        &'f self,
        level: &'f Level,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Option<Arc<ObjectSet>>, CatalogError>> {
        Box::pin(async move {
            let Some(table) = self.object_index(level).await? else {
                return Ok(None);
            };
            table.note(diagnostics);
            let cache = level.extension::<ObjectCache>();
            let known = lock(&cache.objects).clone();
            if known.is_some() {
                return Ok(known);
            }
            let known = lock(&cache.ids).clone();
            let objects = match &table.manifests {
                Manifests::None => {
                    ObjectsBuilder::new(table.index.sid_ndim, 0, self.fetch.budget())
                        .finish(ObjectIdTable::default())
                }
                Manifests::Open { data, offsets } => {
                    self.open_objects(&table, data, offsets, diagnostics)
                        .await?
                }
                Manifests::Dense { spans, blocks } => {
                    self.dense_objects(&table, spans, blocks, diagnostics)
                        .await?
                }
                Manifests::Items(manifests) => {
                    let manifests = (manifests, known.as_deref());
                    self.item_objects(level, &table, manifests, diagnostics)
                        .await?
                }
            };
            let objects = Arc::new(objects);
            // Skipped damage must still fail a later strict query, so the list is not cached.
            if !objects.is_incomplete() {
                *lock(&cache.objects) = Some(Arc::clone(&objects));
            }
            Ok(Some(objects))
        })
    }

    /// Reads objects whose manifests are items of an array of byte strings.
    async fn item_objects(
        &self,
        level: &Level,
        table: &ObjectTable,
        (manifests, known): (&ByteStringArray, Option<&ObjectIdTable>),
        diagnostics: &Diagnostics,
    ) -> Result<ObjectSet, CatalogError> {
        let mut requested = match (&table.ids, known) {
            (Some(ids), None) => Some((ids, self.id_request(ids)?)),
            _ => None,
        };
        let cells = manifests.cells();
        let mut batch = BATCH_ROWS.div_euclid(manifests.per_cell).max(1);
        let mut builder = None;
        let mut ids = match known {
            Some(ids) => Some(ids.clone()),
            None if table.ids.is_none() => Some(ObjectIdTable::Rows(table.len()?)),
            None => None,
        };
        let (mut next, mut stored, mut lost_ids) = (0_u64, false, false);
        while next < cells || requested.is_some() {
            let end = next.saturating_add(batch).min(cells);
            let mut wanted: Vec<CellRequest> = Vec::new();
            if let Some((_, request)) = &requested {
                wanted.extend(request.wanted.iter().cloned());
            }
            wanted.extend((next..end).map(|cell| manifests.cell_request(cell)));
            let mut results = self.fetch.bypass_cache().cells(&wanted).await;
            if results.iter().any(is_over_budget) && end.saturating_sub(next) > 1 {
                batch = end.saturating_sub(next).div_euclid(2);
                continue;
            }
            if let Some((array, request)) = requested.take() {
                let rest = results.split_off(request.wanted.len().min(results.len()));
                let results = core::mem::replace(&mut results, rest);
                match read_ids(array, &request, results, table.index.ids_sorted) {
                    Ok(read) => {
                        let cache = level.extension::<ObjectCache>();
                        *lock(&cache.ids) = Some(Arc::new(read.clone()));
                        ids = Some(read);
                    }
                    Err(damage) => {
                        diagnostics.skip(damage)?;
                        lost_ids = true;
                    }
                }
            }
            let loaded = ids.as_ref().map_or(0, ObjectIdTable::size);
            let sid_ndim = table.index.sid_ndim;
            let builder = builder
                .get_or_insert_with(|| ObjectsBuilder::new(sid_ndim, loaded, self.fetch.budget()));
            stored |= results.iter().any(|result| !matches!(result, Ok(None)));
            push_cells(builder, table, manifests, next, results, diagnostics)?;
            next = end;
        }
        let mut builder = builder
            .unwrap_or_else(|| ObjectsBuilder::new(table.index.sid_ndim, 0, self.fetch.budget()));
        // Only the index tells whether absent cells mean that all manifests are empty.
        if !stored && table.rows() > 0 && table.index.num_present != Some(0) {
            diagnostics.skip(manifests.damage(0, Fault::MissingCell))?;
            builder.mark_incomplete();
        }
        if lost_ids {
            // Without ids the manifests cannot be assigned to objects.
            let mut none = ObjectsBuilder::new(table.index.sid_ndim, 0, self.fetch.budget());
            none.mark_incomplete();
            return Ok(none.finish(ObjectIdTable::default()));
        }
        Ok(builder.finish(ids.unwrap_or_default()))
    }

    /// Reads objects whose manifests are concatenated in one array.
    async fn open_objects(
        &self,
        table: &ObjectTable,
        data: &RowArray,
        offsets: &RowArray,
        diagnostics: &Diagnostics,
    ) -> Result<ObjectSet, CatalogError> {
        let bytes = data.size(None).saturating_add(offsets.size(None));
        self.check_budget(bytes)?;
        let (of_data, of_offsets) = (data.request(None), offsets.request(None));
        let wanted: Vec<CellRequest> = of_data
            .wanted
            .iter()
            .chain(&of_offsets.wanted)
            .cloned()
            .collect();
        let mut results = self.fetch.bypass_cache().cells(&wanted).await;
        let after = results.split_off(of_data.wanted.len().min(results.len()));
        let data_read = data.finish(&of_data, results);
        let offsets_read = offsets.finish(&of_offsets, after);
        let damaged = data_read.damaged.into_iter().chain(offsets_read.damaged);
        let mut damage = damaged.map(|(_, damage)| damage).next();
        let mut builder = ObjectsBuilder::new(table.index.sid_ndim, 0, self.fetch.budget());
        if damage.is_none() {
            match OpenRows::parse(&data_read.bytes, &offsets_read.bytes) {
                Ok(rows) => {
                    let mut skipped = 0_u64;
                    for (row, manifest) in (0_u64..).zip(rows.iter()) {
                        let damaged = |fault| Damage::new(data.node(), fault);
                        if !push(&mut builder, row, manifest, (skipped, diagnostics), damaged)? {
                            skipped = skipped.saturating_add(1);
                        }
                    }
                    if let Some(more @ 1..) = skipped.checked_sub(MAX_REPORTED_ROWS) {
                        diagnostics.skip(Damage::new(data.node(), Fault::MoreRows(more)))?;
                    }
                    return Ok(builder.finish(ObjectIdTable::Rows(table.len()?)));
                }
                Err(error) => damage = Some(Damage::new(offsets.node(), error)),
            }
        }
        if let Some(damage) = damage {
            diagnostics.skip(damage)?;
        }
        for row in 0..table.rows() {
            push_unreadable(&mut builder, row, data.node())?;
        }
        Ok(builder.finish(ObjectIdTable::Rows(table.len()?)))
    }

    /// Returns the request for all ids.
    pub(super) fn id_request(&self, ids: &RowArray) -> Result<RowRequest, CatalogError> {
        self.check_budget(ids.size(None))?;
        Ok(ids.request(None))
    }

    pub(super) fn check_budget(&self, bytes: u64) -> Result<(), CatalogError> {
        let budget = self.fetch.budget();
        if bytes <= budget {
            return Ok(());
        }
        let what = "the objects of the level";
        Err(CatalogError::OverBudget {
            what,
            bytes,
            budget,
        })
    }
}

impl ObjectTable {
    pub(super) fn note(&self, diagnostics: &Diagnostics) {
        for note in &self.notes {
            diagnostics.note(note.clone());
        }
    }

    /// Returns whether a cell cannot consist of empty manifests only: the index declares more present
    /// objects than the other cells have, or it declares no number and the cell is the only one.
    pub(super) fn requires(&self, manifests: &ByteStringArray, cell: u64) -> bool {
        let (_, rows) = manifests.rows_of(cell);
        let is_only = manifests.cells() == 1 && self.rows() > 0;
        self.index.must_have_present(rows) || is_only && self.index.num_present.is_none()
    }

    pub(super) fn len(&self) -> Result<usize, Damage> {
        usize::try_from(self.rows()).map_err(|_| Damage::new(&self.node, Fault::Range))
    }
}

fn is_over_budget(result: &FetchResult) -> bool {
    matches!(result, Err(error) if error.problem == FetchProblem::OverBudget)
}

/// Decodes ids from the cells of their request.
pub(super) fn read_ids(
    array: &RowArray,
    request: &RowRequest,
    results: Vec<FetchResult>,
    sorted: bool,
) -> Result<ObjectIdTable, Damage> {
    let read = array.finish(request, results);
    if let Some((_, damage)) = read.damaged.into_iter().next() {
        return Err(damage);
    }
    let ids = Int64s::parse(&read.bytes).map_err(|error| Damage::new(array.node(), error))?;
    let ids = ObjectIdTable::new(ids.iter().collect(), sorted);
    ids.map_err(|fault| Damage::new(array.node(), fault))
}

/// Adds the manifests of cells from `first` on. They are decoded on all cores.
fn push_cells(
    builder: &mut ObjectsBuilder,
    table: &ObjectTable,
    manifests: &ByteStringArray,
    first: u64,
    results: Vec<FetchResult>,
    diagnostics: &Diagnostics,
) -> Result<(), CatalogError> {
    let bytes = results.iter().flatten().flatten();
    let bytes = bytes.map(|fetched| fetched.bytes.len()).sum();
    let cells: Vec<(u64, FetchResult)> = (first..).zip(results).collect();
    let parts = cores().saturating_mul(PARTS_PER_CORE);
    let run_length = cells.len().div_ceil(parts).max(1);
    let runs: Vec<_> = cells.chunks(run_length).collect();
    let decode = |run: &[(u64, FetchResult)]| {
        let mut part = builder.part(parts);
        let strict = Diagnostics::new(false);
        for (cell, result) in run {
            let result = result.as_ref().ok()?.clone();
            push_cell(&mut part, table, manifests, *cell, Ok(result), &strict).ok()?;
        }
        Some(part)
    };
    let parts = on_cores(runs, bytes, decode);
    let objects = parts.iter().flatten();
    builder.reserve(objects.map(ObjectsBuilder::fragments).sum());
    let mut cells = cells.into_iter();
    for part in parts {
        let run = cells.by_ref().take(run_length);
        if part.is_some_and(|part| builder.append(part)) {
            run.for_each(drop);
            continue;
        }
        // Damage is reported, and the budget exceeded, in the order of rows.
        for (cell, result) in run {
            push_cell(builder, table, manifests, cell, result, diagnostics)?;
        }
    }
    Ok(())
}

/// Adds the manifests of a cell.
pub(super) fn push_cell(
    builder: &mut ObjectsBuilder,
    table: &ObjectTable,
    manifests: &ByteStringArray,
    cell: u64,
    result: FetchResult,
    diagnostics: &Diagnostics,
) -> Result<(), CatalogError> {
    let (first, rows) = manifests.rows_of(cell);
    let mut damaged_rows = 0_u64;
    let mut push_each = |items: &mut dyn Iterator<Item = Option<&[u8]>>| {
        for (row, item) in (first..first.saturating_add(rows)).zip(items) {
            match item {
                Some(item) => {
                    let damaged = |fault| manifests.damage(cell, fault);
                    if !push(builder, row, item, (damaged_rows, diagnostics), damaged)? {
                        damaged_rows = damaged_rows.saturating_add(1);
                    }
                }
                None => push_unreadable(builder, row, manifests.node())?,
            }
        }
        match damaged_rows.checked_sub(MAX_REPORTED_ROWS) {
            None | Some(0) => Ok(()),
            Some(more) => diagnostics.skip(manifests.damage(cell, Fault::MoreRows(more))),
        }
    };
    let damage = match result {
        Ok(None) if table.requires(manifests, cell) => manifests.damage(cell, Fault::MissingCell),
        // An absent cell holds empty manifests.
        Ok(None) => return push_each(&mut core::iter::repeat(Some(&[][..]))),
        Ok(Some(payload)) => match manifests.items(cell, &payload.bytes) {
            Ok(items) => return push_each(&mut items.map(Some)),
            Err(damage) => damage,
        },
        Err(error) => manifests.damage(cell, Fault::Fetch(error)),
    };
    push_each(&mut core::iter::repeat(None))?;
    diagnostics.skip(damage)
}

/// Adds a manifest and returns `true`, or skips a damaged one and returns `false`. `before` is the
/// number of manifests skipped earlier; only the first few are reported one by one.
pub(super) fn push(
    builder: &mut ObjectsBuilder,
    row: u64,
    manifest: &[u8],
    (before, diagnostics): (u64, &Diagnostics),
    damaged: impl Fn(Fault) -> Damage,
) -> Result<bool, CatalogError> {
    match builder.push(row, manifest) {
        Ok(()) => Ok(true),
        Err(ManifestFault::OverBudget(bytes)) => Err(builder.over_budget(bytes)),
        Err(ManifestFault::Fault(fault)) => {
            let damage = damaged(fault);
            let key = damage.key.clone();
            if before < MAX_REPORTED_ROWS {
                diagnostics.skip(damage)?;
            }
            push_unreadable(builder, row, &key)?;
            Ok(false)
        }
    }
}

/// Adds a row whose manifest could not be read.
pub(super) fn push_unreadable(
    builder: &mut ObjectsBuilder,
    row: u64,
    key: &Key,
) -> Result<(), CatalogError> {
    builder.push_unreadable(row).map_err(|fault| match fault {
        ManifestFault::OverBudget(bytes) => builder.over_budget(bytes),
        ManifestFault::Fault(fault) => Damage::new(key, fault).into(),
    })
}
