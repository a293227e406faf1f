//! Paths in a temporary file, and the paths of each cell.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Write},
};

use bytes::Bytes;
use zvf_dense::{ByteSource, FileSource};
use zvf_precomputed::{ListWriter, SpatialLevels};

use super::{CellKey, list::MAX_BYTES as MAX_LIST_BYTES};
use crate::layers::{
    LayerError,
    annotations::{AnnotationPlan, AnnotationSink, StoreAnnotation},
};

/// Bytes of the file before the finest level is left out, and after that, of the rest of the file.
const MAX_BYTES: u64 = 4 << 30;

/// The annotations of paths in a file without a name, which ends with the process.
#[derive(Debug)]
pub(super) struct IndexedPaths {
    /// Number of levels whose cells are indexed.
    pub(super) levels: usize,
    /// Paths in the fullest cell of each of these levels.
    pub(super) limits: Vec<u64>,
    /// Places in `paths`, in the order of the list.
    cells: HashMap<CellKey, Vec<u32>>,
    paths: Vec<StoredPath>,
    file: FileSource,
}

/// The annotation of a path in the file.
#[derive(Clone, Copy, Debug)]
struct StoredPath {
    id: u64,
    start: u64,
    len: u32,
    level: u8,
}

impl IndexedPaths {
    /// Reads the list of a cell; `None` if it is empty.
    pub(super) fn cell(&self, key: &CellKey) -> Result<Option<Bytes>, LayerError> {
        let Some(places) = self.cells.get(key) else {
            return Ok(None);
        };
        let paths = places.iter().filter_map(|place| {
            let place = usize::try_from(*place).ok()?;
            self.paths.get(place)
        });
        let size = |path: &StoredPath| usize::try_from(path.len).unwrap_or(usize::MAX);
        let records = paths.clone().map(size).fold(0, usize::saturating_add);
        if records > MAX_LIST_BYTES {
            return Err(LayerError::TooLarge(
                "a list of annotations",
                MAX_LIST_BYTES,
            ));
        }
        let mut list = ListWriter::with_capacity(places.len(), records);
        for path in paths {
            let buffer = list.push(path.id);
            let start = buffer.len();
            buffer.resize(start.saturating_add(size(path)), 0);
            let into = buffer.get_mut(start..).unwrap_or_default();
            let read = self.file.read_into(path.start, into);
            read.map_err(LayerError::Temporary)?;
        }
        Ok(Some(list.finish().into()))
    }
}

/// Writes paths to the file, without those of the finest levels if the index would be too large.
pub(super) struct IndexedPathsSink<'a> {
    plan: &'a AnnotationPlan,
    /// Maximum size of the index in bytes.
    max_index_bytes: usize,
    levels: usize,
    cells: HashMap<CellKey, Vec<u32>>,
    /// Numbers in `cells`.
    entries: usize,
    paths: Vec<StoredPath>,
    file: BufWriter<File>,
    end: u64,
    /// Maximum size of the file in bytes.
    max_file_bytes: u64,
    record: Vec<u8>,
}

impl<'a> IndexedPathsSink<'a> {
    pub(super) fn new(plan: &'a AnnotationPlan, max_index_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            plan,
            max_index_bytes,
            levels: plan.levels.grids().len(),
            cells: HashMap::new(),
            entries: 0,
            paths: Vec::new(),
            file: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?),
            end: 0,
            max_file_bytes: MAX_BYTES,
            record: Vec::new(),
        })
    }

    fn is_full(&self) -> bool {
        let entries = self.entries.saturating_mul(size_of::<u32>());
        let paths = self.paths.len().saturating_mul(size_of::<StoredPath>());
        entries.saturating_add(paths) > self.max_index_bytes || self.end > self.max_file_bytes
    }

    /// Leaves out the finest level.
    fn drop_level(&mut self) {
        self.levels = self.levels.saturating_sub(1);
        self.max_file_bytes = self.end.saturating_add(MAX_BYTES);
        let levels = self.levels;
        self.cells.retain(|key, _| key.level < levels);
        let kept = self
            .paths
            .iter()
            .map(|path| usize::from(path.level) < levels);
        // The new place of each path that is kept.
        let mut next = 0_u32;
        let places: Vec<Option<u32>> = kept
            .map(|is_kept| {
                let place = is_kept.then_some(next);
                next = next.saturating_add(u32::from(is_kept));
                place
            })
            .collect();
        let mut at = places.iter();
        self.paths
            .retain(|_| at.next().is_some_and(Option::is_some));
        let place = |old: &u32| {
            let old = usize::try_from(*old).ok()?;
            places.get(old).copied().flatten()
        };
        for cell in self.cells.values_mut() {
            *cell = cell.iter().filter_map(place).collect();
        }
        let sizes = self.cells.values().map(Vec::len);
        self.entries = sizes.fold(0, usize::saturating_add);
    }

    pub(super) fn finish(mut self) -> io::Result<IndexedPaths> {
        // Lists are in random order.
        let ranks: Vec<f64> = self
            .paths
            .iter()
            .map(|path| SpatialLevels::rank(path.id))
            .collect();
        let rank = |place: &u32| {
            let place = usize::try_from(*place).unwrap_or(usize::MAX);
            ranks.get(place).copied().unwrap_or(0.0)
        };
        for cell in self.cells.values_mut() {
            cell.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
            cell.shrink_to_fit();
        }
        let mut limits = vec![0; self.levels];
        for (key, paths) in &self.cells {
            if let Some(limit) = limits.get_mut(key.level) {
                *limit = u64::try_from(paths.len()).unwrap_or(u64::MAX).max(*limit);
            }
        }
        let file = self.file.into_inner()?;
        Ok(IndexedPaths {
            levels: self.levels,
            limits,
            cells: self.cells,
            paths: self.paths,
            file: FileSource::of_file("temporary file", file, self.end),
        })
    }
}

impl AnnotationSink for IndexedPathsSink<'_> {
    type Error = LayerError;

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        let StoreAnnotation {
            id,
            coordinates,
            values,
            ..
        } = annotation;
        let level = self.plan.level_of(annotation);
        let grid = self.plan.levels.grids().get(level);
        let Some(grid) = grid.filter(|_| level < self.levels) else {
            return Ok(());
        };
        self.record.clear();
        self.plan
            .layout
            .write(coordinates, values, &mut self.record)?;
        self.file
            .write_all(&self.record)
            .map_err(LayerError::Temporary)?;
        let place = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        let len = u32::try_from(self.record.len()).unwrap_or(u32::MAX);
        let start = self.end;
        self.paths.push(StoredPath {
            id,
            start,
            len,
            // A grid has at most 2 097 152 cells, twice as many as the coarser one or more.
            level: u8::try_from(level).unwrap_or(u8::MAX),
        });
        self.end = start.saturating_add(u64::from(len));
        for cell in grid.cells_of_path(coordinates) {
            let key = CellKey { level, cell };
            self.cells.entry(key).or_default().push(place);
            self.entries = self.entries.saturating_add(1);
        }
        if self.is_full() && self.levels > 0 {
            self.drop_level();
        }
        Ok(())
    }
}
