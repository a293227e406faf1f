//! Selection of links by region and predicate.

use zvf_model::draco::VertexOrder;

use super::{LinkWork, unreadable::UnreadableChunks};
use crate::{
    batch::columns::{CellView, ColumnView, ColumnViews, RowIndices},
    catalog::links::LinkRecords,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    exec::links::{LinkGraph, LinkNode, LinkRun, SelectedLinks},
    geometry::{Mode, Primitive},
    predicate::{Scope, Truth},
    query::Clip,
    resolve::query::{Allowed, LevelQuery},
};

/// The selected links of a cell.
#[derive(Default)]
struct Stored {
    links: LinkRun,
    /// First ends of all links: numbers of chunks and rows.
    children: Vec<(usize, u64)>,
}

impl LevelQuery<'_> {
    /// Returns the selected links: stored ones in their order, then implied ones.
    pub(super) fn selected_links(
        &self,
        work: &LinkWork<'_>,
        records: &[LinkRecords],
        graph: &LinkGraph,
        diagnostics: &Diagnostics,
    ) -> Result<SelectedLinks, QueryError> {
        let allowed = self.allowed()?;
        let mut links = SelectedLinks::default();
        // First ends of stored links, by the number of their chunk.
        let mut children: Vec<Vec<u64>> = vec![Vec::new(); graph.chunks.len()];
        let mut lost = UnreadableChunks::default();
        let ends = records.iter().map(|read| read.ends.len());
        let bytes = ends.sum::<usize>().saturating_mul(size_of::<u64>());
        let cells = records.iter().enumerate().collect();
        let stored = on_cores(cells, bytes, |(cell, read)| {
            self.stored_links(work, (cell, read), graph, &allowed, diagnostics)
        });
        for (read, stored) in records.iter().zip(stored) {
            lost.add(read);
            let stored = stored?;
            links.push(stored.links);
            for (number, row) in stored.children {
                if let Some(rows) = children.get_mut(number) {
                    rows.push(row);
                }
            }
        }
        // An implied link has no attributes.
        if work.links.implied && self.unstored_pass(work)? {
            let nodes = graph.chunks.iter().zip(children).enumerate().collect();
            let loaded = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
            let bytes = loaded.map(|node| node.chunk.positions.len()).sum();
            let implied = on_cores(nodes, bytes, |(number, ((coord, node), children))| {
                let node = node.as_ref().filter(|node| node.is_whole);
                match node.filter(|_| !lost.has(coord)) {
                    Some(node) => self.implied_links(number, node, children, graph),
                    None => LinkRun::default(),
                }
            });
            for more in implied {
                links.push(more);
            }
        }
        Ok(links)
    }

    /// Returns the selected links of a cell.
    fn stored_links(
        &self,
        work: &LinkWork<'_>,
        (cell, read): (usize, &LinkRecords),
        graph: &LinkGraph,
        allowed: &Allowed,
        diagnostics: &Diagnostics,
    ) -> Result<Stored, QueryError> {
        let passes = self.links_pass(work, read)?;
        let mut stored = Stored::default();
        // Without a region and a predicate, nearly all are selected.
        if self.area.is_none() && passes.is_none() {
            stored.links = LinkRun::with_capacity(read.len(), read.width);
        }
        let mut link = Vec::new();
        let numbers = graph.numbers(read);
        let number_of = |end: (u32, u64)| {
            let at = usize::try_from(end.0).ok()?;
            numbers.get(at).copied().flatten()
        };
        'records: for (at, ends) in read.ends.chunks(read.width.max(1)).enumerate() {
            if work.links.implied
                && let Some(child) = ends.first()
                && let Some(number) = number_of(*child)
            {
                stored.children.push((number, child.1));
            }
            if passes
                .as_ref()
                .is_some_and(|passes| passes.get(at) != Some(&true))
            {
                continue;
            }
            link.clear();
            for end in ends {
                let number = number_of(*end);
                // A link with an end that was not read is not selected.
                let Some((number, node)) = number.and_then(|n| Some((n, graph.node(n)?))) else {
                    if self.area.is_none()
                        && !self.selects_objects()
                        && number.is_none()
                        && let Some(chunk) = read.chunk_of(*end)
                        && allowed.allows(chunk)
                    {
                        let fault = Fault::NoChunk(chunk.clone());
                        diagnostics.skip(Damage::new(&read.node, fault))?;
                    }
                    continue 'records;
                };
                if node.chunk.order == VertexOrder::Lost && !read.is_with_vertices {
                    let chunk = &node.chunk.chunk;
                    diagnostics.skip(Damage::in_chunk(&read.node, chunk, Fault::OrderLost))?;
                    continue 'records;
                }
                if end.1 >= node.chunk.rows {
                    let (row, rows) = (end.1, node.chunk.rows);
                    let fault = Fault::NoRow { row, rows };
                    let chunk = &node.chunk.chunk;
                    diagnostics.skip(Damage::in_chunk(&read.node, chunk, fault))?;
                    continue 'records;
                }
                let Some(index) = node.chunk.loaded.index_of(end.1) else {
                    continue 'records;
                };
                if node.marks.is_member.get(index) != Some(&true) {
                    continue 'records;
                }
                link.push((number, index));
            }
            if self.selects_link(&link, graph) {
                stored.links.push(&link, Some((cell, at)));
            }
        }
        Ok(stored)
    }

    /// Returns the selected links between consecutive rows of a fragment, without those of
    /// `children`, whose links are stored.
    fn implied_links(
        &self,
        number: usize,
        node: &LinkNode,
        mut children: Vec<u64>,
        graph: &LinkGraph,
    ) -> LinkRun {
        // Without a region, nearly all are selected.
        let mut links = match self.area {
            None => LinkRun::with_capacity(node.rows.len(), 2),
            Some(_) => LinkRun::default(),
        };
        children.sort_unstable();
        for (parent, child) in node.rows.iter().zip(node.rows.iter().skip(1)) {
            let explicit = || children.binary_search(&child.row).is_ok();
            if parent.fragment != child.fragment || explicit() {
                continue;
            }
            let ends = [(number, child.index), (number, parent.index)];
            if self.selects_link(&ends, graph) {
                links.push(&ends, None);
            }
        }
        links
    }

    /// Returns whether the predicate on links is true for a link without attributes.
    fn unstored_pass(&self, work: &LinkWork) -> Result<bool, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.links.set) else {
            return Ok(self.filter.link.is_none());
        };
        let none = RowIndices::Run { first: 0, len: 0 };
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        for attribute in &set.attributes {
            if let Some(metadata) = &attribute.metadata {
                let view = CellView::new(Scope::Link, &attribute.name, metadata, None, none);
                views.push(Box::new(view));
            }
        }
        let views = ColumnViews(views);
        Ok(predicate.bind(&views)?.evaluate(&views, 0).is_true())
    }

    /// Evaluates the predicate on the links of a cell; `None` without a predicate.
    fn links_pass(
        &self,
        work: &LinkWork<'_>,
        records: &LinkRecords,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.links.set) else {
            return Ok(None);
        };
        let len = records.len();
        let indices = RowIndices::Run { first: 0, len };
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        for (attribute, cell) in set.attributes.iter().zip(&records.attributes) {
            if let Some(metadata) = &attribute.metadata {
                let name = &attribute.name;
                let view = CellView::new(Scope::Link, name, metadata, cell.as_ref(), indices);
                views.push(Box::new(view));
            }
        }
        let views = ColumnViews(views);
        let truths = predicate.bind(&views)?.evaluate_all(&views, len);
        Ok(Some(truths.into_iter().map(Truth::is_true).collect()))
    }

    /// Returns whether region and predicate select a link.
    fn selects_link(&self, ends: &[(usize, usize)], graph: &LinkGraph) -> bool {
        if self.filter.vertex.is_some() {
            let mut passes = ends.iter().map(|(number, index)| {
                let node = graph.node(*number);
                node.is_some_and(|node| node.marks.passes.get(*index) == Some(&true))
            });
            let by_filter = match self.predicate_mode() {
                Mode::Touch => passes.any(|passes| passes),
                Mode::Within | Mode::Clip => passes.all(|passes| passes),
            };
            if !by_filter {
                return false;
            }
        }
        let Some(area) = &self.area else {
            return true;
        };
        let mode = match (self.area_mode, self.query.clip) {
            (Mode::Clip, Clip::Drop) => Mode::Within,
            (mode, _) => mode,
        };
        // The marks of the ends mostly decide, without geometry.
        let is_inside = |(number, index): &(usize, usize)| {
            let inside = graph
                .node(*number)
                .and_then(|node| node.marks.inside.as_ref());
            inside.is_some_and(|inside| inside.get(*index) == Some(&true))
        };
        match ends.iter().all(is_inside) {
            false if mode == Mode::Within => return false,
            true if area.decides_by_corners() => return true,
            _ => {}
        }
        let at = |(number, index): &(usize, usize)| {
            let end = (*number, *index);
            graph.position(&end).unwrap_or_default()
        };
        match ends {
            [a] => area.selects(mode, Primitive::Polygon(&[at(a)])),
            [a, b] => area.selects(mode, Primitive::Polygon(&[at(a), at(b)])),
            [a, b, c] => area.selects(mode, Primitive::Polygon(&[at(a), at(b), at(c)])),
            more => {
                let corners: Vec<&[f64]> = more.iter().map(at).collect();
                area.selects(mode, Primitive::Polygon(&corners))
            }
        }
    }
}
