//! Tiles that were read, kept for points that come later.

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;

use super::{
    MOST_AXES,
    tiles::{Span, Tiling},
    values::Voxels,
};
use crate::{DenseError, ReadPlan};

/// A tile in memory.
#[derive(Debug)]
pub(super) struct Tile {
    pub(super) number: u64,
    pub(super) span: Span,
    /// From one voxel to the next along each axis.
    pub(super) strides: [usize; MOST_AXES],
    pub(super) voxels: Voxels,
}

/// Tiles, of which those used longest ago make way.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: HashMap<u64, Kept>,
    /// What they take.
    bytes: u64,
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    tile: Arc<Tile>,
    cost: u64,
    used: u64,
}

/// Tiles by number, and what reading those that were not there took.
pub(super) type Held = (Vec<Arc<Tile>>, ReadPlan);

impl Cache {
    /// The tiles of these numbers, ascending; `read` gives those that are not here.
    /// All together are at most `share` bytes when these are.
    ///
    /// # Errors
    ///
    /// What `read` says; nothing is kept of that call.
    pub(super) fn hold(
        &mut self,
        numbers: &[u64],
        tiling: &Tiling,
        share: u64,
        read: impl Fn(u64) -> Result<(Tile, ReadPlan), DenseError> + Sync,
    ) -> Result<Held, DenseError> {
        self.clock = self.clock.saturating_add(1);
        let mut missing = Vec::new();
        for number in numbers {
            match self.kept.get_mut(number) {
                Some(kept) => kept.used = self.clock,
                None => missing.push((*number, tiling.cost(*number))),
            }
        }
        let more = missing.iter().map(|(_, cost)| *cost);
        self.make_room(share.saturating_sub(more.fold(0, u64::saturating_add)));
        let one = |(number, cost): &(u64, u64)| read(*number).map(|read| (read, *cost));
        let found: Result<Vec<_>, DenseError> = match tiling.is_fine() {
            // Each decodes a block or chunk that may be much larger.
            true => missing.iter().map(one).collect(),
            false => missing.par_iter().map(one).collect(),
        };
        let mut reads = ReadPlan::default();
        for ((tile, plan), cost) in found? {
            add(&mut reads, plan);
            self.bytes = self.bytes.saturating_add(cost);
            let (number, used) = (tile.number, self.clock);
            let tile = Arc::new(tile);
            self.kept.insert(number, Kept { tile, cost, used });
        }
        let tiles = numbers.iter().filter_map(|number| self.kept.get(number));
        Ok((tiles.map(|kept| Arc::clone(&kept.tile)).collect(), reads))
    }

    /// All tiles, which then are no longer here.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Arc<Tile>> {
        self.bytes = 0;
        let kept = std::mem::take(&mut self.kept);
        kept.into_values().map(|kept| kept.tile)
    }

    /// Lets tiles go that are not asked for now, until the others take `most` bytes.
    fn make_room(&mut self, most: u64) {
        if self.bytes <= most {
            return;
        }
        let idle = self.kept.iter().filter(|(_, kept)| kept.used < self.clock);
        let mut idle: Vec<(u64, u64)> = idle.map(|(number, kept)| (kept.used, *number)).collect();
        idle.sort_unstable();
        for (_, number) in idle {
            if self.bytes <= most {
                break;
            }
            if let Some(kept) = self.kept.remove(&number) {
                self.bytes = self.bytes.saturating_sub(kept.cost);
            }
        }
    }
}

/// Adds what a read took.
pub(super) fn add(sum: &mut ReadPlan, more: ReadPlan) {
    sum.chunks = sum.chunks.saturating_add(more.chunks);
    sum.blocks = sum.blocks.saturating_add(more.blocks);
    sum.bytes_read = sum.bytes_read.saturating_add(more.bytes_read);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}
