//! The input of a join of selected links: chunks, links and their ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_catalog::{Chunk, Damage, Fault, LinkRecords, ObjectSet, RequestedRows, Schema, on_cores};
use zvf_model::grid::ChunkCoord;

use super::{LinkObjects, LinksPlan};
use crate::{
    batch::vertices::Owners,
    error::QueryError,
    exec::{
        context::ExecContext,
        filter::RowFilter,
        links::{LinkGraph, LinkNode},
    },
    geometry::Mode,
    resolve::{
        area::Area,
        query::{ChunkRestriction, LevelQuery},
    },
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

impl LinksPlan {
    /// Reads the chunks and links that a selection needs, and marks the selected vertices.
    ///
    /// Two round trips: chunks, links, objects and columns of the filter; then the ends of links
    /// in other chunks.
    pub(super) async fn input(&self, context: ExecContext<'_>) -> Result<LinkInput, QueryError> {
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.scan.schema);
        let allowed = query.allowed()?;
        let (members, named) = match &self.objects {
            LinkObjects::Selected(scan) => {
                let rows = async {
                    let catalog = context.of(&self.scan).catalog;
                    Ok(catalog.load_fragment_rows(schema, diagnostics).await?)
                };
                let members = context.of(scan).members();
                let ((members, objects), ()) = try_join(members, rows).await?;
                (Some(members), Some(objects))
            }
            LinkObjects::None | LinkObjects::Owners(_) => (None, None),
        };
        let mut chunks = query.near_chunks_where(schema, |chunk| {
            let members = members.as_ref();
            members.is_none_or(|members| members.contains(chunk))
        })?;
        let mut cells = self.links.cells(query, members.as_ref())?;
        if query.filter.is_never {
            chunks.clear();
            cells.clear();
        }
        let requests = chunks.iter().map(|chunk| {
            let fragments = members.as_ref().and_then(|members| members.get(chunk));
            let rows = match fragments.map(<[u32]>::to_vec) {
                None => RequestedRows::All,
                // A region also asks for ends of links in other fragments, if they are in memory.
                Some(fragments) if query.area.is_some() => RequestedRows::Fragments(fragments),
                Some(fragments) => RequestedRows::Covering(fragments),
            };
            self.scan.request(chunk, rows)
        });
        let scan = context.of(&self.scan);
        let read = scan.read_chunks(schema, requests.collect());
        let records = async {
            match &self.links.set {
                Some(set) => {
                    let scan = context.of(&self.links);
                    scan.read_links(set, &cells, members.as_ref()).await
                }
                None => Ok(Vec::new()),
            }
        };
        let filter = RowFilter::open(self.filter, schema, named.as_deref(), context);
        // Vertices of selected objects belong to these; no others are read.
        let objects = async {
            match &self.objects {
                LinkObjects::Selected(_) => Ok(named.clone()),
                LinkObjects::Owners(scan) => context.of(scan).all_objects().await,
                LinkObjects::None => Ok(None),
            }
        };
        let objects = try_join(objects, filter);
        let ((objects, filter), (read, mut records)) =
            try_join(objects, try_join(read, records)).await?;
        context.check_chunks(schema, objects.as_ref())?;
        let mut graph = LinkGraph::new(query.nodes(schema, chunks.into_iter().zip(read), true));
        self.reread_other_groups(context, &cells, &mut records, &graph)
            .await?;
        self.load_ends(context, &records, &allowed, &mut graph)
            .await?;
        let loaded = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
        let bytes = loaded.map(|node| node.chunk.positions.len()).sum();
        let nodes: Vec<_> = graph.chunks.iter_mut().collect();
        let owners = on_cores(nodes, bytes, |(coord, node)| {
            let Some(node) = node else {
                return Ok(Owners::default());
            };
            let owners = context.owners_of(objects.as_ref(), &node.chunk)?;
            if let Some(set) = &self.links.set {
                set.note_fragments(coord, node.chunk.fragments.len(), diagnostics);
            }
            node.rows = match &members {
                None => node.chunk.runs(),
                Some(members) => node.chunk.runs_of(members.get(coord).unwrap_or_default()),
            };
            node.marks = filter.mark(&node.chunk, &node.rows, &owners)?;
            Ok(owners)
        })
        .into_iter()
        .collect::<Result<Vec<_>, QueryError>>()?;
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
        context: ExecContext<'_>,
        records: &[LinkRecords],
        allowed: &ChunkRestriction,
        graph: &mut LinkGraph,
    ) -> Result<(), QueryError> {
        let (query, schema) = (context.query, &*self.scan.schema);
        let Some(area) = &query.area else {
            return Ok(());
        };
        if query.link_mode() == Mode::Within {
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
            if !schema.vertices.has(&chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                context
                    .diagnostics
                    .skip(Damage::new(&schema.vertices.node, fault))?;
                more.push((chunk, None));
                continue;
            }
            let rows = RequestedRows::Rows(rows.into_iter().collect());
            requests.push(self.scan.request(&chunk, rows));
            present.push(chunk);
        }
        let read = context.read_chunks(schema, requests).await?;
        more.extend(query.nodes(schema, present.into_iter().zip(read), false));
        graph.extend(more);
        Ok(())
    }

    /// Reads cells again, as a whole, if their groups of links do not follow the fragments of the chunk
    /// although the level declares it.
    async fn reread_other_groups(
        &self,
        context: ExecContext<'_>,
        cells: &[usize],
        records: &mut [LinkRecords],
        graph: &LinkGraph,
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
        let wrong: Vec<usize> = records
            .iter()
            .enumerate()
            .filter(|(_, read)| !follows(read))
            .map(|(at, _)| at)
            .collect();
        let (Some(set), false) = (&self.links.set, wrong.is_empty()) else {
            return Ok(());
        };
        let again: Vec<usize> = wrong
            .iter()
            .filter_map(|at| cells.get(*at).copied())
            .collect();
        let scan = context.of(&self.links);
        let read = scan.read_links(set, &again, None).await?;
        for (at, read) in wrong.into_iter().zip(read) {
            if let Some(records) = records.get_mut(at) {
                *records = read;
            }
        }
        Ok(())
    }
}

impl LevelQuery<'_> {
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
            let loaded: Vec<&mut LinkNode> = nodes
                .iter_mut()
                .filter_map(|(_, node)| node.as_mut())
                .collect();
            let bytes = loaded.iter().map(|node| node.chunk.positions.len()).sum();
            on_cores(loaded, bytes, |node| {
                node.coordinates = node.chunk.coordinates(schema);
            });
        }
        nodes
    }
}
