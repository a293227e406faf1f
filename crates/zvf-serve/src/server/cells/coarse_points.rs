//! The coarse cells of points, in memory.

use std::collections::HashMap;

use bytes::Bytes;
use zvf_model::row_id::RowId;

use super::{
    CellKey,
    list::{ListEntries, MAX_BYTES as MAX_LIST_BYTES},
    push_to,
};
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

/// Collects the cells of the coarse levels while they fit the memory, and each a response.
pub(super) struct CoarsePointsSink<'a> {
    plan: &'a AnnotationPlan,
    /// Maximum size in bytes of cells.
    max_bytes: usize,
    /// Maximum size in bytes of a cell.
    max_list_bytes: usize,
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
            max_list_bytes: MAX_LIST_BYTES,
            levels: plan.levels.grids().len(),
            cells: HashMap::new(),
            bytes: 0,
            chunks: HashMap::new(),
        }
    }

    /// Drops the finest level until the others fit.
    fn shrink(&mut self) {
        while self.bytes > self.max_bytes && self.levels > 0 {
            self.drop_from(self.levels.saturating_sub(1));
        }
    }

    /// Drops a level and all finer ones.
    fn drop_from(&mut self, level: usize) {
        self.levels = level;
        self.cells.retain(|key, _| key.level < level);
        let sizes = self.cells.values().map(ListEntries::size);
        self.bytes = sizes.fold(0, usize::saturating_add);
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
        let size = list.size();
        self.bytes = self.bytes.saturating_add(size.saturating_sub(before));
        // A request for the cell reports that it is too large.
        if size > self.max_list_bytes {
            self.drop_from(level);
        }
        self.shrink();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zvf::{CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn};

    use super::*;
    use crate::{
        layers::{LayerInput, annotations::IdScheme, space::ViewerSpace, survey},
        server::cells::LiveAnnotations,
    };

    /// Returns the annotations of a store in which most points lie at one place.
    async fn clumped(folder: &tempfile::TempDir) -> (Dataset, LiveAnnotations) {
        let address = folder.path().join("a.zv").display().to_string();
        let positions = (0..24_000_u16).flat_map(|at| {
            let place = if at % 8 == 0 {
                f32::from(at) / 240.0
            } else {
                1.0
            };
            [place, 100.0 - place, f32::from(at % 97)].map(|along| match at % 8 {
                0 => along,
                _ => 1.0 + along * 1e-3,
            })
        });
        let geometry = Geometry::new(NumericColumn::float32(3, positions));
        let design = Design::new(GeometryKind::Points).chunk_shape([25.0; 3]);
        let options = CreateOptions::default();
        zvf::create(address.as_str(), &geometry, design, &options)
            .await
            .unwrap();
        let dataset = Dataset::open(address).await.unwrap();
        let space = ViewerSpace::of(&dataset);
        let reading = LayerInput::new(&dataset, None, &space, &|_, _| {});
        let notes = &mut Vec::new();
        let survey = survey::survey(&reading, notes).await.unwrap();
        let plan = AnnotationPlan::new(&reading, &survey, IdScheme::Stored, notes)
            .await
            .unwrap();
        let annotations = LiveAnnotations::new(plan, &space.dimensions, usize::MAX);
        (dataset, annotations)
    }

    /// The whole layer could not be read if one cell was too large.
    #[tokio::test]
    async fn levels_with_a_cell_that_is_too_large_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (dataset, annotations) = clumped(&folder).await;
        let query = annotations.query().owners(false);
        let collected = async |max_list_bytes: usize| {
            let mut sink = CoarsePointsSink {
                max_list_bytes,
                ..CoarsePointsSink::new(&annotations.plan, usize::MAX)
            };
            annotations.each(&dataset, &query, &mut sink).await.unwrap();
            let largest = |level| {
                let cells = sink.cells.iter().filter(|(key, _)| key.level == level);
                cells.map(|(_, list)| list.size()).max().unwrap()
            };
            let largest: Vec<usize> = (0..sink.levels).map(largest).collect();
            (sink.finish(), largest)
        };
        let (whole, largest) = collected(usize::MAX).await;
        let (finest, coarser) = largest.split_last().unwrap();
        assert!(coarser.iter().all(|size| size < finest), "{largest:?}");
        let (part, _) = collected(finest - 1).await;
        assert_eq!(part.levels, coarser.len());
        assert_eq!(part.limits, whole.limits[..coarser.len()]);
        for (key, list) in &whole.cells {
            let kept = part.cells.get(key);
            assert_eq!(kept, (key.level < part.levels).then_some(list));
        }
        // Every level is too large.
        let (none, _) = collected(0).await;
        assert!(none.levels == 0 && none.cells.is_empty() && !none.chunks.is_empty());
    }
}
