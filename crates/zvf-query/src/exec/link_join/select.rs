//! Which vertices and links are selected of what was read.

use std::collections::BTreeSet;

use super::{
    LinkWork,
    graph::{End, Graph, Links, Node, Selected},
    unreadable::UnreadableChunks,
};
use crate::{
    batch::columns::{CellView, ColumnView, ColumnViews, Places},
    batch::vertices::Owners,
    catalog::links::LinkRecords,
    catalog::schema::Schema,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    geometry::{Mode, Primitive},
    predicate::{Scope, Truth},
    query::Clip,
    resolve::query::{Allowed, LevelQuery, VertexFilter},
};

/// What is selected of the links of a cell.
#[derive(Default)]
struct Stored {
    links: Selected,
    /// Numbers of chunks and rows there, of first ends of all links.
    children: Vec<(usize, u64)>,
}

impl LevelQuery<'_> {
    /// Finds out which vertices of a chunk are selected by themselves.
    pub(super) fn mark(
        &self,
        schema: &Schema,
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

    /// Which links are selected: those that are stored in their order, then those that
    /// are implied.
    pub(super) fn selected_links(
        &self,
        work: &LinkWork<'_>,
        records: &[LinkRecords],
        graph: &Graph,
        diagnostics: &Diagnostics,
    ) -> Result<Links, QueryError> {
        let allowed = self.allowed()?;
        let mut links = Links::default();
        // Rows that stored links say are children, by the number of their chunk.
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
        // A link that nothing stores has no attributes.
        if work.implied && self.unstored_holds(work)? {
            let nodes = graph.chunks.iter().zip(children).enumerate().collect();
            let held = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
            let bytes = held.map(|node| node.chunk.positions.len()).sum();
            let implied = on_cores(nodes, bytes, |(number, ((coord, node), children))| {
                let node = node.as_ref().filter(|node| node.is_whole);
                match node.filter(|_| !lost.has(coord)) {
                    Some(node) => self.implied_links(number, node, children, graph),
                    None => Selected::default(),
                }
            });
            for more in implied {
                links.push(more);
            }
        }
        Ok(links)
    }

    /// Which links of a cell are selected.
    fn stored_links(
        &self,
        work: &LinkWork<'_>,
        (cell, read): (usize, &LinkRecords),
        graph: &Graph,
        allowed: &Allowed,
        diagnostics: &Diagnostics,
    ) -> Result<Stored, QueryError> {
        let mut stored = Stored::default();
        let mut link = Vec::new();
        let holds = self.links_hold(work, read)?;
        let numbers = graph.numbers(read);
        let number_of = |end: (u32, u64)| {
            let at = usize::try_from(end.0).ok()?;
            numbers.get(at).copied().flatten()
        };
        'records: for (at, ends) in read.ends.chunks(read.width.max(1)).enumerate() {
            if work.implied
                && let Some(child) = ends.first()
                && let Some(number) = number_of(*child)
            {
                stored.children.push((number, child.1));
            }
            if holds
                .as_ref()
                .is_some_and(|holds| holds.get(at) != Some(&true))
            {
                continue;
            }
            link.clear();
            for end in ends {
                let number = number_of(*end);
                // What is not read cannot be selected.
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
                if end.1 >= node.chunk.rows {
                    let (row, rows) = (end.1, node.chunk.rows);
                    let fault = Fault::NoRow { row, rows };
                    let chunk = &node.chunk.chunk;
                    diagnostics.skip(Damage::in_chunk(&read.node, chunk, fault))?;
                    continue 'records;
                }
                let Some(place) = node.chunk.held.place(end.1) else {
                    continue 'records;
                };
                if node.there.get(place) != Some(&true) {
                    continue 'records;
                }
                link.push((number, place));
            }
            if self.selects_link(&link, graph) {
                stored.links.push(&link, Some((cell, at)));
            }
        }
        Ok(stored)
    }

    /// Which links between rows of a fragment that follow each other are selected;
    /// not of `children`, whose links are stored.
    fn implied_links(
        &self,
        number: usize,
        node: &Node,
        mut children: Vec<u64>,
        graph: &Graph,
    ) -> Selected {
        // Nearly all are where whole objects are asked for, and who knows how many in a region.
        let mut links = match self.area {
            None => Selected::with_room(node.entries.len(), 2),
            Some(_) => Selected::default(),
        };
        children.sort_unstable();
        for pair in node.entries.windows(2) {
            let [parent, child] = pair else { continue };
            let explicit = || children.binary_search(&child.row).is_ok();
            if parent.fragment != child.fragment || explicit() {
                continue;
            }
            let ends = [(number, child.place), (number, parent.place)];
            if self.selects_link(&ends, graph) {
                links.push(&ends, None);
            }
        }
        links
    }

    /// Whether the filter's part about links holds for a link without attributes.
    fn unstored_holds(&self, work: &LinkWork) -> Result<bool, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.set) else {
            return Ok(self.filter.link.is_none());
        };
        let none = Places::Run { first: 0, len: 0 };
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

    /// For which records of a cell the filter's part about links holds.
    fn links_hold(
        &self,
        work: &LinkWork<'_>,
        records: &LinkRecords,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &work.set) else {
            return Ok(None);
        };
        let len = records.len();
        let places = Places::Run { first: 0, len };
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        for (attribute, cell) in set.attributes.iter().zip(&records.attributes) {
            if let Some(metadata) = &attribute.metadata {
                let name = &attribute.name;
                let view = CellView::new(Scope::Link, name, metadata, cell.as_ref(), places);
                views.push(Box::new(view));
            }
        }
        let views = ColumnViews(views);
        let truths = predicate.bind(&views)?.evaluate_all(&views, len);
        Ok(Some(truths.into_iter().map(Truth::is_true).collect()))
    }

    /// Whether region and filter select a link whose ends are all there.
    fn selects_link(&self, ends: &[End], graph: &Graph) -> bool {
        let mode = self.query.mode;
        if self.filter.vertex.is_some() {
            let mut holds = ends.iter().map(|(number, place)| {
                let node = graph.node(*number);
                node.is_some_and(|node| node.holds.get(*place) == Some(&true))
            });
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
        let mode = match (self.area_mode, self.query.clip) {
            (Mode::Clip, Clip::Drop) => Mode::Within,
            (mode, _) => mode,
        };
        // Of each vertex it is known whether it is in the region, which mostly is enough.
        let is_inside = |(number, place): &End| {
            let inside = graph.node(*number).and_then(|node| node.inside.as_ref());
            inside.is_some_and(|inside| inside.get(*place) == Some(&true))
        };
        match ends.iter().all(is_inside) {
            false if mode == Mode::Within => return false,
            true if area.holds_corners() => return true,
            _ => {}
        }
        let at = |(number, place): &End| {
            let node = graph.node(*number);
            node.map_or(&[][..], |node| node.coordinates.at(*place))
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
