//! Partitioning of batches by chunk.

use core::ops::Range;
use std::collections::{BTreeMap, HashMap, HashSet};

use zvf_format::links::LinkWidth;

use crate::{
    GeometryKind, bounds,
    design::{ManifestForm, OutOfBounds},
    error::BuildError,
    geometry::{Geometry, GeometryBuilder, LinkEnds, LinkNumbering, VertexOwners},
    large::linked_rows::{LinkedRows, Runs},
    large::outline::{Field, Outline, PlanContents},
    large::part::{ChunkSummary, PartitionResult},
    large::path_index::PathIndex,
    large::path_log::{PathLog, PathReplay},
    large::piece::{Piece, PieceShift},
    link_placement::{Cell, LinkPlacement},
    objects::ObjectRows,
    plan::{LoggedColumn, LoggedObjects, WritePlan},
    sizing::FragmentKind,
    spatial_layout,
    stored_column::{FillSearch, StoredColumn, set_nan},
    tables,
    vertex_layout::{Fragment, Manifests, NO_OBJECT, Trees, VertexLayout},
};
use zvf_model::{
    column::{Column, ColumnValues, NumericColumn},
    generation::Generation,
    object_ids::Owner,
    scope::Scope,
};

/// Chunks of the vertices of a batch.
struct Division<'a> {
    /// The chunk of each vertex, as an index into `global` and `part_of`.
    chunk_of: &'a [u32],
    /// Number of each chunk among all.
    global: &'a [u32],
    /// Partition of each chunk.
    part_of: &'a [usize],
}

/// Partition, object and number of rows of a run of a path through a chunk.
type ChunkRun = (usize, i64, u32);

/// A partition, and the chunks and rows of both ends of a step between chunks.
type Step = (usize, [u32; 4]);

/// A batch without its links.
struct UnlinkedBatch {
    batch: GeometryBuilder,
    /// 1 for each vertex that is the root of a tree.
    roots: Vec<u8>,
    /// The vertices that are stored.
    kept: Vec<bool>,
}

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
    /// Rows of each object in each chunk so far, if the geometry has links.
    pub(super) runs: Runs,
    /// For each appended share, the number of each of its runs and the number of earlier rows of
    /// this run.
    shares: Vec<Vec<(u32, u32)>>,
    /// Rows of the last batch.
    linked: LinkedRows,
    /// Number of stored links, without copies.
    placed: u64,
    /// Number of vertices before the current batch.
    first: u64,
    /// Number of paths before the current batch, with those outside of the bounds.
    first_path: u64,
    /// Objects that lost all vertices of a batch to the bounds, each with the number of logged
    /// paths before it.
    pub(super) dropped: Vec<(u64, i64)>,
}

impl Partitioner {
    /// Returns the generation of the store.
    pub fn generation(&self) -> Generation {
        self.outline.generation()
    }

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
            runs: Runs::default(),
            shares: Vec::new(),
            linked: LinkedRows::default(),
            placed: 0,
            first: 0,
            first_path: 0,
            dropped: Vec::new(),
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
        let numbers: Vec<u32> = chunks.iter().map(|(number, _)| *number).collect();
        self.shares.push(self.runs.append(&share.runs, &numbers)?);
        let before = self.log.counts.paths;
        let dropped = share
            .dropped
            .iter()
            .map(|(paths, id)| (before + paths, *id));
        self.dropped.extend(dropped);
        let mut replay = PathReplay::new(share.log.row_size(), share.chunks.len());
        let (mut log, mut runs) = (share.log.bytes.as_slice(), Vec::new());
        while let Some(path) = replay.next(&mut log)? {
            runs.clear();
            runs.extend(path.runs.iter().map(|(chunk, _)| chunks[*chunk as usize].0));
            self.log.push(path.id, path.row, &runs);
        }
        let fields = &share.outline.fields;
        if fields.len() != self.outline.fields.len() {
            return Err(super::piece::damaged());
        }
        let words = fields
            .iter()
            .enumerate()
            .map(|(at, field)| {
                self.outline.fields[at].missing |= field.missing;
                let words = field.words.iter();
                words.map(|word| self.word(at, word)).collect::<Vec<u32>>()
            })
            .collect();
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
        self.split_numbered(batch, LinkNumbering::Batch)
    }

    /// Splits a batch whose links may number the vertices of the whole input. If the geometry has
    /// links, the caller also stores the result of [`take_linked`](Self::take_linked).
    ///
    /// # Errors
    ///
    /// [`BuildError`] as in [`split`](Self::split); for skeletons also when links form a cycle, or
    /// when a part of a tree is in another batch.
    pub fn split_numbered(
        &mut self,
        batch: Geometry,
        numbering: LinkNumbering,
    ) -> Result<BTreeMap<usize, Vec<u8>>, BuildError> {
        let mut batch = match batch.vertices() {
            0 => batch.into_builder(),
            _ => bounds::stored(batch.into_builder(), &self.outline.design)?,
        };
        self.name(&mut batch);
        let first = self.first;
        self.first += batch.vertices() as u64;
        let is_linked = self.outline.design.kind.is_linked();
        let (mut roots, mut kept) = (Vec::new(), Vec::new());
        if is_linked {
            let Some(linked) = self.take_links(batch, first, numbering)? else {
                return Ok(BTreeMap::new());
            };
            UnlinkedBatch { batch, roots, kept } = linked;
        }
        self.first_path += batch.owners.paths() as u64;
        if batch.vertices() == 0 {
            self.log_empty_paths(&batch)?;
            return Ok(BTreeMap::new());
        }
        let Some(batch) = self.bounded(batch)? else {
            return Ok(BTreeMap::new());
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
        let fields = self.values(&batch.vertex)?;
        let empty = Piece {
            fields: vec![Vec::new(); fields.len()],
            ..Piece::default()
        };
        let mut pieces = vec![empty; self.parts];
        let mut put = |part: usize, vertices: Range<usize>| {
            let piece = &mut pieces[part];
            let rows = rows_of(&batch.positions, &vertices);
            piece.positions.extend_from_slice(rows);
            for (field, numbers) in piece.fields.iter_mut().zip(&fields) {
                field.extend_from_slice(rows_of(numbers, &vertices));
            }
        };
        let division = Division {
            chunk_of: &assigned.chunk_of,
            global: &global,
            part_of: &part_of,
        };
        let Some(offsets) = batch.owners.offsets() else {
            let mut first = 0;
            for run in assigned.chunk_of.chunk_by(|a, b| a == b) {
                let chunk = run[0] as usize;
                self.ends[global[chunk] as usize].0 += run.len() as u64;
                put(part_of[chunk], first..first + run.len());
                first += run.len();
            }
            let mut table = Vec::with_capacity(batch.vertices() * 8);
            if let Some(ids) = batch.owners.ids() {
                for (vertex, id) in ids.iter().enumerate() {
                    let chunk = assigned.chunk_of[vertex] as usize;
                    let piece = &mut pieces[part_of[chunk]];
                    piece.objects.push(*id);
                    piece.roots.extend(roots.get(vertex));
                    if is_linked {
                        let (run, position) = self.runs.add(global[chunk], *id, 1)?;
                        table.extend(run.to_le_bytes());
                        table.extend(position.to_le_bytes());
                    }
                }
            }
            self.linked.set_rows(&table, &kept);
            return Ok(written(pieces));
        };
        let (chunk_runs, steps) = self.divide_paths(&batch, offsets, &division, &mut put)?;
        for (part, id, rows) in chunk_runs {
            let piece = &mut pieces[part];
            piece.objects.push(id);
            piece.run_rows.push(rows);
        }
        for (part, step) in steps {
            pieces[part].steps.push(step);
        }
        Ok(written(pieces))
    }

    /// Logs the paths of a batch without vertices.
    fn log_empty_paths(&mut self, batch: &GeometryBuilder) -> Result<(), BuildError> {
        let mut row_of_path = Vec::new();
        for (path, id) in batch.owners.ids().into_iter().flatten().enumerate() {
            row_of(&batch.object, path, &mut row_of_path)?;
            self.log.push(*id, &row_of_path, &[]);
        }
        Ok(())
    }

    /// Numbers the rows of paths, and returns their runs through chunks and the steps between them.
    /// Calls `put` with the partition and the vertices of each run.
    fn divide_paths(
        &mut self,
        batch: &GeometryBuilder,
        offsets: &[u64],
        division: &Division<'_>,
        put: &mut dyn FnMut(usize, Range<usize>),
    ) -> Result<(Vec<ChunkRun>, Vec<Step>), BuildError> {
        let (mut chunk_runs, mut steps) = (Vec::<ChunkRun>::new(), Vec::<Step>::new());
        let has_steps = self.outline.design.has_step_links();
        let ids = batch.owners.ids().unwrap_or_default();
        let (mut row_of_path, mut runs) = (Vec::new(), Vec::new());
        for (path, ends) in offsets.windows(2).enumerate() {
            let id = ids[path];
            runs.clear();
            // The chunk of the previous run, and its last row.
            let mut last: Option<(usize, u32)> = None;
            let mut first = ends[0] as usize;
            for run in division.chunk_of[first..ends[1] as usize].chunk_by(|a, b| a == b) {
                let chunk = run[0] as usize;
                let (part, number) = (division.part_of[chunk], division.global[chunk]);
                let end = &mut self.ends[number as usize];
                let row = end.0;
                end.0 += run.len() as u64;
                end.1 += 1;
                let last_row = u32::try_from(end.0 - 1)
                    .map_err(|_| BuildError::TooManyVertices(usize::MAX))?;
                put(part, first..first + run.len());
                first += run.len();
                runs.push(number);
                chunk_runs.push((part, id, run.len() as u32));
                if let Some((last, before)) = last.filter(|_| has_steps) {
                    let step = [division.global[last], before, number, row as u32];
                    steps.push((division.part_of[last], step));
                    if division.part_of[last] != part {
                        steps.push((part, step));
                    }
                }
                last = Some((chunk, last_row));
            }
            row_of(&batch.object, path, &mut row_of_path)?;
            self.log.push(id, &row_of_path, &runs);
        }
        Ok((chunk_runs, steps))
    }

    /// Moves the links of a batch, whose first vertex has the number `first`, to `self.linked`.
    /// Returns the rest of the batch, in depth-first order for skeletons; `None` if no vertex is
    /// kept.
    fn take_links(
        &mut self,
        batch: GeometryBuilder,
        first: u64,
        numbering: LinkNumbering,
    ) -> Result<Option<UnlinkedBatch>, BuildError> {
        self.linked = LinkedRows::default();
        let is_tree = self.outline.design.kind == GeometryKind::Skeletons;
        let (mut batch, roots) = if is_tree {
            let Some(trees) = self.in_tree_order(batch, first, numbering)? else {
                return Ok(None);
            };
            trees
        } else {
            (batch, Vec::new())
        };
        // `in_tree_order` numbers the ends from the first vertex of the batch.
        let first = match numbering {
            LinkNumbering::Input if !is_tree => 0,
            LinkNumbering::Input | LinkNumbering::Batch => first,
        };
        self.linked.links = self.link_records(&batch, first)?;
        batch.links.ends.clear();
        batch.link.clear();
        let kept = bounds::kept(&batch.positions, &self.outline.design);
        if kept.contains(&true) {
            return Ok(Some(UnlinkedBatch { batch, roots, kept }));
        }
        self.linked.set_rows(&[], &kept);
        self.bounded(batch)?;
        Ok(None)
    }

    /// Returns what the design stores of a batch with object ids; `None` if no vertex is kept.
    fn bounded(&mut self, batch: GeometryBuilder) -> Result<Option<GeometryBuilder>, BuildError> {
        let (is_path, vertices) = (batch.owners.offsets().is_some(), batch.vertices());
        if vertices == 0 {
            // A batch of links alone has no axes that the bounds could match.
            return Ok(None);
        }
        let ids = |batch: &GeometryBuilder| batch.owners.ids().map(<[i64]>::to_vec);
        let design = &self.outline.design;
        let before = match design.out_of_bounds {
            OutOfBounds::Drop => ids(&batch).unwrap_or_default(),
            OutOfBounds::Reject | OutOfBounds::Expand => Vec::new(),
        };
        let kept = match bounds::bounded(batch, design) {
            Ok((batch, _)) if batch.vertices() == vertices => return Ok(Some(batch)),
            Ok((batch, _)) => Some(batch),
            Err(BuildError::AllOutside) => None,
            Err(error) => return Err(error),
        };
        let after = kept.as_ref().and_then(ids).unwrap_or_default();
        let mut paths = self.log.counts.paths;
        if is_path {
            let mut after = after.iter().peekable();
            for id in before {
                match after.next_if_eq(&&id) {
                    Some(_) => paths += 1,
                    None => self.dropped.push((paths, id)),
                }
            }
        } else {
            let after: HashSet<i64> = after.into_iter().collect();
            let mut gone: Vec<i64> = before;
            gone.retain(|id| !after.contains(id));
            gone.sort_unstable();
            gone.dedup();
            self.dropped.extend(gone.into_iter().map(|id| (paths, id)));
        }
        Ok(kept)
    }

    /// Assigns default object ids that continue those of earlier batches.
    fn name(&self, batch: &mut GeometryBuilder) {
        let vertices = batch.vertices();
        batch.owners.number_paths(self.first_path as i64);
        match &mut batch.owners {
            owners @ VertexOwners::Unnamed if self.outline.design.kind.is_linked() => {
                // Linked geometry without ids is a single object.
                *owners = VertexOwners::Vertices(vec![0; vertices]);
            }
            owners @ VertexOwners::Unnamed if self.outline.has_objects => {
                let first = self.first as i64;
                *owners = VertexOwners::Vertices((first..first + vertices as i64).collect());
            }
            VertexOwners::Unnamed | VertexOwners::Vertices(_) | VertexOwners::Paths { .. } => {}
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
        self.outline.part_of(chunk, self.parts)
    }

    /// Returns a batch of whole trees, with its vertices in depth-first order and links that count
    /// from its first vertex, and a 1 for each vertex that is a root; `None` if all vertices are
    /// dropped.
    fn in_tree_order(
        &mut self,
        mut batch: GeometryBuilder,
        first: u64,
        numbering: LinkNumbering,
    ) -> Result<Option<(GeometryBuilder, Vec<u8>)>, BuildError> {
        if numbering == LinkNumbering::Input {
            let vertices = batch.vertices();
            for end in &mut batch.links.ends {
                let own = u64::try_from(*end)
                    .ok()
                    .and_then(|end| end.checked_sub(first))
                    .filter(|end| *end < vertices as u64);
                *end = own.ok_or(BuildError::MissingInput {
                    kind: "skeletons",
                    what: "whole trees in each batch",
                })? as i64;
            }
        }
        if batch.vertices() == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.bounded(batch)? else {
            return Ok(None);
        };
        let owners = batch.owners.ids().unwrap_or_default();
        let mut ids = owners.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let numbers: HashMap<i64, u32> = ids.iter().copied().zip(0..).collect();
        let rows: Vec<u32> = owners.iter().map(|id| numbers[id]).collect();
        let trees = Trees::new(&batch, &rows, &ids)?;
        let order = || trees.sequence.iter().map(|vertex| *vertex as usize);
        let mut number = vec![0i64; batch.vertices()];
        for (at, vertex) in (0..).zip(order()) {
            number[vertex] = at;
        }
        for end in &mut batch.links.ends {
            *end = number[*end as usize];
        }
        let positions = batch.positions.take(order());
        batch.positions = positions.ok_or_else(super::piece::damaged)?;
        for column in &mut batch.vertex {
            *column = column.take(order());
        }
        if let Some(ids) = batch.owners.ids_mut() {
            *ids = order().map(|vertex| ids[vertex]).collect();
        }
        let roots = order()
            .map(|vertex| u8::from(!trees.has_parent[vertex]))
            .collect();
        Ok(Some((batch, roots)))
    }

    /// Returns the records of the links of a batch. `first` is the vertex of the input from which
    /// they count.
    fn link_records(&self, batch: &GeometryBuilder, first: u64) -> Result<Vec<u8>, BuildError> {
        let width = self.outline.link_width;
        let mut records = Vec::with_capacity(batch.links.len() * self.outline.link_row_size());
        if batch.links.is_empty() {
            return Ok(records);
        }
        let fields = self.outline.link_fields.iter();
        let is_equal = fields.len() == batch.link.len()
            && fields
                .zip(&batch.link)
                .all(|(field, column)| field.holds(column));
        if batch.links.width != width || !is_equal {
            return Err(super::piece::damaged());
        }
        let mut values = Vec::new();
        for (link, ends) in batch.links.ends.chunks_exact(width).enumerate() {
            for end in ends {
                let vertex = u64::try_from(*end).ok();
                let vertex = vertex.and_then(|vertex| vertex.checked_add(first));
                let vertex = vertex.ok_or(BuildError::LinkEndOutOfRange {
                    link,
                    vertex: *end,
                    vertices: batch.vertices(),
                })?;
                records.extend(vertex.to_le_bytes());
            }
            row_of(&batch.link, link, &mut values)?;
            records.extend_from_slice(&values);
        }
        Ok(records)
    }

    /// Takes the rows and links of the last batch; `None` if the geometry has no links.
    pub fn take_linked(&mut self) -> Option<LinkedRows> {
        let is_linked = self.outline.design.kind.is_linked();
        is_linked.then(|| core::mem::take(&mut self.linked))
    }

    /// Returns a table for each appended share, in which [`LinkBatch`](super::LinkBatch) finds
    /// rows. All shares must have been appended.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a chunk has too many rows.
    pub fn run_tables(&self) -> Result<Vec<Vec<u8>>, BuildError> {
        self.runs.tables(&self.shares)
    }

    /// Sets the number of links that all partitions store, without copies.
    #[must_use]
    pub fn with_links(mut self, placed: u64) -> Self {
        self.placed = placed;
        self
    }

    /// Converts attributes to numbers: words by order of appearance, null floats as NaN.
    fn values(&mut self, attributes: &[Column]) -> Result<Vec<NumericColumn>, BuildError> {
        let mut all = Vec::new();
        for (at, attribute) in attributes.iter().enumerate() {
            if let ColumnValues::Numeric(numbers) = &attribute.values {
                let mut numbers = numbers.clone();
                if let Some(nulls) = &attribute.nulls {
                    set_nan(&attribute.name, &mut numbers, nulls)?;
                }
                all.push(numbers);
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
        Ok(all)
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
        let is_plain = design.profile.is_current()
            && design.object_index == ManifestForm::Manifests
            && tables.objects().is_none()
            && tables.columns(Scope::Object).is_empty()
            && tables.columns(Scope::Fragment).is_empty();
        let counts = &self.log.counts;
        // Members of groups are looked up in ids without gaps.
        let has_ids = if tables.groups().is_empty() {
            counts.ascends
        } else {
            counts.is_contiguous()
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
        let describes = tables.objects().is_some() || !tables.columns(Scope::Object).is_empty();
        if describes && !outline.object_fields.is_empty() {
            return Err(BuildError::MissingInput {
                kind: "batches",
                what: "object attributes either with the batches or in the tables, not in both",
            });
        }
        let needs_paths = self.needs_paths(&tables);
        let mut found: BTreeMap<Vec<i64>, ChunkSummary> = BTreeMap::new();
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
        if vertices == 0 && outline.design.out_of_bounds == OutOfBounds::Drop {
            return Err(BuildError::AllOutside);
        }
        let mut geometry = GeometryBuilder {
            positions: NumericColumn::new(outline.positions.0, outline.positions.1 as u32),
            vertex: Vec::new(),
            link: Vec::new(),
            links: LinkEnds::default(),
            owners: VertexOwners::Unnamed,
            ..tables.into_builder()
        };
        let mut logged = None;
        let objects = if !outline.has_objects {
            None
        } else if needs_paths {
            let numbers: Option<Vec<u32>> = self
                .chunks
                .iter()
                .map(|chunk| number.get(chunk.as_slice()).copied())
                .collect();
            let numbers = numbers.ok_or_else(super::piece::damaged)?;
            let number = |chunk: u32| numbers[chunk as usize];
            Some(self.objects_of_paths(&mut layout, &mut geometry, number)?)
        } else if outline.design.kind.is_paths() {
            logged = Some(self.logged(&mut geometry)?);
            Some(ObjectRows::default())
        } else {
            Some(self.owners(&mut layout, &mut geometry, found.values())?)
        };
        let links = self.links(between, |chunk| number.get(chunk).copied())?;
        let vertex = outline
            .fields
            .iter()
            .map(|field| outline.empty_column(field));
        let plan = outline.plan(PlanContents {
            fragment: outline.fragment_columns(&VertexLayout::default(), &[])?,
            vertices,
            vertex: vertex.collect::<Result<Vec<StoredColumn>, _>>()?,
            geometry,
            layout,
            objects,
            logged,
            links,
            link: outline.link_columns(&[])?,
        });
        let axes = plan.geometry.axes();
        let index = plan
            .logged
            .as_ref()
            .map(|logged| PathIndex::new(logged, plan.keys(), self.chunks, axes))
            .transpose()?;
        Ok((plan, index))
    }

    /// Drops the attributes and group members of objects without any vertex within the bounds.
    /// `ids` are the objects with vertices: of paths in the order of the log, of points ascending.
    fn drop_objects(&self, geometry: &mut GeometryBuilder, ids: &[i64]) {
        if self.dropped.is_empty() {
            return;
        }
        let is_path = self.outline.design.kind.is_paths();
        let listed = geometry.objects.clone().unwrap_or_else(|| {
            let mut listed = Vec::with_capacity(ids.len() + self.dropped.len());
            let mut own = (0u64..).zip(ids).peekable();
            for (before, id) in &self.dropped {
                while let Some((_, id)) = own.next_if(|(at, _)| is_path && at < before) {
                    listed.push(*id);
                }
                listed.push(*id);
            }
            listed.extend(own.map(|(_, id)| *id));
            if !is_path {
                listed.sort_unstable();
                listed.dedup();
            }
            listed
        });
        let mut gone: HashSet<i64> = self.dropped.iter().map(|(_, id)| *id).collect();
        for id in ids {
            gone.remove(id);
        }
        bounds::retain_objects(geometry, &listed, |id| !gone.contains(id));
    }

    /// Returns the objects whose records are not in memory.
    fn logged(&self, geometry: &mut GeometryBuilder) -> Result<LoggedObjects, BuildError> {
        let counts = &self.log.counts;
        let is_known = |id: &i64| (counts.first..=counts.last).contains(id);
        let dropped: HashSet<i64> = self.dropped.iter().map(|(_, id)| *id).collect();
        for (group, members) in &mut geometry.groups {
            members.retain(|id| is_known(id) || !dropped.contains(id));
            if let Some(&id) = members.iter().find(|id| !is_known(id)) {
                let what = format!("group {group}");
                return Err(BuildError::UnknownObject { what, id });
            }
        }
        let as_size = |count: u64| {
            usize::try_from(count).map_err(|_| BuildError::TooManyVertices(usize::MAX))
        };
        let count = as_size(counts.paths)?;
        let bytes = tables::framed_bytes(counts.paths, counts.runs, geometry.axes());
        let is_sharded = self.outline.design.is_sharded();
        let per_chunk = tables::manifests_per_chunk_of(count, as_size(bytes)?, is_sharded);
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
            manifests: count.clamp(1, per_chunk),
            columns: fields.map(column).collect::<Result<_, BuildError>>()?,
        })
    }

    /// Returns the objects of paths, and puts their fragments into the layout and their attributes
    /// into the geometry; `number` gives the sorted number of a chunk.
    fn objects_of_paths(
        &self,
        layout: &mut VertexLayout,
        geometry: &mut GeometryBuilder,
        number: impl Fn(u32) -> u32,
    ) -> Result<ObjectRows, BuildError> {
        let mut replay = PathReplay::new(self.log.row_size(), self.chunks.len());
        let mut records = self.log.bytes.as_slice();
        let (mut ids, mut runs): (Vec<i64>, Vec<(u32, u32, u32)>) = (Vec::new(), Vec::new());
        let fields = self.outline.object_fields.iter();
        let mut columns: Vec<NumericColumn> = fields
            .filter_map(|field| {
                let (kind, columns) = field.numbers?;
                Some(NumericColumn::new(kind, columns as u32))
            })
            .collect();
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
        self.drop_objects(geometry, &ids);
        let fields = self.outline.object_fields.iter();
        let columns = fields
            .zip(columns)
            .map(|(field, column)| Column::new(&field.name, column));
        geometry.object.extend(columns);
        geometry.objects.get_or_insert_with(|| ids.clone());
        let objects = ObjectRows::among(ids.iter().copied(), geometry, &self.outline.design)?;
        let rows = objects.rows();
        let entries: Vec<(u32, u32)> = runs
            .iter()
            .map(|(path, chunk, fragment)| {
                let first = layout.fragment_starts[*chunk as usize] as u32;
                let row = rows.get(ids[*path as usize]).unwrap_or(NO_OBJECT);
                (row, first + fragment)
            })
            .collect();
        layout.manifests = Manifests::by_object(objects.ids.len(), &entries);
        Ok(objects)
    }

    /// Returns the objects of points, and puts their fragments into the layout.
    fn owners<'a>(
        &self,
        layout: &mut VertexLayout,
        geometry: &mut GeometryBuilder,
        made: impl Iterator<Item = &'a ChunkSummary> + Clone,
    ) -> Result<ObjectRows, BuildError> {
        let mut own: Vec<i64> = made
            .clone()
            .flat_map(|made| &made.fragments)
            .map(|(_, id)| *id)
            .filter(|id| *id != Owner::NONE)
            .collect();
        own.sort_unstable();
        own.dedup();
        self.drop_objects(geometry, &own);
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
        let entries: Vec<_> = layout
            .fragments
            .iter()
            .zip(0..)
            .map(|(at, number)| (at.object, number))
            .collect();
        layout.manifests = Manifests::by_object(objects.ids.len(), &entries);
        Ok(objects)
    }

    /// Returns link cells with their counts.
    fn links(
        &self,
        between: BTreeMap<Vec<Vec<i64>>, u32>,
        number: impl Fn(&[i64]) -> Option<u32>,
    ) -> Result<Option<LinkPlacement>, BuildError> {
        let is_linked = self.outline.design.kind.is_linked();
        if between.is_empty() && !self.outline.design.has_links_inside() {
            return Ok(None);
        }
        let mut placed_links = LinkPlacement::none(if is_linked {
            self.outline.link_ends()?
        } else {
            LinkWidth::EDGE
        });
        for (coords, links) in between {
            let chunks: Option<Vec<u32>> = coords.iter().map(|chunk| number(chunk)).collect();
            let chunks = chunks.ok_or_else(super::piece::damaged)?;
            let cell = Cell::counted(links);
            match chunks.as_slice() {
                [chunk] => placed_links.inside.insert(*chunk, cell),
                _ => placed_links.between.insert(chunks, cell),
            };
        }
        if is_linked {
            let placed = usize::try_from(self.placed);
            placed_links.logical = placed.map_err(|_| super::piece::damaged())?;
            return Ok(Some(placed_links));
        }
        let inside: usize = placed_links.inside.values().map(Cell::len).sum();
        let between = placed_links.physical() - inside;
        // Both chunks of a step between chunks hold a copy.
        placed_links.logical = if self.outline.design.duplicate {
            inside + between / 2
        } else {
            inside + between
        };
        Ok(Some(placed_links))
    }
}

/// Replaces `bytes` by the values of a row of all columns, which are numbers.
fn row_of(columns: &[Column], row: usize, bytes: &mut Vec<u8>) -> Result<(), BuildError> {
    bytes.clear();
    for column in columns {
        if let ColumnValues::Numeric(numbers) = &column.values {
            bytes.extend_from_slice(numbers.row(row).ok_or_else(super::piece::damaged)?);
        }
    }
    Ok(())
}

/// Returns the values of rows.
fn rows_of<'c>(column: &'c NumericColumn, rows: &Range<usize>) -> &'c [u8] {
    let size = column.row_size();
    &column.bytes[rows.start * size..rows.end * size]
}

/// Returns the bytes of pieces with vertices or steps, by partition.
fn written(pieces: Vec<Piece>) -> BTreeMap<usize, Vec<u8>> {
    let is_used = |piece: &Piece| !piece.positions.is_empty() || !piece.steps.is_empty();
    let pieces = pieces
        .into_iter()
        .enumerate()
        .filter(|(_, piece)| is_used(piece));
    let bytes = pieces.map(|(part, piece)| {
        let mut bytes = Vec::with_capacity(piece.size());
        piece.write(&mut bytes);
        (part, bytes)
    });
    bytes.collect()
}
