//! The levels of a spatial index: grids from coarse to fine, and the annotations of each level.

use std::collections::HashMap;

use crate::murmur::murmurhash3_x86_128_low;

/// Cells of the finest grid that a sampler may have.
const MAX_CELLS: u64 = 1 << 21;
/// Cells of one axis: a line visits at most this many per axis.
const MAX_ALONG_AXIS: u64 = 1 << 14;
/// Visits of cells after which the repeated ones are dropped.
const DISTINCT_AFTER: usize = 1 << 14;

/// A grid of equal cells over a box.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialGrid {
    /// Lower corner.
    pub lower: Vec<f64>,
    /// Extent of a cell along each axis, positive.
    pub cell: Vec<f64>,
    /// Number of cells along each axis.
    pub shape: Vec<u64>,
}

impl SpatialGrid {
    /// Returns the cell of a point; a point outside belongs to the nearest cell.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts from floats saturate, and NaN becomes 0"
    )]
    pub fn cell_of(&self, point: &[f32]) -> Vec<u64> {
        let axes = self.lower.iter().zip(&self.cell).zip(&self.shape);
        let cells = axes.zip(point).map(|(((lower, cell), shape), at)| {
            let along = ((f64::from(*at) - lower) / cell).floor();
            (along as u64).min(shape.saturating_sub(1))
        });
        cells.collect()
    }

    /// Returns the cells that a path touches, each once, in ascending order.
    pub fn cells_of_path(&self, coordinates: &[f32]) -> Vec<Vec<u64>> {
        let rank = self.shape.len().max(1);
        let mut cells = Vec::new();
        let mut before: Option<&[f32]> = None;
        let mut most = DISTINCT_AFTER;
        for point in coordinates.chunks_exact(rank) {
            match before {
                None => cells.push(self.cell_of(point)),
                Some(before) => self.push_segment(before, point, &mut cells),
            }
            before = Some(point);
            // A path may visit the same cells many times.
            if cells.len() > most {
                cells.sort_unstable();
                cells.dedup();
                most = cells.len().saturating_mul(2).max(DISTINCT_AFTER);
            }
        }
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// Adds the cells of a segment: those at its ends, and between two crossings of planes.
    fn push_segment(&self, from: &[f32], to: &[f32], cells: &mut Vec<Vec<u64>>) {
        let (first, last) = (self.cell_of(from), self.cell_of(to));
        if first == last {
            if cells.last() != Some(&last) {
                cells.push(last);
            }
            return;
        }
        let mut crossings = vec![0.0, 1.0];
        for (axis, (a, b)) in first.iter().zip(&last).enumerate() {
            let (Some(lower), Some(cell)) = (self.lower.get(axis), self.cell.get(axis)) else {
                continue;
            };
            let (Some(from), Some(to)) = (from.get(axis), to.get(axis)) else {
                continue;
            };
            let (from, length) = (f64::from(*from), f64::from(*to) - f64::from(*from));
            for plane in a.min(b).saturating_add(1)..=*a.max(b) {
                let at = (lower + cell * number(plane) - from) / length;
                if (0.0..=1.0).contains(&at) {
                    crossings.push(at);
                }
            }
        }
        crossings.sort_by(f64::total_cmp);
        for pair in crossings.windows(2) {
            let at = pair.iter().sum::<f64>() / 2.0;
            let middle: Vec<f32> = from
                .iter()
                .zip(to)
                .map(|(from, to)| {
                    let (from, to) = (f64::from(*from), f64::from(*to));
                    narrow(from + (to - from) * at)
                })
                .collect();
            cells.push(self.cell_of(&middle));
        }
        cells.push(last);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "cells along an axis are far below 2^53"
)]
fn number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn rounded_up(count: f64) -> u64 {
    count.ceil() as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "annotations have 32-bit coordinates"
)]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// Divides annotations among the levels of a spatial index by a hash of their ids, so that no level
/// has many more than a wanted number in a cell. The division depends on nothing but the ids, the
/// positions and the bounds.
///
/// ```
/// use zvf_precomputed::SpatialSampler;
///
/// let mut sampler = SpatialSampler::new(&[0.0, 0.0, 0.0], &[1.0, 1.0, 1.0], 1000, 50);
/// for id in 0..1000_u16 {
///     sampler.count(&[f32::from(id) / 1000.0, 0.5, 0.5]);
/// }
/// let levels = sampler.finish(50);
/// assert_eq!(levels.grids()[0].shape, [1, 1, 1]);
/// assert!(levels.level_of(17) < levels.grids().len());
/// ```
#[derive(Clone, Debug)]
pub struct SpatialSampler {
    grids: Vec<SpatialGrid>,
    /// Points in each cell of the finest grid.
    points: HashMap<Vec<u64>, u64>,
    /// Paths that touch each cell, of each grid.
    paths: Vec<HashMap<Vec<u64>, u64>>,
}

impl SpatialSampler {
    /// Creates a sampler for a box that holds all annotations. `annotations` is their number, and
    /// `limit` the wanted number in a cell, which set the finest grid.
    pub fn new(lower: &[f64], upper: &[f64], annotations: u64, limit: u64) -> Self {
        let extent: Vec<f64> = lower.iter().zip(upper).map(|(lo, hi)| hi - lo).collect();
        let mut shape = vec![1_u64; extent.len()];
        let mut grids = Vec::new();
        // Clusters need finer cells than the same number of annotations evenly spread.
        let enough = annotations.div_ceil(limit.max(1)).saturating_mul(64);
        loop {
            let cell: Vec<f64> = extent
                .iter()
                .zip(&shape)
                .map(|(extent, n)| extent / number(*n))
                .collect();
            let cells = shape
                .iter()
                .fold(1_u64, |cells, n| cells.saturating_mul(*n));
            let largest = cell.iter().copied().fold(0.0, f64::max);
            let finer: Vec<u64> = cell
                .iter()
                .zip(&shape)
                .map(|(cell, n)| {
                    // Divides the axes whose cells are longest, towards cubes.
                    if *cell > largest * 0.7 {
                        n.saturating_mul(2)
                    } else {
                        *n
                    }
                })
                .collect();
            grids.push(SpatialGrid {
                lower: lower.to_vec(),
                cell,
                shape: core::mem::replace(&mut shape, finer),
            });
            let next = shape
                .iter()
                .fold(1_u64, |cells, n| cells.saturating_mul(*n));
            let is_fine = cells >= enough || annotations <= limit || next == cells;
            if is_fine || next > MAX_CELLS || shape.iter().any(|n| *n > MAX_ALONG_AXIS) {
                break;
            }
        }
        Self {
            points: HashMap::new(),
            paths: vec![HashMap::new(); grids.len()],
            grids,
        }
    }

    /// Counts a point.
    pub fn count(&mut self, point: &[f32]) {
        let Some(finest) = self.grids.last() else {
            return;
        };
        let count = self.points.entry(finest.cell_of(point)).or_default();
        *count = count.saturating_add(1);
    }

    /// Counts a path, which stands for `weight` paths, in each cell that it touches.
    pub fn count_path(&mut self, coordinates: &[f32], weight: u64) {
        for (grid, counts) in self.grids.iter().zip(&mut self.paths) {
            for cell in grid.cells_of_path(coordinates) {
                let count = counts.entry(cell).or_default();
                *count = count.saturating_add(weight);
            }
        }
    }

    /// Returns the levels, with about `limit` annotations in the fullest cell of each but the last.
    pub fn finish(mut self, limit: u64) -> SpatialLevels {
        let (mut thresholds, mut expected) = (Vec::new(), Vec::new());
        let mut remaining = 1.0_f64;
        for (grid, paths) in self.grids.iter().zip(&self.paths) {
            let paths = paths.values().copied().max().unwrap_or(0);
            let fullest = number(self.max_points(grid).max(paths)) * remaining;
            let share = if fullest <= number(limit) {
                1.0
            } else {
                number(limit) / fullest
            };
            expected.push(rounded_up(fullest * share));
            remaining *= 1.0 - share;
            thresholds.push(1.0 - remaining);
            if remaining <= 0.0 {
                break;
            }
        }
        self.grids.truncate(thresholds.len());
        SpatialLevels {
            grids: self.grids,
            thresholds,
            expected,
        }
    }

    /// Returns the largest number of points in a cell of a grid.
    fn max_points(&self, grid: &SpatialGrid) -> u64 {
        let finest = self.grids.last().map(|finest| finest.shape.as_slice());
        let mut counts: HashMap<Vec<u64>, u64> = HashMap::new();
        for (cell, count) in &self.points {
            let axes = cell.iter().zip(finest.unwrap_or_default()).zip(&grid.shape);
            let coarse = axes.map(|((at, fine), coarse)| {
                let ratio = fine.checked_div(*coarse).unwrap_or(1).max(1);
                at.checked_div(ratio).unwrap_or(0)
            });
            let sum = counts.entry(coarse.collect()).or_default();
            *sum = sum.saturating_add(*count);
        }
        counts.into_values().max().unwrap_or(0)
    }
}

/// The levels of a spatial index and the rule that assigns annotations to them.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialLevels {
    grids: Vec<SpatialGrid>,
    /// The share of annotations on this level and the coarser ones.
    thresholds: Vec<f64>,
    /// The mean number of annotations in the fullest cell of each level.
    expected: Vec<u64>,
}

impl SpatialLevels {
    /// Returns about how many annotations the fullest cell of a level has: the mean of all hashes.
    pub fn expected(&self, level: usize) -> u64 {
        self.expected.get(level).copied().unwrap_or(1).max(1)
    }

    /// Returns the grids, the coarsest first.
    pub fn grids(&self) -> &[SpatialGrid] {
        &self.grids
    }

    /// Returns the level of an annotation: a place in [`grids`](Self::grids).
    pub fn level_of(&self, id: u64) -> usize {
        self.level_of_rank(Self::rank(id))
    }

    /// Returns the level of an annotation with this rank in [0, 1): the lowest ranks are on the
    /// coarsest level.
    pub fn level_of_rank(&self, rank: f64) -> usize {
        let coarser = self.thresholds.partition_point(|share| *share <= rank);
        coarser.min(self.grids.len().saturating_sub(1))
    }

    /// Returns a number in [0, 1) that a hash of the id gives: annotations of a cell in ascending
    /// order of it are in random order.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float")]
    pub fn rank(id: u64) -> f64 {
        (murmurhash3_x86_128_low(id) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
