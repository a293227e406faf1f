//! Vertices selected by place, chunk by chunk.

use core::ops::ControlFlow;
use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::try_join;
use zvf_model::{
    fetch::FetchProblem, grid::ChunkCoord, key::Key, level::LevelId, root::GeometryKind,
};

use crate::{
    batch::vertices::{Entry, Owners, Runs},
    catalog::chunked_array::child,
    catalog::level::Session,
    catalog::objects::Objects,
    catalog::schema::Schema,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    exec::chunk::{Chunk, ChunkRequest, Rows},
    geometry::Primitive,
    resolve::query::{Emit, LevelQuery, VertexFilter},
};

/// Chunks read at once where nothing is known about their size.
const CHUNKS_AT_ONCE: usize = 256;
/// Bytes of an answer that are handed on at once, at most.
const MOST_AT_ONCE: u64 = 64 << 20;
/// Vertices a filter is asked about at once: what is made for that stays in the cache.
const ENTRIES_AT_ONCE: usize = 1 << 12;
/// Vertices that follow each other, from which on they are asked about by themselves.
const LONG: usize = 64;
/// Bytes of positions that room is made for before they come.
const MOST_ROOM: u64 = 8 << 30;
/// Bytes of vertices that are put into an answer at once, by all cores.
const PORTION: u64 = 8 << 20;

/// Chunks of a group, some at a time: of vertices that take so many bytes each, and
/// are handed on when they take `most`.
pub(crate) fn portions(
    group: &[Option<Chunk>],
    row: u64,
    most: u64,
) -> impl Iterator<Item = &[Option<Chunk>]> {
    let most = PORTION.min(most / 2);
    let mut rest = group;
    core::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let count = rest.iter().take_while(|chunk| {
            let rows = chunk.as_ref().map_or(0, |chunk| chunk.held.rows());
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(rows.saturating_mul(row));
            is_first || bytes <= most
        });
        let (now, later) = rest.split_at_checked(count.count())?;
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

impl LevelQuery<'_> {
    /// Vertices in the region for which the filter holds. One round trip, two
    /// where fragments tell which rows to read; more only when the vertices do not
    /// fit into memory at once.
    pub(crate) async fn points(
        &self,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let index = self.session.object_index(&self.level).await?;
        let needs_objects = index.is_some() && self.needs_objects();
        let bins = index.is_none() && self.has_bins();
        let with_fragments =
            needs_objects || bins || !self.tiles() || !self.read.fragment.is_empty();
        let Some(schema) = self.schema(with_fragments).await? else {
            return self.no_vertices(emit).await;
        };
        let mut chunks = self.chunks_where(&schema, |chunk| {
            let area = self.area.as_ref();
            area.is_none_or(|area| area.reaches(chunk))
        })?;
        if self.filter.is_never {
            chunks.clear();
        }
        let objects = self.objects_if(needs_objects, diagnostics);
        let filter = self.vertex_filter(None, diagnostics);
        let request = |chunk: &ChunkCoord| {
            let bins = bins.then_some(self.area.as_ref()).flatten();
            let bins = bins.and_then(|area| area.bins_of(chunk));
            let rows = match bins {
                Some((bins, of)) => Rows::Bins { bins, of },
                None => Rows::All,
            };
            ChunkRequest {
                chunk: chunk.clone(),
                fragments: with_fragments,
                rows,
            }
        };
        let most = self.group_size(&schema, chunks.len(), self.session.fetch.at_once());
        let mut groups = Groups::new(&chunks, most);
        let first = groups.read(self, &schema, &request, diagnostics);
        let ((objects, filter), mut group) = try_join(try_join(objects, filter), first).await?;
        self.check_chunks(&schema, objects.as_ref(), diagnostics)?;
        let shows_objects = self.shows_objects() && index.is_some();
        let builder = || self.vertices(&schema, shows_objects);
        let mut vertices = builder();
        let mut left = self.query.limit.unwrap_or(u64::MAX);
        let is_all = self.area.is_none() && filter.predicate.is_none() && left == u64::MAX;
        let most = self.batch_size();
        let mut ids = BTreeSet::new();
        loop {
            for portion in portions(&group, vertices.row_size(), most) {
                let all = is_all.then(|| self.expected(&schema, portion, chunks.len()));
                if !all.is_some_and(|expected| vertices.push_chunks(&schema, portion, expected)) {
                    vertices.reserve(all.unwrap_or(0));
                    let chunks: Vec<&Chunk> = portion.iter().flatten().collect();
                    let bytes = chunks.iter().map(|chunk| chunk.positions.len()).sum();
                    let selected = on_cores(chunks, bytes, |chunk| {
                        let owners = self.owners_of(objects.as_ref(), chunk, diagnostics)?;
                        let mut selected = chunk.runs();
                        self.retain_selected(&schema, chunk, &mut selected, &filter, &owners)?;
                        Ok::<_, QueryError>((chunk, owners, selected))
                    });
                    for selected in selected {
                        let (chunk, owners, mut selected) = selected?;
                        selected.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                        let count = u64::try_from(selected.len()).unwrap_or(u64::MAX);
                        left = left.saturating_sub(count);
                        let object = |fragment| owners.id(fragment, objects.as_deref());
                        vertices.push(&schema, chunk, &selected, object, diagnostics)?;
                    }
                }
                if vertices.size() >= most {
                    let done = core::mem::replace(&mut vertices, builder());
                    let mut answer = self.empty_answer();
                    done.finish(&mut answer);
                    ids.extend(answer.objects_met());
                    if emit(answer) == ControlFlow::Break(()) {
                        return Ok(());
                    }
                }
            }
            if left == 0 || groups.is_done() {
                let mut answer = self.empty_answer();
                vertices.finish(&mut answer);
                ids.extend(answer.objects_met());
                self.add_objects(&mut answer, objects.as_ref(), &ids, diagnostics)
                    .await?;
                let _ = emit(answer);
                return Ok(());
            }
            group = groups.read(self, &schema, &request, diagnostics).await?;
        }
    }

    /// Whether the fragments of a chunk are its bins.
    fn has_bins(&self) -> bool {
        let cloud = self.session.root.geometry_kinds.first() == Some(&GeometryKind::PointCloud);
        let finest = self.level.id() == LevelId::FULL;
        cloud && finest && self.area.is_some() && self.space.bins().is_some()
    }

    /// Leaves the vertices that are selected by place and filter.
    pub(crate) fn retain_selected(
        &self,
        schema: &Schema,
        chunk: &Chunk,
        vertices: &mut Runs,
        filter: &VertexFilter<'_>,
        owners: &Owners,
    ) -> Result<(), QueryError> {
        if let Some(inside) = self.inside(schema, chunk) {
            vertices.keep_places(&inside);
        }
        if filter.predicate.is_some() {
            let mut holds = Vec::with_capacity(vertices.len());
            let is_long = vertices.spans().count().saturating_mul(LONG) <= vertices.len();
            if is_long && filter.is_of_vertices(schema) {
                for span in vertices.spans() {
                    for first in span.clone().step_by(ENTRIES_AT_ONCE) {
                        let end = first.saturating_add(ENTRIES_AT_ONCE).min(span.end);
                        holds.extend_from_slice(&filter.holds_at(schema, chunk, first..end)?);
                    }
                }
                vertices.keep_those(&holds);
                return Ok(());
            }
            let mut some: Vec<Entry> = Vec::new();
            let mut entries = vertices.entries().peekable();
            while entries.peek().is_some() {
                some.clear();
                some.extend(entries.by_ref().take(ENTRIES_AT_ONCE));
                holds.extend(filter.holds(schema, chunk, &some, owners)?);
            }
            drop(entries);
            vertices.keep_those(&holds);
        }
        Ok(())
    }

    /// Which rows in memory are in the region; `None` when there is no region.
    pub(crate) fn inside(&self, schema: &Schema, chunk: &Chunk) -> Option<Vec<bool>> {
        let area = self.area.as_ref()?;
        let rows = usize::try_from(chunk.held.rows()).unwrap_or(usize::MAX);
        let mut inside = vec![false; rows];
        let axes = u32::try_from(schema.axes).ok()?.try_into().ok()?;
        let positions =
            zvf_format::numeric::NumericRows::parse(&chunk.positions, schema.dtype, axes).ok()?;
        if let Some(bbox) = area.bbox() {
            let mut selected = Vec::new();
            if bbox.select_rows(positions, &mut selected).is_ok() {
                for place in selected {
                    if let Some(inside) = inside.get_mut(place) {
                        *inside = true;
                    }
                }
                return Some(inside);
            }
        }
        let coordinates = chunk.coordinates(schema);
        for (place, inside) in inside.iter_mut().enumerate() {
            *inside = area.touches(Primitive::Point(coordinates.at(place)));
        }
        Some(inside)
    }

    /// How many chunks to read at once, so that they take about so many bytes.
    pub(crate) fn group_size(&self, schema: &Schema, chunks: usize, bytes: u64) -> usize {
        let count = u64::try_from(chunks).unwrap_or(u64::MAX).max(1);
        let Some(vertices) = self.level.metadata.vertex_count.filter(|count| *count > 0) else {
            return CHUNKS_AT_ONCE;
        };
        let attributes = schema.vertex.iter();
        let attributes = attributes.map(|a| u64::try_from(a.metadata.dtype.size()).unwrap_or(8));
        let row = attributes.sum::<u64>().saturating_add(schema.row());
        let chunk = vertices.div_ceil(count).saturating_mul(row).max(1);
        let most = bytes.checked_div(chunk).unwrap_or(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(1)
    }

    /// Bytes of positions handed on at once.
    pub(crate) fn batch_size(&self) -> u64 {
        let budget = self.session.fetch.budget();
        match self.in_one {
            true => budget.max(1),
            false => (budget / 8).clamp(1, MOST_AT_ONCE),
        }
    }

    /// How many vertices a piece of the answer may have when all of the level is given,
    /// by what some of its chunks have. A guess: metadata can say what they like.
    pub(crate) fn expected(&self, schema: &Schema, some: &[Option<Chunk>], chunks: usize) -> usize {
        let rows = some.iter().flatten().map(|chunk| chunk.held.rows());
        let rows = rows.fold(0, u64::saturating_add);
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let alike = rows.saturating_mul(count(chunks).div_ceil(count(some.len()).max(1)));
        let all = match self.level.metadata.vertex_count {
            Some(count) => count.min(alike.saturating_mul(8)),
            None => alike,
        };
        // A piece is given once it has become that large.
        let most = self.batch_size().min(MOST_ROOM) / schema.row().max(1);
        usize::try_from(all.min(most.saturating_add(rows))).unwrap_or(0)
    }
}

impl LevelQuery<'_> {
    /// Holds the chunks that manifests name against those with vertices.
    pub(crate) fn check_chunks(
        &self,
        schema: &Schema,
        objects: Option<&Arc<Objects>>,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let allowed = self.allowed()?;
        let named = objects.into_iter().flat_map(|objects| objects.chunks());
        let absent = named.filter(|chunk| !schema.vertices.has(chunk));
        for chunk in absent {
            let looked_at = self.area.as_ref().is_none_or(|area| area.reaches(chunk));
            if looked_at && allowed.allows(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&self.manifests()?, fault))?;
            }
        }
        Ok(())
    }

    /// All objects, if they are needed.
    pub(crate) async fn objects_if(
        &self,
        needed: bool,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Arc<Objects>>, QueryError> {
        match needed {
            true => self.session.objects(&self.level, diagnostics).await,
            false => Ok(None),
        }
    }

    /// Who owns the fragments of a chunk.
    pub(crate) fn owners_of(
        &self,
        objects: Option<&Arc<Objects>>,
        chunk: &Chunk,
        diagnostics: &Diagnostics,
    ) -> Result<Owners, QueryError> {
        let Some(objects) = objects else {
            return Ok(Owners::default());
        };
        let fragments = chunk.fragments.len();
        let pairs = objects.owners_of(&chunk.chunk);
        let beyond = pairs.iter().map(|(fragment, _)| fragment);
        if let Some(fragment) = beyond.max().filter(|last| *last >= fragments) {
            let fault = Fault::NoFragment {
                fragment,
                fragments,
            };
            diagnostics.skip(Damage::in_chunk(&self.manifests()?, &chunk.chunk, fault))?;
        }
        let there = pairs.iter().filter(|(fragment, _)| *fragment < fragments);
        let owners = Owners::new(there);
        Ok(owners)
    }

    /// The node of the object index.
    pub(crate) fn manifests(&self) -> Result<Key, QueryError> {
        child(&Session::node_of(&self.level)?, "object_index")
    }
}

/// Chunks read in groups that fit into memory.
pub(crate) struct Groups<'c> {
    left: &'c [ChunkCoord],
    size: usize,
}

impl<'c> Groups<'c> {
    pub(crate) fn new(chunks: &'c [ChunkCoord], size: usize) -> Self {
        Self {
            left: chunks,
            size: size.max(1),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// The next group. One that does not fit is read in halves.
    pub(crate) async fn read(
        &mut self,
        plan: &LevelQuery<'_>,
        schema: &Schema,
        request: &impl Fn(&ChunkCoord) -> ChunkRequest,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Option<Chunk>>, QueryError> {
        loop {
            let count = self.size.min(self.left.len());
            let (group, left) = self.left.split_at(count);
            let requests = group.iter().map(request).collect();
            match plan.session.chunks(schema, requests, diagnostics).await {
                Err(error) if count > 1 && is_over_budget(&error) => {
                    self.size = count.div_ceil(2);
                }
                result => {
                    self.left = left;
                    return result;
                }
            }
        }
    }
}

/// Whether more was read than may be.
pub(crate) fn is_over_budget(error: &QueryError) -> bool {
    let problem = match error {
        QueryError::OverBudget { .. } => return true,
        QueryError::Fetch(error)
        | QueryError::Damaged(Damage {
            fault: Fault::Fetch(error),
            ..
        }) => Some(error.problem),
        _ => None,
    };
    problem == Some(FetchProblem::OverBudget)
}
