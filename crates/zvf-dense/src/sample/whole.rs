//! Contiguous storage for all voxels of an array, used if it fits in memory.
//!
//! With many points in random order, each point is in another tile. Looking up its tile then takes
//! longer than weighing its voxels, and collecting voxels from two tiles takes longer still. In
//! contiguous storage, the address of a voxel is computed. Tiles are read into it on first use and
//! stay there.

use std::sync::Arc;

use rayon::prelude::*;

use super::{
    POINTS_PER_TASK,
    cache::{Tile, add},
    kernel::{Kernel, Spot},
    tiles::Tiling,
    values::Form,
};
use crate::{DenseError, ReadCost, strided::BoxCopy};

/// Maximum number of tiles, and of voxels along an axis, for which tables are built.
const MAX_TILES: u64 = 1 << 16;
/// Maximum number of voxels per point for which storage of all voxels is worthwhile.
const VOXELS_OF_POINT: u64 = 256;

/// Returns whether `points`, the number of points over all calls, justify storage of all voxels,
/// and it fits in `share` bytes.
pub(super) fn is_worth(points: u64, tiling: &Tiling, share: u64) -> bool {
    let whole = tiling.whole();
    let voxels = whole.shape().iter().copied().fold(1, u64::saturating_mul);
    voxels / VOXELS_OF_POINT <= points
        && whole.cost(0) <= share
        && tiling.count() <= MAX_TILES
        && whole.shape().iter().all(|extent| *extent <= MAX_TILES)
}

/// Storage for all voxels of an array.
#[derive(Debug)]
pub(super) struct WholeArray {
    /// The tiling of the array into a single tile.
    tiling: Tiling,
    tile: Tile,
    /// The tiles that have been read, and the number of the other ones.
    has: Vec<bool>,
    missing: usize,
}

impl WholeArray {
    /// Creates storage without voxels. `unit` is the distance between neighbouring voxels.
    pub(super) fn new(tiling: &Tiling, axes: usize, form: Form, unit: usize) -> Self {
        let whole = tiling.whole();
        let span = whole.span(0);
        let voxels = whole.shape().iter().map(|extent| usize::try_from(*extent));
        let count = voxels.flatten().fold(unit, usize::saturating_mul);
        let missing = usize::try_from(tiling.count()).unwrap_or(0);
        Self {
            tile: Tile {
                number: 0,
                strides: span.strides(axes, unit),
                span,
                voxels: form.zeros(count),
            },
            tiling: whole,
            has: vec![false; missing],
            missing,
        }
    }

    pub(super) fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    pub(super) fn tile(&self) -> &Tile {
        &self.tile
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Copies tiles that were cached before.
    pub(super) fn adopt(&mut self, tiles: impl Iterator<Item = Arc<Tile>>, form: Form) {
        let strides = self.strides();
        for tile in tiles {
            let bytes = self.tile.voxels.bytes_mut();
            // A tile that cannot be placed is read again later.
            if place(&tile, &strides, form, 0, bytes).is_some() {
                self.mark(tile.number);
            }
        }
    }

    /// Reads the marked tiles that are still missing, and returns the reads.
    ///
    /// # Errors
    ///
    /// Any error of `read` or `read_all`, and [`DenseError::Sampling`] if a tile does not fit in
    /// the array.
    pub(super) fn fill(
        &mut self,
        marked: &[bool],
        (name, tiling, form): (&str, &Tiling, Form),
        read: impl Fn(u64) -> Result<(Tile, ReadCost), DenseError> + Sync,
        read_all: impl Fn(&Tiling) -> Result<(Tile, ReadCost), DenseError>,
    ) -> Result<ReadCost, DenseError> {
        let numbers = (0_u64..).zip(marked.iter().zip(&self.has));
        let wanted: Vec<u64> = numbers
            .filter_map(|(number, (wanted, has))| (*wanted && !has).then_some(number))
            .collect();
        if wanted.len() == self.has.len() {
            let (tile, plan) = read_all(&self.tiling)?;
            self.tile = tile;
            self.has.fill(true);
            self.missing = 0;
            return Ok(plan);
        }
        let (tiles, voxels) = tiling.slab();
        let strides = self.strides();
        let row = strides.first().copied().unwrap_or(1);
        let slab = usize::try_from(voxels)
            .unwrap_or(usize::MAX)
            .saturating_mul(row)
            .saturating_mul(form.unit());
        let slabs = self.tile.voxels.bytes_mut().par_chunks_mut(slab.max(1));
        let plans: Result<Vec<ReadCost>, DenseError> = slabs
            .enumerate()
            .map(|(slab, bytes)| {
                let mut reads = ReadCost::default();
                let slab = u64::try_from(slab).unwrap_or(u64::MAX);
                let own = slab.saturating_mul(tiles)..slab.saturating_add(1).saturating_mul(tiles);
                let from = wanted.partition_point(|number| *number < own.start);
                let until = wanted.partition_point(|number| *number < own.end);
                for number in wanted.get(from..until).unwrap_or_default() {
                    let (tile, plan) = read(*number)?;
                    add(&mut reads, plan);
                    let start = slab.saturating_mul(voxels);
                    let placed = place(&tile, &strides, form, start, bytes);
                    let fault = || DenseError::sampling(name, "a tile is not within the array");
                    placed.ok_or_else(fault)?;
                }
                Ok(reads)
            })
            .collect();
        let mut reads = ReadCost::default();
        for plan in plans? {
            add(&mut reads, plan);
        }
        for number in wanted {
            self.mark(number);
        }
        Ok(reads)
    }

    /// Returns the distance between neighbouring voxels along each axis.
    fn strides(&self) -> Vec<usize> {
        let axes = self.tiling.shape().len();
        self.tile.strides.iter().copied().take(axes).collect()
    }

    fn mark(&mut self, number: u64) {
        let has = usize::try_from(number).ok();
        if let Some(has) = has.and_then(|at| self.has.get_mut(at))
            && !*has
        {
            *has = true;
            self.missing = self.missing.saturating_sub(1);
        }
    }
}

/// Copies the voxels of a tile into an array with these strides. `into` begins with voxel `start`
/// of the first axis. Returns `None` if the tile does not fit.
fn place(tile: &Tile, strides: &[usize], form: Form, start: u64, into: &mut [u8]) -> Option<()> {
    let unit = form.unit();
    let axes = tile
        .span
        .start
        .iter()
        .zip(&tile.span.end)
        .zip(tile.strides.iter().zip(strides));
    let mut to = 0_usize;
    let mut copied = Vec::new();
    let mut first = start;
    for ((from, end), (own, whole)) in axes {
        let whole = whole.checked_mul(unit)?;
        let at = usize::try_from(from.checked_sub(first)?).ok()?;
        first = 0;
        to = to.checked_add(at.checked_mul(whole)?)?;
        let count = usize::try_from(end.checked_sub(*from)?).ok()?;
        copied.push((count, own.checked_mul(unit)?, whole));
    }
    // The values of a voxel are contiguous on both sides.
    let voxel = copied.last()?.1;
    BoxCopy::new(voxel, copied.into_iter(), 0, to)?.run(tile.voxels.bytes(), into)
}

/// Marks the tiles that contain voxels of the positions.
pub(super) fn marks(positions: &[f64], kernel: &Kernel, tiling: &Tiling) -> Vec<bool> {
    let (axes, tables) = (kernel.axes(), tiling.tables());
    let none = || vec![false; usize::try_from(tiling.count()).unwrap_or(0)];
    let runs = positions.par_chunks(axes.saturating_mul(POINTS_PER_TASK).max(1));
    let marked = runs.fold(none, |mut marks, run| {
        let (mut spot, mut around) = (Spot::default(), Vec::new());
        let mut mark = |tile: u64| {
            let at = usize::try_from(tile).ok();
            if let Some(mark) = at.and_then(|at| marks.get_mut(at)) {
                *mark = true;
            }
        };
        for position in run.chunks_exact(axes) {
            if !kernel.spot(position, &mut spot) {
                continue;
            }
            let (mut first, mut last) = (0, 0);
            for (step, table) in spot.iter().zip(&tables) {
                let of = |voxel: u64| usize::try_from(voxel).ok().and_then(|at| table.get(at));
                first += of(step.first).copied().unwrap_or(0);
                last += of(step.last).copied().unwrap_or(0);
            }
            // Tile numbers ascend along each axis, so equal numbers mean a single tile.
            mark(first);
            if first != last {
                around.clear();
                tiling.around(&spot, &mut around);
                around.iter().copied().for_each(&mut mark);
            }
        }
        marks
    });
    marked.reduce(none, |mut a, b| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        a
    })
}
