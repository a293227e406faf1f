//! The cache of tiles that a sampler has read.

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;

use super::{
    MAX_AXES,
    tiles::{Span, Tiling},
    values::Voxels,
};
use crate::{DenseError, ReadCost};

/// A tile in memory.
#[derive(Debug)]
pub(super) struct Tile {
    pub(super) number: u64,
    pub(super) span: Span,
    /// The distance between neighbouring voxels along each axis.
    pub(super) strides: [usize; MAX_AXES],
    pub(super) voxels: Voxels,
}

/// A cache of tiles with least-recently-used eviction.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: HashMap<u64, CachedTile>,
    /// Memory of all cached tiles.
    bytes: u64,
    clock: u64,
}

#[derive(Debug)]
struct CachedTile {
    tile: Arc<Tile>,
    cost: u64,
    used: u64,
}

/// Tiles by ascending number, and the reads that loaded the missing ones.
pub(super) type LoadedTiles = (Vec<Arc<Tile>>, ReadCost);

impl Cache {
    /// Returns the tiles with these ascending numbers and calls `read` for the missing ones. If the
    /// requested tiles take at most `share` bytes together, the cache stays within `share`.
    ///
    /// # Errors
    ///
    /// Any error of `read`. Tiles read by a failed call are not cached.
    pub(super) fn load(
        &mut self,
        numbers: &[u64],
        tiling: &Tiling,
        share: u64,
        read: impl Fn(u64) -> Result<(Tile, ReadCost), DenseError> + Sync,
    ) -> Result<LoadedTiles, DenseError> {
        self.clock = self.clock.saturating_add(1);
        let mut missing = Vec::new();
        for number in numbers {
            match self.kept.get_mut(number) {
                Some(kept) => kept.used = self.clock,
                None => missing.push((*number, tiling.cost(*number))),
            }
        }
        let more = missing.iter().map(|(_, cost)| *cost);
        self.evict(share.saturating_sub(more.fold(0, u64::saturating_add)));
        let one = |(number, cost): &(u64, u64)| read(*number).map(|read| (read, *cost));
        let found: Result<Vec<_>, DenseError> = if tiling.is_fine() {
            missing.iter().map(one).collect()
        } else {
            missing.par_iter().map(one).collect()
        };
        let mut reads = ReadCost::default();
        for ((tile, plan), cost) in found? {
            add(&mut reads, plan);
            self.bytes = self.bytes.saturating_add(cost);
            let (number, used) = (tile.number, self.clock);
            let tile = Arc::new(tile);
            self.kept.insert(number, CachedTile { tile, cost, used });
        }
        let tiles = numbers.iter().filter_map(|number| self.kept.get(number));
        Ok((tiles.map(|kept| Arc::clone(&kept.tile)).collect(), reads))
    }

    /// Removes all tiles from the cache and returns them.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Arc<Tile>> {
        self.bytes = 0;
        let kept = std::mem::take(&mut self.kept);
        kept.into_values().map(|kept| kept.tile)
    }

    /// Evicts tiles that the current call does not use, until the cache takes at most `max` bytes.
    fn evict(&mut self, max: u64) {
        if self.bytes <= max {
            return;
        }
        let mut idle: Vec<(u64, u64)> = self
            .kept
            .iter()
            .filter(|(_, kept)| kept.used < self.clock)
            .map(|(number, kept)| (kept.used, *number))
            .collect();
        idle.sort_unstable();
        for (_, number) in idle {
            if self.bytes <= max {
                break;
            }
            if let Some(kept) = self.kept.remove(&number) {
                self.bytes = self.bytes.saturating_sub(kept.cost);
            }
        }
    }
}

/// Adds `more` to the totals of `sum`.
pub(super) fn add(sum: &mut ReadCost, more: ReadCost) {
    sum.chunks = sum.chunks.saturating_add(more.chunks);
    sum.blocks = sum.blocks.saturating_add(more.blocks);
    sum.bytes_read = sum.bytes_read.saturating_add(more.bytes_read);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}
