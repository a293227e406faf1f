//! Sampling of points whose tiles exceed the memory, in parts that fit.

use core::ops::Deref;
use std::collections::BTreeSet;

use rayon::prelude::*;

use super::{
    POINTS_PER_TASK, Sampled, Sampler,
    kernel::Spot,
    tiles::{Span, Tiling},
    weigh::Views,
};
use crate::{DenseArray, DenseError};

impl<A> Sampler<A>
where
    A: Deref<Target: DenseArray> + Sync,
{
    /// Returns the numbers of the tiles that contain voxels of the positions.
    pub(super) fn needs(&self, positions: &[f64], tiling: &Tiling) -> Vec<u64> {
        let axes = self.kernel.axes();
        let sorted = |mut tiles: Vec<u64>| {
            tiles.sort_unstable();
            tiles.dedup();
            tiles
        };
        let runs = positions
            .par_chunks(axes.saturating_mul(POINTS_PER_TASK).max(1))
            .map(|run| {
                let mut tiles = Vec::new();
                let mut previous = PreviousTile::default();
                let mut spot = Spot::default();
                for position in run.chunks_exact(axes) {
                    if self.kernel.spot(position, &mut spot) {
                        previous.add(&spot, axes, tiling, &mut tiles);
                    }
                }
                sorted(tiles)
            });
        runs.reduce(Vec::new, |mut a, b| {
            a.extend(b);
            sorted(a)
        })
    }

    /// Samples points in the order of their tiles, in parts whose tiles fit in memory.
    pub(super) fn in_parts(
        &self,
        positions: &[f64],
        tiling: &Tiling,
        sampled: &mut Sampled,
    ) -> Result<(), DenseError> {
        let axes = self.kernel.axes();
        let runs = sampled.values.par_chunks_exact_mut(self.fill.len().max(1));
        runs.for_each(|value| value.copy_from_slice(&self.fill));
        let points = positions.par_chunks_exact(axes).enumerate();
        let mut order: Vec<(u64, u32)> = points
            .filter_map(|(point, position)| {
                let mut spot = Spot::default();
                if !self.kernel.spot(position, &mut spot) {
                    return None;
                }
                let tile = tiling.of(spot.iter().map(|step| step.first));
                Some((tile, u32::try_from(point).ok()?))
            })
            .collect();
        let inside = u64::try_from(order.len()).unwrap_or(u64::MAX);
        let points = positions.len().checked_div(axes).unwrap_or(0);
        let points = u64::try_from(points).unwrap_or(u64::MAX);
        sampled.outside = points.saturating_sub(inside);
        order.par_sort_unstable();
        let mut part = CellPart::default();
        let (mut around, mut spot) = (Vec::new(), Spot::default());
        for (_, point) in order {
            let position = nth(positions, point, axes);
            self.kernel.spot(position, &mut spot);
            around.clear();
            part.previous.add(&spot, axes, tiling, &mut around);
            let more = around
                .iter()
                .filter(|tile| !part.tiles.contains(tile))
                .map(|tile| tiling.cost(*tile));
            let cost = more.fold(part.cost, u64::saturating_add);
            if cost > self.share {
                self.part(positions, tiling, &part, sampled)?;
                part = CellPart::default();
                around.clear();
                part.previous.add(&spot, axes, tiling, &mut around);
            }
            part.points.push(point);
            for tile in &around {
                if part.tiles.insert(*tile) {
                    part.cost = part.cost.saturating_add(tiling.cost(*tile));
                }
            }
        }
        self.part(positions, tiling, &part, sampled)
    }

    fn part(
        &self,
        positions: &[f64],
        tiling: &Tiling,
        part: &CellPart,
        sampled: &mut Sampled,
    ) -> Result<(), DenseError> {
        let (axes, row) = (self.kernel.axes(), self.row_len());
        let tiles: Vec<u64> = part.tiles.iter().copied().collect();
        let tiles = self.load(&tiles, tiling, &mut sampled.reads)?;
        let views = Views::of(tiles.iter().map(|tile| &**tile));
        let runs: Vec<Vec<u8>> = part
            .points
            .par_chunks(POINTS_PER_TASK)
            .map(|run| {
                let mut values = vec![0; run.len().saturating_mul(row)];
                let own = run.iter().map(|point| nth(positions, *point, axes));
                self.run(tiling, &views, own, &mut values);
                values
            })
            .collect();
        let rows = runs.iter().flat_map(|run| run.chunks_exact(row.max(1)));
        for (point, value) in part.points.iter().zip(rows) {
            let at = usize::try_from(*point)
                .unwrap_or(usize::MAX)
                .saturating_mul(row);
            let into = sampled.values.get_mut(at..at.saturating_add(row));
            if let Some(into) = into {
                into.copy_from_slice(value);
            }
        }
        Ok(())
    }
}

/// Returns the position of a point.
fn nth(positions: &[f64], point: u32, axes: usize) -> &[f64] {
    let start = usize::try_from(point)
        .unwrap_or(usize::MAX)
        .saturating_mul(axes);
    let own = positions.get(start..start.saturating_add(axes));
    own.unwrap_or_default()
}

/// Points that are sampled together, and their tiles.
#[derive(Debug, Default)]
struct CellPart {
    points: Vec<u32>,
    tiles: BTreeSet<u64>,
    cost: u64,
    previous: PreviousTile,
}

/// The tile of the previous point. It avoids adding the same tile for each point.
#[derive(Debug, Default)]
struct PreviousTile(Option<Span>);

impl PreviousTile {
    /// Adds the tiles of a location, unless the tile of the previous point contains it.
    fn add(&mut self, spot: &Spot, axes: usize, tiling: &Tiling, into: &mut Vec<u64>) {
        if self.0.is_some_and(|span| span.has(spot, axes)) {
            return;
        }
        let before = into.len();
        tiling.around(spot, into);
        if let Some([tile]) = into.get(before..) {
            self.0 = Some(tiling.span(*tile));
        }
    }
}
