//! The plan of paths, or of points of selected objects, and the scan of the chunks that they go
//! through.
//!
//! A path is selected in these steps:
//!
//! 1. Predicates on objects select among the objects, after their manifests are read
//!    ([`ExecContext::filtered_objects`]).
//! 2. Paths that cannot enter the region are dropped by the chunks in their manifests
//!    ([`ObjectSet::near`]), then by the rows loaded so far, before their remaining rows are read
//!    (`load`).
//! 3. Chunks of paths that do not fit into memory together are read in turns (`sweep`). Each pass keeps
//!    the rows of as many paths as a quarter of the memory budget holds.
//! 4. `overlap` confirms or rejects a path from its loaded rows; [`RowFilter::path`] decides the rest
//!    and evaluates predicates. Both test each step of a path in mode `touch`, and each vertex in mode
//!    `within`.
//! 5. [`BorderClip`] decides which parts lie in the region, if paths are clipped.

mod load;
mod overlap;
mod sweep;

use core::ops::ControlFlow;
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use futures_util::future::{join, try_join3};
use zvf_catalog::{
    CatalogError, Chunk, ChunkRequest, ObjectFragment, ObjectSet, RequestedRows, RowSelection,
    Schema, on_cores,
};
use zvf_model::{grid::ChunkCoord, key::Key, object_ids::Owner};

use super::{
    clip::{BorderClip, ClipOperator, PathPart},
    context::ExecContext,
    empty::Empty,
    filter::{Filter, RowFilter},
    gather::Gather,
    limit::Limit,
    object_columns::{ColumnsAhead, ObjectColumns},
    object_scan::{ObjectScan, SelectedObjects},
    operator::{Details, LaterRead, Operator, OperatorTree},
    path::{BYTES_PER_PIECE, Path, check_shared},
    whole_paths::WholePathGather,
};
use crate::{
    batch::loaded::LoadedChunks,
    error::QueryError,
    query::Shape,
    resolve::query::{Batching, ChunkRestriction, Emit, LevelQuery},
};

/// Maximum number of requests that prepare the reads of chunks outside a region. Paths lead to any
/// of them.
const MAX_PREPARED_OF_REGION: usize = 96;
/// Maximum number of requests that prepare the reads of the chunks of objects, which are few.
const MAX_PREPARED_OF_OBJECTS: usize = 12;
/// Number of paths that are filtered and clipped between two points at which a query can stop.
const PATHS_PER_YIELD: usize = 1024;
/// Number of blocks of paths that are filtered on all cores between two such points.
const BLOCKS_PER_YIELD: usize = 256;

/// A selection of paths, or of points of objects.
#[derive(Debug)]
pub(crate) struct PathsPlan {
    pub(crate) columns: ObjectColumns,
    pub(crate) gather: Gather,
    pub(crate) limit: Limit,
    pub(crate) clip: Option<ClipOperator>,
    pub(crate) filter: Option<Filter>,
    pub(crate) scan: PathScan,
    pub(crate) objects: ObjectScan,
}

/// The operator that reads the chunks that the paths or points of its objects go through.
#[derive(Debug)]
pub(crate) struct PathScan {
    pub(crate) schema: Arc<Schema>,
}

impl Operator for PathScan {
    const NAME: &'static str = "PathScan";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        if let (Some(_), Ok(chunks)) = (&query.area, query.region_chunks(&self.schema)) {
            details.add("nearby_chunks", chunks.len());
        }
        if !query.read.vertex.is_empty() {
            details.list("columns", &query.read.vertex);
        }
    }

    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        let is_path = query.shape == Shape::Paths;
        let is_region = is_path && query.area.is_some() && !query.names_objects();
        let all = query.all_at_once(&self.schema);
        if !is_region && all.is_ok_and(|all| !all.is_empty()) {
            return;
        }
        let shows_attributes = query.query.limit.is_none() && !query.shown.object.is_empty();
        if !query.is_everything() && query.catalog.has_fragment_rows(&self.schema) {
            later.push(LaterRead::always(if shows_attributes {
                "the rows of the paths in other chunks, and attributes of the objects"
            } else {
                "the rows of the paths in other chunks"
            }));
            return;
        }
        later.push(LaterRead::always(match (is_region, shows_attributes) {
            (true, true) => {
                "fragment indexes of other chunks that the paths go through, and attributes of the \
                 objects"
            }
            (true, false) => "fragment indexes of other chunks that the paths go through",
            (false, true) => {
                "fragment indexes of the chunks of the objects, and attributes of the objects"
            }
            (false, false) => "fragment indexes of the chunks of the objects",
        }));
        later.push(LaterRead {
            what: "the rows of their fragments",
            is_always: self.schema.has_rows_in_part(),
        });
    }
}

impl PathsPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.columns);
        tree.push(&self.gather);
        tree.push(self.limit.as_operator());
        tree.push(self.clip.as_ref());
        tree.push(self.filter.as_ref());
        tree.push(&self.scan);
        tree.push(&self.objects);
    }

    /// Emits the paths, or the points of objects, that are selected.
    ///
    /// Three round trips: manifests; fragment indexes; rows. There is no round trip for fragment indexes
    /// if the store [records](zvf_catalog::Catalog::load_fragment_rows) their rows, which are read beside
    /// the manifests. With a region, its chunks are
    /// read beside the manifests, and chunks outside of it after both. The chunks of a whole
    /// level are read beside the manifests if they fit into memory. Attributes of the objects that
    /// may be in the result are read beside the chunks.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, schema) = (context.query, &*self.scan.schema);
        let allowed = query.allowed()?;
        let named = query.names_objects();
        let regional = query.area.as_ref().filter(|_| !named);
        let FirstResults {
            nearby,
            selected,
            columns,
        } = self.first_reads(context, regional.is_some()).await?;
        let Some(selected) = selected else {
            let is_empty = schema.vertices.count().is_none_or(|count| count == 0);
            if nearby.is_empty() && is_empty {
                return Empty::without_links().execute(context, emit).await;
            }
            return Err(CatalogError::NoObjects(query.level.id()).into());
        };
        let objects = &selected.objects;
        let mut loaded = LoadedChunks::default();
        let mut near = Vec::with_capacity(nearby.len());
        for chunk in nearby.into_iter().flatten() {
            if let Some(number) = objects.number_of(&chunk.chunk) {
                loaded.add(number, Some(chunk));
                near.push(number);
            }
        }
        let regional = regional.filter(|_| query.shape == Shape::Paths);
        let indices = match regional {
            Some(area) => {
                let max = query.catalog.fetch.budget() / 4;
                objects.near(&near, max, |from, to| area.may_intersect(&[], &[from, to]))
            }
            None => selected.indices.clone(),
        };
        let mut paths = Vec::new();
        for index in indices {
            if selected.is_selected(index) {
                push_paths(objects, index, &allowed, &mut paths);
            }
        }
        if query.filter.is_never {
            paths.clear();
        }
        let work = PathWork {
            context,
            plan: self,
            manifests: query.manifests()?,
            schema,
            objects,
            filter: RowFilter::open(self.filter, schema, Some(objects), context).await?,
            clip: BorderClip::open(self.clip, query, schema)?,
        };
        let mut emitted = EmitProgress {
            limit: self.limit,
            objects: vec![false; objects.len()],
            columns,
        };
        if let Some(area) = regional {
            let near = work.near_paths(area, &mut paths, &loaded)?;
            let load = work.load(near, &mut loaded);
            let (read, columns) = join(load, work.columns_ahead(&paths)).await;
            read?;
            emitted.columns = columns;
            let done = work.emit_batches(&paths, &loaded, &mut emitted, emit);
            return done.await.map(|_| ());
        }
        let source = PathGroups {
            work: &work,
            paths: &paths,
            named,
        };
        source.emit(loaded, emitted, emit).await
    }

    /// Reads what no other read has to wait for: chunks that need no manifest, which are those of
    /// the region or of a whole level, manifests, and attributes of all objects of a whole level.
    async fn first_reads(
        &self,
        context: ExecContext<'_>,
        in_region: bool,
    ) -> Result<FirstResults, QueryError> {
        let (query, schema) = (context.query, &*self.scan.schema);
        let scan = context.of(&self.scan);
        let of_all = !in_region && query.is_everything() && self.columns.reads_ahead;
        let nearby = async {
            let chunks = if in_region {
                query.region_chunks(schema)?
            } else {
                query.all_at_once(schema)?
            };
            let requests = chunks.into_iter().map(|chunk| ChunkRequest {
                chunk,
                fragments: true,
                rows: RequestedRows::All,
            });
            scan.read_chunks(schema, requests.collect()).await
        };
        let selected = async {
            let objects = context.of(&self.objects);
            if !of_all {
                return Ok((objects.selected_objects().await?, None));
            }
            objects.catalog.object_index(&query.level).await?;
            let columns = context.of(&self.columns).object_columns_of_all();
            let (selected, columns) = join(objects.selected_objects(), columns).await;
            Ok((selected?, columns))
        };
        let prepared = async {
            let max_requests = if in_region {
                MAX_PREPARED_OF_REGION
            } else {
                MAX_PREPARED_OF_OBJECTS
            };
            if !of_all {
                let arrays = schema.cell_arrays();
                scan.catalog.fetch.prepare(&arrays, max_requests).await;
            }
        };
        let rows = async {
            if query.is_everything() {
                return Ok(());
            }
            let loaded = scan.catalog.load_fragment_rows(schema, scan.diagnostics);
            Ok(loaded.await?)
        };
        // Chunks are requested first: they arrive while manifests are decoded.
        let (read, ()) = join(try_join3(nearby, selected, rows), prepared).await;
        let (nearby, (selected, columns), ()) = read?;
        Ok(FirstResults {
            nearby,
            selected,
            columns,
        })
    }
}

struct FirstResults {
    nearby: Vec<Option<Chunk>>,
    selected: Option<SelectedObjects>,
    columns: Option<ColumnsAhead>,
}

/// Paths that are read group by group.
struct PathGroups<'g> {
    work: &'g PathWork<'g>,
    paths: &'g [Path<'g>],
    /// True if the query names objects, so that only their fragments are read.
    named: bool,
}

impl PathGroups<'_> {
    async fn emit(
        &self,
        mut loaded: LoadedChunks,
        mut emitted: EmitProgress,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let Self { work, paths, named } = *self;
        let query = work.context.query;
        let mut first = 0;
        let max_chunks = query.path_group_size(work.schema);
        loop {
            let rest = paths.get(first..).unwrap_or_default();
            let max_paths = match query.shape {
                Shape::Paths => emitted.limit.left(),
                _ => usize::MAX,
            };
            let is_loaded = !named && first == 0 && max_paths >= rest.len() && {
                let mut numbers = work.objects.chunk_numbers();
                numbers.all(|number| loaded.knows(number))
            };
            // Looking at all pieces would only find that their chunks are loaded.
            let (count, chunks) = if is_loaded {
                (rest.len(), BTreeSet::new())
            } else {
                path_group(rest, max_chunks, max_paths)
            };
            if first == 0 && count < rest.len().min(max_paths) {
                drop(loaded);
                return self.sweep(max_chunks, emitted, emit).await;
            }
            if !is_loaded {
                loaded.evict_except(&chunks, max_chunks);
            }
            let now = rest.get(..count).unwrap_or_default();
            let wanted = if named {
                load::of_fragments(now.iter().flat_map(|path| path.pieces))
            } else {
                let new = chunks.iter().filter(|chunk| !loaded.knows(**chunk));
                new.map(|chunk| (*chunk, RequestedRows::All)).collect()
            };
            let load = work.load(wanted, &mut loaded);
            let columns = async {
                match &emitted.columns {
                    None => work.columns_ahead(now).await,
                    Some(_) => None,
                }
            };
            let (read, columns) = join(load, columns).await;
            read?;
            let is_of_group = columns.is_some();
            emitted.columns = emitted.columns.take().or(columns);
            first = first.saturating_add(count);
            let emitting = work.emit_batches(now, &loaded, &mut emitted, emit);
            let flow = emitting.await?;
            if named {
                // The next paths may need other rows of these chunks.
                loaded = LoadedChunks::default();
            }
            if is_of_group {
                emitted.columns = None;
            }
            if flow.is_break() || emitted.limit.is_reached() || first >= paths.len() {
                return Ok(());
            }
        }
    }
}

impl LevelQuery<'_> {
    /// Returns the chunks of the region, which are read beside the manifests.
    fn region_chunks(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        self.near_chunks_where(schema, |_| true)
    }

    /// Returns whether the query names objects or groups.
    fn names_objects(&self) -> bool {
        self.query.objects.is_some() || self.query.groups.is_some()
    }

    /// Returns the number of chunks that paths may hold at once. Other paths may return to an
    /// evicted chunk, which is then read again.
    fn path_group_size(&self, schema: &Schema) -> usize {
        let listed = schema.vertices.count().unwrap_or(1);
        self.group_size(schema, listed, self.catalog.fetch.budget() / 4)
    }

    /// Returns all chunks if a query reads a whole level of paths and its chunks fit into
    /// memory, and none otherwise. No manifest is needed to name them.
    pub(crate) fn all_at_once(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        if self.shape != Shape::Paths || !self.is_everything() {
            return Ok(Vec::new());
        }
        let mut chunks = self.chunks(schema)?;
        if chunks.len() > self.group_size(schema, chunks.len(), self.catalog.fetch.budget() / 4) {
            chunks.clear();
        }
        Ok(chunks)
    }
}

/// The operators above a scan of paths, and what they share.
struct PathWork<'w> {
    context: ExecContext<'w>,
    plan: &'w PathsPlan,
    /// The node of the object index.
    manifests: Key,
    schema: &'w Schema,
    objects: &'w ObjectSet,
    filter: RowFilter<'w>,
    clip: Option<BorderClip<'w>>,
}

/// Progress of a query on paths over its batches.
struct EmitProgress {
    limit: Limit,
    /// Marks, by object, if a batch has listed it.
    objects: Vec<bool>,
    /// Attributes of the objects of loaded paths, if they were read beside the chunks.
    columns: Option<ColumnsAhead>,
}

impl PathWork<'_> {
    /// Reads the attributes of the objects of paths that are about to be emitted. Not if a limit
    /// may leave most of them out.
    async fn columns_ahead(&self, paths: &[Path<'_>]) -> Option<ColumnsAhead> {
        let columns = &self.plan.columns;
        if !columns.reads_ahead {
            return None;
        }
        let rows = paths.iter().filter_map(|path| self.objects.row(path.index));
        self.context.of(columns).object_columns_ahead(rows).await
    }

    /// Emits loaded paths in batches of about [`batch_size`](LevelQuery::batch_size) bytes.
    async fn emit_batches(
        &self,
        paths: &[Path<'_>],
        loaded: &LoadedChunks,
        emitted: &mut EmitProgress,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let mut left = paths;
        loop {
            let (batch, rest) = left.split_at(self.batch_len(left, loaded));
            let flow = self.emit(batch, loaded, emitted, emit).await?;
            left = rest;
            if flow.is_break() || emitted.limit.is_reached() || left.is_empty() {
                return Ok(flow);
            }
        }
    }

    /// Returns the number of paths in the next batch.
    fn batch_len(&self, paths: &[Path<'_>], loaded: &LoadedChunks) -> usize {
        let query = self.context.query;
        if query.batching == Batching::Whole {
            return paths.len();
        }
        let (row, max) = (self.schema.row_with_attributes(), query.batch_size());
        let mut bytes = 0_u64;
        let fitting = paths.iter().take_while(|path| {
            let is_first = bytes == 0;
            let rows = path
                .pieces
                .iter()
                .map(|piece| loaded.rows_of(*piece))
                .fold(0, u64::saturating_add);
            bytes = bytes.saturating_add(rows.saturating_mul(row));
            is_first || bytes <= max
        });
        fitting.count()
    }

    /// Emits one batch of loaded paths, as far as they are selected.
    ///
    /// Each path is filtered, clipped and copied before the next one, so that a limit ends the
    /// work. Paths that are selected as a whole are copied in bulk instead.
    async fn emit(
        &self,
        paths: &[Path<'_>],
        loaded: &LoadedChunks,
        emitted: &mut EmitProgress,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let (query, diagnostics) = (self.context.query, self.context.diagnostics);
        let is_path = query.shape == Shape::Paths;
        let budget = query.catalog.fetch.budget();
        // The gather of whole paths counts their vertices itself.
        if !is_path || !self.filter.passes_all() {
            check_shared(paths, loaded, budget)?;
        }
        let whole = if is_path {
            self.whole_paths(paths, loaded, emitted.limit).await?
        } else {
            None
        };
        // Objects that no batch has listed before.
        let mut listed = Vec::new();
        let EmitProgress {
            limit,
            objects,
            columns,
        } = emitted;
        let mut list = |index: usize| {
            if let Some(is_listed) = objects.get_mut(index).filter(|is_listed| !**is_listed) {
                *is_listed = true;
                listed.push(index);
            }
        };
        let mut batch = query.empty_result();
        let parts = if let Some(paths) = whole {
            let gather = WholePathGather {
                schema: self.schema,
                objects: self.objects,
                loaded,
                manifests: &self.manifests,
                budget,
            };
            let mut builder = query.vertices(self.schema, false);
            let parts = gather.copy(&paths, limit, &mut builder, list, diagnostics)?;
            builder.finish(&mut batch);
            parts
        } else {
            let clip = self.clip.as_ref();
            let mut gather = self.plan.gather.paths(query, self.schema, loaded, clip);
            for (at, path) in paths.iter().enumerate() {
                if at > 0 && at.is_multiple_of(PATHS_PER_YIELD) {
                    query.yield_now().await;
                }
                let id = self.objects.id(path.index).unwrap_or(Owner::NONE);
                for segment in path.segments(loaded, &self.manifests, diagnostics)? {
                    for mut part in self.selected_parts(path.index, &segment, loaded)? {
                        if limit.is_reached() {
                            break;
                        }
                        if is_path {
                            limit.take(1);
                        } else {
                            let rows = &mut part.rows;
                            rows.end = rows.start.saturating_add(limit.take(rows.len()));
                        }
                        list(path.index);
                        gather.push(&segment, part, id, diagnostics)?;
                    }
                }
            }
            gather.finish(&mut batch)
        };
        batch.parts = is_path.then_some(parts);
        let columns = columns.as_ref();
        let context = self.context.of(&self.plan.columns);
        context
            .show_objects(&mut batch, self.objects, &listed, columns)
            .await?;
        let flow = emit(batch);
        query.pause().await;
        Ok(flow)
    }

    /// Filters and clips a segment of an object.
    fn selected_parts(
        &self,
        object: usize,
        segment: &RowSelection,
        loaded: &LoadedChunks,
    ) -> Result<Vec<PathPart>, QueryError> {
        let is_path = self.context.query.shape == Shape::Paths;
        let selected = if is_path {
            self.filter.path(object, segment, loaded)?
        } else {
            self.filter.points(object, segment, loaded)?
        };
        Ok(match &self.clip {
            Some(clip) => clip.path(selected, segment, loaded),
            None => selected.into_iter().map(PathPart::whole).collect(),
        })
    }

    /// Returns the selected paths, as many as the limit leaves, if each is selected as a whole:
    /// the region splits none and no piece is missing. Returns `None` if vertices must be tested
    /// one by one.
    async fn whole_paths<'p, 'o>(
        &self,
        paths: &'p [Path<'o>],
        loaded: &LoadedChunks,
        limit: Limit,
    ) -> Result<Option<Cow<'p, [Path<'o>]>>, QueryError> {
        if self.filter.passes_all() {
            return Ok(Some(Cow::Borrowed(paths)));
        }
        if !self.filter.selects_whole_paths() {
            return Ok(None);
        }
        let max = limit.left();
        // With a limit, paths after the last one are not tested.
        if !limit.passes_all() {
            let whole = self.select_whole(paths, loaded, max)?;
            return Ok(whole.map(Cow::Owned));
        }
        let pieces = paths.iter().map(|path| path.pieces.len());
        let bytes = pieces.sum::<usize>().saturating_mul(BYTES_PER_PIECE);
        let blocks: Vec<&[Path<'_>]> = paths.chunks(load::PATHS_PER_BLOCK).collect();
        let mut whole = Vec::with_capacity(paths.len());
        for (at, blocks) in blocks.chunks(BLOCKS_PER_YIELD).enumerate() {
            if at > 0 {
                self.context.query.yield_now().await;
            }
            let blocks = blocks.to_vec();
            let blocks = on_cores(blocks, bytes, |paths| self.select_whole(paths, loaded, max));
            for block in blocks {
                match block? {
                    Some(paths) => whole.extend(paths),
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(Cow::Owned(whole)))
    }

    /// Returns the first selected paths; `None` if a piece is missing.
    fn select_whole<'o>(
        &self,
        paths: &[Path<'o>],
        loaded: &LoadedChunks,
        max: usize,
    ) -> Result<Option<Vec<Path<'o>>>, QueryError> {
        let mut whole = Vec::with_capacity(paths.len().min(max));
        for path in paths {
            if whole.len() >= max {
                break;
            }
            let is_selected = if path.is_overlap_confirmed && self.filter.selects_entering_paths() {
                if !path.is_loaded(loaded) {
                    return Ok(None);
                }
                true
            } else {
                let Some(rows) = path.whole(loaded) else {
                    return Ok(None);
                };
                !rows.is_empty() && !self.filter.path(path.index, &rows, loaded)?.is_empty()
            };
            if is_selected {
                whole.push(*path);
            }
        }
        Ok(Some(whole))
    }
}

/// Returns the number of leading paths that together need at most `max` chunks, limited to
/// `max_paths`, and the chunks that they need.
fn path_group(paths: &[Path<'_>], max: usize, max_paths: usize) -> (usize, BTreeSet<u32>) {
    let mut chunks: Vec<u32> = Vec::new();
    let mut is_in: Vec<bool> = Vec::new();
    let mut count = 0_usize;
    for path in paths {
        if count >= max_paths {
            break;
        }
        let before = chunks.len();
        for piece in path.pieces {
            let at = usize::try_from(piece.chunk).unwrap_or(usize::MAX);
            if is_in.len() <= at {
                is_in.resize(at.saturating_add(1), false);
            }
            if let Some(is_in) = is_in.get_mut(at).filter(|is_in| !**is_in) {
                *is_in = true;
                chunks.push(piece.chunk);
            }
        }
        if count > 0 && chunks.len() > max {
            chunks.truncate(before);
            break;
        }
        count = count.saturating_add(1);
    }
    (count, chunks.into_iter().collect())
}

/// Appends the paths of an object: runs of its pieces inside the allowed chunks.
fn push_paths<'o>(
    objects: &'o ObjectSet,
    index: usize,
    allowed: &ChunkRestriction,
    paths: &mut Vec<Path<'o>>,
) {
    let pieces = objects.fragments(index);
    if allowed.is_everything() {
        paths.push(Path::new(index, pieces));
        return;
    }
    let is_in = |piece: &ObjectFragment| {
        objects
            .chunk(piece.chunk)
            .is_some_and(|c| allowed.allows(c))
    };
    for pieces in pieces.chunk_by(|a, b| is_in(a) == is_in(b)) {
        if pieces.first().is_some_and(is_in) {
            paths.push(Path::new(index, pieces));
        }
    }
}
