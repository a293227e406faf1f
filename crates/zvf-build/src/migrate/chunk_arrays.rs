//! Arrays with one cell for each chunk.

use zvf_format::path::ChunkCoords;
use zvf_model::{array::overlaid, key::Key, metadata::Attributes};

use super::MigrationTarget;
use crate::{metadata, output::Output, spatial_layout::ArrayGrid, tables};

/// Upper bound on credible chunk coordinates.
const MAX_CHUNKS: f64 = 9_007_199_254_740_992.0;

/// Range of chunks that the arrays of a level cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkExtent {
    lower: Vec<i64>,
    /// Inclusive.
    upper: Vec<i64>,
}

impl ChunkExtent {
    /// Returns the chunks that bounds touch, after an optional leading axis of attribute values.
    /// Bounds that are not numbers touch none.
    pub fn of_bounds(bounds: Option<(&[f64], &[f64])>, chunk: &[f64], values: Option<u64>) -> Self {
        let mut extent = Self::default();
        if let Some(values) = values {
            extent.lower.push(0);
            extent.upper.push((values as i64).saturating_sub(1).max(0));
        }
        let Some((lower, upper)) = bounds else {
            return Self::default();
        };
        for ((lower, upper), chunk) in lower.iter().zip(upper).zip(chunk) {
            let (first, last) = ((lower / chunk).floor(), (upper / chunk).floor());
            let is_known = first.abs() < MAX_CHUNKS && last.abs() < MAX_CHUNKS && first <= last;
            if !is_known {
                return Self::default();
            }
            extent.lower.push(first as i64);
            extent.upper.push(last as i64);
        }
        extent
    }

    /// Extends the range to include a chunk.
    pub fn reach(&mut self, chunk: &[i64]) {
        if self.lower.len() != chunk.len() {
            self.lower = chunk.to_vec();
            self.upper = chunk.to_vec();
            return;
        }
        for (axis, at) in chunk.iter().enumerate() {
            self.lower[axis] = self.lower[axis].min(*at);
            self.upper[axis] = self.upper[axis].max(*at);
        }
    }

    /// Returns the grid, a single chunk if empty; `None` if its shape overflows.
    pub(super) fn grid(&self, arity: usize) -> Option<ArrayGrid> {
        if self.lower.is_empty() {
            return Some(ArrayGrid {
                origin: vec![0; arity],
                shape: vec![1; arity],
            });
        }
        let ends = self.lower.iter().zip(&self.upper);
        let shape = ends.map(|(lower, upper)| {
            let last = u64::try_from(upper.checked_sub(*lower)?).ok()?;
            last.checked_add(1)
        });
        Some(ArrayGrid {
            origin: self.lower.clone(),
            shape: shape.collect::<Option<_>>()?,
        })
    }

    /// Returns the grid index of a chunk.
    pub(super) fn index(&self, chunk: &[i64]) -> Option<Vec<u64>> {
        if self.lower.is_empty() {
            return chunk.iter().map(|at| u64::try_from(*at).ok()).collect();
        }
        let index = chunk
            .iter()
            .zip(&self.lower)
            .map(|(at, lower)| u64::try_from(at.checked_sub(*lower)?).ok());
        index.collect()
    }
}

impl MigrationTarget {
    /// Returns the node of an array with its old attributes and the list of its cells; `None` if
    /// the chunks are too far apart for an array.
    pub fn part(
        &self,
        key: &Key,
        extent: &ChunkExtent,
        arity: usize,
        chunks: &[&[i64]],
        old: &Attributes,
        new: Attributes,
    ) -> Option<Output> {
        let attributes = overlaid(old, new);
        if !self.is_current() {
            return Some(Output::group(key.clone(), attributes));
        }
        let grid = extent.grid(arity)?;
        let shard = self.shard_in(&grid.shape);
        let chunks = chunks.iter().copied();
        let array = metadata::per_chunk(&self.cells, &grid, shard, chunks, attributes);
        Some(Output::node(key.clone(), array))
    }

    /// Returns the outputs of a cell; none if empty cells are not stored. `None` if the chunk is
    /// outside the grid.
    pub fn cell(
        &self,
        key: &Key,
        extent: &ChunkExtent,
        chunk: &[i64],
        payload: Vec<u8>,
    ) -> Option<Vec<Output>> {
        let mut outputs = Vec::new();
        if !self.is_current() {
            let key = key.join(&ChunkCoords(chunk).to_string()).ok()?;
            tables::blob(&mut outputs, &self.cells, key, payload);
        } else if !payload.is_empty() {
            outputs.push(Output::Cell {
                array: key.clone(),
                index: extent.index(chunk)?,
                payload,
            });
        }
        Some(outputs)
    }

    /// Returns whether empty cells are stored.
    pub fn keeps_empty_cells(&self) -> bool {
        !self.is_current()
    }
}
