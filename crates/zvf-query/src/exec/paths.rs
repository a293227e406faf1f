//! Scan of paths: the chunks that paths, or points of selected objects, go through.

mod load;
mod overlap;

use core::ops::Range;
use std::collections::BTreeSet;

use futures_util::future::try_join;
use zvf_model::{grid::ChunkCoord, key::Key};

use super::{
    context::ExecContext,
    object_scan::SelectedObjects,
    operator::{Operator, PathScan},
    pipeline::Pipeline,
};
use crate::{
    batch::loaded::LoadedChunks,
    catalog::{
        chunk::{ChunkRequest, RequestedRows},
        objects::{ObjectFragment, ObjectSet},
        schema::Schema,
    },
    error::QueryError,
    query::Shape,
    resolve::query::{Allowed, Emit, LevelQuery, VertexFilter},
    result::Parts,
    selection::RowRun,
};

/// Progress of a query on paths over its batches.
#[derive(Debug)]
pub(super) struct Emitted {
    /// Rows of the limit that are left.
    pub(super) left: u64,
    /// Objects that a batch has listed.
    pub(super) objects: BTreeSet<usize>,
}

/// A path: consecutive pieces of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'o> {
    /// Index of the object.
    pub(crate) place: usize,
    pub(crate) pieces: &'o [ObjectFragment],
    /// Whether a loaded segment enters the region.
    pub(crate) is_met: bool,
}

impl<'o> Path<'o> {
    /// Returns a path of pieces that are not loaded.
    pub(crate) fn new(place: usize, pieces: &'o [ObjectFragment]) -> Self {
        let is_met = false;
        Self {
            place,
            pieces,
            is_met,
        }
    }
}

/// Consecutive vertices of a path, with no unreadable piece between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSegment {
    /// Runs of rows with the numbers of their chunks.
    pub(super) runs: Vec<(u32, RowRun)>,
    pub(super) len: usize,
}

impl PathSegment {
    /// Returns the vertices of a piece that are in memory.
    pub(super) fn of_piece(piece: ObjectFragment, loaded: &LoadedChunks) -> Self {
        let mut segment = Self::default();
        if let Some(chunk) = loaded.get(piece.chunk) {
            chunk.push_fragment(piece.fragment, |run| segment.push(piece.chunk, run));
        }
        segment
    }

    pub(super) fn push(&mut self, chunk: u32, run: RowRun) {
        self.len = self.len.saturating_add(run.len);
        self.runs.push((chunk, run));
    }

    /// Returns the runs of some of the vertices.
    pub(super) fn part(&self, range: Range<usize>) -> impl Iterator<Item = (u32, RowRun)> + '_ {
        let mut before = 0_usize;
        self.runs.iter().filter_map(move |(chunk, run)| {
            let start = range.start.max(before);
            let skip = start.saturating_sub(before);
            before = before.saturating_add(run.len);
            let len = range
                .end
                .min(before)
                .checked_sub(start)
                .filter(|n| *n > 0)?;
            let run = RowRun {
                row: run
                    .row
                    .saturating_add(u64::try_from(skip).unwrap_or(u64::MAX)),
                place: run.place.saturating_add(skip),
                len,
                fragment: run.fragment,
            };
            Some((*chunk, run))
        })
    }
}

impl PathScan {
    /// Emits the paths, or the points of objects, that are selected.
    ///
    /// Three round trips: manifests; fragment indexes; rows. With a region, its chunks are
    /// read beside the manifests, and chunks outside of it after both. The chunks of a whole
    /// level are read beside the manifests if they fit into memory.
    pub(crate) async fn execute(
        &self,
        pipeline: Pipeline<'_>,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.schema);
        let scan = context.scope(pipeline.source.id);
        let scope = context.scope(pipeline.below(&|node| matches!(node, Operator::ObjectScan(_))));
        let allowed = query.allowed()?;
        let named = query.query.objects.is_some() || query.query.groups.is_some();
        let regional = query.area.as_ref().filter(|_| !named);
        let nearby = async {
            let chunks = match regional {
                Some(_) => query.nearby_chunks(schema)?.unwrap_or_default(),
                None => query.all_at_once(schema)?,
            };
            let requests = chunks.into_iter().map(|chunk| ChunkRequest {
                chunk,
                fragments: true,
                rows: RequestedRows::All,
            });
            let requests = requests.collect();
            scan.read_chunks(schema, requests, diagnostics).await
        };
        // Chunks are requested first: they arrive while manifests are decoded.
        let selected = scope.selected_objects(diagnostics);
        let (nearby, selected) = try_join(nearby, selected).await?;
        let Some(SelectedObjects {
            objects,
            mut places,
            holds,
        }) = selected
        else {
            let is_empty = schema.vertices.count().is_none_or(|count| count == 0);
            if nearby.is_empty() && is_empty {
                return query.no_paths(emit).await;
            }
            return Err(QueryError::NoObjects(query.level.id()));
        };
        let mut loaded = LoadedChunks::default();
        let mut near = Vec::with_capacity(nearby.len());
        for chunk in nearby.into_iter().flatten() {
            if let Some(number) = objects.number_of(&chunk.chunk) {
                loaded.add(number, Some(chunk));
                near.push(number);
            }
        }
        let regional = regional.filter(|_| query.shape == Shape::Paths);
        if let Some(area) = regional {
            let most = query.session.fetch.budget() / 4;
            places = objects.near(&near, most, |from, to| area.may_meet(&[], &[from, to]));
        }
        let mut paths = Vec::new();
        for place in places {
            let holds = holds.as_ref();
            if holds.is_none_or(|holds| holds.get(place) == Some(&true)) {
                push_paths(&objects, place, &allowed, &mut paths);
            }
        }
        if query.filter.is_never {
            paths.clear();
        }
        let filtering = context.scope(pipeline.filter.unwrap_or(pipeline.source.id));
        let filter = filtering.vertex_filter(Some(&objects), diagnostics).await?;
        let work = PathWork {
            manifests: query.manifests()?,
            schema,
            objects: &objects,
            filter: &filter,
        };
        let mut emitted = Emitted {
            left: query.limit(),
            objects: BTreeSet::new(),
        };
        let above = (pipeline, context);
        if let Some(area) = regional {
            scan.load_region(&work, area, &mut paths, &mut loaded, diagnostics)
                .await?;
            let done = query.emit_paths(&work, &paths, &loaded, &mut emitted, above, emit);
            return done.await.map(|_| ());
        }
        let source = PathGroups {
            scan: &scan,
            work: &work,
            paths: &paths,
            named,
        };
        source.emit(loaded, emitted, above, emit).await
    }
}

/// Paths that are read group by group.
struct PathGroups<'g> {
    scan: &'g LevelQuery<'g>,
    work: &'g PathWork<'g>,
    paths: &'g [Path<'g>],
    /// Whether the query names objects, so that only their fragments are read.
    named: bool,
}

impl PathGroups<'_> {
    async fn emit(
        &self,
        mut loaded: LoadedChunks,
        mut emitted: Emitted,
        above: (Pipeline<'_>, ExecContext<'_>),
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let Self {
            scan,
            work,
            paths,
            named,
        } = *self;
        let (query, diagnostics) = (above.1.query, above.1.diagnostics);
        let mut first = 0;
        let max_chunks = query.path_group_size(work.schema);
        loop {
            let rest = paths.get(first..).unwrap_or_default();
            let is_path = query.shape == Shape::Paths;
            let (count, chunks) = path_group(rest, max_chunks, emitted.left, is_path);
            loaded.keep(&chunks, max_chunks);
            let now = rest.get(..count).unwrap_or_default();
            let wanted = if named {
                load::of_fragments(now.iter().flat_map(|path| path.pieces))
            } else {
                let new = chunks.iter().filter(|chunk| !loaded.knows(**chunk));
                new.map(|chunk| (*chunk, RequestedRows::All)).collect()
            };
            scan.load(work, wanted, &mut loaded, diagnostics).await?;
            first = first.saturating_add(count);
            let flow = query
                .emit_paths(work, now, &loaded, &mut emitted, above, emit)
                .await?;
            if named {
                // The next paths may need other rows of these chunks.
                loaded = LoadedChunks::default();
            }
            if flow.is_break() || emitted.left == 0 || first >= paths.len() {
                return Ok(());
            }
        }
    }
}

impl LevelQuery<'_> {
    /// Returns the chunks that are read beside the manifests: those of the region.
    pub(crate) fn nearby_chunks(
        &self,
        schema: &Schema,
    ) -> Result<Option<Vec<ChunkCoord>>, QueryError> {
        let Some(area) = &self.area else {
            return Ok(None);
        };
        self.chunks_where(schema, |chunk| area.reaches(chunk))
            .map(Some)
    }

    /// Returns the number of chunks that paths may hold at once. Paths go to and fro: chunks
    /// that are evicted are read again.
    fn path_group_size(&self, schema: &Schema) -> usize {
        let listed = schema.vertices.count().unwrap_or(1);
        self.group_size(schema, listed, self.session.fetch.budget() / 4)
    }

    /// Returns all chunks if a query reads a whole level of paths and its chunks fit into
    /// memory, and none otherwise. No manifest is needed to name them.
    pub(crate) fn all_at_once(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        if self.shape != Shape::Paths || !self.is_everything() {
            return Ok(Vec::new());
        }
        let mut chunks = self.chunks(schema)?;
        if chunks.len() > self.group_size(schema, chunks.len(), self.session.fetch.budget() / 4) {
            chunks.clear();
        }
        Ok(chunks)
    }

    /// Returns the most vertices, paths or links that a query asks for.
    pub(crate) fn limit(&self) -> u64 {
        self.query.limit.unwrap_or(u64::MAX)
    }

    /// Emits the only batch of a level without paths.
    async fn no_paths(&self, emit: &mut Emit<'_>) -> Result<(), QueryError> {
        let mut answer = self.without_vertices().await?;
        if self.shape == Shape::Paths {
            answer.parts = Some(Parts {
                offsets: vec![0],
                objects: Vec::new(),
            });
        }
        let _ = emit(answer);
        Ok(())
    }
}

/// The inputs of the steps of a path query.
pub(crate) struct PathWork<'w> {
    /// The node of the object index.
    pub(crate) manifests: Key,
    pub(crate) schema: &'w Schema,
    pub(crate) objects: &'w ObjectSet,
    pub(crate) filter: &'w VertexFilter<'w>,
}

/// Returns the number of the first paths that together need at most `most` chunks, and these
/// chunks.
fn path_group(paths: &[Path<'_>], most: usize, left: u64, is_path: bool) -> (usize, BTreeSet<u32>) {
    let mut chunks: Vec<u32> = Vec::new();
    let mut is_in: Vec<bool> = Vec::new();
    let mut count = 0_usize;
    for path in paths {
        if is_path && u64::try_from(count).unwrap_or(u64::MAX) >= left {
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
        if count > 0 && chunks.len() > most {
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
    place: usize,
    allowed: &Allowed,
    paths: &mut Vec<Path<'o>>,
) {
    let pieces = objects.fragments(place);
    if allowed.is_everything() {
        paths.push(Path::new(place, pieces));
        return;
    }
    let is_in = |piece: &ObjectFragment| {
        objects
            .chunk(piece.chunk)
            .is_some_and(|c| allowed.allows(c))
    };
    for pieces in pieces.chunk_by(|a, b| is_in(a) == is_in(b)) {
        if pieces.first().is_some_and(is_in) {
            paths.push(Path::new(place, pieces));
        }
    }
}
