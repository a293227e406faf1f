//! Cells of the spatial index of annotations: computed when they are asked for, and the coarse ones
//! of all requests in one pass.

use std::{
    collections::{BTreeSet, HashMap},
    ops::ControlFlow,
};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore};
use zvf::{Bbox, Dataset, Mode, Query};
use zvf_model::row_id::RowId;
use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, AnnotationList, Dimensions, PropertyValue, RecordLayout,
    SpatialGrid, SpatialLevels,
};

use crate::layers::{
    LayerError,
    annotations::{AnnotationPlan, AnnotationSink, object_of_path},
};

/// Entries of the index of the finer cells of paths, of 8 bytes each.
const MOST_INDEXED: usize = 4 << 20;
/// Cells that are computed at once. Each may hold the paths of a cell and of its chunks.
const AT_ONCE: usize = 2;
/// The largest answer.
const MOST_BYTES: usize = 64 << 20;
/// Chunks whose boxes are kept, to find annotations by id.
const MOST_CHUNKS: usize = 1 << 19;

/// Annotations of an open store.
#[derive(Debug)]
pub(super) struct LiveAnnotations {
    plan: AnnotationPlan,
    /// The document, with limits that are not exact.
    info: AnnotationInfo,
    kept: OnceCell<KeptCells>,
    /// The most bytes of `kept`.
    most_kept: usize,
    turns: Semaphore,
}

/// The cells of the coarse levels.
#[derive(Debug, Default)]
struct KeptCells {
    levels: usize,
    /// Annotations in the fullest cell of each level.
    limits: Vec<u64>,
    cells: HashMap<CellKey, Bytes>,
    /// The ids of the paths in each cell of finer levels; `None` if there are too many.
    paths: Option<HashMap<CellKey, Vec<u64>>>,
    /// Boxes of the chunks, by the rank in addresses of points.
    chunks: HashMap<u64, (Vec<f32>, Vec<f32>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CellKey {
    level: usize,
    cell: Vec<u64>,
}

/// Annotations of one list.
#[derive(Debug, Default)]
struct ListEntries {
    bytes: Vec<u8>,
    /// Ids with the ends of their records.
    ends: Vec<(u64, usize)>,
}

impl ListEntries {
    fn push(&mut self, id: u64, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push((id, self.bytes.len()));
    }

    /// Returns the memory that the entries take, about.
    fn size(&self) -> usize {
        let ends = self.ends.len().saturating_mul(size_of::<(u64, usize)>());
        self.bytes.len().saturating_add(ends)
    }

    /// Returns the list, in random order.
    fn encode(self) -> Bytes {
        let mut start = 0;
        let mut entries: Vec<(u64, &[u8])> = Vec::with_capacity(self.ends.len());
        for (id, end) in &self.ends {
            entries.push((*id, self.bytes.get(start..*end).unwrap_or_default()));
            start = *end;
        }
        entries.sort_by(|(a, _), (b, _)| {
            let ranks = SpatialLevels::rank(*a).total_cmp(&SpatialLevels::rank(*b));
            ranks.then(a.cmp(b))
        });
        let ids: Vec<u64> = entries.iter().map(|(id, _)| *id).collect();
        AnnotationList::join(entries.into_iter().map(|(_, record)| record), &ids).into()
    }
}

impl LiveAnnotations {
    /// Creates annotations that keep at most `most_kept` bytes of coarse cells.
    pub(super) fn new(plan: AnnotationPlan, dimensions: &Dimensions, most_kept: usize) -> Self {
        Self {
            info: plan.info(dimensions),
            plan,
            kept: OnceCell::new(),
            most_kept,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Computes the coarse cells, unless that was done.
    pub(super) async fn warm(&self, dataset: &Dataset) -> Result<(), LayerError> {
        self.kept(dataset).await.map(drop)
    }

    /// Returns the document. The limits of the levels that are kept are exact, and those of finer
    /// ones what their mean over all hashes would be.
    pub(super) async fn info(&self, dataset: &Dataset) -> Result<Bytes, LayerError> {
        let kept = self.kept(dataset).await?;
        let mut info = self.info.clone();
        for (level, longest) in info.spatial.iter_mut().zip(&kept.limits) {
            level.limit = (*longest).max(1);
        }
        Ok(info.to_json().into())
    }

    /// Returns the list of a cell; `None` if it is empty or does not exist.
    pub(super) async fn cell(
        &self,
        dataset: &Dataset,
        level: usize,
        cell: Vec<u64>,
    ) -> Result<Option<Bytes>, LayerError> {
        let Some(grid) = self.plan.levels.grids().get(level) else {
            return Ok(None);
        };
        let is_inside = cell.len() == grid.shape.len()
            && cell.iter().zip(&grid.shape).all(|(at, extent)| at < extent);
        if !is_inside {
            return Ok(None);
        }
        let kept = self.kept(dataset).await?;
        if level < kept.levels {
            return Ok(kept.cells.get(&CellKey { level, cell }).cloned());
        }
        let key = CellKey { level, cell };
        let query = match (self.plan.kind, &kept.paths) {
            (AnnotationKind::Point, _) => {
                let query = self.query().region(box_of(grid, &key.cell)?);
                query.owners(false)
            }
            (_, Some(paths)) => {
                let Some(ids) = paths.get(&key) else {
                    return Ok(None);
                };
                let objects: BTreeSet<i64> =
                    ids.iter().copied().filter_map(object_of_path).collect();
                self.query().objects(Vec::from_iter(objects))
            }
            (_, None) => {
                let query = self.query().region(box_of(grid, &key.cell)?);
                query.mode(Mode::Touch)
            }
        };
        let CellKey { cell, .. } = key;
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        let mut sink = CellSink {
            plan: &self.plan,
            level,
            grid,
            cell,
            list: ListEntries::default(),
        };
        self.each(dataset, &query, &mut sink).await?;
        Ok(Some(sink.list)
            .filter(|list| !list.ends.is_empty())
            .map(ListEntries::encode))
    }

    /// Returns the annotation with an id and its objects.
    pub(super) async fn by_id(
        &self,
        dataset: &Dataset,
        id: u64,
    ) -> Result<Option<Bytes>, LayerError> {
        let query = match self.plan.kind {
            AnnotationKind::Point => {
                let kept = self.kept(dataset).await?;
                let Some((lower, upper)) = kept.chunks.get(&RowId::from(id).chunk()) else {
                    return Ok(None);
                };
                self.query().region(padded(lower, upper)?)
            }
            _ => match object_of_path(id) {
                Some(object) => self.query().objects([object]),
                None => return Ok(None),
            },
        };
        let mut sink = OneSink {
            plan: &self.plan,
            id,
            record: None,
        };
        match self.each(dataset, &query, &mut sink).await {
            Err(LayerError::Store(error)) if error.is_not_found() => Ok(None),
            done => done.map(|()| sink.record.map(Bytes::from)),
        }
    }

    /// Returns the list of the annotations of an object.
    pub(super) async fn related(
        &self,
        dataset: &Dataset,
        object: u64,
    ) -> Result<Option<Bytes>, LayerError> {
        let Ok(object) = i64::try_from(object) else {
            return Ok(None);
        };
        let query = self.query().objects([object]);
        let mut sink = RelatedSink {
            plan: &self.plan,
            list: ListEntries::default(),
        };
        match self.each(dataset, &query, &mut sink).await {
            Err(LayerError::Store(error)) if error.is_not_found() => return Ok(None),
            done => done?,
        }
        Ok(Some(sink.list)
            .filter(|list| !list.ends.is_empty())
            .map(ListEntries::encode))
    }

    fn query(&self) -> Query {
        let query = Query::new().columns(self.plan.selection());
        match self.plan.kind {
            AnnotationKind::Point => query.row_ids(),
            _ => query,
        }
    }

    /// Passes the annotations of a query to `sink`.
    async fn each<S>(
        &self,
        dataset: &Dataset,
        query: &Query,
        sink: &mut S,
    ) -> Result<(), LayerError>
    where
        S: AnnotationSink<Error = LayerError> + Send,
    {
        let mut rows = self.plan.rows();
        let mut failed = None;
        dataset
            .batches(query, |batch| match rows.add(&batch, sink) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            })
            .await?;
        failed.map_or(Ok(()), Err)
    }

    async fn kept(&self, dataset: &Dataset) -> Result<&KeptCells, LayerError> {
        let read = || async {
            let mut sink = KeptSink::new(&self.plan, self.most_kept);
            self.each(dataset, &self.query().owners(false), &mut sink)
                .await?;
            Ok(sink.finish())
        };
        self.kept.get_or_try_init(read).await
    }
}

/// Collects the cells of the coarse levels while they fit the memory.
struct KeptSink<'a> {
    plan: &'a AnnotationPlan,
    /// The most bytes of cells.
    most: usize,
    levels: usize,
    cells: HashMap<CellKey, ListEntries>,
    bytes: usize,
    /// The paths of cells that are not kept.
    paths: Option<HashMap<CellKey, Vec<u64>>>,
    /// Entries of `paths`.
    indexed: usize,
    chunks: HashMap<u64, (Vec<f32>, Vec<f32>)>,
    record: Vec<u8>,
}

impl<'a> KeptSink<'a> {
    fn new(plan: &'a AnnotationPlan, most: usize) -> Self {
        Self {
            plan,
            most,
            levels: plan.levels.grids().len(),
            cells: HashMap::new(),
            bytes: 0,
            paths: (plan.kind != AnnotationKind::Point).then(HashMap::new),
            indexed: 0,
            chunks: HashMap::new(),
            record: Vec::new(),
        }
    }

    /// Drops the finest level until the others fit.
    fn shrink(&mut self) {
        while self.bytes > self.most && self.levels > 0 {
            self.levels = self.levels.saturating_sub(1);
            let levels = self.levels;
            let dropped: Vec<_> = self
                .cells
                .extract_if(|key, _| key.level >= levels)
                .collect();
            for (key, list) in dropped {
                for (id, _) in list.ends {
                    self.index(key.clone(), id);
                }
            }
            let sizes = self.cells.values().map(ListEntries::size);
            self.bytes = sizes.fold(0, usize::saturating_add);
        }
    }

    /// Adds a path to the index of cells that are not kept.
    fn index(&mut self, key: CellKey, id: u64) {
        if let Some(paths) = &mut self.paths {
            paths.entry(key).or_default().push(id);
            self.indexed = self.indexed.saturating_add(1);
        }
        if self.indexed > MOST_INDEXED {
            self.paths = None;
        }
    }

    fn finish(self) -> KeptCells {
        let mut limits = vec![0; self.levels];
        for (key, list) in &self.cells {
            if let Some(limit) = limits.get_mut(key.level) {
                *limit = u64::try_from(list.ends.len())
                    .unwrap_or(u64::MAX)
                    .max(*limit);
            }
        }
        let cells = self.cells.into_iter();
        KeptCells {
            levels: self.levels,
            limits,
            cells: cells.map(|(key, list)| (key, list.encode())).collect(),
            paths: self.paths,
            chunks: self.chunks,
        }
    }

    /// Extends the box of the chunk of a point.
    fn add_to_chunk(&mut self, id: u64, point: &[f32]) {
        let chunk = RowId::from(id).chunk();
        if self.chunks.len() >= MOST_CHUNKS && !self.chunks.contains_key(&chunk) {
            return;
        }
        let (lower, upper) = self
            .chunks
            .entry(chunk)
            .or_insert_with(|| (point.to_vec(), point.to_vec()));
        for ((lower, upper), at) in lower.iter_mut().zip(upper).zip(point) {
            *lower = lower.min(*at);
            *upper = upper.max(*at);
        }
    }
}

impl AnnotationSink for KeptSink<'_> {
    type Error = LayerError;

    fn push(
        &mut self,
        id: u64,
        coordinates: &[f32],
        values: &[PropertyValue],
        _: Option<i64>,
    ) -> Result<(), LayerError> {
        if self.plan.kind == AnnotationKind::Point {
            self.add_to_chunk(id, coordinates);
        }
        let level = self.plan.levels.level_of(id);
        let Some(grid) = self.plan.levels.grids().get(level) else {
            return Ok(());
        };
        if level >= self.levels {
            if self.paths.is_some() {
                for cell in cells_of(self.plan.kind, grid, coordinates) {
                    self.index(CellKey { level, cell }, id);
                }
            }
            return Ok(());
        }
        self.record.clear();
        self.plan
            .layout
            .write(coordinates, values, &mut self.record)?;
        for cell in cells_of(self.plan.kind, grid, coordinates) {
            let list = self.cells.entry(CellKey { level, cell }).or_default();
            let before = list.size();
            list.push(id, &self.record);
            let added = list.size().saturating_sub(before);
            self.bytes = self.bytes.saturating_add(added);
        }
        self.shrink();
        Ok(())
    }
}

/// Collects the annotations of one cell.
struct CellSink<'a> {
    plan: &'a AnnotationPlan,
    level: usize,
    grid: &'a SpatialGrid,
    cell: Vec<u64>,
    list: ListEntries,
}

impl AnnotationSink for CellSink<'_> {
    type Error = LayerError;

    fn push(
        &mut self,
        id: u64,
        coordinates: &[f32],
        values: &[PropertyValue],
        _: Option<i64>,
    ) -> Result<(), LayerError> {
        let is_here = self.plan.levels.level_of(id) == self.level
            && cells_of(self.plan.kind, self.grid, coordinates).contains(&self.cell);
        match is_here {
            true => push_to(&mut self.list, self.plan, id, coordinates, values),
            false => Ok(()),
        }
    }
}

/// Collects the annotations of an object.
struct RelatedSink<'a> {
    plan: &'a AnnotationPlan,
    list: ListEntries,
}

impl AnnotationSink for RelatedSink<'_> {
    type Error = LayerError;

    fn push(
        &mut self,
        id: u64,
        coordinates: &[f32],
        values: &[PropertyValue],
        _: Option<i64>,
    ) -> Result<(), LayerError> {
        push_to(&mut self.list, self.plan, id, coordinates, values)
    }
}

/// Waits for one annotation.
struct OneSink<'a> {
    plan: &'a AnnotationPlan,
    id: u64,
    record: Option<Vec<u8>>,
}

impl AnnotationSink for OneSink<'_> {
    type Error = LayerError;

    fn push(
        &mut self,
        id: u64,
        coordinates: &[f32],
        values: &[PropertyValue],
        object: Option<i64>,
    ) -> Result<(), LayerError> {
        if id != self.id {
            return Ok(());
        }
        let mut record = Vec::new();
        self.plan.layout.write(coordinates, values, &mut record)?;
        if self.plan.has_objects {
            let object = object.and_then(|object| u64::try_from(object).ok());
            RecordLayout::write_related(object.as_slice(), &mut record)?;
        }
        self.record = Some(record);
        Ok(())
    }
}

fn push_to(
    list: &mut ListEntries,
    plan: &AnnotationPlan,
    id: u64,
    coordinates: &[f32],
    values: &[PropertyValue],
) -> Result<(), LayerError> {
    plan.layout.write(coordinates, values, &mut list.bytes)?;
    list.ends.push((id, list.bytes.len()));
    if list.size() > MOST_BYTES {
        return Err(LayerError::TooLarge("a list of annotations", MOST_BYTES));
    }
    Ok(())
}

fn cells_of(kind: AnnotationKind, grid: &SpatialGrid, coordinates: &[f32]) -> Vec<Vec<u64>> {
    match kind {
        AnnotationKind::Point => vec![grid.cell_of(coordinates)],
        _ => grid.cells_of_path(coordinates),
    }
}

/// Returns a box that contains a cell.
#[expect(
    clippy::cast_precision_loss,
    reason = "cells along an axis are far below 2^53"
)]
fn box_of(grid: &SpatialGrid, cell: &[u64]) -> Result<Bbox, LayerError> {
    let axes = grid.lower.iter().zip(&grid.cell).zip(cell);
    let lower = axes
        .clone()
        .map(|((lower, size), at)| lower + size * *at as f64);
    let upper = axes.map(|((lower, size), at)| lower + size * (*at as f64 + 1.0));
    rounded(lower.collect(), upper.collect())
}

fn padded(lower: &[f32], upper: &[f32]) -> Result<Bbox, LayerError> {
    let wide = |corner: &[f32]| corner.iter().copied().map(f64::from).collect();
    rounded(wide(lower), wide(upper))
}

/// Returns a box with room for the rounding of positions to 32-bit floats.
fn rounded(mut lower: Vec<f64>, mut upper: Vec<f64>) -> Result<Bbox, LayerError> {
    for (lower, upper) in lower.iter_mut().zip(&mut upper) {
        let room = lower.abs().max(upper.abs()) * f64::from(f32::EPSILON);
        let room = room.max(f64::from(f32::MIN_POSITIVE));
        *lower -= room;
        *upper += room;
    }
    Bbox::new(&lower, &upper).map_err(|_| LayerError::Axes(lower.len()))
}
