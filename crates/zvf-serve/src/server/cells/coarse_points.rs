//! The coarse cells of points, in memory.

use std::collections::HashMap;

use bytes::Bytes;
use zvf_model::row_id::RowId;

use super::{CellKey, list::ListEntries, push_to};
use crate::layers::{
    LayerError,
    annotations::{AnnotationPlan, AnnotationSink, StoreAnnotation},
};

/// Chunks whose boxes are kept, to find annotations by id.
const MAX_CHUNKS: usize = 1 << 19;

/// The cells of the coarse levels, and the boxes of the chunks.
#[derive(Debug, Default)]
pub(super) struct CoarsePoints {
    /// Number of levels whose cells are kept.
    pub(super) levels: usize,
    /// Points in the fullest cell of each of these levels.
    pub(super) limits: Vec<u64>,
    pub(super) cells: HashMap<CellKey, Bytes>,
    /// Boxes of the chunks, by the rank in addresses of points.
    chunks: HashMap<u64, (Vec<f32>, Vec<f32>)>,
}

impl CoarsePoints {
    /// Returns the corners of the chunk that holds the point with this id.
    pub(super) fn chunk_of(&self, id: u64) -> Option<(&[f32], &[f32])> {
        let (lower, upper) = self.chunks.get(&RowId::from(id).chunk())?;
        Some((lower, upper))
    }
}

/// Collects the cells of the coarse levels while they fit the memory.
pub(super) struct CoarsePointsSink<'a> {
    plan: &'a AnnotationPlan,
    /// Maximum size in bytes of cells.
    max_bytes: usize,
    levels: usize,
    cells: HashMap<CellKey, ListEntries>,
    bytes: usize,
    chunks: HashMap<u64, (Vec<f32>, Vec<f32>)>,
}

impl<'a> CoarsePointsSink<'a> {
    pub(super) fn new(plan: &'a AnnotationPlan, max_bytes: usize) -> Self {
        Self {
            plan,
            max_bytes,
            levels: plan.levels.grids().len(),
            cells: HashMap::new(),
            bytes: 0,
            chunks: HashMap::new(),
        }
    }

    /// Drops the finest level until the others fit.
    fn shrink(&mut self) {
        while self.bytes > self.max_bytes && self.levels > 0 {
            self.levels = self.levels.saturating_sub(1);
            let levels = self.levels;
            self.cells.retain(|key, _| key.level < levels);
            let sizes = self.cells.values().map(ListEntries::size);
            self.bytes = sizes.fold(0, usize::saturating_add);
        }
    }

    pub(super) fn finish(self) -> CoarsePoints {
        let mut limits = vec![0; self.levels];
        for (key, list) in &self.cells {
            if let Some(limit) = limits.get_mut(key.level) {
                *limit = u64::try_from(list.len()).unwrap_or(u64::MAX).max(*limit);
            }
        }
        let cells = self.cells.into_iter();
        CoarsePoints {
            levels: self.levels,
            limits,
            cells: cells
                .filter_map(|(key, list)| Some((key, list.encode()?)))
                .collect(),
            chunks: self.chunks,
        }
    }

    /// Extends the box of the chunk of a point.
    fn add_to_chunk(&mut self, id: u64, point: &[f32]) {
        let chunk = RowId::from(id).chunk();
        if self.chunks.len() >= MAX_CHUNKS && !self.chunks.contains_key(&chunk) {
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

impl AnnotationSink for CoarsePointsSink<'_> {
    type Error = LayerError;

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        self.add_to_chunk(annotation.id, annotation.coordinates);
        let level = self.plan.level_of(annotation);
        let grid = self.plan.levels.grids().get(level);
        let Some(grid) = grid.filter(|_| level < self.levels) else {
            return Ok(());
        };
        let cell = grid.cell_of(annotation.coordinates);
        let list = self.cells.entry(CellKey { level, cell }).or_default();
        let before = list.size();
        push_to(list, self.plan, annotation)?;
        self.bytes = self
            .bytes
            .saturating_add(list.size().saturating_sub(before));
        self.shrink();
        Ok(())
    }
}
