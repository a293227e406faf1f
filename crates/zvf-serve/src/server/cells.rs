//! Cells of the spatial index of annotations. One pass over the store prepares them: it keeps the coarse
//! cells of points, and writes the annotations of paths to a temporary file with an index in memory, and
//! the lists of the edges of a graph to another.

mod coarse_points;
mod indexed_paths;
mod link_lists;
mod list;

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore};
use zvf::{Bbox, Dataset, Mode, Query};
use zvf_precomputed::{AnnotationInfo, AnnotationKind, Dimensions, RecordLayout, SpatialGrid};

use super::pool::on_pool;
use crate::layers::{
    LayerError,
    annotations::{
        AnnotatedElements, AnnotationPlan, AnnotationSink, RelatedSegments, StoreAnnotation,
        cell_number,
    },
    check_undamaged,
};
use coarse_points::{CoarsePoints, CoarsePointsSink};
use indexed_paths::{IndexedPaths, IndexedPathsSink};
use link_lists::{LinkLists, LinkListsSink, ListKey};
use list::ListEntries;

/// Cells that are computed at once. Each may hold the paths of a cell and of its chunks.
const MAX_CONCURRENT: usize = 2;

/// Annotations of an open store.
#[derive(Debug)]
pub(super) struct LiveAnnotations {
    plan: AnnotationPlan,
    /// The document, with limits that are not exact.
    info: AnnotationInfo,
    prepared: OnceCell<PreparedAnnotations>,
    /// Maximum size in bytes of coarse cells of points, and of the index of paths.
    max_cached: usize,
    permits: Semaphore,
}

/// The annotations as one pass over the store has prepared them.
#[derive(Debug)]
enum PreparedAnnotations {
    Points(CoarsePoints),
    Paths(Arc<IndexedPaths>),
    Links(Arc<LinkLists>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CellKey {
    level: usize,
    cell: Vec<u64>,
}

impl LiveAnnotations {
    /// Creates annotations that keep at most `max_cached` bytes of coarse cells, or of an index of paths.
    pub(super) fn new(plan: AnnotationPlan, dimensions: &Dimensions, max_cached: usize) -> Self {
        Self {
            info: plan.info(dimensions),
            plan,
            prepared: OnceCell::new(),
            max_cached,
            permits: Semaphore::new(MAX_CONCURRENT),
        }
    }

    /// Returns whether the pass over the store that prepares the cells is not done.
    pub(super) fn is_pending(&self) -> bool {
        self.prepared.get().is_none()
    }

    /// Returns whether cells are prepared, so that responses need no cache.
    pub(super) fn is_prepared(&self) -> bool {
        matches!(
            self.prepared.get(),
            Some(PreparedAnnotations::Paths(_) | PreparedAnnotations::Links(_))
        )
    }

    /// Prepares the cells, unless that was done.
    pub(super) async fn warm(&self, dataset: &Dataset) -> Result<(), LayerError> {
        self.prepared(dataset).await.map(drop)
    }

    /// Returns the document. The limits of the levels that are prepared are exact, and those of finer
    /// ones what their mean over all hashes would be.
    pub(super) async fn info(&self, dataset: &Dataset) -> Result<Bytes, LayerError> {
        let limits = match self.prepared(dataset).await? {
            PreparedAnnotations::Points(points) => &points.limits,
            PreparedAnnotations::Paths(paths) => &paths.limits,
            PreparedAnnotations::Links(links) => &links.limits,
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
            PreparedAnnotations::Points(points) if level < points.levels => {
                return Ok(points.cells.get(&key).cloned());
            }
            PreparedAnnotations::Paths(paths) if level < paths.levels => {
                let paths = Arc::clone(paths);
                return on_pool(move || paths.cell(&key)).await;
            }
            PreparedAnnotations::Links(links) => {
                let key = ListKey {
                    index: level,
                    key: cell_number(&key.cell, &grid.shape),
                };
                return self.link_list(links, key).await;
            }
            PreparedAnnotations::Points(_) => query.owners(false),
            PreparedAnnotations::Paths(_) => query.mode(Mode::Touch),
        };
        let CellKey { cell, .. } = key;
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await.ok();
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
            PreparedAnnotations::Links(links) => return links.by_id(id, &self.plan),
            PreparedAnnotations::Points(points) => match points.chunk_of(id) {
                Some((lower, upper)) => self.query().region(padded(lower, upper)?),
                None => return Ok(None),
            },
            PreparedAnnotations::Paths(_) => match self.plan.object_of_path(id) {
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

    /// Returns the list of the annotations of a segment of the relationship with this folder.
    pub(super) async fn related(
        &self,
        dataset: &Dataset,
        folder: &str,
        segment: u64,
    ) -> Result<Option<Bytes>, LayerError> {
        let mut known = self.plan.related.iter().enumerate();
        let Some((at, related)) = known.find(|(_, related)| related.folder() == folder) else {
            return Ok(None);
        };
        if let PreparedAnnotations::Links(links) = self.prepared(dataset).await? {
            let key = ListKey {
                index: self.plan.levels.grids().len().saturating_add(at),
                key: segment,
            };
            return self.link_list(links, key).await;
        }
        let query = match (related, i64::try_from(segment)) {
            (RelatedSegments::Object, Ok(object)) => self.query().objects([object]),
            // Members that the store lacks are left out.
            (RelatedSegments::Group, Ok(_)) => self.query().groups([segment]).keep_going(true),
            (_, Err(_)) => return Ok(None),
        };
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

    async fn link_list(
        &self,
        links: &Arc<LinkLists>,
        key: ListKey,
    ) -> Result<Option<Bytes>, LayerError> {
        let links = Arc::clone(links);
        on_pool(move || links.list(key)).await
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
        let report = dataset
            .batches(query, |batch| match rows.add(&batch, sink) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            })
            .await?;
        failed.map_or_else(|| check_undamaged(&report.skipped), Err)
    }

    async fn prepared(&self, dataset: &Dataset) -> Result<&PreparedAnnotations, LayerError> {
        let read = || async {
            if self.plan.annotated == AnnotatedElements::Links {
                let mut sink = LinkListsSink::new(&self.plan).map_err(LayerError::Temporary)?;
                let query = self.query().owners(!self.plan.related.is_empty());
                self.each(dataset, &query, &mut sink).await?;
                return Ok(PreparedAnnotations::Links(Arc::new(sink.finish()?)));
            }
            let query = self.query().owners(false);
            if self.plan.annotated == AnnotatedElements::Points {
                let mut sink = CoarsePointsSink::new(&self.plan, self.max_cached);
                self.each(dataset, &query, &mut sink).await?;
                return Ok(PreparedAnnotations::Points(sink.finish()));
            }
            let mut sink = IndexedPathsSink::new(&self.plan, self.max_cached)
                .map_err(LayerError::Temporary)?;
            self.each(dataset, &query, &mut sink).await?;
            let paths = sink.finish().map_err(LayerError::Temporary)?;
            Ok(PreparedAnnotations::Paths(Arc::new(paths)))
        };
        self.prepared.get_or_try_init(read).await
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

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        let cells = || cells_of(self.plan.kind, self.grid, annotation.coordinates);
        let is_here = self.plan.level_of(annotation) == self.level && cells().contains(&self.cell);
        if is_here {
            push_to(&mut self.list, self.plan, annotation)?;
            self.list.check_size()
        } else {
            Ok(())
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
        push_to(&mut self.list, self.plan, annotation)?;
        self.list.check_size()
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
        for segments in self.plan.related_to(annotation.object) {
            RecordLayout::write_related(&segments, &mut record)?;
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
        let rounding = lower.abs().max(upper.abs()) * f64::from(f32::EPSILON);
        let room = rounding.max(f64::from(f32::MIN_POSITIVE));
        *lower -= room;
        *upper += room;
    }
    Bbox::new(&lower, &upper).map_err(|_| LayerError::Axes(lower.len()))
}
