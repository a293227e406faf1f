//! Scan of chunks in their order, and the pipeline of vertices above it.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use futures_util::future::try_join;
use zvf_model::{fetch::FetchProblem, grid::ChunkCoord, level::LevelId, root::GeometryType};

use super::{
    context::ExecContext,
    operator::{ChunkScan, Operator},
    pipeline::Pipeline,
};
use crate::{
    catalog::{
        chunk::{Chunk, ChunkRequest, RequestedRows},
        schema::Schema,
    },
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    resolve::query::{Emit, LevelQuery},
};

/// Chunks read at once where their size is not known.
const DEFAULT_CHUNKS_PER_GROUP: usize = 256;
/// Upper bound on the bytes of a batch.
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// Upper bound on position bytes preallocated.
const MAX_PREALLOC_BYTES: u64 = 8 << 30;
/// Bytes of vertices copied into a batch at once, by all cores.
const PORTION_BYTES: u64 = 8 << 20;

impl ChunkScan {
    /// Returns the request for one chunk.
    fn request(&self, query: &LevelQuery<'_>, chunk: &ChunkCoord) -> ChunkRequest {
        let area = query.area.as_ref().filter(|_| self.bins);
        let rows = match area.and_then(|area| area.bins_of(chunk)) {
            Some((bins, of)) => RequestedRows::Bins { bins, of },
            None => RequestedRows::All,
        };
        ChunkRequest {
            chunk: chunk.clone(),
            fragments: self.fragments,
            rows,
        }
    }

    /// Emits the vertices of the chunks that are selected.
    ///
    /// One round trip, two where fragments tell which rows to read; more only when the chunks
    /// do not fit into memory at once. Objects and the columns of the filter are read beside
    /// the first chunks. Without a filter and a limit, all vertices of chunks are copied in
    /// bulk and no selection is made.
    pub(crate) async fn execute(
        &self,
        pipeline: Pipeline<'_>,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.schema);
        let scan = context.scope(pipeline.source.id);
        let scope = context.scope(pipeline.below(&|node| matches!(node, Operator::ObjectScan(_))));
        let filtering = context.scope(pipeline.filter.unwrap_or(pipeline.source.id));
        let has_owners = !pipeline.source.inputs.is_empty();
        let chunks = query.scanned_chunks(schema)?;
        let objects = scope.objects_if(has_owners, diagnostics);
        let filter = filtering.vertex_filter(None, diagnostics);
        let request = |chunk: &ChunkCoord| self.request(query, chunk);
        let at_once = query.session.fetch.at_once();
        let group_size = query.group_size(schema, chunks.len(), at_once);
        let mut groups = ChunkGroups::new(&chunks, group_size);
        let first = groups.read(&scan, schema, &request, diagnostics);
        let ((objects, filter), mut group) = try_join(try_join(objects, filter), first).await?;
        query.check_chunks(schema, objects.as_ref(), diagnostics)?;
        let builder = || query.vertices(schema, self.owners);
        let mut vertices = builder();
        let mut left = query.limit();
        let takes_all = pipeline.filter.is_none() && left == u64::MAX;
        let max_bytes = query.batch_size();
        let mut ids = BTreeSet::new();
        loop {
            for portion in portions(&group, vertices.row_size(), max_bytes) {
                let all = takes_all.then(|| query.expected(schema, portion, chunks.len()));
                if !all.is_some_and(|expected| vertices.push_chunks(schema, portion, expected)) {
                    vertices.reserve(all.unwrap_or(0));
                    let chunks: Vec<&Chunk> = portion.iter().flatten().collect();
                    let bytes = chunks.iter().map(|chunk| chunk.positions.len()).sum();
                    let selected = on_cores(chunks, bytes, |chunk| {
                        let owners = query.owners_of(objects.as_ref(), chunk, diagnostics)?;
                        let selected = query.selected_rows(schema, chunk, &filter, &owners)?;
                        Ok::<_, QueryError>((chunk, owners, selected))
                    });
                    for selected in selected {
                        let (chunk, owners, mut selected) = selected?;
                        selected.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                        let count = u64::try_from(selected.len()).unwrap_or(u64::MAX);
                        left = left.saturating_sub(count);
                        let object = |fragment| owners.id(fragment, objects.as_deref());
                        vertices.push(schema, chunk, &selected, object, diagnostics)?;
                    }
                }
                if vertices.size() >= max_bytes {
                    let full = core::mem::replace(&mut vertices, builder());
                    let mut batch = query.empty_answer();
                    full.finish(&mut batch);
                    ids.extend(batch.objects_met());
                    if emit(batch) == ControlFlow::Break(()) {
                        return Ok(());
                    }
                }
            }
            if left == 0 || groups.is_done() {
                let mut batch = query.empty_answer();
                vertices.finish(&mut batch);
                ids.extend(batch.objects_met());
                let columns = context.scope(pipeline.columns.unwrap_or(pipeline.source.id));
                columns
                    .add_objects(&mut batch, objects.as_ref(), &ids, diagnostics)
                    .await?;
                let _ = emit(batch);
                return Ok(());
            }
            group = groups.read(&scan, schema, &request, diagnostics).await?;
        }
    }
}

/// Splits a group of chunks into portions of about [`PORTION_BYTES`], for vertices of `row`
/// bytes and batches of at most `most` bytes.
pub(crate) fn portions(
    group: &[Option<Chunk>],
    row: u64,
    most: u64,
) -> impl Iterator<Item = &[Option<Chunk>]> {
    let most = PORTION_BYTES.min(most / 2);
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
    /// Returns the chunks that a scan reads: those with vertices, not excluded by the query,
    /// that can hold some of the region. None for a predicate that is never true.
    pub(crate) fn scanned_chunks(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        let chunks = self.chunks_where(schema, |chunk| {
            self.area.as_ref().is_none_or(|area| area.reaches(chunk))
        })?;
        Ok(if self.filter.is_never {
            Vec::new()
        } else {
            chunks
        })
    }

    /// Returns whether the fragments of a chunk are its bins, so that a region needs only some.
    pub(crate) fn has_bins(&self) -> bool {
        let cloud = self.session.root.geometry_kinds.first() == Some(&GeometryType::PointCloud);
        let finest = self.level.id() == LevelId::FULL;
        cloud && finest && self.area.is_some() && self.space.bins().is_some()
    }

    /// Returns the number of chunks that take about `bytes`, at least 1.
    pub(crate) fn group_size(&self, schema: &Schema, chunks: usize, bytes: u64) -> usize {
        let count = u64::try_from(chunks).unwrap_or(u64::MAX).max(1);
        let Some(vertices) = self.level.metadata.vertex_count.filter(|count| *count > 0) else {
            return DEFAULT_CHUNKS_PER_GROUP;
        };
        let attributes = schema.vertex.iter();
        let attributes = attributes.map(|a| u64::try_from(a.metadata.dtype.size()).unwrap_or(8));
        let row = attributes.sum::<u64>().saturating_add(schema.row());
        let chunk = vertices.div_ceil(count).saturating_mul(row).max(1);
        let most = bytes.checked_div(chunk).unwrap_or(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(1)
    }

    /// Returns the size in bytes from which on a batch is emitted.
    pub(crate) fn batch_size(&self) -> u64 {
        let budget = self.session.fetch.budget();
        if self.in_one {
            return budget.max(1);
        }
        (budget / 8).clamp(1, MAX_BATCH_BYTES)
    }

    /// Estimates the vertices of a batch of a whole level from those of some chunks. The count
    /// in the metadata may be wrong, so chunks bound it.
    pub(crate) fn expected(&self, schema: &Schema, some: &[Option<Chunk>], chunks: usize) -> usize {
        let rows = some.iter().flatten().map(|chunk| chunk.held.rows());
        let rows = rows.fold(0, u64::saturating_add);
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let alike = rows.saturating_mul(count(chunks).div_ceil(count(some.len()).max(1)));
        let all = match self.level.metadata.vertex_count {
            Some(count) => count.min(alike.saturating_mul(8)),
            None => alike,
        };
        let most = self.batch_size().min(MAX_PREALLOC_BYTES) / schema.row().max(1);
        usize::try_from(all.min(most.saturating_add(rows))).unwrap_or(0)
    }
}

/// Chunks read in groups that fit into memory.
pub(crate) struct ChunkGroups<'c> {
    left: &'c [ChunkCoord],
    size: usize,
}

impl<'c> ChunkGroups<'c> {
    pub(crate) fn new(chunks: &'c [ChunkCoord], size: usize) -> Self {
        Self {
            left: chunks,
            size: size.max(1),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// Reads the next group. One that does not fit into memory is read in halves.
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

/// Returns whether an error says that chunks do not fit into the memory budget.
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
