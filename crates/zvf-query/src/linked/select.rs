//! Which vertices and links are selected of what was read.

use std::collections::{BTreeSet, HashMap};

use zvf_model::{fetch::Fetch, grid::ChunkCoord};

use super::{
    LinkWork,
    graph::{Graph, Link, Node},
    lost::Lost,
};
use crate::{
    build::CellView,
    error::{Damage, Fault, QueryError},
    filter::{ColumnView, Views},
    geometry::{Mode, Primitive},
    links::LinkRecords,
    missing::Ledger,
    plan::{Plan, VertexFilter},
    predicate::Scope,
    query::Cut,
    schema::Schema,
    vertices::Owners,
};

impl<F: Fetch> Plan<'_, F> {
    /// Finds out which vertices of a chunk are selected by themselves.
    pub(super) fn mark(
        &self,
        schema: &Schema<F::Array>,
        node: &mut Node,
        filter: &VertexFilter<'_>,
        owners: &Owners,
        members: Option<&BTreeSet<u32>>,
    ) -> Result<(), QueryError> {
        node.entries = node.chunk.entries();
        if let Some(members) = members {
            node.entries
                .retain(|entry| members.contains(&entry.fragment));
        }
        let rows = usize::try_from(node.chunk.held.rows()).unwrap_or(0);
        node.there = vec![false; rows];
        node.holds = vec![false; rows];
        let holds = filter.holds(schema, &node.chunk, &node.entries, owners)?;
        for (entry, holds) in node.entries.iter().zip(holds) {
            if let Some(there) = node.there.get_mut(entry.place) {
                *there = true;
            }
            if let Some(flag) = node.holds.get_mut(entry.place) {
                *flag |= holds;
            }
        }
        node.inside = self.inside(schema, &node.chunk);
        Ok(())
    }

    /// Which links are selected, in order; those that are implied first.
    pub(super) fn selected_links(
        &self,
        work: &LinkWork<F>,
        records: &[LinkRecords],
        graph: &Graph,
        ledger: &Ledger,
    ) -> Result<Vec<Link>, QueryError> {
        let allowed = self.allowed()?;
        let mut links = Vec::new();
        let mut children: HashMap<&ChunkCoord, BTreeSet<u64>> = HashMap::new();
        let mut lost = Lost::default();
        for (cell, read) in records.iter().enumerate() {
            lost.add(read);
            let holds = self.links_hold(work, read)?;
            'records: for (at, ends) in read.ends.chunks(read.width.max(1)).enumerate() {
                if work.implied
                    && let Some(child) = ends.first()
                    && let Some(chunk) = read.chunk_of(*child)
                {
                    children.entry(chunk).or_default().insert(child.1);
                }
                if holds
                    .as_ref()
                    .is_some_and(|holds| holds.get(at) != Some(&true))
                {
                    continue;
                }
                let mut link = Vec::with_capacity(ends.len());
                for end in ends {
                    let Some(chunk) = read.chunk_of(*end) else {
                        continue 'records;
                    };
                    // What is not read cannot be selected.
                    let Some(Some(node)) = graph.chunks.get(chunk) else {
                        if self.area.is_none() && !self.selects_objects() {
                            let is_read = graph.chunks.contains_key(chunk);
                            if !is_read && allowed.allows(chunk) {
                                let fault = Fault::NoChunk(chunk.clone());
                                ledger.missing(Damage::new(&read.node, fault))?;
                            }
                        }
                        continue 'records;
                    };
                    if end.1 >= node.chunk.rows {
                        let (row, rows) = (end.1, node.chunk.rows);
                        let fault = Fault::NoRow { row, rows };
                        ledger.missing(Damage::in_chunk(&read.node, chunk, fault))?;
                        continue 'records;
                    }
                    let Some(place) = node.chunk.held.place(end.1) else {
                        continue 'records;
                    };
                    if node.there.get(place) != Some(&true) {
                        continue 'records;
                    }
                    link.push((chunk.clone(), place));
                }
                if self.selects_link(&link, graph) {
                    let record = Some((cell, at));
                    links.push(Link { ends: link, record });
                }
            }
        }
        if !work.implied {
            return Ok(links);
        }
        // A link that nothing stores has no attributes.
        if self.unstored_holds(work)? {
            for (coord, node) in &graph.chunks {
                let Some(node) = node.as_ref().filter(|node| node.is_whole) else {
                    continue;
                };
                if lost.has(coord) {
                    continue;
                }
                let overridden = children.get(coord);
                for pair in node.entries.windows(2) {
                    let [parent, child] = pair else { continue };
                    let explicit = overridden.is_some_and(|rows| rows.contains(&child.row));
                    if parent.fragment != child.fragment || explicit {
                        continue;
                    }
                    let ends = vec![(coord.clone(), child.place), (coord.clone(), parent.place)];
                    if self.selects_link(&ends, graph) {
                        links.push(Link { ends, record: None });
                    }
                }
            }
        }
        Ok(links)
    }

    /// Whether the filter's part about links holds for a link without attributes.
    fn unstored_holds(&self, work: &LinkWork<F>) -> Result<bool, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.set) else {
            return Ok(self.filter.link.is_none());
        };
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        for attribute in &set.attributes {
            if let Some(metadata) = &attribute.metadata {
                let view = CellView::new(Scope::Link, &attribute.name, metadata, None, &[None]);
                views.push(Box::new(view));
            }
        }
        let views = Views(views);
        Ok(predicate.bind(&views)?.evaluate(&views, 0).is_true())
    }

    /// For which records of a cell the filter's part about links holds.
    fn links_hold(
        &self,
        work: &LinkWork<F>,
        records: &LinkRecords,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.set) else {
            return Ok(None);
        };
        let places: Vec<_> = (0..records.len()).map(Some).collect();
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        for (attribute, cell) in set.attributes.iter().zip(&records.attributes) {
            if let Some(metadata) = &attribute.metadata {
                let name = &attribute.name;
                let view = CellView::new(Scope::Link, name, metadata, cell.as_ref(), &places);
                views.push(Box::new(view));
            }
        }
        let views = Views(views);
        let bound = predicate.bind(&views)?;
        let holds = (0..records.len()).map(|row| bound.evaluate(&views, row).is_true());
        Ok(Some(holds.collect()))
    }

    /// Whether region and filter select a link whose ends are all there.
    fn selects_link(&self, ends: &[(ChunkCoord, usize)], graph: &Graph) -> bool {
        let mode = self.query.mode;
        let nodes: Vec<(&Node, usize)> = ends
            .iter()
            .filter_map(|(chunk, place)| Some((graph.chunks.get(chunk)?.as_ref()?, *place)))
            .collect();
        if self.filter.vertex.is_some() {
            let mut holds = nodes
                .iter()
                .map(|(node, place)| node.holds.get(*place) == Some(&true));
            let by_filter = match mode {
                Mode::Touch => holds.any(|holds| holds),
                Mode::Within | Mode::Clip => holds.all(|holds| holds),
            };
            if !by_filter {
                return false;
            }
        }
        let Some(area) = &self.area else {
            return true;
        };
        let corners: Vec<&[f64]> = nodes
            .iter()
            .map(|(node, place)| node.coordinates.at(*place))
            .collect();
        let mode = match (self.area_mode, self.query.cut) {
            (Mode::Clip, Cut::Drop) => Mode::Within,
            (mode, _) => mode,
        };
        area.selects(mode, Primitive::Polygon(&corners))
    }
}
