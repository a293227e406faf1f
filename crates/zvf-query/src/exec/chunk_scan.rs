//! Scan of chunks in their order, which drives the operators on vertices above it.

use futures_util::future::try_join;
use zvf_model::{
    fetch::FetchProblem, geometry_kind::GeometryKind, grid::ChunkCoord, level::LevelId,
};

use super::{
    context::ExecContext, filter::Filter, gather::VertexGather, operator::ChunkScan,
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
        let scope = context.scope(pipeline.objects());
        let has_owners = !pipeline.source.inputs.is_empty();
        let chunks = query.scanned_chunks(schema)?;
        let objects = scope.objects_if(has_owners, diagnostics);
        let filter = Filter::open(pipeline.filter, schema, None, context);
        let request = |chunk: &ChunkCoord| self.request(query, chunk);
        let at_once = query.session.fetch.at_once();
        let group_size = query.group_size(schema, chunks.len(), at_once);
        let mut groups = ChunkGroups::new(&chunks, group_size);
        let first = groups.read(&scan, schema, &request, diagnostics);
        let ((objects, filter), mut group) = try_join(try_join(objects, filter), first).await?;
        query.check_chunks(schema, objects.as_ref(), diagnostics)?;
        let mut limit = pipeline.limit();
        let passes_all = filter.passes_all() && limit.passes_all();
        let mut gather = VertexGather::new(query, schema, chunks.len(), self.owners);
        loop {
            for portion in gather.portions(&group) {
                if !(passes_all && gather.push_chunks(portion)) {
                    let chunks: Vec<&Chunk> = portion.iter().flatten().collect();
                    let bytes = chunks.iter().map(|chunk| chunk.positions.len()).sum();
                    let selected = on_cores(chunks, bytes, |chunk| {
                        let owners = query.owners_of(objects.as_ref(), chunk, diagnostics)?;
                        filter.select(chunk, owners)
                    });
                    for selected in selected {
                        let mut selected = selected?;
                        limit.truncate(&mut selected.rows);
                        gather.push(&selected, objects.as_deref(), diagnostics)?;
                    }
                }
                if let Some(batch) = gather.full_batch() {
                    if emit(batch).is_break() {
                        return Ok(());
                    }
                    query.pause().await;
                }
            }
            if limit.is_reached() || groups.is_done() {
                break;
            }
            group = groups.read(&scan, schema, &request, diagnostics).await?;
        }
        let (mut batch, ids) = gather.finish();
        let columns = context.scope(pipeline.columns());
        columns
            .add_objects(&mut batch, objects.as_ref(), &ids, diagnostics)
            .await?;
        let _ = emit(batch);
        Ok(())
    }
}

impl LevelQuery<'_> {
    /// Returns the chunks that a scan reads: those with vertices, not excluded by the query,
    /// that can hold vertices of the region and of conditions on positions. None for a predicate that is never true.
    pub(crate) fn scanned_chunks(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        let chunks = self.near_chunks_where(schema, |chunk| {
            let by_axes = self.filter.by_axes.as_ref();
            by_axes.is_none_or(|filter| filter.may_hold_in(&self.space, chunk))
        })?;
        Ok(if self.filter.is_never {
            Vec::new()
        } else {
            chunks
        })
    }

    /// Returns whether the fragments of a chunk are its bins, so that a region needs only some.
    pub(crate) fn has_bins(&self) -> bool {
        let cloud = self.session.root.first_kind() == Some(GeometryKind::Points);
        let finest = self.level.id() == LevelId::FULL;
        cloud && finest && self.area.is_some() && self.space.bins().is_some()
    }

    /// Returns the number of chunks that take about `bytes`, at least 1.
    pub(crate) fn group_size(&self, schema: &Schema, chunks: usize, bytes: u64) -> usize {
        let count = u64::try_from(chunks).unwrap_or(u64::MAX).max(1);
        let Some(vertices) = self.level.metadata.vertex_count.filter(|count| *count > 0) else {
            return DEFAULT_CHUNKS_PER_GROUP;
        };
        let row = schema.row_with_attributes();
        let chunk = vertices.div_ceil(count).saturating_mul(row).max(1);
        let max = bytes.checked_div(chunk).unwrap_or(1);
        usize::try_from(max).unwrap_or(usize::MAX).max(1)
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
