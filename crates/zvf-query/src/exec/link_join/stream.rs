//! Join of all links of a level, batch by batch.

use core::ops::ControlFlow;

use futures_util::future::try_join;
use zvf_catalog::{LinkRecords, LinkSet, RequestedRows};
use zvf_model::{column::NumericColumn, grid::ChunkCoord};

use super::{numbering::Numbering, row_map::RowMap, unreadable::UnreadableChunks};
use crate::{
    error::QueryError,
    exec::{
        chunk_scan::{ChunkGroups, ChunkScan},
        context::ExecContext,
        filter::SelectedRows,
        gather::Gather,
        link_scan::LinkScan,
        links::{LinkBuilder, UnstoredLinks},
        object_columns::ObjectColumns,
        object_scan::OwnerScan,
        operator::{LaterRead, Operator, OperatorTree},
    },
    resolve::query::{Batching, Emit, LevelQuery},
    result::Links,
};

/// Cells of links read at once.
const BATCH_CELLS: usize = 256;

/// All links of a level with its vertices.
#[derive(Debug)]
pub(crate) struct WholeLinksPlan {
    pub(crate) columns: ObjectColumns,
    pub(crate) join: StreamedLinkJoin,
    pub(crate) scan: ChunkScan,
    pub(crate) owners: Option<OwnerScan>,
    pub(crate) links: LinkScan,
}

/// The operator that joins all links of a level with its vertices, batch by batch.
///
/// Also gathers the vertices: keeps the output rows of each chunk, not its vertices.
#[derive(Debug)]
pub(crate) struct StreamedLinkJoin {
    pub(crate) gather: Gather,
}

impl Operator for StreamedLinkJoin {
    const NAME: &'static str = "StreamedLinkJoin";

    fn later_reads(&self, _: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        later.push(LaterRead::always("links"));
    }
}

impl WholeLinksPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.columns);
        tree.push(&self.join);
        let vertices = |tree: &mut OperatorTree<'_>| {
            tree.push(&self.scan);
            tree.push(self.owners.as_ref());
        };
        tree.inputs(vertices, |tree| tree.push(&self.links));
    }

    /// Emits a whole level: vertices chunk by chunk, then links cell by cell. Only the rows that
    /// the vertices of each chunk went to are held.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        self.links.note_unknown_rows(context);
        let mut map = RowMap::default();
        match self.stream_vertices(context, &mut map, emit).await? {
            ControlFlow::Continue(max_bytes) => {
                self.stream_links(context, &map, max_bytes, emit).await
            }
            ControlFlow::Break(()) => Ok(()),
        }
    }

    /// Emits all vertices and records their rows in `map`. Returns the bytes that a batch of links
    /// may have.
    async fn stream_vertices(
        &self,
        context: ExecContext<'_>,
        map: &mut RowMap,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<(), u64>, QueryError> {
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.scan.schema);
        let set = self.links.set.as_deref();
        let chunks = query.chunks(schema)?;
        let scan = context.of(&self.scan);
        let request = |chunk: &ChunkCoord| self.scan.request(chunk, RequestedRows::All);
        let at_once = query.catalog.fetch.at_once();
        let group_size = query.group_size(schema, chunks.len(), at_once);
        let mut groups = ChunkGroups::new(&chunks, group_size);
        let first = groups.read(scan, schema, &request);
        let objects = OwnerScan::read(self.owners.as_ref(), context);
        let (objects, mut group) = try_join(objects, first).await?;
        context.check_chunks(schema, objects.as_ref())?;
        let mut gather = self.join.gather.chunks(query, schema, chunks.len());
        loop {
            for portion in gather.portions(&group) {
                for chunk in portion.iter().flatten() {
                    if let Some(set) = set {
                        set.note_fragments(&chunk.chunk, chunk.fragments.len(), diagnostics);
                    }
                    map.add(chunk, &chunk.runs(), self.links.implied);
                }
                if !gather.push_chunks(portion) {
                    for chunk in portion.iter().flatten() {
                        let selected = SelectedRows {
                            chunk,
                            owners: context.owners_of(objects.as_ref(), chunk)?,
                            rows: chunk.runs(),
                        };
                        gather.push(&selected, objects.as_deref(), diagnostics)?;
                    }
                }
                if let Some(mut batch) = gather.full_batch() {
                    batch.links = Some(no_links(set));
                    if emit(batch).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    query.pause().await;
                }
            }
            if groups.is_done() {
                break;
            }
            group = groups.read(scan, schema, &request).await?;
        }
        let (mut batch, ids) = gather.finish();
        let columns = context.of(&self.columns);
        columns
            .add_objects(&mut batch, objects.as_ref(), &ids)
            .await?;
        batch.links = Some(no_links(set));
        // A result in one piece shares the budget between vertices and links.
        let mut max_bytes = query.batch_size();
        if query.batching == Batching::Whole {
            max_bytes = max_bytes.saturating_sub(batch.size());
        }
        let flow = emit(batch);
        query.pause().await;
        Ok(match flow {
            ControlFlow::Continue(()) => ControlFlow::Continue(max_bytes),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        })
    }

    /// Emits all links, numbered by `map`, in batches of about `max_bytes`.
    async fn stream_links(
        &self,
        context: ExecContext<'_>,
        map: &RowMap,
        max_bytes: u64,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.scan.schema);
        let set = self.links.set.as_deref();
        let (allowed, chunks) = (query.allowed()?, query.chunks(schema)?);
        let numbering = Numbering {
            map,
            allowed: &allowed,
            chunks: &chunks,
            implied: self.links.implied,
            diagnostics,
        };
        let builder = || LinkBuilder::new(set, &query.shown.link);
        let mut links = builder();
        let mut children = Vec::new();
        let mut unreadable = UnreadableChunks::default();
        let cells = self.links.cells(query, None)?;
        let (mut cells, mut at_once) = (cells.as_slice(), BATCH_CELLS);
        while let Some(set) = set.filter(|_| !cells.is_empty()) {
            let (now, rest) = cells.split_at(at_once.min(cells.len()));
            let catalog = context.of(&self.links).catalog;
            let read = catalog.fetch_links(&query.level, set, now).await?;
            // Cells that exceed the budget are read in halves.
            if now.len() > 1 && read.is_over_budget() {
                at_once = now.len().div_ceil(2);
                continue;
            }
            // A row of links has a number for each end. The size of the other cells is
            // extrapolated, up to a limit, because cells between chunks are smaller.
            let ends = read.bytes() / size_of::<u64>();
            let alike = ends.saturating_mul(cells.len()) / now.len().max(1);
            let expected = alike.min(ends.saturating_mul(4));
            let number = |records: LinkRecords| {
                let numbered = numbering.number(&records)?;
                Ok((records, numbered))
            };
            read.each(diagnostics, number, |numbered| {
                for (records, numbered) in &numbered {
                    unreadable.add(records);
                    children.extend_from_slice(&numbered.children);
                }
                links.push_cells(&numbered, expected)
            })?;
            cells = rest;
            if !self.links.implied && links.size() >= max_bytes {
                let mut batch = query.empty_result();
                let axes = u32::try_from(schema.axes).unwrap_or(1);
                batch.positions = NumericColumn::new(schema.dtype.kind(), axes);
                core::mem::replace(&mut links, builder()).finish(&mut batch);
                if emit(batch).is_break() {
                    return Ok(());
                }
                query.pause().await;
            }
        }
        if self.links.implied {
            children.sort_unstable();
            let unreadable = unreadable.rows(map);
            let (rows, starts) = map.starts();
            links.merge_implied(&UnstoredLinks {
                rows,
                starts,
                stored: &children,
                unreadable: &unreadable,
            });
        }
        let mut last = query.empty_result();
        let owners = self.join.gather.owners;
        query.vertices(schema, owners).finish(&mut last);
        links.finish(&mut last);
        let _ = emit(last);
        Ok(())
    }
}

fn no_links(set: Option<&LinkSet>) -> Links {
    let width = set.and_then(|set| set.width().ok().flatten());
    Links {
        width: width.map_or(2, |width| u32::try_from(width.get()).unwrap_or(2)),
        ends: Vec::new(),
    }
}
