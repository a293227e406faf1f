//! The plan of points.

use futures_util::future::try_join;
use zvf_catalog::{Chunk, on_cores};
use zvf_model::grid::ChunkCoord;

use super::{
    chunk_scan::{ChunkGroups, ChunkScan},
    context::ExecContext,
    filter::{Filter, RowFilter},
    gather::Gather,
    limit::Limit,
    object_columns::ObjectColumns,
    object_scan::OwnerScan,
    operator::OperatorTree,
};
use crate::{error::QueryError, resolve::query::Emit};

/// A selection of points by region and predicate.
#[derive(Debug)]
pub(crate) struct PointsPlan {
    pub(crate) columns: ObjectColumns,
    pub(crate) gather: Gather,
    pub(crate) limit: Limit,
    pub(crate) filter: Option<Filter>,
    pub(crate) scan: ChunkScan,
    pub(crate) owners: Option<OwnerScan>,
}

impl PointsPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.columns);
        tree.push(&self.gather);
        tree.push(self.limit.as_operator());
        tree.push(self.filter.as_ref());
        tree.push(&self.scan);
        tree.push(self.owners.as_ref());
    }

    /// Emits the vertices of the chunks that are selected.
    ///
    /// One round trip, two where fragments tell which rows to read; more only when the chunks
    /// do not fit into memory at once. Objects and the columns of the filter are read beside
    /// the first chunks. Without a filter and a limit, all vertices of chunks are copied in
    /// bulk and no selection is made.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, schema) = (context.query, &*self.scan.schema);
        let scan = context.of(&self.scan);
        let chunks = query.scanned_chunks(schema)?;
        let objects = OwnerScan::read(self.owners.as_ref(), context);
        let filter = RowFilter::open(self.filter, schema, None, context);
        let request = |chunk: &ChunkCoord| self.scan.request_in_region(query, chunk);
        let at_once = query.catalog.fetch.at_once();
        let group_size = query.group_size(schema, chunks.len(), at_once);
        let mut groups = ChunkGroups::new(&chunks, group_size);
        let first = groups.read(scan, schema, &request);
        let ((objects, filter), mut group) = try_join(try_join(objects, filter), first).await?;
        context.check_chunks(schema, objects.as_ref())?;
        let mut limit = self.limit;
        let passes_all = filter.passes_all() && limit.passes_all();
        let mut gather = self.gather.chunks(query, schema, chunks.len());
        loop {
            for portion in gather.portions(&group) {
                if !(passes_all && gather.push_chunks(portion)) {
                    let chunks: Vec<&Chunk> = portion.iter().flatten().collect();
                    let bytes = chunks.iter().map(|chunk| chunk.positions.len()).sum();
                    let selected = on_cores(chunks, bytes, |chunk| {
                        let owners = context.owners_of(objects.as_ref(), chunk)?;
                        filter.select(chunk, owners)
                    });
                    for selected in selected {
                        let mut selected = selected?;
                        limit.truncate(&mut selected.rows);
                        gather.push(&selected, objects.as_deref(), context.diagnostics)?;
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
            group = groups.read(scan, schema, &request).await?;
        }
        let (mut batch, ids) = gather.finish();
        let columns = context.of(&self.columns);
        columns
            .add_objects(&mut batch, objects.as_ref(), &ids)
            .await?;
        let _ = emit(batch);
        Ok(())
    }
}
