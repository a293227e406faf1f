//! Reading a few objects.

use std::{collections::BTreeMap, sync::Arc};

use zvf_format::int64s::Int64s;
use zvf_model::fetch::{AnyArray, Wanted};

use super::{
    ObjectCache, ObjectIds, ObjectTable, Objects,
    builder::ObjectsBuilder,
    read::{Answer, push, push_cell, push_lost, read_ids},
    table::Manifests,
};
use crate::{
    catalog::level::{Level, Session},
    catalog::tables::{ByteStringArray, RowArray},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    sync::lock,
};

/// Cells of manifests that are read all, so that later queries need none.
const MAX_EAGER_CELLS: u64 = 4;

/// Objects that were asked for.
#[derive(Clone, Debug)]
pub struct ObjectLookup {
    /// These, and maybe others.
    pub objects: Arc<Objects>,
    /// Where each is that was asked for, in that order; `None` for an id that
    /// no object has.
    pub places: Vec<Option<usize>>,
}

impl ObjectLookup {
    fn of(objects: Arc<Objects>, ids: &[i64]) -> Self {
        let places = ids.iter().map(|id| objects.find(*id)).collect();
        Self { objects, places }
    }
}

/// Ids that are looked for, and what is known of their rows.
enum Rows {
    /// All ids.
    Known(Arc<ObjectIds>),
    /// As many as there are rows, and the row of each id that was asked for is
    /// that id.
    Proven,
}

impl Session<'_> {
    /// Objects of these ids, which may repeat. After
    /// [`object_index`](Self::object_index):
    ///
    /// * none when all objects were read, which happens where manifests take a
    ///   few cells only;
    /// * one round trip when ids are rows, or turn out to be for these, which
    ///   eight bytes of each prove where they are not compressed;
    /// * else one for the ids, the first time, and one for the manifests.
    ///
    /// What is damaged is left out if the diagnostics lets it pass.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoObjects`] when the level has no object index.
    pub(crate) async fn lookup_objects(
        &self,
        level: &Level,
        ids: &[i64],
        diagnostics: &Diagnostics,
    ) -> Result<ObjectLookup, QueryError> {
        let Some(table) = self.object_index(level).await? else {
            return Err(QueryError::NoObjects(level.id()));
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
                    None => Some(Arc::new(ObjectIds::Rows(table.len()?))),
                    Some(_) => lock(&cache.ids).clone(),
                };
                self.some_items(level, &table, manifests, rows, ids, diagnostics)
                    .await
            }
            _ => {
                let objects = self.objects(level, diagnostics).await?;
                Ok(ObjectLookup::of(objects.unwrap_or_default(), ids))
            }
        }
    }

    async fn some_items(
        &self,
        level: &Level,
        table: &ObjectTable,
        manifests: &ByteStringArray,
        known: Option<Arc<ObjectIds>>,
        ids: &[i64],
        diagnostics: &Diagnostics,
    ) -> Result<ObjectLookup, QueryError> {
        let mut cells: BTreeMap<u64, Answer> = BTreeMap::new();
        let few = manifests.cells() <= MAX_EAGER_CELLS;
        let row_of = |id: &i64| u64::try_from(*id).ok().filter(|row| *row < table.rows());
        let rows = match (known, &table.ids) {
            (Some(ids), _) => Rows::Known(ids),
            (None, None) => Rows::Known(Arc::new(ObjectIds::Rows(table.len()?))),
            (None, Some(array)) => {
                // Most stores number their objects: it costs little to try.
                let guess: Option<Vec<u64>> = ids.iter().map(row_of).collect();
                let parts = !few && array.is_plain_cell() && table.index.ids_sorted;
                let guess = guess.filter(|_| parts);
                let request = match &guess {
                    Some(guess) => array.request(Some(guess)),
                    None => self.id_request(array)?,
                };
                let tried: Vec<u64> = ids.iter().filter_map(row_of).collect();
                let first = wanted_cells(manifests, few, &tried);
                let mut wanted = request.wanted.clone();
                wanted.extend(first.iter().map(|cell| manifests.wanted(*cell)));
                let mut answers = self.fetch.cells(&wanted).await;
                let rest = answers.split_off(request.wanted.len().min(answers.len()));
                cells.extend(first.into_iter().zip(rest));
                if guess.is_some() && proves(array, &request, core::mem::take(&mut answers), ids) {
                    Rows::Proven
                } else if guess.is_some() {
                    let request = self.id_request(array)?;
                    let answers = self.fetch.cells(&request.wanted).await;
                    match keep_ids(level, table, array, (&request, answers), diagnostics)? {
                        Some(ids) => Rows::Known(ids),
                        None => return Ok(nothing(table, self.fetch.budget(), ids)),
                    }
                } else {
                    match keep_ids(level, table, array, (&request, answers), diagnostics)? {
                        Some(ids) => Rows::Known(ids),
                        None => return Ok(nothing(table, self.fetch.budget(), ids)),
                    }
                }
            }
        };
        let find = |id: &i64| match &rows {
            Rows::Known(known) => known.find(*id).and_then(|row| u64::try_from(row).ok()),
            Rows::Proven => row_of(id),
        };
        let mut found: Vec<(u64, i64)> =
            ids.iter().filter_map(|id| Some((find(id)?, *id))).collect();
        found.sort_unstable();
        found.dedup();
        let of_found: Vec<u64> = found.iter().map(|(row, _)| *row).collect();
        let mut missing = wanted_cells(manifests, few, &of_found);
        missing.retain(|cell| !cells.contains_key(cell));
        if !missing.is_empty() {
            let wanted: Vec<Wanted<AnyArray>> =
                missing.iter().map(|cell| manifests.wanted(*cell)).collect();
            let answers = self.fetch.cells(&wanted).await;
            cells.extend(missing.into_iter().zip(answers));
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

/// Reads all ids out of answers and keeps them; `None` when they are damaged
/// and the diagnostics lets it pass.
fn keep_ids(
    level: &Level,
    table: &ObjectTable,
    array: &RowArray,
    (request, answers): (&crate::catalog::tables::RowRequest, Vec<Answer>),
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<ObjectIds>>, QueryError> {
    match read_ids(array, request, answers, table.index.ids_sorted) {
        Ok(ids) => {
            let ids = Arc::new(ids);
            *lock(&level.extension::<ObjectCache>().ids) = Some(Arc::clone(&ids));
            Ok(Some(ids))
        }
        Err(damage) => diagnostics.skip(damage).map(|()| None),
    }
}

/// The cells to read for these rows, ascending.
fn wanted_cells(manifests: &ByteStringArray, few: bool, rows: &[u64]) -> Vec<u64> {
    if few {
        return (0..manifests.cells()).collect();
    }
    let mut cells: Vec<u64> = rows.iter().map(|row| manifests.cell_of(*row)).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Whether what stands in the rows that ids would have are those ids.
fn proves(
    array: &RowArray,
    request: &crate::catalog::tables::RowRequest,
    answers: Vec<Answer>,
    ids: &[i64],
) -> bool {
    let read = array.finish(request, answers);
    let there = Int64s::parse(&read.bytes);
    read.lost.is_empty() && there.is_ok_and(|there| there.iter().eq(ids.iter().copied()))
}

/// What is there when no id could be read.
fn nothing(table: &ObjectTable, budget: u64, ids: &[i64]) -> ObjectLookup {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, 0, budget);
    builder.mark_incomplete();
    ObjectLookup::of(Arc::new(builder.finish(ObjectIds::default())), ids)
}

/// All objects, when nothing about them is damaged: a query for one must not
/// fail for another.
fn all_of(
    table: &ObjectTable,
    manifests: &ByteStringArray,
    cells: &BTreeMap<u64, Answer>,
    ids: &ObjectIds,
    budget: u64,
) -> Option<Objects> {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, ids.size(), budget);
    let strict = Diagnostics::new(false);
    let mut stored = false;
    for cell in 0..manifests.cells() {
        let answer = cells.get(&cell)?.as_ref().ok()?;
        stored |= answer.is_some();
        push_cell(&mut builder, manifests, cell, Ok(answer.clone()), &strict).ok()?;
    }
    stored.then(|| builder.finish(ids.clone()))
}

/// The objects of ascending rows.
fn some_of(
    table: &ObjectTable,
    manifests: &ByteStringArray,
    mut cells: BTreeMap<u64, Answer>,
    found: &[(u64, i64)],
    budget: u64,
    diagnostics: &Diagnostics,
) -> Result<Objects, QueryError> {
    let mut builder = ObjectsBuilder::new(table.index.sid_ndim, 0, budget).with_rows();
    for found in found.chunk_by(|a, b| manifests.cell_of(a.0) == manifests.cell_of(b.0)) {
        let cell = found.first().map_or(0, |(row, _)| manifests.cell_of(*row));
        let (first, _) = manifests.rows_of(cell);
        let answer = cells.remove(&cell);
        let mut payload = None;
        let damage = match answer {
            Some(Ok(Some(fetched))) => {
                payload = Some(fetched.bytes);
                None
            }
            Some(Ok(None)) if must_be_there(table, manifests, cell) => {
                Some(manifests.damage(cell, Fault::MissingCell))
            }
            Some(Ok(None)) => None,
            Some(Err(error)) => Some(manifests.damage(cell, Fault::Fetch(error))),
            None => Some(manifests.damage(cell, Fault::MissingCell)),
        };
        let places = payload
            .as_ref()
            .map(|payload| manifests.item_offsets(cell, payload));
        let (places, damage) = match places.transpose() {
            Ok(places) => (places, damage),
            Err(damage) => (None, Some(damage)),
        };
        let lost = damage.is_some();
        if let Some(damage) = damage {
            diagnostics.skip(damage)?;
        }
        for (row, _) in found {
            if lost {
                push_lost(&mut builder, *row, manifests.node())?;
                continue;
            }
            // Nothing at all is an empty manifest.
            let at = usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX);
            let places = payload.as_ref().zip(places.as_ref());
            let item = places.and_then(|(payload, places)| places.get(payload, at));
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
    let ids = ObjectIds::new(found.iter().map(|(_, id)| *id).collect(), false);
    let ids = ids.map_err(|fault| Damage::new(&table.node, fault))?;
    Ok(builder.finish(ids))
}

/// Whether a cell cannot be one of empty manifests only: by what the index says
/// of how many are not, or because it is the only one.
fn must_be_there(table: &ObjectTable, manifests: &ByteStringArray, cell: u64) -> bool {
    let (_, rows) = manifests.rows_of(cell);
    match table.index.num_present {
        Some(present) => present.saturating_add(rows) > table.rows(),
        None => manifests.cells() == 1,
    }
}
