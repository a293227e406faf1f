//! What a region, a filter or objects select: what is read for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_model::grid::ChunkCoord;

use super::{
    LinkWork,
    graph::{Graph, Node},
};
use crate::{
    batch::vertices::Owners,
    catalog::chunk::{Chunk, RequestedRows},
    catalog::links::LinkRecords,
    catalog::objects::ObjectSet,
    catalog::schema::Schema,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    geometry::Mode,
    resolve::area::Area,
    resolve::query::{Emit, LevelQuery},
};

/// Fragments of selected objects, by chunk.
type Members = BTreeMap<ChunkCoord, BTreeSet<u32>>;

impl LevelQuery<'_> {
    /// What is selected, all at once.
    pub(super) async fn some_links(
        &self,
        work: &LinkWork<'_>,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = work.schema;
        let allowed = self.allowed()?;
        let (members, named) = match self.selects_objects() {
            true => {
                let (members, objects) = work.objects.members(diagnostics).await?;
                (Some(members), Some(objects))
            }
            false => (None, None),
        };
        let mut chunks = self.chunks_where(schema, |chunk| {
            self.area.as_ref().is_none_or(|area| area.reaches(chunk))
                && members
                    .as_ref()
                    .is_none_or(|members| members.contains_key(chunk))
        })?;
        let mut cells = self.cells_of_links(work, &allowed, members.as_ref());
        if self.filter.is_never {
            chunks.clear();
            cells.clear();
        }
        let requests = chunks.iter().map(|chunk| {
            let fragments = members.as_ref().and_then(|members| members.get(chunk));
            let rows = fragments.map_or(RequestedRows::All, |fragments| {
                RequestedRows::Fragments(fragments.iter().copied().collect())
            });
            Self::link_chunk_request(work, chunk, rows)
        });
        let requests = requests.collect();
        let read = work.chunks.read_chunks(schema, requests, diagnostics);
        let records = async {
            match &work.set {
                Some(set) => {
                    let read = work.links.read_links(set, &cells, diagnostics);
                    read.await
                }
                None => Ok(Vec::new()),
            }
        };
        let filter = work.filter.vertex_filter(named.as_deref(), diagnostics);
        // Vertices of objects that are selected are theirs: nobody else is asked for.
        let objects = async {
            match &named {
                Some(objects) => Ok(Some(Arc::clone(objects))),
                None => work.objects.objects_if(work.has_owners, diagnostics).await,
            }
        };
        let objects = try_join(objects, filter);
        let ((objects, filter), (read, records)) =
            try_join(objects, try_join(read, records)).await?;
        self.check_chunks(schema, objects.as_ref(), diagnostics)?;
        let mut graph = Graph::new(self.nodes(schema, chunks.into_iter().zip(read), true));
        self.load_ends(work, &records, &allowed, &mut graph, diagnostics)
            .await?;
        let none = BTreeSet::new();
        let held = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
        let bytes = held.map(|node| node.chunk.positions.len()).sum();
        let nodes: Vec<_> = graph.chunks.iter_mut().collect();
        let marked = on_cores(nodes, bytes, |(coord, node)| {
            let Some(node) = node else {
                return Ok(Owners::default());
            };
            let owners = self.owners_of(objects.as_ref(), &node.chunk, diagnostics)?;
            if let Some(set) = &work.set {
                set.note_fragments(coord, node.chunk.fragments.len(), diagnostics);
            }
            let members = members.as_ref().map(|m| m.get(coord).unwrap_or(&none));
            self.mark(schema, node, &filter, &owners, members)?;
            Ok(owners)
        });
        let owners = marked.into_iter().collect::<Result<Vec<_>, QueryError>>()?;
        let selected = self.selected_links(work, &records, &graph, diagnostics)?;
        self.assemble(
            work,
            &records,
            graph,
            selected,
            objects,
            &owners,
            diagnostics,
            emit,
        )
        .await
    }

    /// Cells that can hold a link that is selected.
    fn cells_of_links(
        &self,
        work: &LinkWork<'_>,
        allowed: &crate::resolve::query::Allowed,
        members: Option<&Members>,
    ) -> Vec<usize> {
        let mut cells: Vec<usize> = Vec::new();
        if let Some(set) = &work.set {
            for (at, cell) in set.cells.iter().enumerate() {
                let looked_at = |chunk: &ChunkCoord| {
                    allowed.allows(chunk)
                        && members.is_none_or(|members| members.contains_key(chunk))
                };
                let is_candidate = cell.chunks.as_ref().is_none_or(|chunks| {
                    work.may_matter(chunks, looked_at)
                        && self
                            .area
                            .as_ref()
                            .is_none_or(|area| area.reaches_between(chunks))
                });
                if is_candidate && work.trusts(cell) {
                    cells.push(at);
                }
            }
        }
        cells
    }

    /// Fragments of the objects that are selected, by chunk.
    async fn members(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<(Members, Arc<ObjectSet>), QueryError> {
        let selected = self.selected_objects(diagnostics).await?;
        let selected = selected.ok_or(QueryError::NoObjects(self.level.id()))?;
        let mut members: BTreeMap<ChunkCoord, BTreeSet<u32>> = BTreeMap::new();
        for place in selected.places {
            let holds = selected.holds.as_ref();
            if holds.is_some_and(|holds| holds.get(place) != Some(&true)) {
                continue;
            }
            for piece in selected.objects.fragments(place) {
                if let Some(chunk) = selected.objects.chunk(piece.chunk) {
                    members
                        .entry(chunk.clone())
                        .or_default()
                        .insert(piece.fragment);
                }
            }
        }
        Ok((members, selected.objects))
    }

    /// Reads ends of links outside of the chunks read, where the link may be
    /// selected.
    async fn load_ends(
        &self,
        work: &LinkWork<'_>,
        records: &[LinkRecords],
        allowed: &crate::resolve::query::Allowed,
        graph: &mut Graph,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let Some(area) = &self.area else {
            return Ok(());
        };
        if self.area_mode == Mode::Within {
            return Ok(());
        }
        let mut wanted: BTreeMap<ChunkCoord, BTreeSet<u64>> = BTreeMap::new();
        let (mut known, mut unknown, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        for cell in records {
            let numbers = graph.numbers(cell);
            if numbers.iter().all(Option::is_some) {
                continue;
            }
            for ends in cell.ends.chunks(cell.width.max(1)) {
                known.clear();
                unknown.clear();
                for end in ends {
                    let at = usize::try_from(end.0).unwrap_or(usize::MAX);
                    match numbers.get(at) {
                        Some(Some(number)) => {
                            let node = graph.node(*number);
                            known.extend(node.and_then(|node| node.position(end.1)));
                        }
                        Some(None) => unknown.extend(cell.chunk_of(*end).map(|c| (c, end.1))),
                        None => {}
                    }
                }
                let excluded = unknown.iter().any(|(chunk, _)| !allowed.allows(chunk));
                if unknown.is_empty() || excluded {
                    continue;
                }
                chunks.clear();
                chunks.extend(unknown.iter().map(|(chunk, _)| *chunk));
                if area.may_meet(&known, &chunks) {
                    for (chunk, row) in &unknown {
                        let rows = match wanted.get_mut(*chunk) {
                            Some(rows) => rows,
                            None => wanted.entry((*chunk).clone()).or_default(),
                        };
                        rows.insert(*row);
                    }
                }
            }
        }
        let mut requests = Vec::with_capacity(wanted.len());
        let mut there = Vec::with_capacity(wanted.len());
        let mut more = Vec::with_capacity(wanted.len());
        for (chunk, rows) in wanted {
            if !work.schema.vertices.has(&chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&work.schema.vertices.node, fault))?;
                more.push((chunk, None));
                continue;
            }
            requests.push(Self::link_chunk_request(
                work,
                &chunk,
                RequestedRows::These(rows.into_iter().collect()),
            ));
            there.push(chunk);
        }
        let read = self.read_chunks(work.schema, requests, diagnostics).await?;
        more.extend(self.nodes(work.schema, there.into_iter().zip(read), false));
        graph.extend(more);
        Ok(())
    }

    /// Chunks that were read, with what geometry takes when there is a region.
    fn nodes(
        &self,
        schema: &Schema,
        read: impl Iterator<Item = (ChunkCoord, Option<Chunk>)>,
        is_whole: bool,
    ) -> Vec<(ChunkCoord, Option<Node>)> {
        let node = |(at, chunk): (_, Option<Chunk>)| (at, chunk.map(|c| Node::new(c, is_whole)));
        let mut nodes: Vec<_> = read.map(node).collect();
        // Links that are in it whole need no more than which of their ends are.
        let by_ends = |area: &Area| self.area_mode == Mode::Within && area.holds_corners();
        if self.area.as_ref().is_some_and(|area| !by_ends(area)) {
            let held = nodes.iter_mut().filter_map(|(_, node)| node.as_mut());
            let held: Vec<&mut Node> = held.collect();
            let bytes = held.iter().map(|node| node.chunk.positions.len()).sum();
            on_cores(held, bytes, |node| {
                node.coordinates = node.chunk.coordinates(schema);
            });
        }
        nodes
    }
}
