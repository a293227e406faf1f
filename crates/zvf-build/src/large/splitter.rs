//! Partitioning of batches by chunk.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use zvf_format::links::LinkWidth;

use crate::{
    bounds,
    error::BuildError,
    geometry::Geometry,
    large::outline::{Found, Outline},
    large::part::{MadeChunk, PartitionResult},
    large::piece::{Piece, PieceShift},
    link_placement::{Cell, LinkPlacement},
    objects::ObjectRows,
    plan::WritePlan,
    sizing::FragmentKind,
    spatial_layout,
    stored_column::StoredColumn,
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
    /// Ids of paths in input order.
    pub(super) paths: Vec<i64>,
    /// Runs of paths in order: path, chunk, fragment number.
    pub(super) stretches: Vec<(u32, u32, u32)>,
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
        Self {
            outline,
            parts: parts.max(1),
            numbers: HashMap::new(),
            chunks: Vec::new(),
            ends: Vec::new(),
            paths: Vec::new(),
            stretches: Vec::new(),
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
        let base = self.paths.len();
        let total = base + share.paths.len();
        u32::try_from(total).map_err(|_| BuildError::TooManyVertices(total))?;
        let mut chunks = Vec::with_capacity(share.chunks.len());
        let mut fragments = Vec::with_capacity(share.chunks.len());
        for (chunk, (rows, more)) in share.chunks.iter().zip(&share.ends) {
            let number = self.number(chunk);
            let end = &mut self.ends[number as usize];
            chunks.push((number, end.0));
            fragments.push(end.1);
            end.0 += rows;
            let sum = end.1.checked_add(*more);
            end.1 = sum.ok_or(BuildError::TooManyVertices(usize::MAX))?;
        }
        self.paths.extend(&share.paths);
        let stretches = share.stretches.iter().map(|(path, chunk, fragment)| {
            let at = *chunk as usize;
            (*path + base as u32, chunks[at].0, *fragment + fragments[at])
        });
        self.stretches.extend(stretches);
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
        for (path, ends) in offsets.windows(2).enumerate() {
            let number = self.paths.len() as u32;
            let id = ids[path];
            self.paths.push(id);
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
                    self.stretches
                        .push((number, global[chunk], self.ends[at].1));
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

    /// Combines the results of all partitions with object and group tables. The plan supports
    /// [`WritePlan::rest`], [`WritePlan::root`] and [`WritePlan::summary`] only, because cells are
    /// written already.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when two objects share an id, or tables do not fit.
    pub fn finish(
        self,
        results: Vec<PartitionResult>,
        tables: Geometry,
    ) -> Result<WritePlan, BuildError> {
        let outline = &self.outline;
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
        let mut raw: Vec<(u32, u32, i64)> = Vec::new();
        for (chunk, made) in (0u32..).zip(found.values()) {
            end += made.rows as usize;
            vertices += made.rows;
            layout.starts.push(end);
            for (rows, id) in &made.fragments {
                raw.push((chunk, *rows, *id));
            }
            layout.fragment_starts.push(raw.len());
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
        let objects = self.objects(&raw, &mut geometry)?;
        let rows = objects.as_ref().map(ObjectRows::rows);
        let row_of = |id: i64| {
            rows.as_ref()
                .and_then(|rows| rows.get(id))
                .unwrap_or(NO_OBJECT)
        };
        layout.fragments = raw
            .iter()
            .map(|(chunk, rows, id)| Fragment {
                chunk: *chunk,
                rows: *rows,
                object: row_of(*id),
            })
            .collect();
        if let Some(objects) = &objects {
            let entries: Vec<(u32, u32)> = if outline.design.kind.is_paths() {
                let stretches = self.stretches.iter().map(|(path, chunk, fragment)| {
                    let coords = self.chunks[*chunk as usize].as_slice();
                    let chunk = number.get(coords).copied().unwrap_or(0);
                    let first = layout.fragment_starts[chunk as usize] as u32;
                    (row_of(self.paths[*path as usize]), first + fragment)
                });
                stretches.collect()
            } else {
                let fragments = layout.fragments.iter().zip(0..);
                fragments
                    .map(|(fragment, at)| (fragment.object, at))
                    .collect()
            };
            layout.manifests = Manifests::by_object(objects.ids.len(), &entries);
        }
        let links = self.links(between, |chunk| number.get(chunk).copied().unwrap_or(0));
        let vertex = outline.fields.iter();
        let vertex = vertex.map(|field| outline.empty_column(field));
        Ok(outline.plan(Found {
            vertices,
            vertex: vertex.collect::<Result<Vec<StoredColumn>, _>>()?,
            geometry,
            layout,
            objects,
            links,
        }))
    }

    /// Returns the objects of paths and fragments.
    fn objects(
        &self,
        fragments: &[(u32, u32, i64)],
        geometry: &mut Geometry,
    ) -> Result<Option<ObjectRows>, BuildError> {
        if !self.outline.has_objects {
            return Ok(None);
        }
        let own = if self.outline.design.kind.is_paths() {
            let mut sorted = self.paths.clone();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(BuildError::DuplicateObject(pair[0]));
            }
            self.paths.clone()
        } else {
            let mut own: Vec<i64> = fragments.iter().map(|(_, _, id)| *id).collect();
            own.sort_unstable();
            own.dedup();
            own
        };
        geometry.objects.get_or_insert_with(|| own.clone());
        ObjectRows::among(own.iter().copied(), geometry, &self.outline.design).map(Some)
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

fn written(pieces: BTreeMap<usize, Piece>) -> BTreeMap<usize, Vec<u8>> {
    let pieces = pieces.into_iter().map(|(part, piece)| {
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        (part, bytes)
    });
    pieces.collect()
}
