//! Partitioning of batches by chunk.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use zvf_format::links::LinkWidth;

use crate::{
    bounds,
    design::{ManifestForm, Profile},
    error::BuildError,
    geometry::Geometry,
    large::outline::{Field, Found, Outline},
    large::part::{MadeChunk, PartitionResult},
    large::path_index::PathIndex,
    large::path_log::{PathLog, PathReplay},
    large::piece::{Piece, PieceShift},
    link_placement::{Cell, LinkPlacement},
    objects::ObjectRows,
    plan::{LoggedColumn, LoggedObjects, WritePlan},
    sizing::FragmentKind,
    spatial_layout,
    stored_column::{FillSearch, StoredColumn},
    tables,
    vertex_layout::{Fragment, Manifests, NO_OBJECT, VertexLayout},
};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

/// Splits batches, in the order of the survey, into partitions.
#[derive(Debug)]
pub struct Partitioner {
    pub(super) outline: Outline,
    pub(super) parts: usize,
    pub(super) numbers: HashMap<Vec<i64>, u32>,
    pub(super) chunks: Vec<Vec<i64>>,
    /// Rows and fragments of each chunk so far.
    pub(super) ends: Vec<(u64, u32)>,
    /// Ids, object attributes and runs of paths in input order.
    pub(super) log: PathLog,
    pub(super) words: Vec<HashMap<String, u32>>,
    /// Number of vertices before the current batch.
    first: u64,
    /// Number of paths before the current batch, with those outside of the bounds.
    first_path: u64,
}

impl Partitioner {
    /// Creates a partitioner for `parts` partitions.
    pub fn new(outline: Outline, parts: usize) -> Self {
        let words = vec![HashMap::new(); outline.fields.len()];
        let log = PathLog::new(&outline.object_fields);
        Self {
            outline,
            parts: parts.max(1),
            numbers: HashMap::new(),
            chunks: Vec::new(),
            ends: Vec::new(),
            log,
            words,
            first: 0,
            first_path: 0,
        }
    }

    /// Makes this the partitioner of a later share of the input: default ids continue those of
    /// the vertices and paths before it.
    #[must_use]
    pub fn after(mut self, vertices: u64, paths: u64) -> Self {
        self.first = vertices;
        self.first_path = paths;
        self
    }

    /// Adds the state of the partitioner of the next share. Returns the change that makes its
    /// pieces continue those of the shares before it.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there are too many paths, or when the states have different attributes.
    pub fn append(&mut self, share: &Self) -> Result<PieceShift, BuildError> {
        let mut chunks = Vec::with_capacity(share.chunks.len());
        for (chunk, (rows, more)) in share.chunks.iter().zip(&share.ends) {
            let number = self.number(chunk);
            let end = &mut self.ends[number as usize];
            chunks.push((number, end.0));
            end.0 += rows;
            let sum = end.1.checked_add(*more);
            end.1 = sum.ok_or(BuildError::TooManyVertices(usize::MAX))?;
        }
        let mut replay = PathReplay::new(share.log.row_size(), share.chunks.len());
        let (mut log, mut runs) = (share.log.bytes.as_slice(), Vec::new());
        while let Some(path) = replay.next(&mut log)? {
            runs.clear();
            runs.extend(path.runs.iter().map(|(chunk, _)| chunks[*chunk as usize].0));
            self.log.push(path.id, path.row, &runs);
        }
        let fields = &share.outline.fields;
        if fields.len() != self.outline.fields.len() {
            return Err(super::piece::cut());
        }
        let words = fields.iter().enumerate().map(|(at, field)| {
            self.outline.fields[at].missing |= field.missing;
            let words = field.words.iter();
            words.map(|word| self.word(at, word)).collect::<Vec<u32>>()
        });
        let words = words.collect();
        // Steps alone name chunks and rows.
        if !self.outline.design.has_step_links() {
            chunks.clear();
        }
        Ok(PieceShift { words, chunks })
    }

    /// Splits a batch. Returns the bytes to append to the file of each partition.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as in [`GeometrySurvey::add`](super::GeometrySurvey::add).
    pub fn split(&mut self, batch: Geometry) -> Result<BTreeMap<usize, Vec<u8>>, BuildError> {
        let mut batch = bounds::stored(batch, &self.outline.design)?;
        self.name(&mut batch);
        self.first += batch.vertices() as u64;
        let paths = batch.part_offsets.as_ref().map_or(0, |ends| ends.len() - 1);
        self.first_path += paths as u64;
        let batch = match bounds::bounded(batch, &self.outline.design) {
            Ok((batch, _)) => batch,
            Err(BuildError::AllOutside) => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let fragments = FragmentKind::of_geometry(self.outline.has_objects);
        let assigned =
            spatial_layout::assign(&batch.positions, &self.outline.space, fragments, None)?;
        let global: Vec<u32> = assigned
            .chunks
            .iter()
            .map(|chunk| self.number(chunk))
            .collect();
        let part_of: Vec<usize> = assigned
            .chunks
            .iter()
            .map(|chunk| self.part_of(chunk))
            .collect();
        let fields = self.values(&batch.vertex);
        let mut pieces: BTreeMap<usize, Piece> = BTreeMap::new();
        let mut put = |part: usize, vertex: usize| {
            let piece = pieces.entry(part).or_default();
            piece.fields.resize(fields.len(), Vec::new());
            piece
                .positions
                .extend_from_slice(batch.positions.row(vertex));
            for (field, numbers) in piece.fields.iter_mut().zip(&fields) {
                field.extend_from_slice(numbers.row(vertex));
            }
        };
        let Some(offsets) = &batch.part_offsets else {
            for vertex in 0..batch.vertices() {
                let chunk = assigned.chunk_of[vertex] as usize;
                self.ends[global[chunk] as usize].0 += 1;
                put(part_of[chunk], vertex);
            }
            if let Some(ids) = &batch.object_ids {
                for (vertex, id) in ids.iter().enumerate() {
                    let part = part_of[assigned.chunk_of[vertex] as usize];
                    pieces.entry(part).or_default().objects.push(*id);
                }
            }
            return Ok(written(pieces));
        };
        let mut stretches: Vec<(usize, i64, u32)> = Vec::new();
        let mut steps: Vec<(usize, [u32; 4])> = Vec::new();
        let has_steps = self.outline.design.has_step_links();
        let ids = batch.part_objects.clone().unwrap_or_default();
        let (mut row_of_path, mut runs) = (Vec::new(), Vec::new());
        for (path, ends) in offsets.windows(2).enumerate() {
            let id = ids[path];
            runs.clear();
            let mut last: Option<usize> = None;
            for vertex in ends[0] as usize..ends[1] as usize {
                let chunk = assigned.chunk_of[vertex] as usize;
                put(part_of[chunk], vertex);
                let at = global[chunk] as usize;
                let row = self.ends[at].0;
                let row =
                    u32::try_from(row).map_err(|_| BuildError::TooManyVertices(usize::MAX))?;
                if last == Some(chunk) {
                    if let Some((_, _, rows)) = stretches.last_mut() {
                        *rows += 1;
                    }
                } else {
                    runs.push(global[chunk]);
                    self.ends[at].1 += 1;
                    stretches.push((part_of[chunk], id, 1));
                    if let Some(last) = last.filter(|_| has_steps) {
                        // The previous row is the last of its chunk.
                        let from = global[last];
                        let before = self.ends[from as usize].0 as u32 - 1;
                        let step = [from, before, global[chunk], row];
                        steps.push((part_of[last], step));
                        if part_of[last] != part_of[chunk] {
                            steps.push((part_of[chunk], step));
                        }
                    }
                }
                self.ends[at].0 += 1;
                last = Some(chunk);
            }
            row_of(&batch.object, path, &mut row_of_path);
            self.log.push(id, &row_of_path, &runs);
        }
        for (part, id, rows) in stretches {
            let piece = pieces.entry(part).or_default();
            piece.objects.push(id);
            piece.stretches.push(rows);
        }
        for (part, step) in steps {
            pieces.entry(part).or_default().steps.push(step);
        }
        Ok(written(pieces))
    }

    /// Assigns default object ids that continue those of earlier batches.
    fn name(&self, batch: &mut Geometry) {
        match (&batch.part_offsets, &batch.part_objects) {
            (Some(offsets), None) => {
                let first = self.first_path as i64;
                batch.part_objects = Some((first..first + offsets.len() as i64 - 1).collect());
            }
            (None, _) if self.outline.has_objects && batch.object_ids.is_none() => {
                let first = self.first as i64;
                batch.object_ids = Some((first..first + batch.vertices() as i64).collect());
            }
            _ => {}
        }
    }

    fn number(&mut self, chunk: &[i64]) -> u32 {
        if let Some(number) = self.numbers.get(chunk) {
            return *number;
        }
        let number = self.chunks.len() as u32;
        self.numbers.insert(chunk.to_vec(), number);
        self.chunks.push(chunk.to_vec());
        self.ends.push((0, 0));
        number
    }

    fn part_of(&self, chunk: &[i64]) -> usize {
        // This hasher has no seed, so the partition is equal on every machine.
        let mut hasher = DefaultHasher::new();
        self.outline.shard_of(chunk).hash(&mut hasher);
        (hasher.finish() % self.parts as u64) as usize
    }

    /// Converts attributes to numbers: words by order of appearance.
    fn values(&mut self, attributes: &[Column]) -> Vec<NumericColumn> {
        let mut all = Vec::new();
        for (at, attribute) in attributes.iter().enumerate() {
            if let ColumnValues::Numeric(numbers) = &attribute.values {
                all.push(numbers.clone());
                continue;
            }
            let mut numbers = NumericColumn::new(zvf_format::numeric::Kind::UInt32, 1);
            for text in attribute.texts() {
                let number = match text {
                    None => {
                        self.outline.fields[at].missing = true;
                        u32::MAX
                    }
                    Some(text) => self.word(at, text),
                };
                numbers.bytes.extend(number.to_le_bytes());
            }
            all.push(numbers);
        }
        all
    }

    /// Returns the number of a word of an attribute.
    fn word(&mut self, field: usize, text: &str) -> u32 {
        if let Some(number) = self.words[field].get(text) {
            return *number;
        }
        let number = self.words[field].len() as u32;
        self.words[field].insert(text.to_owned(), number);
        self.outline.fields[field].words.push(text.to_owned());
        number
    }

    /// Returns the number of partitions.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the outline with all words, and the chunks by number. Call it after the last batch.
    pub fn settled(&self) -> (Outline, Vec<Vec<i64>>) {
        (self.outline.clone(), self.chunks.clone())
    }

    /// Takes the records of paths since the last call, which the caller keeps in the order of the
    /// calls. [`finish`](Self::finish) says what becomes of them.
    pub fn take_paths(&mut self) -> Vec<u8> {
        self.log.take()
    }

    /// Puts back all records of paths.
    #[must_use]
    pub fn with_paths(mut self, records: Vec<u8>) -> Self {
        self.log.bytes = records;
        self
    }

    /// Returns whether [`finish`](Self::finish) needs the records of paths in memory: their ids do
    /// not ascend, the tables describe objects, or the profile has the object index in one cell.
    pub fn needs_paths(&self, tables: &Geometry) -> bool {
        let design = &self.outline.design;
        let is_plain = design.profile == Profile::V09
            && design.object_index == ManifestForm::Manifests
            && tables.objects.is_none()
            && tables.object.is_empty()
            && tables.fragment.is_empty();
        let counts = &self.log.counts;
        // Members of groups are looked up in ids without gaps.
        let has_ids = match tables.groups.is_empty() {
            true => counts.ascends,
            false => counts.is_contiguous(),
        };
        design.kind.is_paths() && !(is_plain && has_ids)
    }

    /// Combines the results of all partitions with object and group tables. The plan supports
    /// [`WritePlan::rest`], [`WritePlan::root`] and [`WritePlan::summary`] only, because cells are
    /// written already.
    ///
    /// The [`PathIndex`] of paths encodes further cells from the records of
    /// [`take_paths`](Self::take_paths). There is none if [`needs_paths`](Self::needs_paths).
    ///
    /// # Errors
    ///
    /// [`BuildError`] when two objects share an id, or tables do not fit.
    pub fn finish(
        self,
        results: Vec<PartitionResult>,
        tables: Geometry,
    ) -> Result<(WritePlan, Option<PathIndex>), BuildError> {
        let outline = &self.outline;
        let describes = tables.objects.is_some() || !tables.object.is_empty();
        if describes && !outline.object_fields.is_empty() {
            return Err(BuildError::MissingInput {
                kind: "batches",
                what: "object attributes either with the batches or in the tables, not in both",
            });
        }
        let needs_paths = self.needs_paths(&tables);
        let mut found: BTreeMap<Vec<i64>, MadeChunk> = BTreeMap::new();
        let mut between: BTreeMap<Vec<Vec<i64>>, u32> = BTreeMap::new();
        for result in results {
            let made = result.chunks.into_iter();
            found.extend(made.map(|made| (made.coords.clone(), made)));
            between.extend(result.links);
        }
        let chunks: Vec<Vec<i64>> = found.keys().cloned().collect();
        let number: HashMap<&[i64], u32> = chunks.iter().map(Vec::as_slice).zip(0..).collect();
        let mut layout = VertexLayout {
            chunks: chunks.clone(),
            starts: vec![0],
            fragment_starts: vec![0],
            ..VertexLayout::default()
        };
        let mut end = 0;
        let mut vertices = 0u64;
        for made in found.values() {
            end += made.rows as usize;
            vertices += made.rows;
            layout.starts.push(end);
        }
        let mut geometry = Geometry {
            positions: NumericColumn::new(outline.positions.0, outline.positions.1 as u32),
            vertex: Vec::new(),
            link: Vec::new(),
            links: Vec::new(),
            part_offsets: None,
            part_objects: None,
            object_ids: None,
            ..tables
        };
        let mut logged = None;
        let objects = if !outline.has_objects {
            None
        } else if needs_paths {
            let number = |chunk: u32| {
                let coords = self.chunks[chunk as usize].as_slice();
                number.get(coords).copied().unwrap_or(0)
            };
            Some(self.objects_of_paths(&mut layout, &mut geometry, number)?)
        } else if outline.design.kind.is_paths() {
            logged = Some(self.logged(&geometry)?);
            Some(ObjectRows::default())
        } else {
            Some(self.owners(&mut layout, &mut geometry, found.values())?)
        };
        let links = self.links(between, |chunk| number.get(chunk).copied().unwrap_or(0));
        let vertex = outline.fields.iter();
        let vertex = vertex.map(|field| outline.empty_column(field));
        let plan = outline.plan(Found {
            vertices,
            vertex: vertex.collect::<Result<Vec<StoredColumn>, _>>()?,
            geometry,
            layout,
            objects,
            logged,
            links,
        });
        let axes = plan.geometry.axes();
        let index = plan.logged.as_ref();
        let index = index.map(|logged| PathIndex::new(logged, self.chunks, axes));
        Ok((plan, index))
    }

    /// Returns the objects whose records are not in memory.
    fn logged(&self, geometry: &Geometry) -> Result<LoggedObjects, BuildError> {
        let counts = &self.log.counts;
        for (group, members) in &geometry.groups {
            let is_known = |id: &&i64| (counts.first..=counts.last).contains(*id);
            if let Some(&id) = members.iter().find(|id| !is_known(id)) {
                let what = format!("group {group}");
                return Err(BuildError::UnknownObject { what, id });
            }
        }
        crate::objects::check_groups(geometry)?;
        let as_size = |count: u64| {
            usize::try_from(count).map_err(|_| BuildError::TooManyVertices(usize::MAX))
        };
        let count = as_size(counts.paths)?;
        let bytes = tables::framed_bytes(counts.paths, counts.runs, geometry.axes());
        let fields = self.outline.object_fields.iter().zip(&self.log.fills);
        let column = |(field, fill): (&Field, &FillSearch)| {
            Ok(LoggedColumn {
                name: field.name.clone(),
                kind: fill.kind,
                columns: fill.columns,
                fill: fill.found(&field.name)?,
            })
        };
        Ok(LoggedObjects {
            count,
            present: as_size(counts.present)?,
            manifests: count.clamp(1, tables::at_once_of(count, as_size(bytes)?)),
            columns: fields.map(column).collect::<Result<_, BuildError>>()?,
        })
    }

    /// Returns the objects of paths, and puts their fragments into the layout and their attributes
    /// into the geometry; `number` gives the sorted number of a chunk.
    fn objects_of_paths(
        &self,
        layout: &mut VertexLayout,
        geometry: &mut Geometry,
        number: impl Fn(u32) -> u32,
    ) -> Result<ObjectRows, BuildError> {
        let mut replay = PathReplay::new(self.log.row_size(), self.chunks.len());
        let mut records = self.log.bytes.as_slice();
        let (mut ids, mut runs): (Vec<i64>, Vec<(u32, u32, u32)>) = (Vec::new(), Vec::new());
        let fields = self.outline.object_fields.iter();
        let columns = fields.filter_map(|field| {
            let (kind, columns) = field.numbers?;
            Some(NumericColumn::new(kind, columns as u32))
        });
        let mut columns: Vec<NumericColumn> = columns.collect();
        while let Some(path) = replay.next(&mut records)? {
            let at = ids.len() as u32;
            ids.push(path.id);
            let own = path.runs.iter();
            runs.extend(own.map(|(chunk, fragment)| (at, number(*chunk), *fragment)));
            let mut row = path.row;
            for column in &mut columns {
                let (own, after) = row.split_at(column.row_size());
                column.bytes.extend_from_slice(own);
                row = after;
            }
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BuildError::DuplicateObject(pair[0]));
        }
        let mut fragments = vec![0u32; layout.chunks.len()];
        for (chunk, count) in (0..).zip(replay.ends()) {
            fragments[number(chunk) as usize] = *count;
        }
        for (chunk, count) in (0..).zip(&fragments) {
            let fragment = Fragment {
                chunk,
                rows: 0,
                object: NO_OBJECT,
            };
            let end = layout.fragments.len() + *count as usize;
            layout.fragments.resize(end, fragment);
            layout.fragment_starts.push(end);
        }
        let fields = self.outline.object_fields.iter();
        let columns = fields.zip(columns);
        let columns = columns.map(|(field, column)| Column::new(&field.name, column));
        geometry.object.extend(columns);
        geometry.objects.get_or_insert_with(|| ids.clone());
        let objects = ObjectRows::among(ids.iter().copied(), geometry, &self.outline.design)?;
        let rows = objects.rows();
        let entries = runs.iter().map(|(path, chunk, fragment)| {
            let first = layout.fragment_starts[*chunk as usize] as u32;
            let row = rows.get(ids[*path as usize]).unwrap_or(NO_OBJECT);
            (row, first + fragment)
        });
        let entries: Vec<(u32, u32)> = entries.collect();
        layout.manifests = Manifests::by_object(objects.ids.len(), &entries);
        Ok(objects)
    }

    /// Returns the objects of points, and puts their fragments into the layout.
    fn owners<'a>(
        &self,
        layout: &mut VertexLayout,
        geometry: &mut Geometry,
        made: impl Iterator<Item = &'a MadeChunk> + Clone,
    ) -> Result<ObjectRows, BuildError> {
        let own = made.clone().flat_map(|made| &made.fragments);
        let mut own: Vec<i64> = own.map(|(_, id)| *id).collect();
        own.sort_unstable();
        own.dedup();
        geometry.objects.get_or_insert_with(|| own.clone());
        let objects = ObjectRows::among(own.iter().copied(), geometry, &self.outline.design)?;
        let ids = objects.rows();
        for (chunk, made) in (0..).zip(made) {
            let fragments = made.fragments.iter().map(|(rows, id)| Fragment {
                chunk,
                rows: *rows,
                object: ids.get(*id).unwrap_or(NO_OBJECT),
            });
            layout.fragments.extend(fragments);
            layout.fragment_starts.push(layout.fragments.len());
        }
        let entries = layout.fragments.iter().zip(0..);
        let entries: Vec<_> = entries.map(|(at, number)| (at.object, number)).collect();
        layout.manifests = Manifests::by_object(objects.ids.len(), &entries);
        Ok(objects)
    }

    /// Returns link cells with their counts.
    fn links(
        &self,
        between: BTreeMap<Vec<Vec<i64>>, u32>,
        number: impl Fn(&[i64]) -> u32,
    ) -> Option<LinkPlacement> {
        if between.is_empty() {
            return None;
        }
        let mut placed_links = LinkPlacement::none(LinkWidth::EDGE);
        for (coords, links) in between {
            let chunks = coords.iter().map(|chunk| number(chunk));
            let cell = Cell {
                links: vec![0; links as usize],
                ..Cell::default()
            };
            placed_links.between.insert(chunks.collect(), cell);
        }
        let physical = placed_links.physical();
        // Both chunks of a step hold a copy.
        placed_links.logical = if self.outline.design.duplicate {
            physical / 2
        } else {
            physical
        };
        Some(placed_links)
    }
}

/// Replaces `bytes` by the values of a row of all columns, which are numbers.
fn row_of(columns: &[Column], row: usize, bytes: &mut Vec<u8>) {
    bytes.clear();
    for column in columns {
        if let ColumnValues::Numeric(numbers) = &column.values {
            bytes.extend_from_slice(numbers.row(row));
        }
    }
}

fn written(pieces: BTreeMap<usize, Piece>) -> BTreeMap<usize, Vec<u8>> {
    let pieces = pieces.into_iter().map(|(part, piece)| {
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        (part, bytes)
    });
    pieces.collect()
}
