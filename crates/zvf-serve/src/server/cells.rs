//! Cells of the spatial index of annotations. One pass over the store prepares them: it keeps the coarse
//! cells of points, and writes the annotations of paths to a temporary file with an index in memory.

mod coarse_points;
mod indexed_paths;
mod list;

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore, oneshot};
use zvf::{Bbox, Dataset, Mode, Query};
use zvf_precomputed::{AnnotationInfo, AnnotationKind, Dimensions, RecordLayout, SpatialGrid};

use crate::layers::{
    LayerError,
    annotations::{AnnotationPlan, AnnotationSink, StoreAnnotation, object_of_path},
};
use coarse_points::{CoarsePoints, CoarsePointsSink};
use indexed_paths::{IndexedPaths, IndexedPathsSink};
use list::ListEntries;

/// Cells that are computed at once. Each may hold the paths of a cell and of its chunks.
const AT_ONCE: usize = 2;

/// Annotations of an open store.
#[derive(Debug)]
pub(super) struct LiveAnnotations {
    plan: AnnotationPlan,
    /// The document, with limits that are not exact.
    info: AnnotationInfo,
    prepared: OnceCell<Prepared>,
    /// The most bytes of coarse cells of points, and of the index of paths.
    most_kept: usize,
    turns: Semaphore,
}

/// The annotations as one pass over the store has prepared them.
#[derive(Debug)]
enum Prepared {
    Points(CoarsePoints),
    Paths(Arc<IndexedPaths>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CellKey {
    level: usize,
    cell: Vec<u64>,
}

impl LiveAnnotations {
    /// Creates annotations that keep at most `most_kept` bytes of coarse cells, or of an index of paths.
    pub(super) fn new(plan: AnnotationPlan, dimensions: &Dimensions, most_kept: usize) -> Self {
        Self {
            info: plan.info(dimensions),
            plan,
            prepared: OnceCell::new(),
            most_kept,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Returns whether answers take so little work that they need no cache.
    pub(super) fn is_prepared(&self) -> bool {
        matches!(self.prepared.get(), Some(Prepared::Paths(_)))
    }

    /// Prepares the cells, unless that was done.
    pub(super) async fn warm(&self, dataset: &Dataset) -> Result<(), LayerError> {
        self.prepared(dataset).await.map(drop)
    }

    /// Returns the document. The limits of the levels that are prepared are exact, and those of finer
    /// ones what their mean over all hashes would be.
    pub(super) async fn info(&self, dataset: &Dataset) -> Result<Bytes, LayerError> {
        let limits = match self.prepared(dataset).await? {
            Prepared::Points(points) => &points.limits,
            Prepared::Paths(paths) => &paths.limits,
        };
        let mut info = self.info.clone();
        for (level, longest) in info.spatial.iter_mut().zip(limits) {
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
        let key = CellKey { level, cell };
        let query = self.query().region(box_of(grid, &key.cell)?);
        let query = match self.prepared(dataset).await? {
            Prepared::Points(points) if level < points.levels => {
                return Ok(points.cells.get(&key).cloned());
            }
            Prepared::Paths(paths) if level < paths.levels => {
                return read_on_pool(Arc::clone(paths), key).await;
            }
            Prepared::Points(_) => query.owners(false),
            Prepared::Paths(_) => query.mode(Mode::Touch),
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
        Ok(sink.list.encode())
    }

    /// Returns the annotation with an id and its objects.
    pub(super) async fn by_id(
        &self,
        dataset: &Dataset,
        id: u64,
    ) -> Result<Option<Bytes>, LayerError> {
        let query = match self.prepared(dataset).await? {
            Prepared::Points(points) => match points.chunk_of(id) {
                Some((lower, upper)) => self.query().region(padded(lower, upper)?),
                None => return Ok(None),
            },
            Prepared::Paths(_) => match object_of_path(id) {
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
        Ok(sink.list.encode())
    }

    fn query(&self) -> Query {
        let query = Query::new().columns(self.plan.selection());
        match self.plan.kind {
            AnnotationKind::Point => query.row_ids(true),
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

    async fn prepared(&self, dataset: &Dataset) -> Result<&Prepared, LayerError> {
        let read = || async {
            let query = self.query().owners(false);
            if self.plan.kind == AnnotationKind::Point {
                let mut sink = CoarsePointsSink::new(&self.plan, self.most_kept);
                self.each(dataset, &query, &mut sink).await?;
                return Ok(Prepared::Points(sink.finish()));
            }
            let mut sink =
                IndexedPathsSink::new(&self.plan, self.most_kept).map_err(LayerError::Temporary)?;
            self.each(dataset, &query, &mut sink).await?;
            let paths = sink.finish().map_err(LayerError::Temporary)?;
            Ok(Prepared::Paths(Arc::new(paths)))
        };
        self.prepared.get_or_try_init(read).await
    }
}

/// Reads a cell on one of as many threads as there are cores: each thread keeps freed memory.
async fn read_on_pool(paths: Arc<IndexedPaths>, key: CellKey) -> Result<Option<Bytes>, LayerError> {
    let (sender, answer) = oneshot::channel();
    rayon::spawn(move || {
        // Nobody waits for the answer if the client has gone.
        let _ = sender.send(paths.cell(&key));
    });
    answer.await.map_err(|_| LayerError::Ended)?
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

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        let cells = || cells_of(self.plan.kind, self.grid, annotation.coordinates);
        let is_here = self.plan.level_of(annotation) == self.level && cells().contains(&self.cell);
        match is_here {
            true => push_to(&mut self.list, self.plan, annotation),
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

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        push_to(&mut self.list, self.plan, annotation)
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

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        if annotation.id != self.id {
            return Ok(());
        }
        let mut record = Vec::new();
        let StoreAnnotation {
            coordinates,
            values,
            ..
        } = annotation;
        self.plan.layout.write(coordinates, values, &mut record)?;
        if self.plan.has_objects {
            let object = annotation
                .object
                .and_then(|object| u64::try_from(object).ok());
            RecordLayout::write_related(object.as_slice(), &mut record)?;
        }
        self.record = Some(record);
        Ok(())
    }
}

fn push_to(
    list: &mut ListEntries,
    plan: &AnnotationPlan,
    annotation: StoreAnnotation<'_>,
) -> Result<(), LayerError> {
    list.push(annotation.id, |record| {
        let written = plan
            .layout
            .write(annotation.coordinates, annotation.values, record);
        Ok(written?)
    })
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
