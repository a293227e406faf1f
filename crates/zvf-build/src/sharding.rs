//! Number of chunks in one object of the store.

use zvf_model::{
    metadata::Attributes,
    zarr::{Array, Codecs},
};

use crate::{
    design::{Design, ShardingPolicy},
    error::BuildError,
};

/// Target size of a shard in bytes.
const SHARD: u64 = 16 << 20;
/// Maximum number of chunks in a shard, whose index has 16 bytes for each.
const MAX_CHUNKS: u64 = 1 << 12;

/// Returns the shard shape in chunks for a grid with this many chunks and bytes of positions.
pub(crate) fn shard(
    design: &Design,
    grid: &[u64],
    chunks: u64,
    bytes: u64,
) -> Result<Option<Vec<u64>>, BuildError> {
    let shape = match &design.sharding {
        ShardingPolicy::None => return Ok(None),
        ShardingPolicy::Shape(shape) => {
            if shape.len() != grid.len() || shape.contains(&0) {
                return Err(BuildError::ShardShape(shape.clone()));
            }
            shape.clone()
        }
        ShardingPolicy::Auto => auto(grid, chunks, bytes),
    };
    if !design.profile.is_current() {
        return Err(BuildError::UnsupportedOption {
            profile: design.profile.name(),
            what: "shards",
        });
    }
    checked(shape).map(Some)
}

/// Returns the shape of the largest shards of about [`SHARD`] bytes that divide the grid evenly.
///
/// Chunks without data take no space in a shard. If few chunks of the grid have data, they may
/// still be neighbours, so a shard full of average chunks has at most twice the size.
fn auto(grid: &[u64], chunks: u64, bytes: u64) -> Vec<u64> {
    let chunk = (bytes / chunks.max(1)).max(1);
    let all = grid
        .iter()
        .fold(1, |n: u64, extent| n.saturating_mul(*extent));
    let mut shape = grid.to_vec();
    for extent in &mut shape {
        *extent = (*extent).clamp(1, MAX_CHUNKS);
    }
    loop {
        let chunks = shape
            .iter()
            .fold(1, |n: u64, extent| n.saturating_mul(*extent));
        let full = chunks.saturating_mul(chunk);
        let shards = all.div_ceil(chunks.max(1)).max(1);
        if chunks <= MAX_CHUNKS && full <= 2 * SHARD && bytes / shards <= SHARD {
            return shape;
        }
        // One shard more along the longest axis, and shards of equal extents.
        let longest = shape
            .iter_mut()
            .zip(grid)
            .max_by_key(|(extent, _)| **extent);
        let Some((extent, grid)) = longest.filter(|(extent, _)| **extent > 1) else {
            return shape;
        };
        *extent = grid.div_ceil(grid.div_ceil(*extent - 1));
    }
}

/// Checks that shards of this shape do not have too many cells, and returns the shape.
fn checked(shape: Vec<u64>) -> Result<Vec<u64>, BuildError> {
    let cells = shape
        .iter()
        .try_fold(1u64, |n, extent| n.checked_mul(*extent));
    match cells {
        Some(cells) if cells <= 1 << 20 => Ok(shape),
        _ => Err(BuildError::ShardShape(shape)),
    }
}

/// Returns an array without attributes that is added to a level of 0.9, given another array of the
/// level. The array has the shards that the root declares for added arrays, or by default those
/// of the other array. As in new levels, it has no shards if none would have two cells.
///
/// # Errors
///
/// [`BuildError::ShardShape`] if a shard would have too many cells.
pub fn added_array(other: &Array, declared: Option<&[u64]>) -> Result<Array, BuildError> {
    let mut array = other.clone();
    array.attributes = Attributes::new();
    let grid = &array.shape;
    let Some(declared) = declared.filter(|shape| shape.len() <= grid.len()) else {
        return Ok(array);
    };
    // If attributes divide the level into chunks too, they are the first axes of the grid. Shards
    // do not extend along them.
    let leading = grid.len() - declared.len();
    let shard = checked([vec![1; leading], declared.to_vec()].concat())?;
    let ones = vec![1; grid.len()];
    let cell = array.codecs.of_cells().clone();
    let mut extents = shard.iter().zip(grid);
    let is_shared = extents.any(|(shard, grid)| *shard.min(grid) > 1);
    (array.chunk_shape, array.codecs) = if is_shared {
        (shard, Codecs::sharded(ones, cell))
    } else {
        (ones, cell)
    };
    Ok(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_divide_the_grid_evenly() {
        // A level below the target size is one shard, also if most of its chunks are empty.
        assert_eq!(auto(&[9, 9, 9], 312, 12 << 20), [9, 9, 9]);
        assert_eq!(auto(&[1, 1], 1, 40), [1, 1]);
        assert_eq!(auto(&[19, 19, 19], 2104, 120 << 20), [10, 7, 7]);
        assert_eq!(auto(&[4, 4, 4], 64, 1 << 30), [1, 1, 1]);
        assert_eq!(auto(&[3, 40], 120, 120 << 20), [3, 5]);
        // Full shards stay below twice the target size.
        assert_eq!(auto(&[100, 100, 100], 100, 100 << 20), [3, 3, 3]);
        assert_eq!(auto(&[1 << 40, 1], 10, 10), [1 << 12, 1]);
        assert_eq!(auto(&[0, 5], 0, 0), [1, 5]);
    }
}
