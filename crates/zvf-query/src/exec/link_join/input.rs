//! The input of a join of selected links: chunks, links and their ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_model::grid::ChunkCoord;

use super::LinkWork;
use crate::{
    batch::vertices::Owners,
    catalog::chunk::{Chunk, RequestedRows},
    catalog::links::LinkRecords,
    catalog::objects::ObjectSet,
    catalog::schema::Schema,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    exec::filter::Filter,
    exec::links::{LinkGraph, LinkNode},
    geometry::Mode,
    resolve::area::Area,
    resolve::query::{Allowed, LevelQuery},
};

/// The input of a join of selected links.
pub(super) struct LinkInput {
    pub(super) graph: LinkGraph,
    /// The links of each cell that was read.
    pub(super) records: Vec<LinkRecords>,
    pub(super) objects: Option<Arc<ObjectSet>>,
    /// The objects of the fragments of each chunk of the graph.
    pub(super) owners: Vec<Owners>,
}

impl LevelQuery<'_> {
    /// Reads the chunks and links that a selection needs, and marks the selected vertices.
    ///
    /// Two round trips: chunks, links, objects and columns of the filter; then the ends of links
    /// in other chunks.
    pub(super) async fn link_input(
        &self,
        work: &LinkWork<'_>,
        diagnostics: &Diagnostics,
    ) -> Result<LinkInput, QueryError> {
        let schema = work.schema;
        let allowed = self.allowed()?;
        let (members, named) = match self.selects_objects() {
            true => {
                let (members, objects) = work.objects.members(diagnostics).await?;
                (Some(members), Some(objects))
            }
            false => (None, None),
        };
        let mut chunks = self.near_chunks_where(schema, |chunk| {
            let members = members.as_ref();
            members.is_none_or(|members| members.contains(chunk))
        })?;
        let mut cells = work.links.cells(self, members.as_ref())?;
        if self.filter.is_never {
            chunks.clear();
            cells.clear();
        }
        let requests = chunks.iter().map(|chunk| {
            let fragments = members.as_ref().and_then(|members| members.get(chunk));
            let rows = match fragments.map(<[u32]>::to_vec) {
                None => RequestedRows::All,
                // A region also asks for ends of links in other fragments, if they are in memory.
                Some(fragments) if self.area.is_some() => RequestedRows::Fragments(fragments),
                Some(fragments) => RequestedRows::Covering(fragments),
            };
            work.request(chunk, rows)
        });
        let requests = requests.collect();
        let read = work.chunks.read_chunks(schema, requests, diagnostics);
        let records = async {
            match &work.links.set {
                Some(set) => {
                    let cells = work
                        .cells
                        .read_links(set, &cells, members.as_ref(), diagnostics);
                    cells.await
                }
                None => Ok(Vec::new()),
            }
        };
        let filter = Filter::open(work.filter, schema, named.as_deref(), work.context);
        // Vertices of selected objects belong to these; no others are read.
        let objects = async {
            match &named {
                Some(objects) => Ok(Some(Arc::clone(objects))),
                None => work.objects.objects_if(work.has_owners, diagnostics).await,
            }
        };
        let objects = try_join(objects, filter);
        let ((objects, filter), (read, mut records)) =
            try_join(objects, try_join(read, records)).await?;
        self.check_chunks(schema, objects.as_ref(), diagnostics)?;
        let mut graph = LinkGraph::new(self.nodes(schema, chunks.into_iter().zip(read), true));
        reread_other_groups(work, &cells, &mut records, &graph, diagnostics).await?;
        self.load_ends(work, &records, &allowed, &mut graph, diagnostics)
            .await?;
        let loaded = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
        let bytes = loaded.map(|node| node.chunk.positions.len()).sum();
        let nodes: Vec<_> = graph.chunks.iter_mut().collect();
        let owners = on_cores(nodes, bytes, |(coord, node)| {
            let Some(node) = node else {
                return Ok(Owners::default());
            };
            let owners = self.owners_of(objects.as_ref(), &node.chunk, diagnostics)?;
            if let Some(set) = &work.links.set {
                set.note_fragments(coord, node.chunk.fragments.len(), diagnostics);
            }
            node.rows = match &members {
                None => node.chunk.runs(),
                Some(members) => node.chunk.runs_of(members.get(coord).unwrap_or_default()),
            };
            node.marks = filter.mark(&node.chunk, &node.rows, &owners)?;
            Ok(owners)
        });
        let owners = owners.into_iter().collect::<Result<Vec<_>, QueryError>>()?;
        Ok(LinkInput {
            graph,
            records,
            objects,
            owners,
        })
    }

    /// Reads ends of links in other chunks, if the link may be selected.
    async fn load_ends(
        &self,
        work: &LinkWork<'_>,
        records: &[LinkRecords],
        allowed: &Allowed,
        graph: &mut LinkGraph,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let Some(area) = &self.area else {
            return Ok(());
        };
        if self.link_mode() == Mode::Within {
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
                if area.may_intersect(&known, &chunks) {
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
        let mut present = Vec::with_capacity(wanted.len());
        let mut more = Vec::with_capacity(wanted.len());
        for (chunk, rows) in wanted {
            if !work.schema.vertices.has(&chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&work.schema.vertices.node, fault))?;
                more.push((chunk, None));
                continue;
            }
            requests.push(work.request(&chunk, RequestedRows::Rows(rows.into_iter().collect())));
            present.push(chunk);
        }
        let read = self.read_chunks(work.schema, requests, diagnostics).await?;
        more.extend(self.nodes(work.schema, present.into_iter().zip(read), false));
        graph.extend(more);
        Ok(())
    }

    /// Returns the nodes of chunks, with positions if links are tested against the region.
    fn nodes(
        &self,
        schema: &Schema,
        read: impl Iterator<Item = (ChunkCoord, Option<Chunk>)>,
        is_whole: bool,
    ) -> Vec<(ChunkCoord, Option<LinkNode>)> {
        let node =
            |(at, chunk): (_, Option<Chunk>)| (at, chunk.map(|c| LinkNode::new(c, is_whole)));
        let mut nodes: Vec<_> = read.map(node).collect();
        // Links within a box need only the marks of their ends.
        let by_ends = |area: &Area| self.link_mode() == Mode::Within && area.decides_by_corners();
        if self.area.as_ref().is_some_and(|area| !by_ends(area)) {
            let loaded = nodes.iter_mut().filter_map(|(_, node)| node.as_mut());
            let loaded: Vec<&mut LinkNode> = loaded.collect();
            let bytes = loaded.iter().map(|node| node.chunk.positions.len()).sum();
            on_cores(loaded, bytes, |node| {
                node.coordinates = node.chunk.coordinates(schema);
            });
        }
        nodes
    }
}

/// Reads cells again, as a whole, if their groups of links do not follow the fragments of the chunk
/// although the level declares it.
async fn reread_other_groups(
    work: &LinkWork<'_>,
    cells: &[usize],
    records: &mut [LinkRecords],
    graph: &LinkGraph,
    diagnostics: &Diagnostics,
) -> Result<(), QueryError> {
    let follows = |read: &LinkRecords| {
        let Some(groups) = read.groups else {
            return true;
        };
        // All ends of such a cell are in one chunk.
        let number = graph.numbers(read).into_iter().next().flatten();
        let Some(node) = number.and_then(|number| graph.node(number)) else {
            return true;
        };
        let is_loaded = |end: &(u32, u64)| node.chunk.loaded.index_of(end.1).is_some();
        node.chunk.fragments.len() == groups && read.ends.iter().all(is_loaded)
    };
    let wrong = records.iter().enumerate();
    let wrong = wrong.filter(|(_, read)| !follows(read)).map(|(at, _)| at);
    let wrong: Vec<usize> = wrong.collect();
    let (Some(set), false) = (&work.links.set, wrong.is_empty()) else {
        return Ok(());
    };
    let again = wrong.iter().filter_map(|at| cells.get(*at).copied());
    let again: Vec<usize> = again.collect();
    let read = work
        .cells
        .read_links(set, &again, None, diagnostics)
        .await?;
    for (at, read) in wrong.into_iter().zip(read) {
        if let Some(records) = records.get_mut(at) {
            *records = read;
        }
    }
    Ok(())
}
