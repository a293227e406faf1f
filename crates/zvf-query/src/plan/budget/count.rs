//! Vertex counts of chunks, from their fragment indexes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use zvf_catalog::{
    ChunkedArray, Damage, Diagnostics, Fault, FragmentRows, FragmentTable, Names, ObjectSet,
    Schema, Selection,
};
use zvf_model::{fetch::Fetched, grid::ChunkCoord, level::LevelId};

use crate::{
    error::QueryError,
    exec::context::ExecContext,
    geometry::Mode,
    query::{LevelChoice, Query, Shape},
    resolve::query::LevelQuery,
    session::Session,
    sync::lock,
};

/// Maximum number of fragment indexes requested together.
const BATCH_INDEXES: usize = 4096;

/// Count of a chunk whose vertices cannot be counted. It exceeds any budget, so that other levels
/// are preferred.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Vertex counts of a level's chunks, cached with the level.
#[derive(Debug, Default)]
struct VertexCounts(Mutex<HashMap<ChunkCoord, u64>>);

/// Vertex counts of the chunks of a level that a query reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelCount {
    pub(super) chunks: BTreeMap<ChunkCoord, Count>,
}

/// Vertex counts of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) all: u64,
    /// Estimated number of vertices in the region.
    pub(super) share: u64,
}

/// Fragments to count by chunk; `None` for all.
type CountedFragments = BTreeMap<ChunkCoord, Option<Vec<u32>>>;

impl LevelCount {
    /// Returns the number of vertices of all chunks.
    pub(crate) fn all(&self) -> u64 {
        let counts = self.chunks.values().map(|count| count.all);
        counts.fold(0, u64::saturating_add)
    }

    /// Estimates the number of vertices in the region.
    pub(crate) fn share(&self) -> u64 {
        let counts = self.chunks.values().map(|count| count.share);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns whether all vertices of the chunks count as inside the region.
    pub(crate) fn is_exact(&self) -> bool {
        let mut counts = self.chunks.values();
        counts.all(|count| count.all == count.share)
    }

    /// Returns the estimated vertices of each chunk; `None` for a chunk that could not be counted.
    pub(crate) fn estimates(self) -> BTreeMap<ChunkCoord, Option<u64>> {
        let chunks = self
            .chunks
            .into_iter()
            .map(|(chunk, count)| (chunk, (count.all != UNKNOWN).then_some(count.share)));
        chunks.collect()
    }

    pub(crate) fn by_chunk(&self) -> Vec<(ChunkCoord, u64)> {
        let chunks = self.chunks.iter();
        chunks
            .map(|(chunk, count)| (chunk.clone(), count.share))
            .collect()
    }
}

impl Session<'_> {
    /// Counts the vertices of a level that a query reads. Takes one round trip for the fragment
    /// indexes of chunks that are not cached, and those for manifests if objects are selected.
    pub(crate) async fn counts(
        &self,
        query: &Query,
        level: LevelId,
        diagnostics: &Diagnostics,
    ) -> Result<LevelCount, QueryError> {
        let query = Query {
            level: LevelChoice::Number(level),
            columns: Selection::none(),
            ..query.clone()
        };
        let plan = self.resolve(&query).await?;
        let schema = self
            .catalog
            .schema(&plan.level, &Names::default(), true)
            .await?;
        let Some(schema) = schema else {
            return Ok(LevelCount::default());
        };
        let Some(family) = &schema.fragments else {
            return Ok(LevelCount::default());
        };
        let by_object = plan.shape == Shape::Paths || plan.selects_objects();
        let wanted: CountedFragments = if by_object {
            plan.pieces_by_chunk(diagnostics).await?
        } else {
            let mut chunks = plan.chunks(&schema)?;
            chunks.retain(|chunk| {
                plan.area
                    .as_ref()
                    .is_none_or(|area| area.may_contain(chunk))
            });
            chunks.into_iter().map(|chunk| (chunk, None)).collect()
        };
        let mut counts = LevelCount::default();
        let mut put = |chunk: &ChunkCoord, all: u64| {
            let share = plan.share(chunk, all);
            counts.chunks.insert(chunk.clone(), Count { all, share });
        };
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        let cache = plan.level.extension::<VertexCounts>();
        let known = lock(&cache.0).clone();
        wanted.retain(|(chunk, fragments)| {
            let known = known.get(chunk).filter(|_| fragments.is_none());
            known.inspect(|all| put(chunk, **all)).is_none()
        });
        for wanted in wanted.chunks(BATCH_INDEXES) {
            let (mut requested, mut of) = (Vec::new(), Vec::new());
            for (chunk, fragments) in wanted {
                let Some(cell) = family.cell_request(chunk, None) else {
                    diagnostics.skip(Damage::in_chunk(&family.node, chunk, Fault::Missing))?;
                    put(chunk, UNKNOWN);
                    continue;
                };
                requested.push(cell);
                of.push((chunk, fragments.as_deref()));
            }
            let results = self.catalog.fetch.cells(&requested).await;
            for ((chunk, fragments), result) in of.into_iter().zip(results) {
                let all = match rows(family, chunk, fragments, result) {
                    Ok(all) => all,
                    Err(damage) => {
                        diagnostics.skip(damage)?;
                        put(chunk, UNKNOWN);
                        continue;
                    }
                };
                if fragments.is_none() {
                    lock(&cache.0).insert(chunk.clone(), all);
                }
                put(chunk, all);
            }
        }
        Ok(counts)
    }
}

/// Decodes the fragment index of a chunk.
fn table(
    family: &ChunkedArray,
    chunk: &ChunkCoord,
    result: Result<Option<Fetched>, zvf_model::fetch::FetchError>,
) -> Result<FragmentTable, Damage> {
    let damage = |fault: Fault| Damage::in_chunk(&family.node, chunk, fault);
    match result {
        Ok(Some(cell)) => FragmentTable::parse(&cell.bytes).map_err(|error| damage(error.into())),
        Ok(None) => Err(damage(Fault::MissingCell)),
        Err(error) => Err(damage(Fault::Fetch(error))),
    }
}

/// Counts the rows of the listed fragments of a chunk, with repetition, or of all fragments.
fn rows(
    family: &ChunkedArray,
    chunk: &ChunkCoord,
    fragments: Option<&[u32]>,
    result: Result<Option<Fetched>, zvf_model::fetch::FetchError>,
) -> Result<u64, Damage> {
    let damage = |fault: Fault| Damage::in_chunk(&family.node, chunk, fault);
    let table = table(family, chunk, result)?;
    let Some(fragments) = fragments else {
        return Ok(table.total());
    };
    let mut count = 0_u64;
    for fragment in fragments {
        let rows = table
            .rows(*fragment)
            .as_ref()
            .map(FragmentRows::len)
            .ok_or_else(|| {
                damage(Fault::NoFragment {
                    fragment: *fragment,
                    fragments: table.len(),
                })
            });
        count = count.saturating_add(rows?);
    }
    Ok(count)
}

/// Returns the selected objects that may touch the region, by their indices, with the estimated rows of
/// each; `None` if some cannot be counted. Takes the round trips for manifests, and one for the fragment
/// indexes of their chunks.
pub(crate) async fn selected_rows(
    plan: &LevelQuery<'_>,
    schema: &Schema,
    diagnostics: &Diagnostics,
) -> Result<Option<(Arc<ObjectSet>, Vec<(usize, u64)>)>, QueryError> {
    let context = ExecContext::new(plan, diagnostics);
    let Some(selected) = context.selected_objects().await? else {
        return Ok(None);
    };
    let objects = &selected.objects;
    // One query must report the skipped cells, and the objects and groups that do not exist.
    if objects.is_incomplete() || diagnostics.is_incomplete() {
        return Ok(None);
    }
    let mut indices = selected.indices.clone();
    indices.retain(|index| selected.is_selected(*index));
    if let Some(area) = plan.area.as_ref().filter(|_| plan.shape == Shape::Paths) {
        let near: Vec<u32> = objects
            .chunks()
            .filter(|chunk| area.may_contain(chunk))
            .filter_map(|chunk| objects.number_of(chunk))
            .collect();
        let max = plan.catalog.fetch.budget() / 4;
        let near: BTreeSet<usize> = objects
            .near(&near, max, |from, to| area.may_intersect(&[], &[from, to]))
            .into_iter()
            .collect();
        indices.retain(|index| near.contains(index));
    }
    let rows = object_rows(plan, schema, objects, &indices, diagnostics).await?;
    let pairs = rows.map(|rows| indices.into_iter().zip(rows).collect());
    Ok(pairs.map(|pairs| (selected.objects, pairs)))
}

/// Returns the estimated rows of the objects at `indices`; `None` if some cannot be counted. Takes one
/// round trip for the fragment indexes of their chunks.
async fn object_rows(
    plan: &LevelQuery<'_>,
    schema: &Schema,
    objects: &ObjectSet,
    indices: &[usize],
    diagnostics: &Diagnostics,
) -> Result<Option<Vec<u64>>, QueryError> {
    let Some(family) = &schema.fragments else {
        return Ok(None);
    };
    let allowed = plan.allowed()?;
    // Fragments of each chunk, with the position of the object in `indices`.
    let mut wanted: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (at, index) in indices.iter().enumerate() {
        for piece in objects.fragments(*index) {
            let pieces = wanted.entry(piece.chunk).or_default();
            pieces.push((piece.fragment, at));
        }
    }
    let chunk = |(number, pieces)| Some((objects.chunk(number)?, pieces));
    let mut wanted: Vec<(&ChunkCoord, Vec<(u32, usize)>)> =
        wanted.into_iter().filter_map(chunk).collect();
    wanted.retain(|(chunk, _)| allowed.allows(chunk));
    let mut rows = vec![0_u64; indices.len()];
    for wanted in wanted.chunks(BATCH_INDEXES) {
        let cells = wanted
            .iter()
            .map(|(chunk, _)| family.cell_request(chunk, None));
        let Some(cells) = cells.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let results = plan.catalog.fetch.cells(&cells).await;
        for ((chunk, pieces), result) in wanted.iter().zip(results) {
            let table = match table(family, chunk, result) {
                Ok(table) => table,
                Err(damage) => {
                    diagnostics.skip(damage)?;
                    return Ok(None);
                }
            };
            for (fragment, at) in pieces {
                let len = table.rows(*fragment).as_ref().map_or(0, FragmentRows::len);
                if let Some(rows) = rows.get_mut(*at) {
                    *rows = rows.saturating_add(plan.share(chunk, len));
                }
            }
        }
    }
    Ok(Some(rows))
}

impl LevelQuery<'_> {
    /// Returns the fragments of selected objects that the region may select, by chunk.
    async fn pieces_by_chunk(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<CountedFragments, QueryError> {
        let mut wanted = CountedFragments::new();
        let context = ExecContext::new(self, diagnostics);
        let Some(selected) = context.selected_objects().await? else {
            return Ok(wanted);
        };
        let allowed = self.allowed()?;
        let is_path = self.shape == Shape::Paths;
        let objects = &selected.objects;
        let indices = selected.indices.iter().copied();
        for index in indices.filter(|index| selected.is_selected(*index)) {
            let pieces: Vec<_> = objects
                .fragments(index)
                .iter()
                .filter_map(|piece| {
                    let chunk = objects.chunk(piece.chunk).filter(|c| allowed.allows(c))?;
                    let is_scanned = self
                        .area
                        .as_ref()
                        .is_none_or(|area| area.may_contain(chunk));
                    Some((chunk, piece.fragment, is_scanned))
                })
                .collect();
            let any = pieces.iter().any(|(.., is_scanned)| *is_scanned);
            let all = pieces.iter().all(|(.., is_scanned)| *is_scanned);
            for (chunk, fragment, is_scanned) in pieces {
                let is_taken = match (is_path, self.area_mode) {
                    (true, Mode::Touch) => any,
                    (true, Mode::Within) => all,
                    _ => is_scanned,
                };
                if is_taken {
                    let of_chunk = wanted.entry(chunk.clone());
                    let fragments = of_chunk.or_insert_with(|| Some(Vec::new()));
                    fragments.get_or_insert_default().push(fragment);
                }
            }
        }
        if self.shape == Shape::Links {
            // Link queries return each vertex once, even if several objects share it.
            for fragments in wanted.values_mut().flatten() {
                fragments.sort_unstable();
                fragments.dedup();
            }
        }
        Ok(wanted)
    }

    /// Estimates the number of returned vertices of a chunk with `all` vertices.
    fn share(&self, chunk: &ChunkCoord, all: u64) -> u64 {
        let whole = self.shape == Shape::Paths && self.area_mode == Mode::Touch;
        match &self.area {
            Some(area) if !whole => share_of(area.share_of(chunk), all),
            _ => all,
        }
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an estimate between 1 and what it is a part of"
)]
/// Returns a share of a count, rounded up and at least 1 unless the count is 0.
pub(super) fn share_of(share: f64, all: u64) -> u64 {
    ((all as f64 * share).ceil() as u64).clamp(all.min(1), all)
}
