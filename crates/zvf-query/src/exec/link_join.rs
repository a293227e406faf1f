//! Join of links with the vertices at their ends: graphs, skeletons, meshes.

mod assemble;
mod builder;
mod graph;
mod numbering;
mod row_map;
mod select;
mod selected;
mod unreadable;

use core::ops::ControlFlow;
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use futures_util::future::try_join;
use zvf_model::grid::ChunkCoord;

use super::{
    chunk_scan::{ChunkGroups, portions},
    context::ExecContext,
    operator::{ChunkScan, LinkJoin, ObjectScan, Operator},
    pipeline::Pipeline,
};
use crate::{
    catalog::chunk::{ChunkRequest, RequestedRows},
    catalog::links::{LinkCellSource, LinkRecords, LinkSet},
    catalog::schema::Schema,
    diagnostics::Diagnostics,
    error::QueryError,
    resolve::query::{Emit, LevelQuery},
    result::Links,
};

use builder::LinkBuilder;
use numbering::Numbering;
use row_map::RowMap;
use unreadable::UnreadableChunks;

/// Cells of links read at once.
const CELLS_AT_ONCE: usize = 256;

impl LinkJoin {
    /// Emits the vertices and links that the region and the predicate select.
    ///
    /// Two round trips: the chunks of the region beside the links that can enter it; then the
    /// other ends of links that may enter it.
    ///
    /// The join selects, clips and numbers links itself: each of these steps needs the vertices
    /// at all ends of a link.
    pub(crate) async fn execute(
        &self,
        pipeline: Pipeline<'_>,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (mut scan, mut links, mut objects) = (None, None, pipeline.source.id);
        pipeline
            .source
            .walk(0, &mut |node, _| match &node.operator {
                Operator::ChunkScan(found) => scan = Some((node.id, found)),
                Operator::LinkScan(found) => links = Some((node.id, found)),
                Operator::ObjectScan(_) => objects = node.id,
                _ => {}
            });
        let (Some((chunks, scan)), Some((cells, links))) = (scan, links) else {
            return Ok(());
        };
        let set = links.set.as_ref();
        if set.is_some_and(|set| !set.rows_are_known) {
            context.diagnostics.note(
                "links between chunks are left out: writers of paths did not store the rows of \
                 their ends; read the store as paths",
            );
        }
        let work = LinkWork {
            schema: &scan.schema,
            set: set.map(Arc::clone),
            implied: self.implied,
            scan,
            has_owners: pipeline.source.find(&is_owner_scan).is_some(),
            chunks: context.scope(chunks),
            links: context.scope(cells),
            objects: context.scope(objects),
            filter: context.scope(pipeline.filter.unwrap_or(chunks)),
            columns: context.scope(pipeline.columns.unwrap_or(pipeline.source.id)),
        };
        let (query, diagnostics) = (context.query, context.diagnostics);
        if self.whole_level {
            return query.all_links(&work, diagnostics, emit).await;
        }
        query.some_links(&work, diagnostics, emit).await
    }
}

fn is_owner_scan(operator: &Operator) -> bool {
    matches!(operator, Operator::ObjectScan(ObjectScan::Owners))
}

impl LevelQuery<'_> {
    /// Whether the whole level is asked for, which then comes piece by piece.
    pub(crate) fn is_everything(&self) -> bool {
        self.area.is_none()
            && self.query.filter.is_none()
            && self.query.limit.is_none()
            && self.query.nearest.is_none()
            && !self.selects_objects()
    }

    fn link_chunk_request(
        work: &LinkWork<'_>,
        chunk: &ChunkCoord,
        rows: RequestedRows,
    ) -> ChunkRequest {
        ChunkRequest {
            chunk: chunk.clone(),
            fragments: work.scan.fragments,
            rows,
        }
    }

    /// The whole level: vertices chunk by chunk, then links cell by cell. Of a
    /// chunk only where its rows went is kept.
    #[expect(
        clippy::too_many_lines,
        reason = "two loops that hand on what they count"
    )]
    async fn all_links(
        &self,
        work: &LinkWork<'_>,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = work.schema;
        let chunks = self.chunks(schema)?;
        let allowed = self.allowed()?;
        let request =
            |chunk: &ChunkCoord| Self::link_chunk_request(work, chunk, RequestedRows::All);
        let at_once = self.session.fetch.at_once();
        let mut groups = ChunkGroups::new(&chunks, self.group_size(schema, chunks.len(), at_once));
        let first = groups.read(&work.chunks, schema, &request, diagnostics);
        let (objects, mut group) =
            try_join(work.objects.objects_if(work.has_owners, diagnostics), first).await?;
        self.check_chunks(schema, objects.as_ref(), diagnostics)?;
        let builder = || self.vertices(schema, work.scan.owners);
        let mut map = RowMap::default();
        let mut vertices = builder();
        let mut most = self.batch_size();
        let mut ids = BTreeSet::new();
        loop {
            for portion in portions(&group, vertices.row_size(), most) {
                for chunk in portion.iter().flatten() {
                    if let Some(set) = &work.set {
                        set.note_fragments(&chunk.chunk, chunk.fragments.len(), diagnostics);
                    }
                    map.add(chunk, &chunk.runs(), work.implied);
                }
                let expected = self.expected(schema, portion, chunks.len());
                if !vertices.push_chunks(schema, portion, expected) {
                    vertices.reserve(expected);
                    for chunk in portion.iter().flatten() {
                        let owners = self.owners_of(objects.as_ref(), chunk, diagnostics)?;
                        let object = |fragment| owners.id(fragment, objects.as_deref());
                        vertices.push(schema, chunk, &chunk.runs(), object, diagnostics)?;
                    }
                }
                if vertices.size() >= most {
                    let done = core::mem::replace(&mut vertices, builder());
                    let mut answer = self.empty_answer();
                    done.finish(&mut answer);
                    ids.extend(answer.objects_met());
                    answer.links = Some(no_links(work.set.as_deref()));
                    if emit(answer) == ControlFlow::Break(()) {
                        return Ok(());
                    }
                }
            }
            if groups.is_done() {
                let done = core::mem::replace(&mut vertices, builder());
                let mut answer = self.empty_answer();
                done.finish(&mut answer);
                ids.extend(answer.objects_met());
                work.columns
                    .add_objects(&mut answer, objects.as_ref(), &ids, diagnostics)
                    .await?;
                answer.links = Some(no_links(work.set.as_deref()));
                // What is in one piece is within the budget together.
                if self.in_one {
                    most = most.saturating_sub(answer.size());
                }
                if emit(answer) == ControlFlow::Break(()) {
                    return Ok(());
                }
                break;
            }
            group = groups
                .read(&work.chunks, schema, &request, diagnostics)
                .await?;
        }
        let cells: Vec<usize> = match &work.set {
            None => Vec::new(),
            Some(set) => (0..set.cells.len())
                .filter(|at| {
                    let chunks = set.cells.get(*at).and_then(|cell| cell.chunks.as_ref());
                    let trusted = set.cells.get(*at).is_some_and(|cell| work.trusts(cell));
                    trusted
                        && chunks
                            .is_none_or(|chunks| work.may_matter(chunks, |c| allowed.allows(c)))
                })
                .collect(),
        };
        let mut links = LinkBuilder::new(work.set.as_deref(), &self.shown.link);
        let mut children = Vec::new();
        let mut lost = UnreadableChunks::default();
        let numbering = Numbering {
            map: &map,
            allowed: &allowed,
            chunks: &chunks,
            implied: work.implied,
            diagnostics,
        };
        let (mut cells, mut at_once) = (cells.as_slice(), CELLS_AT_ONCE);
        while let Some(set) = work.set.as_ref().filter(|_| !cells.is_empty()) {
            let (now, rest) = cells.split_at(at_once.min(cells.len()));
            let read = work
                .links
                .session
                .fetch_links(&self.level, set, now)
                .await?;
            // What does not fit is read in halves.
            if now.len() > 1 && read.is_over_budget() {
                at_once = now.len().div_ceil(2);
                continue;
            }
            // A row of links has a number for each end.
            links.reserve(read.bytes() / size_of::<u64>());
            let number = |records: LinkRecords| {
                let numbered = numbering.number(&records)?;
                Ok((records, numbered))
            };
            read.each(diagnostics, number, |(records, numbered)| {
                lost.add(&records);
                children.extend_from_slice(&numbered.children);
                links.push_cell(&records, &numbered)
            })?;
            cells = rest;
            if !work.implied && links.size() >= most {
                let done = core::mem::replace(
                    &mut links,
                    LinkBuilder::new(work.set.as_deref(), &self.shown.link),
                );
                let mut answer = self.empty_answer();
                answer.positions = zvf_model::column::NumericColumn::new(
                    schema.dtype.kind(),
                    u32::try_from(schema.axes).unwrap_or(1),
                );
                done.finish(&mut answer);
                if emit(answer) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
        }
        if work.implied {
            children.sort_unstable();
            let lost = lost.rows(&map);
            let mut stored = children.iter().peekable();
            let implied = map.implied().filter(|(child, _)| {
                let is_lost = lost.iter().any(|rows| rows.contains(child));
                while stored.next_if(|other| *other < child).is_some() {}
                !is_lost && stored.peek() != Some(&child)
            });
            links.weave(implied);
        }
        let mut last = self.empty_answer();
        self.vertices(schema, work.scan.owners).finish(&mut last);
        links.finish(&mut last);
        let _ = emit(last);
        Ok(())
    }
}

/// The inputs of the steps of a link query.
struct LinkWork<'w> {
    scan: &'w ChunkScan,
    schema: &'w Schema,
    set: Option<Arc<LinkSet>>,
    /// Whether rows of a fragment that follow each other are linked.
    implied: bool,
    /// Whether all objects are read, to name the owners of vertices.
    has_owners: bool,
    /// The query with the port of each operator of the join.
    chunks: Cow<'w, LevelQuery<'w>>,
    links: Cow<'w, LevelQuery<'w>>,
    objects: Cow<'w, LevelQuery<'w>>,
    filter: Cow<'w, LevelQuery<'w>>,
    columns: Cow<'w, LevelQuery<'w>>,
}

impl LinkWork<'_> {
    /// Whether the rows of a cell are those of vertices: writers of paths left
    /// others in links between chunks.
    fn trusts(&self, cell: &LinkCellSource) -> bool {
        cell.is_inside || self.set.as_ref().is_some_and(|set| set.rows_are_known)
    }

    /// Whether records between `chunks` can change the answer. Those that leave
    /// what is looked at are not in it, but in a skeleton they still say that a
    /// vertex has another parent than the vertex before it.
    fn may_matter(&self, chunks: &[ChunkCoord], looked_at: impl Fn(&ChunkCoord) -> bool) -> bool {
        match self.implied {
            true => chunks.iter().any(looked_at),
            false => chunks.iter().all(looked_at),
        }
    }
}

fn no_links(set: Option<&LinkSet>) -> Links {
    let width = set.and_then(|set| set.width().ok().flatten());
    Links {
        width: width.map_or(2, |width| u32::try_from(width.get()).unwrap_or(2)),
        ends: Vec::new(),
    }
}
