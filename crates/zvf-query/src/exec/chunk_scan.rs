//! Scan of chunks in their order.

use std::sync::Arc;

use zvf_catalog::{Chunk, ChunkRequest, RequestedRows, Schema};
use zvf_model::{geometry_kind::GeometryKind, grid::ChunkCoord, level::LevelId};

use super::{
    context::ExecContext,
    operator::{Details, LaterRead, Operator},
};
use crate::{error::QueryError, query::Shape, resolve::query::LevelQuery, sync::lock};

/// Chunks read at once where their size is not known.
const DEFAULT_CHUNKS_PER_GROUP: usize = 256;

/// The operator that reads, in order, the chunks that neither the region nor the lists of chunks
/// exclude.
#[derive(Debug)]
pub(crate) struct ChunkScan {
    pub(crate) schema: Arc<Schema>,
    /// Reads fragment indexes even if rows do not depend on them.
    pub(crate) fragments: bool,
    /// The fragments of a chunk are its bins, and only bins that touch the region are read.
    pub(crate) bins: bool,
}

impl Operator for ChunkScan {
    const NAME: &'static str = "ChunkScan";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        let chunks = query.scanned_chunks(&self.schema);
        details.add("chunks", chunks.map_or(0, |chunks| chunks.len()));
        if self.bins {
            details.add("rows", "bins");
        }
        if !query.read.vertex.is_empty() {
            details.list("columns", &query.read.vertex);
        }
    }

    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        if query.selects_objects() {
            later.push(LaterRead::always(
                "fragment indexes of the chunks of the objects, and the links between them",
            ));
            later.push(LaterRead {
                what: "the rows of their fragments",
                is_always: self.schema.has_rows_in_part(),
            });
        } else if query.shape == Shape::Points {
            later.push(LaterRead {
                what: "the rows of the bins that the region touches",
                is_always: false,
            });
        }
    }
}

impl ChunkScan {
    /// Returns the request for rows of a chunk.
    pub(crate) fn request(&self, chunk: &ChunkCoord, rows: RequestedRows) -> ChunkRequest {
        ChunkRequest {
            chunk: chunk.clone(),
            fragments: self.fragments,
            rows,
        }
    }

    /// Returns the request for the rows of a chunk that can be in the region.
    pub(crate) fn request_in_region(
        &self,
        query: &LevelQuery<'_>,
        chunk: &ChunkCoord,
    ) -> ChunkRequest {
        let area = query.area.as_ref().filter(|_| self.bins);
        let rows = match area.and_then(|area| area.bins_of(chunk)) {
            Some((bins, of)) => RequestedRows::Bins { bins, of },
            None => RequestedRows::All,
        };
        self.request(chunk, rows)
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
        let cloud = self.catalog.root.first_kind() == Some(GeometryKind::Points);
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

impl ExecContext<'_> {
    /// Reads chunks, except those in the cache.
    pub(crate) async fn read_chunks(
        &self,
        schema: &Schema,
        mut requests: Vec<ChunkRequest>,
    ) -> Result<Vec<Option<Chunk>>, QueryError> {
        let (catalog, diagnostics) = (self.catalog, self.diagnostics);
        let Some(cache) = &self.query.cache else {
            return Ok(catalog.chunks(schema, requests, diagnostics).await?);
        };
        // Cached chunks must be whole.
        for request in &mut requests {
            request.rows = RequestedRows::All;
        }
        let is_cached = |request: &ChunkRequest| lock(&cache.chunks).contains_key(&request.chunk);
        let order: Vec<ChunkCoord> = requests
            .iter()
            .map(|request| request.chunk.clone())
            .collect();
        requests.retain(|request| !is_cached(request));
        let read = catalog.chunks(schema, requests, diagnostics).await?;
        let mut chunks = lock(&cache.chunks);
        for chunk in read.into_iter().flatten() {
            chunks.insert(chunk.chunk.clone(), chunk);
        }
        Ok(order
            .iter()
            .map(|chunk| chunks.get(chunk).cloned())
            .collect())
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
        context: ExecContext<'_>,
        schema: &Schema,
        request: &impl Fn(&ChunkCoord) -> ChunkRequest,
    ) -> Result<Vec<Option<Chunk>>, QueryError> {
        loop {
            let count = self.size.min(self.left.len());
            let (group, left) = self.left.split_at(count);
            let requests = group.iter().map(request).collect();
            let chunks = context
                .catalog
                .chunks(schema, requests, context.diagnostics);
            match chunks.await {
                Err(error) if count > 1 && error.is_over_budget() => {
                    self.size = count.div_ceil(2);
                }
                result => {
                    self.left = left;
                    return Ok(result?);
                }
            }
        }
    }
}
