//! Vertices with their links: graphs, skeletons, meshes.

use core::ops::ControlFlow;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_format::path::Delta;
use zvf_model::{fetch::Fetch, grid::ChunkCoord, root::LinksConvention};

use crate::{
    answer::{Answer, Links, NO_OBJECT},
    build::{CellView, ColumnBuilder},
    chunk::{CellRows, Chunk, Rows, Wish},
    coordinates::Coordinates,
    error::{Damage, Fault, QueryError},
    filter::{ColumnView, Views},
    geometry::{Bbox, Mode, Primitive},
    links::{LinkRecords, LinkSet, View},
    missing::Ledger,
    objects::Objects,
    plan::{Emit, Plan, VertexFilter},
    points::Groups,
    predicate::Scope,
    query::Cut,
    schema::Schema,
    vertices::{Entry, Owners, VertexBuilder},
};

/// Cells of links read at once.
const CELLS_AT_ONCE: usize = 256;

impl<F: Fetch> Plan<'_, F> {
    /// Vertices and links that the region and filter select. Two round trips
    /// after metadata: chunks of the region with the links that can come into it;
    /// then the other ends of those that may.
    pub(crate) async fn linked(
        &self,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let index = self.session.object_index(&self.level);
        let set = self.session.links(
            &self.level,
            Some(&self.level),
            Delta::INTRA,
            &self.read.link,
            View::Logical,
            ledger,
        );
        let (index, set) = try_join(index, set).await?;
        let needs_objects = index.is_some()
            && (self.shows_objects()
                || self.filter.vertex_needs_objects()
                || self.selects_objects());
        let implied = self.convention == LinksConvention::ImplicitWithBranches;
        let with_fragments =
            needs_objects || implied || !self.tiles() || !self.read.fragment.is_empty();
        let Some(schema) = self.schema(with_fragments).await? else {
            let mut answer = self.without_vertices().await?;
            answer.links = Some(no_links(set.as_ref()));
            let _ = emit(answer);
            return Ok(());
        };
        let work = LinkWork {
            schema,
            set,
            implied,
            with_fragments,
            needs_objects,
            shows_objects: self.shows_objects() && index.is_some(),
        };
        let is_everything = self.area.is_none()
            && self.query.filter.is_none()
            && self.query.limit.is_none()
            && self.query.nearest.is_none()
            && !self.selects_objects();
        match is_everything {
            true => self.all_links(&work, ledger, emit).await,
            false => self.some_links(&work, ledger, emit).await,
        }
    }

    fn wish(&self, work: &LinkWork<F>, chunk: &ChunkCoord, rows: Rows) -> Wish {
        Wish {
            chunk: chunk.clone(),
            fragments: work.with_fragments,
            rows,
        }
    }

    async fn objects_of(
        &self,
        work: &LinkWork<F>,
        ledger: &Ledger,
    ) -> Result<Option<Arc<Objects>>, QueryError> {
        match work.needs_objects {
            true => self.session.objects(&self.level, ledger).await,
            false => Ok(None),
        }
    }

    /// The whole level: vertices chunk by chunk, then links cell by cell. Of a
    /// chunk only where its rows went is kept.
    async fn all_links(
        &self,
        work: &LinkWork<F>,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = &work.schema;
        let chunks = self.chunks(schema)?;
        let allowed = self.allowed()?;
        let wish = |chunk: &ChunkCoord| self.wish(work, chunk, Rows::All);
        let mut groups = Groups::new(&chunks, self.group_size(schema, chunks.len()));
        let first = groups.read(self, schema, &wish, ledger);
        let (objects, mut group) = try_join(self.objects_of(work, ledger), first).await?;
        let builder = || self.vertices(schema, work.shows_objects);
        let mut map = RowMap::default();
        let mut vertices = builder();
        let most = self.batch_size();
        let mut ids = BTreeSet::new();
        loop {
            for chunk in group.iter().flatten() {
                let owners = self.owners_of(objects.as_ref(), chunk, ledger)?;
                let entries = chunk.entries();
                if let Some(set) = &work.set {
                    set.note_fragments(&chunk.chunk, chunk.fragments.len(), ledger);
                }
                map.add(chunk, &entries, work.implied);
                let object = |fragment| object_id(objects.as_ref(), &owners, fragment);
                vertices.push(schema, chunk, &entries, object, ledger)?;
            }
            let is_last = groups.is_done();
            if is_last || u64::try_from(vertices.size()).unwrap_or(u64::MAX) >= most {
                let done = core::mem::replace(&mut vertices, builder());
                let mut answer = self.empty_answer();
                done.finish(&mut answer);
                ids.extend(answer.object_ids.iter().flatten().copied());
                if is_last {
                    self.add_objects(&mut answer, objects.as_ref(), &ids, ledger)
                        .await?;
                }
                answer.links = Some(no_links(work.set.as_ref()));
                if emit(answer) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            if is_last {
                break;
            }
            group = groups.read(self, schema, &wish, ledger).await?;
        }
        let cells: Vec<usize> = match &work.set {
            None => Vec::new(),
            Some(set) => (0..set.cells.len())
                .filter(|at| {
                    let chunks = set.cells.get(*at).and_then(|cell| cell.chunks.as_ref());
                    chunks.is_none_or(|chunks| work.may_matter(chunks, |c| allowed.allows(c)))
                })
                .collect(),
        };
        let mut links = LinkBuilder::new(work.set.as_ref(), &self.shown.link);
        let mut children = Vec::new();
        for cells in cells.chunks(CELLS_AT_ONCE) {
            let Some(set) = &work.set else { break };
            let read = self.read_links(set, cells, ledger);
            for records in read.await? {
                for (at, ends) in records.ends.chunks(records.width.max(1)).enumerate() {
                    let mut rows = Vec::with_capacity(ends.len());
                    if work.implied
                        && let Some(child) = ends.first()
                        && let Found::Row(row) = map.find(&records, *child)
                    {
                        children.push(row);
                    }
                    for end in ends {
                        let chunk = records.chunk_of(*end);
                        if chunk.is_some_and(|chunk| !allowed.allows(chunk)) {
                            break;
                        }
                        match map.find(&records, *end) {
                            Found::Row(row) => rows.push(row),
                            Found::Excluded => break,
                            Found::Absent(fault) => {
                                // What a damaged chunk took with it was said already.
                                let is_damaged = |chunk: &ChunkCoord| {
                                    !map.has(chunk) && chunks.binary_search(chunk).is_ok()
                                };
                                if !(ledger.keeps_going() && chunk.is_some_and(is_damaged)) {
                                    let damage = Damage::new(&records.node, fault);
                                    ledger.missing(damage)?;
                                }
                                break;
                            }
                        }
                    }
                    if rows.len() == records.width {
                        links.push(&rows, Some((&records, at)));
                    }
                }
                links.end_cell(&records)?;
            }
            if !work.implied && links.len() >= CELLS_AT_ONCE.saturating_mul(4096) {
                let done = core::mem::replace(
                    &mut links,
                    LinkBuilder::new(work.set.as_ref(), &self.shown.link),
                );
                let mut answer = self.empty_answer();
                answer.positions = crate::answer::Rows::new(
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
            let children: BTreeSet<u64> = children.into_iter().collect();
            for (child, parent) in map.implied() {
                if !children.contains(&child) {
                    links.push(&[child, parent], None);
                }
            }
            links.sort_by_child();
        }
        let mut last = self.empty_answer();
        self.vertices(schema, work.shows_objects).finish(&mut last);
        links.finish(&mut last);
        let _ = emit(last);
        Ok(())
    }

    /// What is selected, all at once.
    async fn some_links(
        &self,
        work: &LinkWork<F>,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = &work.schema;
        let allowed = self.allowed()?;
        let members = match self.selects_objects() {
            true => {
                // Where the answer says whose vertices are, all are needed: those that
                // are selected are among them and not read by themselves.
                self.objects_of(work, ledger).await?;
                Some(self.members(ledger).await?)
            }
            false => None,
        };
        let mut chunks = self.chunks(schema)?;
        chunks.retain(|chunk| {
            self.area.as_ref().is_none_or(|area| area.reaches(chunk))
                && members
                    .as_ref()
                    .is_none_or(|members| members.contains_key(chunk))
        });
        let mut cells: Vec<usize> = Vec::new();
        if let Some(set) = &work.set {
            for (at, cell) in set.cells.iter().enumerate() {
                let looked_at = |chunk: &ChunkCoord| {
                    allowed.allows(chunk)
                        && members
                            .as_ref()
                            .is_none_or(|members| members.contains_key(chunk))
                };
                let is_candidate = cell.chunks.as_ref().is_none_or(|chunks| {
                    work.may_matter(chunks, looked_at)
                        && self
                            .area
                            .as_ref()
                            .is_none_or(|area| area.reaches_between(chunks))
                });
                if is_candidate {
                    cells.push(at);
                }
            }
        }
        if self.filter.is_never {
            chunks.clear();
            cells.clear();
        }
        let wishes = chunks.iter().map(|chunk| self.wish(work, chunk, Rows::All));
        let wishes = wishes.collect();
        let read = self.read_chunks(schema, wishes, ledger);
        let records = async {
            match &work.set {
                Some(set) => {
                    let read = self.read_links(set, &cells, ledger);
                    read.await
                }
                None => Ok(Vec::new()),
            }
        };
        let filter = async {
            Ok::<_, QueryError>(VertexFilter {
                predicate: self.filter.vertex.as_ref(),
                object_columns: match self.filter.vertex_needs_objects() {
                    true => self.object_columns_of_filter(None, ledger).await?,
                    false => Vec::new(),
                },
            })
        };
        let objects = try_join(self.objects_of(work, ledger), filter);
        let ((objects, filter), (read, records)) =
            try_join(objects, try_join(read, records)).await?;
        let mut graph = Graph {
            chunks: BTreeMap::new(),
        };
        for (chunk, read) in chunks.into_iter().zip(read) {
            let node = read.map(|read| Node::new(read, schema, true));
            graph.chunks.insert(chunk, node);
        }
        self.load_ends(work, &records, &allowed, &mut graph, ledger)
            .await?;
        let mut owners: HashMap<ChunkCoord, Owners> = HashMap::new();
        for (coord, node) in &mut graph.chunks {
            let Some(node) = node else { continue };
            let chunk_owners = self.owners_of(objects.as_ref(), &node.chunk, ledger)?;
            if let Some(set) = &work.set {
                set.note_fragments(coord, node.chunk.fragments.len(), ledger);
            }
            self.mark(
                schema,
                node,
                &filter,
                &chunk_owners,
                members.as_ref().map(|m| m.get(coord)),
            )?;
            owners.insert(coord.clone(), chunk_owners);
        }
        let selected = self.selected_links(work, &records, &graph, ledger)?;
        self.put_together(
            work, &records, graph, selected, objects, &owners, ledger, emit,
        )
        .await
    }

    /// Fragments of the objects that are selected, by chunk.
    async fn members(
        &self,
        ledger: &Ledger,
    ) -> Result<BTreeMap<ChunkCoord, BTreeSet<u32>>, QueryError> {
        let selected = self.selected_objects(ledger).await?;
        let selected = selected.ok_or(QueryError::NoObjects(self.level.id()))?;
        let mut members: BTreeMap<ChunkCoord, BTreeSet<u32>> = BTreeMap::new();
        for place in selected.places {
            let holds = selected.holds.as_ref();
            if holds.is_some_and(|holds| holds.get(place) != Some(&true)) {
                continue;
            }
            for piece in selected.objects.pieces(place) {
                if let Some(chunk) = selected.objects.chunk(piece.chunk) {
                    members
                        .entry(chunk.clone())
                        .or_default()
                        .insert(piece.fragment);
                }
            }
        }
        Ok(members)
    }

    /// Reads ends of links outside of the chunks read, where the link may be
    /// selected.
    async fn load_ends(
        &self,
        work: &LinkWork<F>,
        records: &[LinkRecords],
        allowed: &crate::plan::Allowed,
        graph: &mut Graph,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let Some(area) = &self.area else {
            return Ok(());
        };
        let mut wanted: BTreeMap<ChunkCoord, BTreeSet<u64>> = BTreeMap::new();
        for cell in records {
            for ends in cell.ends.chunks(cell.width.max(1)) {
                let mut known = Vec::new();
                let mut unknown = Vec::new();
                for end in ends {
                    let Some(chunk) = cell.chunk_of(*end) else {
                        continue;
                    };
                    match graph.chunks.get(chunk) {
                        None => unknown.push((chunk, end.1)),
                        Some(Some(node)) => known.extend(node.position(end.1)),
                        Some(None) => {}
                    }
                }
                let within = self.area_mode == Mode::Within;
                let excluded = unknown.iter().any(|(chunk, _)| !allowed.allows(chunk));
                if unknown.is_empty() || within || excluded {
                    continue;
                }
                if area.may_meet(&known, unknown.iter().map(|(chunk, _)| *chunk)) {
                    for (chunk, row) in unknown {
                        wanted.entry(chunk.clone()).or_default().insert(row);
                    }
                }
            }
        }
        let mut wishes = Vec::with_capacity(wanted.len());
        let mut there = Vec::with_capacity(wanted.len());
        for (chunk, rows) in wanted {
            if !work.schema.vertices.has(&chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                ledger.missing(Damage::new(&work.schema.vertices.node, fault))?;
                graph.chunks.insert(chunk, None);
                continue;
            }
            wishes.push(self.wish(work, &chunk, Rows::These(rows.into_iter().collect())));
            there.push(chunk);
        }
        let read = self.read_chunks(&work.schema, wishes, ledger).await?;
        for (chunk, read) in there.into_iter().zip(read) {
            let node = read.map(|read| Node::new(read, &work.schema, false));
            graph.chunks.insert(chunk, node);
        }
        Ok(())
    }

    /// Finds out which vertices of a chunk are selected by themselves.
    fn mark(
        &self,
        schema: &Schema<F::Array>,
        node: &mut Node,
        filter: &VertexFilter<'_>,
        owners: &Owners,
        members: Option<Option<&BTreeSet<u32>>>,
    ) -> Result<(), QueryError> {
        node.entries = node.chunk.entries();
        if let Some(members) = members {
            let fragments = members.cloned().unwrap_or_default();
            node.entries
                .retain(|entry| fragments.contains(&entry.fragment));
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
    fn selected_links(
        &self,
        work: &LinkWork<F>,
        records: &[LinkRecords],
        graph: &Graph,
        ledger: &Ledger,
    ) -> Result<Vec<Link>, QueryError> {
        let mut links = Vec::new();
        let mut children: HashMap<&ChunkCoord, BTreeSet<u64>> = HashMap::new();
        for (cell, read) in records.iter().enumerate() {
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
                            let allowed = self.allowed()?.allows(chunk);
                            if !is_read && allowed {
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
        // A link that nothing stores has no attributes: a test of them is not true.
        if self.filter.link.is_none() {
            for (coord, node) in &graph.chunks {
                let Some(node) = node.as_ref().filter(|node| node.is_whole) else {
                    continue;
                };
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

    /// Numbers the vertices and puts the answer together.
    #[expect(
        clippy::too_many_arguments,
        reason = "the last step of all that was read"
    )]
    async fn put_together(
        &self,
        work: &LinkWork<F>,
        records: &[LinkRecords],
        graph: Graph,
        mut links: Vec<Link>,
        objects: Option<Arc<Objects>>,
        owners: &HashMap<ChunkCoord, Owners>,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = &work.schema;
        let cuts = self.area_mode == Mode::Clip && self.query.cut == Cut::Cut;
        let bbox = match (&self.area, cuts) {
            (Some(area), true) => {
                self.check_cuttable(schema)?;
                Some(*area.bbox().ok_or(QueryError::Unsupported(
                    "a sphere does not cut: clip by a box, or drop what crosses the border",
                ))?)
            }
            _ => None,
        };
        // Links limit an answer where there are any.
        let has_links = !links.is_empty();
        let limit = self
            .query
            .limit
            .and_then(|limit| usize::try_from(limit).ok());
        let by_links = self.filter.link.is_some() || limit.is_some() && has_links;
        if let Some(limit) = limit.filter(|_| has_links) {
            if work.implied {
                links.sort_by(|a, b| a.ends.first().cmp(&b.ends.first()));
            }
            links.truncate(limit);
        }
        let mut ends: HashMap<&ChunkCoord, BTreeSet<usize>> = HashMap::new();
        for (chunk, place) in links.iter().flat_map(|link| &link.ends) {
            ends.entry(chunk).or_default().insert(*place);
        }
        let mut vertices = self.vertices(schema, work.shows_objects);
        let mut rows: HashMap<(&ChunkCoord, usize), usize> = HashMap::new();
        let mut keep: Vec<usize> = Vec::new();
        let mut left = match has_links {
            true => usize::MAX,
            false => limit.unwrap_or(usize::MAX),
        };
        for (coord, node) in &graph.chunks {
            let Some(node) = node else { continue };
            let ends = ends.get(coord);
            let is_end = |entry: &Entry| ends.is_some_and(|ends| ends.contains(&entry.place));
            let mut entries = node.entries.clone();
            entries.retain(|entry| is_end(entry) || !by_links && node.is_selected(entry.place));
            entries.truncate(left);
            left = left.saturating_sub(entries.len());
            let base = vertices.rows();
            for (at, entry) in entries.iter().enumerate() {
                let row = base.saturating_add(at);
                rows.entry((coord, entry.place)).or_insert(row);
                // Ends outside are there to cut links at.
                if bbox.is_none() || node.is_selected(entry.place) {
                    keep.push(row);
                }
            }
            let none = Owners::default();
            let owners = owners.get(coord).unwrap_or(&none);
            let object = |fragment| object_id(objects.as_ref(), owners, fragment);
            vertices.push(schema, &node.chunk, &entries, object, ledger)?;
        }
        let width = work.set.as_ref().and_then(|set| set.width().ok().flatten());
        let width = width.map_or(2, |width| width.get());
        let faces = bbox.is_some() && width > 2;
        let out_width = if faces { 3 } else { width };
        let mut builder = LinkBuilder::new(work.set.as_ref(), &self.shown.link);
        builder.width = out_width;
        for link in &links {
            let corners = link
                .ends
                .iter()
                .filter_map(|(chunk, place)| rows.get(&(chunk, *place)));
            let corners: Vec<usize> = corners.copied().collect();
            let record = link.record;
            let Some(bbox) = &bbox else {
                builder.push_rows(&corners, record);
                continue;
            };
            let positions: Vec<&[f64]> = link
                .ends
                .iter()
                .filter_map(|(chunk, place)| {
                    let node = graph.chunks.get(chunk)?.as_ref()?;
                    Some(node.coordinates.at(*place))
                })
                .collect();
            for part in cut(bbox, &corners, &positions, schema, &mut vertices, &mut keep) {
                builder.push_rows(&part, record);
            }
        }
        builder.end_cells(records)?;
        if bbox.is_some() {
            let mut place = vec![0_u64; vertices.rows()];
            for (new, old) in (0_u64..).zip(&keep) {
                if let Some(place) = place.get_mut(*old) {
                    *place = new;
                }
            }
            builder.renumber(&place);
            vertices.gather(&keep);
        }
        if work.implied {
            builder.sort_by_child();
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        let ids = answer.object_ids.iter().flatten().copied().collect();
        self.add_objects(&mut answer, objects.as_ref(), &ids, ledger)
            .await?;
        builder.finish(&mut answer);
        let _ = emit(answer);
        Ok(())
    }
}

/// A link cut at a box: rows of the builder for each part of it.
fn cut<A: zvf_model::fetch::CellSource>(
    bbox: &Bbox,
    corners: &[usize],
    positions: &[&[f64]],
    schema: &Schema<A>,
    vertices: &mut VertexBuilder,
    keep: &mut Vec<usize>,
) -> Vec<Vec<usize>> {
    let kind = schema.dtype.kind();
    let mut new = |position: &[f64], weights: &[(usize, f64)]| {
        // A corner itself is no new vertex.
        if let [(row, _)] = weights
            .iter()
            .filter(|(_, w)| *w != 0.0)
            .collect::<Vec<_>>()[..]
        {
            return *row;
        }
        let row = vertices.rows();
        vertices.blend(&crate::cut::rounded(bbox, position, kind), weights);
        keep.push(row);
        row
    };
    match (corners, positions) {
        ([corner], _) => vec![vec![*corner]],
        ([a, b], [at_a, at_b]) => {
            let Some(part) = bbox.clip_segment([at_a, at_b]) else {
                return Vec::new();
            };
            let start = new(&part.start, &[(*a, 1.0 - part.t0), (*b, part.t0)]);
            let end = new(&part.end, &[(*a, 1.0 - part.t1), (*b, part.t1)]);
            vec![vec![start, end]]
        }
        _ => {
            let mut parts = Vec::new();
            for triangle in bbox.clip_polygon(positions) {
                let rows: Vec<usize> = triangle
                    .vertices
                    .iter()
                    .map(|vertex| {
                        let weights = triangle.corners.iter().zip(vertex.weights);
                        let weights = weights
                            .filter_map(|(at, weight)| Some((*corners.get(*at)?, weight)))
                            .collect::<Vec<_>>();
                        new(&vertex.position, &weights)
                    })
                    .collect();
                // A fan; what is a point or segment repeats a corner.
                match rows.as_slice() {
                    [] => {}
                    [one] => parts.push(vec![*one; 3]),
                    [one, two] => parts.push(vec![*one, *two, *two]),
                    [first, rest @ ..] => {
                        for pair in rest.windows(2) {
                            let [second, third] = pair else { continue };
                            parts.push(vec![*first, *second, *third]);
                        }
                    }
                }
            }
            parts
        }
    }
}

/// What all steps of a query on links work with.
struct LinkWork<F: Fetch> {
    schema: Schema<F::Array>,
    set: Option<LinkSet<F::Array>>,
    /// Whether rows of a fragment that follow each other are linked.
    implied: bool,
    with_fragments: bool,
    needs_objects: bool,
    shows_objects: bool,
}

impl<F: Fetch> LinkWork<F> {
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

/// Chunks that were read; `None` is one that could not be.
struct Graph {
    chunks: BTreeMap<ChunkCoord, Option<Node>>,
}

/// A chunk and which of its vertices are selected.
struct Node {
    chunk: Chunk,
    coordinates: Coordinates,
    /// Whether all its rows were read.
    is_whole: bool,
    entries: Vec<Entry>,
    /// By place: whether a fragment that is looked at has it.
    there: Vec<bool>,
    /// By place: whether the filter holds.
    holds: Vec<bool>,
    /// By place: whether it is in the region.
    inside: Option<Vec<bool>>,
}

impl Node {
    fn new<A>(chunk: Chunk, schema: &Schema<A>, is_whole: bool) -> Self {
        Self {
            coordinates: schema.coordinates(&chunk),
            chunk,
            is_whole,
            entries: Vec::new(),
            there: Vec::new(),
            holds: Vec::new(),
            inside: None,
        }
    }

    fn position(&self, row: u64) -> Option<&[f64]> {
        let place = self.chunk.held.place(row)?;
        Some(self.coordinates.at(place))
    }

    fn is_selected(&self, place: usize) -> bool {
        self.holds.get(place) == Some(&true)
            && self
                .inside
                .as_ref()
                .is_none_or(|inside| inside.get(place) == Some(&true))
    }
}

/// A link that is selected: its ends, and which record it is; `None` is one that
/// a fragment implies.
struct Link {
    ends: Vec<(ChunkCoord, usize)>,
    record: Option<(usize, usize)>,
}

fn object_id(objects: Option<&Arc<Objects>>, owners: &Owners, fragment: u32) -> i64 {
    let id = |objects: &Arc<Objects>| owners.id(fragment, |place| objects.id(place));
    objects.map_or(NO_OBJECT, id)
}

fn no_links<A>(set: Option<&LinkSet<A>>) -> Links {
    let width = set.and_then(|set| set.width().ok().flatten());
    Links {
        width: width.map_or(2, |width| u32::try_from(width.get()).unwrap_or(2)),
        ends: Vec::new(),
    }
}

/// Where the rows of chunks went.
#[derive(Default)]
struct RowMap {
    chunks: HashMap<ChunkCoord, ChunkRows>,
    rows: u64,
    /// Rows of the answer that start a fragment.
    starts: Vec<u64>,
}

struct ChunkRows {
    first: u64,
    rows: u64,
    /// Where each row went when that is not in order.
    moved: Option<HashMap<u64, u64>>,
}

enum Found {
    Row(u64),
    /// In a chunk that is not looked at.
    Excluded,
    Absent(Fault),
}

impl RowMap {
    fn add(&mut self, chunk: &Chunk, entries: &[Entry], with_starts: bool) {
        let mut numbered = (0_u64..).zip(entries);
        let all = u64::try_from(entries.len()) == Ok(chunk.rows);
        let in_order = all && numbered.all(|(row, entry)| row == entry.row);
        let moved = (!in_order).then(|| {
            let mut moved = HashMap::with_capacity(entries.len());
            for (to, entry) in (self.rows..).zip(entries) {
                moved.entry(entry.row).or_insert(to);
            }
            moved
        });
        if with_starts {
            let mut last = None;
            for (row, entry) in (self.rows..).zip(entries) {
                if last != Some(entry.fragment) {
                    self.starts.push(row);
                }
                last = Some(entry.fragment);
            }
        }
        let rows = ChunkRows {
            first: self.rows,
            rows: chunk.rows,
            moved,
        };
        self.chunks.insert(chunk.chunk.clone(), rows);
        let added = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.rows = self.rows.saturating_add(added);
    }

    fn has(&self, chunk: &ChunkCoord) -> bool {
        self.chunks.contains_key(chunk)
    }

    fn find(&self, records: &LinkRecords, end: (u32, u64)) -> Found {
        let Some(chunk) = records.chunk_of(end) else {
            return Found::Absent(Fault::Range);
        };
        let Some(rows) = self.chunks.get(chunk) else {
            return Found::Absent(Fault::NoChunk(chunk.clone()));
        };
        let (_, row) = end;
        if row >= rows.rows {
            let rows = rows.rows;
            return Found::Absent(Fault::NoRow { row, rows });
        }
        match &rows.moved {
            None => Found::Row(rows.first.saturating_add(row)),
            Some(moved) => moved
                .get(&row)
                .map_or(Found::Excluded, |row| Found::Row(*row)),
        }
    }

    /// Links between rows of a fragment that follow each other: child and parent.
    fn implied(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut starts = self.starts.iter().copied().peekable();
        (0..self.rows).filter_map(move |row| {
            if starts.next_if_eq(&row).is_some() {
                return None;
            }
            Some((row, row.checked_sub(1)?))
        })
    }
}

/// Links on their way into an answer.
struct LinkBuilder {
    width: usize,
    ends: Vec<u64>,
    columns: Vec<(usize, ColumnBuilder)>,
    /// Rows of attributes that wait for the end of their cell.
    waiting: Vec<(Option<usize>, Option<usize>)>,
}

impl LinkBuilder {
    fn new<A>(set: Option<&LinkSet<A>>, shown: &[String]) -> Self {
        let attributes = set
            .map_or(&[][..], |set| &set.attributes)
            .iter()
            .enumerate();
        let shown = attributes.filter(|(_, attribute)| shown.contains(&attribute.name));
        let columns = shown.filter_map(|(at, attribute)| {
            let metadata = attribute.metadata.as_ref()?;
            Some((at, ColumnBuilder::new(&attribute.name, metadata)))
        });
        let width = set.and_then(|set| set.width().ok().flatten());
        Self {
            width: width.map_or(2, |width| width.get()),
            ends: Vec::new(),
            columns: columns.collect(),
            waiting: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// Appends a link; its attributes come with [`end_cell`](Self::end_cell).
    fn push(&mut self, ends: &[u64], record: Option<(&LinkRecords, usize)>) {
        self.ends.extend_from_slice(ends);
        let at = record.map(|(_, at)| at);
        match record {
            Some(_) => self.waiting.push((Some(0), at)),
            None => self
                .columns
                .iter_mut()
                .for_each(|(_, column)| column.skip(1)),
        }
    }

    /// The attributes of the links of a cell.
    fn end_cell(&mut self, records: &LinkRecords) -> Result<(), QueryError> {
        let waiting = core::mem::take(&mut self.waiting);
        let places: Vec<Option<usize>> = waiting.into_iter().map(|(_, at)| at).collect();
        for (number, column) in &mut self.columns {
            let cell: Option<&CellRows> = records.attributes.get(*number).and_then(Option::as_ref);
            let pushed = column.push_places(cell, &places);
            pushed.map_err(|fault| Damage::new(&records.node, fault))?;
        }
        Ok(())
    }

    /// Appends a link of record `at` of a cell; its attributes come with
    /// [`end_cells`](Self::end_cells).
    fn push_rows(&mut self, rows: &[usize], record: Option<(usize, usize)>) {
        let rows = rows
            .iter()
            .map(|row| u64::try_from(*row).unwrap_or(u64::MAX));
        self.ends.extend(rows);
        let (cell, at) = record.unzip();
        self.waiting.push((cell, at));
    }

    /// The attributes of links of many cells.
    fn end_cells(&mut self, records: &[LinkRecords]) -> Result<(), QueryError> {
        let waiting = core::mem::take(&mut self.waiting);
        for same in waiting.chunk_by(|a, b| a.0 == b.0) {
            let cell = same.first().and_then(|(cell, _)| records.get((*cell)?));
            let places: Vec<Option<usize>> = same.iter().map(|(_, at)| *at).collect();
            for (number, column) in &mut self.columns {
                let Some(records) = cell else {
                    column.skip(places.len());
                    continue;
                };
                let rows = records.attributes.get(*number).and_then(Option::as_ref);
                let pushed = column.push_places(rows, &places);
                pushed.map_err(|fault| Damage::new(&records.node, fault))?;
            }
        }
        Ok(())
    }

    fn renumber(&mut self, place: &[u64]) {
        for end in &mut self.ends {
            let old = usize::try_from(*end).ok();
            *end = old.and_then(|old| place.get(old)).copied().unwrap_or(*end);
        }
    }

    /// Links by their first end, those of one end as they came.
    fn sort_by_child(&mut self) {
        let width = self.width.max(1);
        let mut order: Vec<usize> = (0..self.len()).collect();
        let child = |link: &usize| self.ends.get(link.saturating_mul(width)).copied();
        order.sort_by_key(child);
        let mut ends = Vec::with_capacity(self.ends.len());
        for link in &order {
            let start = link.saturating_mul(width);
            let of_link = self.ends.get(start..start.saturating_add(width));
            ends.extend_from_slice(of_link.unwrap_or_default());
        }
        self.ends = ends;
        self.columns
            .iter_mut()
            .for_each(|(_, column)| column.gather(&order));
    }

    fn finish(self, answer: &mut Answer) {
        answer.links = Some(Links {
            width: u32::try_from(self.width).unwrap_or(u32::MAX),
            ends: self.ends,
        });
        answer.link = self
            .columns
            .into_iter()
            .map(|(_, column)| column.finish())
            .collect();
    }
}
