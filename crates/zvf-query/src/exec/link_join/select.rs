//! Selection of links by region and predicate.

use zvf_catalog::{Damage, Diagnostics, Fault, LinkRecords, on_cores};
use zvf_model::draco::VertexOrder;

use super::unreadable::UnreadableChunks;
use crate::{
    batch::columns::{CellView, ColumnView, ColumnViews, RowIndices},
    error::QueryError,
    exec::{
        link_scan::LinkScan,
        links::{LinkGraph, LinkNode, LinkRun, SelectedEnd, SelectedLinks},
    },
    geometry::{Mode, Primitive},
    predicate::{Scope, Truth},
    query::Clip,
    resolve::query::{ChunkRestriction, LevelQuery},
};

/// The selected links of a cell.
struct SelectedCell {
    links: LinkRun,
    /// First ends of all links that are in memory, of skeletons.
    children: Vec<SelectedEnd>,
}

/// The chunk of an end of the links of a cell.
enum EndChunk<'g> {
    /// It was not read.
    Unread,
    /// It could not be read.
    Lost,
    Read(u32, &'g LinkNode),
}

/// The test of a link with ends that are in memory.
#[derive(Clone, Copy)]
enum LinkTest {
    /// All links pass.
    None,
    /// Links with all ends inside the region pass.
    Inside,
    Full,
}

impl LevelQuery<'_> {
    /// Returns the selected links: stored ones in their order, then implied ones.
    pub(super) fn selected_links(
        &self,
        scan: &LinkScan,
        records: &[LinkRecords],
        graph: &LinkGraph,
        diagnostics: &Diagnostics,
    ) -> Result<SelectedLinks, QueryError> {
        let allowed = self.allowed()?;
        let mut links = SelectedLinks::default();
        // First ends of stored links, as indices of rows, by the number of their chunk.
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); graph.chunks.len()];
        let mut unreadable = UnreadableChunks::default();
        let ends = records.iter().map(|read| read.ends.len());
        let bytes = ends.sum::<usize>().saturating_mul(BYTES_PER_END);
        let cells = records.iter().enumerate().collect();
        let stored = on_cores(cells, bytes, |(cell, read)| {
            self.stored_links(scan, (cell, read), graph, &allowed, diagnostics)
        });
        for (read, stored) in records.iter().zip(stored) {
            unreadable.add(read);
            let stored = stored?;
            links.push(stored.links);
            for child in stored.children {
                if let Some(rows) = children.get_mut(child.chunk()) {
                    rows.push(child.index);
                }
            }
        }
        // An implied link has no attributes.
        if scan.implied && self.passes_without_attributes(scan)? {
            let nodes = graph.chunks.iter().zip(children);
            let nodes = (0_u32..).zip(nodes).collect();
            let loaded = graph.chunks.iter().filter_map(|(_, node)| node.as_ref());
            let rows = loaded.map(|node| node.rows.len()).sum::<usize>();
            let bytes = rows.saturating_mul(2 * BYTES_PER_END);
            let implied = on_cores(nodes, bytes, |(number, ((coord, node), children))| {
                let node = node.as_ref().filter(|node| node.is_whole);
                match node.filter(|_| !unreadable.has(coord)) {
                    Some(node) => self.implied_links(number, node, &children, graph).map(Some),
                    None => Ok(None),
                }
            });
            for more in implied {
                if let Some(more) = more? {
                    links.push(more);
                }
            }
        }
        Ok(links)
    }

    /// Returns the selected links of a cell.
    fn stored_links(
        &self,
        scan: &LinkScan,
        (cell, read): (usize, &LinkRecords),
        graph: &LinkGraph,
        allowed: &ChunkRestriction,
        diagnostics: &Diagnostics,
    ) -> Result<SelectedCell, QueryError> {
        let passes = self.links_pass(scan, read)?;
        let slots: Vec<EndChunk<'_>> = graph.numbers(read).into_iter().map(slot(graph)).collect();
        let chunk = match slots.as_slice() {
            [EndChunk::Read(number, _)] => Some(*number),
            _ => None,
        };
        let mut stored = SelectedCell {
            links: LinkRun::of_cell(cell, read.width, chunk),
            children: Vec::new(),
        };
        let test = self.link_test();
        // Without a region and a predicate, nearly all are selected.
        if matches!(test, LinkTest::None) && passes.is_none() && !self.selects_objects() {
            stored.links.reserve(read.len());
        }
        let mut link = Vec::with_capacity(read.width);
        let slot_of = |end: (u32, u64)| slots.get(usize::try_from(end.0).ok()?);
        'records: for (at, ends) in read.ends.chunks(read.width.max(1)).enumerate() {
            if scan.implied
                && let Some(child) = ends.first()
                && let Some(EndChunk::Read(number, node)) = slot_of(*child)
                && let Some(index) = node.chunk.loaded.index_of(child.1)
            {
                stored.children.push(SelectedEnd::new(*number, index)?);
            }
            if passes
                .as_ref()
                .is_some_and(|passes| passes.get(at) != Some(&true))
            {
                continue;
            }
            link.clear();
            for end in ends {
                // A link with an end that was not read is not selected.
                let (number, node) = match slot_of(*end) {
                    Some(EndChunk::Read(number, node)) => (*number, *node),
                    Some(EndChunk::Lost) => continue 'records,
                    Some(EndChunk::Unread) | None => {
                        if self.area.is_none()
                            && !self.selects_objects()
                            && let Some(chunk) = read.chunk_of(*end)
                            && allowed.allows(chunk)
                        {
                            let fault = Fault::NoChunk(chunk.clone());
                            diagnostics.skip(Damage::new(&read.node, fault))?;
                        }
                        continue 'records;
                    }
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
                link.push(SelectedEnd::new(number, index)?);
            }
            if self.selects_link(test, &link, graph) {
                stored.links.push_record(&link, at);
            }
        }
        Ok(stored)
    }

    /// Returns the selected links between consecutive rows of a fragment, without those of
    /// `children`, whose links are stored.
    fn implied_links(
        &self,
        number: u32,
        node: &LinkNode,
        children: &[u32],
        graph: &LinkGraph,
    ) -> Result<LinkRun, QueryError> {
        let test = self.link_test();
        let mut links = LinkRun::implied(number);
        // Without a region, nearly all are selected.
        if matches!(test, LinkTest::None) {
            links.reserve(node.rows.len());
        }
        let mut is_stored = vec![false; node.chunk.loaded.len()];
        for child in children {
            let at = usize::try_from(*child).ok();
            if let Some(is_stored) = at.and_then(|at| is_stored.get_mut(at)) {
                *is_stored = true;
            }
        }
        let inside = node.marks.inside.as_deref();
        let passes = |ends: &[SelectedEnd; 2]| match test {
            LinkTest::None => true,
            LinkTest::Inside => inside.is_some_and(|inside| {
                let mut ends = ends.iter();
                ends.all(|end| inside.get(end.index()) == Some(&true))
            }),
            LinkTest::Full => self.selects_link(test, ends, graph),
        };
        // The last row, with its fragment.
        let mut before: Option<(u32, SelectedEnd)> = None;
        for run in node.rows.runs() {
            let last = before.filter(|(fragment, _)| *fragment == run.fragment);
            let mut parent = last.map(|(_, end)| end);
            for index in run.indices() {
                let child = SelectedEnd::new(number, index)?;
                if let Some(parent) = parent
                    && is_stored.get(index) == Some(&false)
                {
                    let ends = [child, parent];
                    if passes(&ends) {
                        links.push_implied(ends);
                    }
                }
                parent = Some(child);
            }
            before = parent.map(|end| (run.fragment, end));
        }
        Ok(links)
    }

    /// Returns whether the predicate on links is true for a link without attributes.
    fn passes_without_attributes(&self, scan: &LinkScan) -> Result<bool, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &scan.set) else {
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
        scan: &LinkScan,
        records: &LinkRecords,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        let (Some(predicate), Some(set)) = (&self.filter.link, &scan.set) else {
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

    /// Returns the way in which the region selects links: links that are dropped at its border are
    /// selected if they are within it.
    pub(in crate::exec) fn link_mode(&self) -> Mode {
        match (self.area_mode, self.query.border_clip()) {
            (Mode::Clip, Clip::Drop) => Mode::Within,
            (mode, _) => mode,
        }
    }

    fn link_test(&self) -> LinkTest {
        match &self.area {
            _ if self.filter.vertex.is_some() => LinkTest::Full,
            None => LinkTest::None,
            Some(area) if self.link_mode() == Mode::Within && area.decides_by_corners() => {
                LinkTest::Inside
            }
            Some(_) => LinkTest::Full,
        }
    }

    /// Returns whether region and predicate select a link.
    fn selects_link(&self, test: LinkTest, ends: &[SelectedEnd], graph: &LinkGraph) -> bool {
        // In most cases the marks of the ends decide without geometry.
        let is_inside = |end: &SelectedEnd| {
            let node = graph.node(end.chunk());
            let inside = node.and_then(|node| node.marks.inside.as_ref());
            inside.is_some_and(|inside| inside.get(end.index()) == Some(&true))
        };
        match test {
            LinkTest::None => return true,
            LinkTest::Inside => return ends.iter().all(is_inside),
            LinkTest::Full => {}
        }
        if self.filter.vertex.is_some() {
            let mut passes = ends.iter().map(|end| {
                let node = graph.node(end.chunk());
                node.is_some_and(|node| node.marks.passes(end.index()))
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
        let mode = self.link_mode();
        match ends.iter().all(is_inside) {
            false if mode == Mode::Within => return false,
            true if area.decides_by_corners() => return true,
            _ => {}
        }
        let at = |end: &SelectedEnd| graph.position(*end).unwrap_or_default();
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

/// Bytes of memory for an end of a link while it is selected.
const BYTES_PER_END: usize = 8;

fn slot<'g>(graph: &'g LinkGraph) -> impl Fn(Option<usize>) -> EndChunk<'g> {
    move |number| {
        let Some(number) = number else {
            return EndChunk::Unread;
        };
        match (u32::try_from(number), graph.node(number)) {
            (Ok(at), Some(node)) => EndChunk::Read(at, node),
            _ => EndChunk::Lost,
        }
    }
}
