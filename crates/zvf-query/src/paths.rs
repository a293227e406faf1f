//! Vertices of objects in the order of their pieces: paths, and points that are
//! selected by object.

use core::ops::{ControlFlow, Range};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_format::numeric::Kind;
use zvf_model::{fetch::Fetch, grid::ChunkCoord, key::Key};

use crate::{
    answer::{Answer, Parts},
    area::Area,
    chunk::{Chunk, Rows, Wish},
    coordinates::Coordinates,
    error::{Damage, Fault, QueryError},
    geometry::{Mode, Primitive},
    missing::Ledger,
    objects::{Objects, Piece},
    plan::{Allowed, Emit, Plan, VertexFilter},
    query::{Cut, Shape},
    schema::Schema,
    vertices::{Entry, Owners, VertexBuilder},
};

/// A path: pieces of an object that follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Which of the objects read.
    pub(crate) place: usize,
    pub(crate) pieces: Vec<Piece>,
}

/// Chunks that were read, by their number among those of the objects.
pub(crate) struct Loaded {
    chunks: HashMap<u32, Option<(Chunk, Coordinates)>>,
    bytes: u64,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self {
            chunks: HashMap::new(),
            bytes: 0,
        }
    }

    pub(crate) fn get(&self, chunk: u32) -> Option<&(Chunk, Coordinates)> {
        self.chunks.get(&chunk)?.as_ref()
    }

    pub(crate) fn knows(&self, chunk: u32) -> bool {
        self.chunks.contains_key(&chunk)
    }

    pub(crate) fn add<A>(&mut self, number: u32, chunk: Option<Chunk>, schema: &Schema<A>) {
        let chunk = chunk.map(|chunk| {
            let coordinates = schema.coordinates(&chunk);
            (chunk, coordinates)
        });
        let size = chunk.as_ref().map_or(0, |(chunk, _)| chunk.size());
        self.bytes = self.bytes.saturating_add(size);
        self.chunks.insert(number, chunk);
    }
}

/// A vertex of a path: its chunk's number and where it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathVertex {
    pub(crate) chunk: u32,
    pub(crate) entry: Entry,
}

impl<F: Fetch> Plan<'_, F> {
    /// Paths that the region and filter select, or points of selected objects.
    ///
    /// Three round trips: manifests; fragment indexes; rows. With a region its
    /// chunks come with the manifests, and what lies outside of them after.
    pub(crate) async fn paths(
        &self,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let Some(schema) = self.schema(true).await? else {
            return self.no_paths(emit).await;
        };
        let allowed = self.allowed()?;
        let named = self.query.objects.is_some() || self.query.groups.is_some();
        let regional = self.area.as_ref().filter(|_| !named);
        let nearby = async {
            let Some(area) = regional else {
                return Ok(Vec::new());
            };
            let mut chunks = self.chunks(&schema)?;
            chunks.retain(|chunk| area.reaches(chunk));
            let wishes = chunks.into_iter().map(|chunk| Wish {
                chunk,
                fragments: true,
                rows: Rows::All,
            });
            let wishes = wishes.collect();
            self.read_chunks(&schema, wishes, ledger).await
        };
        let (selection, nearby) = try_join(self.selected_objects(ledger), nearby).await?;
        let Some(Selected {
            objects,
            places,
            holds,
        }) = selection
        else {
            return match nearby.is_empty() && schema.vertices.chunks().is_none_or(|c| c.is_empty())
            {
                true => self.no_paths(emit).await,
                false => Err(QueryError::NoObjects(self.level.id())),
            };
        };
        let mut paths = Vec::new();
        for place in places {
            if holds
                .as_ref()
                .is_none_or(|holds| holds.get(place) == Some(&true))
            {
                runs(&objects, place, &allowed, &mut paths);
            }
        }
        if self.filter.is_never {
            paths.clear();
        }
        let filter = self.vertex_filter(&objects, ledger).await?;
        let mut loaded = Loaded::new();
        for chunk in nearby.into_iter().flatten() {
            if let Some(number) = objects.number_of(&chunk.chunk) {
                loaded.add(number, Some(chunk), &schema);
            }
        }
        let work = Work {
            manifests: self.manifests()?,
            schema: &schema,
            objects: &objects,
            filter: &filter,
        };
        if let Some(area) = regional
            && self.shape == Shape::Paths
        {
            self.load_region(&work, area, &mut paths, &mut loaded, ledger)
                .await?;
            let (mut left, mut given) = (self.limit(), BTreeSet::new());
            let done = self.emit_paths(
                &work,
                &paths,
                &loaded,
                (&mut left, &mut given),
                ledger,
                emit,
            );
            return done.await.map(|_| ());
        }
        self.stream_paths(&work, &paths, loaded, named, ledger, emit)
            .await
    }

    pub(crate) fn limit(&self) -> u64 {
        self.query.limit.unwrap_or(u64::MAX)
    }

    async fn no_paths(&self, emit: &mut Emit<'_>) -> Result<(), QueryError> {
        let mut answer = self.without_vertices().await?;
        if self.shape == Shape::Paths {
            answer.parts = Some(Parts {
                offsets: vec![0],
                objects: Vec::new(),
            });
        }
        let _ = emit(answer);
        Ok(())
    }

    /// What tests vertices, with the columns of objects it looks at.
    pub(crate) async fn vertex_filter(
        &self,
        objects: &Objects,
        ledger: &Ledger,
    ) -> Result<VertexFilter<'_>, QueryError> {
        let predicate = self.filter.vertex.as_ref();
        let object_columns = match self.filter.vertex_needs_objects() {
            true => self.object_columns_of_filter(Some(objects), ledger).await?,
            false => Vec::new(),
        };
        Ok(VertexFilter {
            predicate,
            object_columns,
        })
    }

    /// The objects a query names, or all, and which of them its filter selects.
    pub(crate) async fn selected_objects(
        &self,
        ledger: &Ledger,
    ) -> Result<Option<Selected>, QueryError> {
        let Some(wanted) = self.wanted_ids(ledger).await? else {
            let Some(objects) = self.session.objects(&self.level, ledger).await? else {
                return Ok(None);
            };
            let holds = self.filtered_objects(&objects, ledger).await?;
            let places = (0..objects.len()).collect();
            return Ok(Some(Selected {
                objects,
                places,
                holds,
            }));
        };
        if self.session.object_index(&self.level).await?.is_none() {
            return match wanted.is_empty() {
                true => Ok(None),
                false => Err(QueryError::NoObjects(self.level.id())),
            };
        }
        let found = self
            .session
            .some_objects(&self.level, &wanted, ledger)
            .await?;
        let objects = found.objects;
        let mut places = Vec::with_capacity(wanted.len());
        for (id, place) in wanted.into_iter().zip(found.places) {
            match place {
                Some(place) => places.push(place),
                None if objects.is_incomplete() => {}
                None => {
                    let level = self.level.id();
                    ledger.absent(&self.manifests()?, QueryError::NoObject { id, level })?;
                }
            }
        }
        let holds = self.filtered_objects(&objects, ledger).await?;
        Ok(Some(Selected {
            objects,
            places,
            holds,
        }))
    }

    /// Ids the query names: of objects as given, then of groups, ascending.
    async fn wanted_ids(&self, ledger: &Ledger) -> Result<Option<Vec<i64>>, QueryError> {
        let query = self.query;
        if query.objects.is_none() && query.groups.is_none() {
            return Ok(None);
        }
        let mut wanted = query.objects.clone().unwrap_or_default();
        if let Some(ids) = &query.groups {
            let mut members = BTreeSet::new();
            for group in self.asked_groups(ids, ledger).await? {
                members.extend(group.members);
            }
            for id in &wanted {
                members.remove(id);
            }
            wanted.extend(members);
        }
        Ok(Some(wanted))
    }

    /// Reads what is needed of paths near a region, and leaves those that it may
    /// select.
    async fn load_region(
        &self,
        work: &Work<'_, F>,
        area: &Area,
        paths: &mut Vec<Path>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut more: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mode = self.area_mode;
        paths.retain_mut(|path| {
            let fate = fate(path, work.objects, loaded, area, mode);
            if fate == Fate::Out {
                return false;
            }
            let clip = mode == Mode::Clip;
            for (at, piece) in path.pieces.iter().enumerate() {
                let wanted = !loaded.knows(piece.chunk)
                    && (!clip || may_cross(path, at, work.objects, loaded, area));
                if wanted {
                    more.entry(piece.chunk).or_default().insert(piece.fragment);
                }
            }
            true
        });
        self.load_fragments(work, more, loaded, ledger).await
    }

    async fn load_fragments(
        &self,
        work: &Work<'_, F>,
        wanted: BTreeMap<u32, BTreeSet<u32>>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut numbers = Vec::with_capacity(wanted.len());
        let mut wishes = Vec::with_capacity(wanted.len());
        for (number, fragments) in wanted {
            let Some(chunk) = work.objects.chunk(number) else {
                continue;
            };
            if !work.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                ledger.missing(Damage::new(&work.manifests, fault))?;
                loaded.add(number, None, work.schema);
                continue;
            }
            numbers.push(number);
            wishes.push(Wish {
                chunk: chunk.clone(),
                fragments: true,
                rows: Rows::Fragments(fragments.into_iter().collect()),
            });
        }
        let chunks = self.read_chunks(work.schema, wishes, ledger).await?;
        for (number, chunk) in numbers.into_iter().zip(chunks) {
            loaded.add(number, chunk, work.schema);
        }
        Ok(())
    }

    /// Reads and gives all paths, so many chunks at a time.
    async fn stream_paths(
        &self,
        work: &Work<'_, F>,
        paths: &[Path],
        mut loaded: Loaded,
        in_part: bool,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let listed = work
            .schema
            .vertices
            .chunks()
            .map_or(1, |chunks| chunks.len());
        let most = self.group_size(work.schema, listed);
        let (mut left, mut given) = (self.limit(), BTreeSet::new());
        let mut first = 0;
        loop {
            let rest = paths.get(first..).unwrap_or_default();
            let (count, chunks) = batch(rest, most, left, self.shape == Shape::Paths);
            loaded.keep(&chunks, most);
            let now = rest.get(..count).unwrap_or_default();
            let mut wanted: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for piece in now.iter().flat_map(|path| &path.pieces) {
                if !loaded.knows(piece.chunk) {
                    wanted
                        .entry(piece.chunk)
                        .or_default()
                        .insert(piece.fragment);
                }
            }
            if in_part {
                self.load_fragments(work, wanted, &mut loaded, ledger)
                    .await?;
            } else {
                self.load_whole(work, wanted.into_keys().collect(), &mut loaded, ledger)
                    .await?;
            }
            first = first.saturating_add(count);
            let flow = self
                .emit_paths(work, now, &loaded, (&mut left, &mut given), ledger, emit)
                .await?;
            if in_part {
                // What was read in part may be needed in another part next.
                loaded = Loaded::new();
            }
            if flow.is_break() || left == 0 || first >= paths.len() {
                return Ok(());
            }
        }
    }

    async fn load_whole(
        &self,
        work: &Work<'_, F>,
        numbers: Vec<u32>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut there = Vec::with_capacity(numbers.len());
        let mut wishes = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(chunk) = work.objects.chunk(number) else {
                continue;
            };
            if !work.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                ledger.missing(Damage::new(&work.manifests, fault))?;
                loaded.add(number, None, work.schema);
                continue;
            }
            there.push(number);
            wishes.push(Wish {
                chunk: chunk.clone(),
                fragments: true,
                rows: Rows::All,
            });
        }
        let chunks = self.read_chunks(work.schema, wishes, ledger).await?;
        for (number, chunk) in there.into_iter().zip(chunks) {
            loaded.add(number, chunk, work.schema);
        }
        Ok(())
    }

    /// Gives paths that are loaded, as far as they are selected.
    async fn emit_paths(
        &self,
        work: &Work<'_, F>,
        paths: &[Path],
        loaded: &Loaded,
        (left, given): (&mut u64, &mut BTreeSet<usize>),
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let is_path = self.shape == Shape::Paths;
        let shows_objects = !is_path && self.shows_objects();
        let mut vertices = self.vertices(work.schema, shows_objects);
        let mut parts = Parts {
            offsets: vec![0],
            objects: Vec::new(),
        };
        let mut order = Vec::new();
        // Rows of the builder in the order of the answer: it also takes in what
        // new vertices are made from.
        let mut keep: Vec<usize> = Vec::new();
        for path in paths {
            let id = work.objects.id(path.place).unwrap_or_default();
            for run in self.whole_runs(work, path, loaded, ledger)? {
                let selected = match is_path {
                    true => self.selected_runs(work, path, &run, loaded)?,
                    false => self.selected_points(work, path, &run, loaded)?,
                };
                for (range, ends) in selected {
                    if *left == 0 {
                        break;
                    }
                    let mut range = range;
                    if !is_path {
                        let most = usize::try_from(*left).unwrap_or(usize::MAX);
                        range.end = range.end.min(range.start.saturating_add(most));
                    }
                    let before = keep.len();
                    self.push_part(
                        work,
                        &mut vertices,
                        &mut keep,
                        &run,
                        loaded,
                        (range, ends, id),
                        ledger,
                    )?;
                    let added = keep.len().saturating_sub(before);
                    if given.insert(path.place) {
                        order.push(path.place);
                    }
                    if is_path {
                        *left = left.saturating_sub(1);
                        parts.objects.push(id);
                        parts
                            .offsets
                            .push(u64::try_from(keep.len()).unwrap_or(u64::MAX));
                    } else {
                        *left = left.saturating_sub(u64::try_from(added).unwrap_or(u64::MAX));
                    }
                }
            }
        }
        if keep.len() != vertices.rows() || keep.iter().enumerate().any(|(at, row)| at != *row) {
            vertices.gather(&keep);
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        answer.parts = is_path.then_some(parts);
        self.show_objects(&mut answer, work.objects, &order, ledger)
            .await?;
        Ok(emit(answer))
    }

    /// Appends a part of a run, with the vertices where it was cut.
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn push_part(
        &self,
        work: &Work<'_, F>,
        vertices: &mut VertexBuilder,
        keep: &mut Vec<usize>,
        run: &[PathVertex],
        loaded: &Loaded,
        (range, ends, id): (Range<usize>, Ends, i64),
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let first = match ends.start.is_some() || ends.end.is_some() && range.is_empty() {
            true => range.start.saturating_sub(1),
            false => range.start,
        };
        let is_cut_after = ends.end.is_some() || range.is_empty();
        let last = range
            .end
            .saturating_add(usize::from(is_cut_after))
            .min(run.len());
        let row = |at: usize, base: usize| base.saturating_add(at.saturating_sub(first));
        let base = vertices.rows();
        let part = run.get(first..last).unwrap_or_default();
        push_run(vertices, work, part, loaded, id, ledger)?;
        let kind = work.schema.dtype.kind();
        let bbox = self.area.as_ref().and_then(Area::bbox);
        let mut between = |at: usize, between: Option<Between>| {
            let between = between?;
            let before = at.checked_sub(1)?;
            let position = match bbox {
                Some(bbox) => crate::cut::rounded(bbox, &between.position, kind),
                None => between.position,
            };
            let new = vertices.rows();
            let weights = [
                (row(before, base), 1.0 - between.t),
                (row(at, base), between.t),
            ];
            vertices.blend(&position, &weights);
            Some(new)
        };
        let start = between(range.start, ends.start);
        let end = between(range.end, ends.end);
        keep.extend(start);
        keep.extend(range.map(|at| row(at, base)));
        keep.extend(end);
        Ok(())
    }

    /// The vertices of a path, cut where a piece could not be read.
    fn whole_runs(
        &self,
        work: &Work<'_, F>,
        path: &Path,
        loaded: &Loaded,
        ledger: &Ledger,
    ) -> Result<Vec<Vec<PathVertex>>, QueryError> {
        let mut runs = vec![Vec::new()];
        let mut entries = Vec::new();
        for piece in &path.pieces {
            let Some((chunk, _)) = loaded.get(piece.chunk) else {
                runs.push(Vec::new());
                continue;
            };
            if piece.fragment >= chunk.fragments.len() {
                let fault = Fault::NoFragment {
                    fragment: piece.fragment,
                    fragments: chunk.fragments.len(),
                };
                ledger.missing(Damage::in_chunk(&work.manifests, &chunk.chunk, fault))?;
                runs.push(Vec::new());
                continue;
            }
            entries.clear();
            chunk.push_fragment(piece.fragment, &mut entries);
            let vertices = entries.iter().map(|entry| PathVertex {
                chunk: piece.chunk,
                entry: *entry,
            });
            if let Some(run) = runs.last_mut() {
                run.extend(vertices);
            }
        }
        runs.retain(|run| !run.is_empty());
        Ok(runs)
    }

    /// For which vertices of a run the filter holds.
    fn filtered(
        &self,
        work: &Work<'_, F>,
        path: &Path,
        run: &[PathVertex],
        loaded: &Loaded,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        if !self.filter.looks_at_vertices() {
            return Ok(None);
        }
        let mut holds = Vec::with_capacity(run.len());
        for same in run.chunk_by(|a, b| a.chunk == b.chunk) {
            let Some(number) = same.first().map(|vertex| vertex.chunk) else {
                continue;
            };
            let Some((chunk, _)) = loaded.get(number) else {
                continue;
            };
            let entries: Vec<_> = same.iter().map(|vertex| vertex.entry).collect();
            let owners = entries.iter().map(|entry| (entry.fragment, path.place));
            let owners = Owners::new(owners);
            holds.extend(work.filter.holds(work.schema, chunk, &entries, &owners)?);
        }
        Ok(Some(holds))
    }

    /// Which vertices of a run are selected, as points.
    fn selected_points(
        &self,
        work: &Work<'_, F>,
        path: &Path,
        run: &[PathVertex],
        loaded: &Loaded,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        let holds = self.filtered(work, path, run, loaded)?;
        let is_in = |at: usize| {
            let vertex = run.get(at);
            let position = vertex.map_or(&[][..], |vertex| position(loaded, vertex));
            let inside = self.area.as_ref();
            inside.is_none_or(|area| area.touches(Primitive::Point(position)))
                && holds
                    .as_ref()
                    .is_none_or(|holds| holds.get(at) == Some(&true))
        };
        Ok(whole(ranges(run.len(), is_in)))
    }

    /// Which parts of a run are selected, as paths.
    fn selected_runs(
        &self,
        work: &Work<'_, F>,
        path: &Path,
        run: &[PathVertex],
        loaded: &Loaded,
    ) -> Result<Vec<(Range<usize>, Ends)>, QueryError> {
        let holds = self.filtered(work, path, run, loaded)?;
        let is_true = |at: usize| {
            holds
                .as_ref()
                .is_none_or(|holds| holds.get(at) == Some(&true))
        };
        let by_filter = match self.query.mode {
            Mode::Touch if !(0..run.len()).any(is_true) => Vec::new(),
            Mode::Within if !(0..run.len()).all(is_true) => Vec::new(),
            Mode::Touch | Mode::Within => vec![0..run.len()],
            Mode::Clip => ranges(run.len(), is_true),
        };
        let Some(area) = &self.area else {
            return Ok(whole(by_filter));
        };
        let at = |at: usize| {
            run.get(at)
                .map_or(&[][..], |vertex| position(loaded, vertex))
        };
        let is_in = |row: usize| area.contains(Primitive::Point(at(row)));
        let mut selected = Vec::new();
        for range in by_filter {
            match (self.area_mode, self.query.cut, area.bbox()) {
                (Mode::Within, ..) => {
                    if range.clone().all(is_in) {
                        selected.push((range, Ends::default()));
                    }
                }
                (Mode::Touch, ..) => {
                    let mut segments = range.clone().skip(1);
                    let touches = match range.len() {
                        1 => area.touches(Primitive::Point(at(range.start))),
                        _ => segments
                            .any(|row| area.touches(Primitive::Segment([at(row - 1), at(row)]))),
                    };
                    if touches {
                        selected.push((range, Ends::default()));
                    }
                }
                (Mode::Clip, Cut::Cut, Some(bbox)) => {
                    self.check_cuttable(work.schema)?;
                    selected.extend(crate::cut::path(bbox, range, at));
                }
                (Mode::Clip, Cut::Cut, None) => {
                    return Err(QueryError::Unsupported(
                        "a sphere does not cut: clip by a box, or drop what crosses the border",
                    ));
                }
                (Mode::Clip, Cut::Drop, _) => {
                    let parts = ranges(range.len(), |row| is_in(range.start + row));
                    selected.extend(whole(
                        parts
                            .into_iter()
                            .map(|part| range.start + part.start..range.start + part.end),
                    ));
                }
            }
        }
        Ok(selected)
    }

    /// New vertices need room between the numbers.
    pub(crate) fn check_cuttable(&self, schema: &Schema<F::Array>) -> Result<(), QueryError> {
        match schema.dtype.kind() {
            Kind::Float32 | Kind::Float64 => Ok(()),
            _ => Err(QueryError::Unsupported(
                "positions that are no float32 or float64 are not cut: drop what crosses the border",
            )),
        }
    }

    /// Puts the objects of an answer and their attributes in.
    pub(crate) async fn show_objects(
        &self,
        answer: &mut Answer,
        objects: &Objects,
        places: &[usize],
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        answer.objects = places
            .iter()
            .filter_map(|place| objects.id(*place))
            .collect();
        let rows = places.iter().filter_map(|place| objects.row(*place));
        let rows: Vec<u64> = rows.collect();
        let names = &self.shown.object;
        let columns = self
            .session
            .object_columns(&self.level, names, Some(&rows), ledger);
        answer.object = columns.await?;
        Ok(())
    }

    /// The same for vertices by place, with the ids that they have.
    pub(crate) async fn add_objects(
        &self,
        answer: &mut Answer,
        objects: Option<&Arc<Objects>>,
        ids: &BTreeSet<i64>,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let Some(objects) = objects else {
            return Ok(());
        };
        let places = ids.iter().filter_map(|id| objects.find(*id));
        let places: Vec<usize> = places.collect();
        self.show_objects(answer, objects, &places, ledger).await
    }
}

/// What all steps of a query on paths work with.
pub(crate) struct Work<'w, F: Fetch> {
    /// The node of the object index.
    pub(crate) manifests: Key,
    pub(crate) schema: &'w Schema<F::Array>,
    pub(crate) objects: &'w Objects,
    pub(crate) filter: &'w VertexFilter<'w>,
}

/// Objects that are looked at.
pub(crate) struct Selected {
    pub(crate) objects: Arc<Objects>,
    /// Which of them, in the order asked for.
    pub(crate) places: Vec<usize>,
    /// Whether the filter holds, by place.
    pub(crate) holds: Option<Vec<bool>>,
}

impl Loaded {
    /// Forgets chunks that are not needed now, when there are too many.
    fn keep(&mut self, needed: &BTreeSet<u32>, most: usize) {
        let new = needed.iter().filter(|chunk| !self.knows(**chunk)).count();
        if self.chunks.len().saturating_add(new) > most {
            self.chunks.retain(|chunk, _| needed.contains(chunk));
        }
    }
}

/// The first paths that together need no more than `most` chunks: how many, and
/// which chunks.
fn batch(paths: &[Path], most: usize, left: u64, is_path: bool) -> (usize, BTreeSet<u32>) {
    let mut chunks = BTreeSet::new();
    let mut count = 0_usize;
    for path in paths {
        if is_path && u64::try_from(count).unwrap_or(u64::MAX) >= left {
            break;
        }
        let new: BTreeSet<u32> = path.pieces.iter().map(|piece| piece.chunk).collect();
        let more = new.difference(&chunks).count();
        if count > 0 && chunks.len().saturating_add(more) > most {
            break;
        }
        chunks.extend(new);
        count = count.saturating_add(1);
    }
    (count, chunks)
}

/// The pieces of an object as runs inside the allowed chunks.
fn runs(objects: &Objects, place: usize, allowed: &Allowed, paths: &mut Vec<Path>) {
    let pieces = objects.pieces(place);
    if allowed.is_everything() {
        let pieces = pieces.to_vec();
        paths.push(Path { place, pieces });
        return;
    }
    let is_in = |piece: &Piece| {
        objects
            .chunk(piece.chunk)
            .is_some_and(|c| allowed.allows(c))
    };
    for run in pieces.chunk_by(|a, b| is_in(a) == is_in(b)) {
        if run.first().is_some_and(is_in) {
            let pieces = run.to_vec();
            paths.push(Path { place, pieces });
        }
    }
}

/// New vertices at the ends of a run that was cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Before the first: where, and between which rows of the run.
    pub(crate) start: Option<Between>,
    /// After the last.
    pub(crate) end: Option<Between>,
}

/// A place between two vertices.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) position: Vec<f64>,
    /// The part of the way from the first to the second.
    pub(crate) t: f64,
}

/// Runs of rows for which `is_in` holds.
fn ranges(len: usize, is_in: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..len).filter(|at| is_in(*at)) {
        match ranges.last_mut() {
            Some(range) if range.end == at => range.end = at.saturating_add(1),
            _ => ranges.push(at..at.saturating_add(1)),
        }
    }
    ranges
}

/// Runs that are not cut.
fn whole(ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<(Range<usize>, Ends)> {
    let ranges = ranges.into_iter();
    ranges.map(|range| (range, Ends::default())).collect()
}

fn position<'l>(loaded: &'l Loaded, vertex: &PathVertex) -> &'l [f64] {
    let chunk = loaded.get(vertex.chunk);
    chunk.map_or(&[][..], |(_, coordinates)| {
        coordinates.at(vertex.entry.place)
    })
}

fn push_run<F: Fetch>(
    vertices: &mut VertexBuilder,
    work: &Work<'_, F>,
    run: &[PathVertex],
    loaded: &Loaded,
    id: i64,
    ledger: &Ledger,
) -> Result<(), QueryError> {
    for same in run.chunk_by(|a, b| a.chunk == b.chunk) {
        let chunk = same.first().and_then(|vertex| loaded.get(vertex.chunk));
        let Some((chunk, _)) = chunk else {
            continue;
        };
        let entries: Vec<_> = same.iter().map(|vertex| vertex.entry).collect();
        vertices.push(work.schema, chunk, &entries, |_| id, ledger)?;
    }
    Ok(())
}

/// What is known of a path before all of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing of it is selected.
    Out,
    /// It may be.
    Maybe,
}

/// A piece as far as it is known.
enum Known<'l> {
    /// In memory: its vertices.
    Read(Vec<&'l [f64]>),
    /// Outside the region's chunks.
    Elsewhere(&'l ChunkCoord),
}

fn known<'l>(piece: &Piece, objects: &'l Objects, loaded: &'l Loaded) -> Known<'l> {
    if !loaded.knows(piece.chunk)
        && let Some(chunk) = objects.chunk(piece.chunk)
    {
        return Known::Elsewhere(chunk);
    }
    let Some((chunk, coordinates)) = loaded.get(piece.chunk) else {
        return Known::Read(Vec::new());
    };
    let mut entries = Vec::new();
    chunk.push_fragment(piece.fragment, &mut entries);
    let positions = entries.iter().map(|entry| coordinates.at(entry.place));
    Known::Read(positions.collect())
}

/// Whether a region may select a path. A piece that is not read is taken to have
/// a vertex.
fn fate(path: &Path, objects: &Objects, loaded: &Loaded, area: &Area, mode: Mode) -> Fate {
    let pieces: Vec<Known<'_>> = path
        .pieces
        .iter()
        .map(|piece| known(piece, objects, loaded))
        .collect();
    if mode == Mode::Within {
        let mut any = false;
        for piece in &pieces {
            if let Known::Read(positions) = piece {
                any |= !positions.is_empty();
                let inside = |position: &&[f64]| area.contains(Primitive::Point(position));
                if !positions.iter().all(inside) {
                    return Fate::Out;
                }
            }
        }
        // Vertices elsewhere are outside; only a piece without any may be there.
        return if any { Fate::Maybe } else { Fate::Out };
    }
    let mut vertices = 0_usize;
    let mut last: Option<Last<'_>> = None;
    for piece in &pieces {
        match piece {
            Known::Read(positions) => {
                for position in positions {
                    let touched = match last {
                        None => area.touches(Primitive::Point(position)),
                        Some(Last::At(before)) => {
                            area.touches(Primitive::Segment([before, position]))
                                || vertices == 1 && area.touches(Primitive::Point(before))
                        }
                        Some(Last::In(chunk)) => area.may_meet(&[position], [chunk]),
                    };
                    if touched {
                        return Fate::Maybe;
                    }
                    vertices = vertices.saturating_add(1);
                    last = Some(Last::At(position));
                }
            }
            Known::Elsewhere(chunk) => {
                let touched = match last {
                    None => false,
                    Some(Last::At(before)) => area.may_meet(&[before], [*chunk]),
                    Some(Last::In(before)) => area.may_meet(&[], [before, *chunk]),
                };
                if touched {
                    return Fate::Maybe;
                }
                vertices = vertices.saturating_add(2);
                last = Some(Last::In(chunk));
            }
        }
    }
    Fate::Out
}

/// What comes before.
#[derive(Clone, Copy)]
enum Last<'l> {
    At(&'l [f64]),
    In(&'l ChunkCoord),
}

/// Whether a segment between piece `at`, which is elsewhere, and the one before
/// or after it may come into the region.
fn may_cross(path: &Path, at: usize, objects: &Objects, loaded: &Loaded, area: &Area) -> bool {
    let Some(here) = path
        .pieces
        .get(at)
        .and_then(|piece| objects.chunk(piece.chunk))
    else {
        return false;
    };
    let meets = |piece: &Piece, from_end: bool| match known(piece, objects, loaded) {
        Known::Elsewhere(chunk) => Some(area.may_meet(&[], [here, chunk])),
        Known::Read(positions) => {
            let end = match from_end {
                true => positions.last(),
                false => positions.first(),
            };
            end.map(|end| area.may_meet(&[end], [here]))
        }
    };
    let before = path.pieces.get(..at).unwrap_or_default().iter().rev();
    let after = path
        .pieces
        .get(at.saturating_add(1)..)
        .unwrap_or_default()
        .iter();
    // Past pieces without a vertex.
    let before = before.filter_map(|piece| meets(piece, true)).next();
    let after = after.filter_map(|piece| meets(piece, false)).next();
    before.unwrap_or(false) || after.unwrap_or(false)
}
