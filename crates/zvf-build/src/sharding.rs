//! Number of chunks in one object of the store.

use crate::{
    design::{Design, Profile, ShardingPolicy},
    error::BuildError,
};

/// Target size of a shard in bytes.
const SHARD: u64 = 16 << 20;

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
        ShardingPolicy::Auto => {
            let cell = (bytes / chunks.max(1)).max(1);
            let mut shape = vec![1u64; grid.len()];
            // Doubles the shortest shard axis that has room in the grid, up to the target size.
            loop {
                let cells: u64 = shape.iter().product();
                let open = (0..grid.len()).filter(|axis| shape[*axis] < grid[*axis]);
                let axis = open.min_by_key(|axis| shape[*axis]);
                match axis {
                    Some(axis) if cells * cell * 2 <= SHARD && cells < 1 << 12 => shape[axis] *= 2,
                    _ => break shape,
                }
            }
        }
    };
    if design.profile != Profile::V09 {
        return Err(BuildError::UnsupportedOption {
            profile: design.profile.name(),
            what: "shards",
        });
    }
    let cells = shape
        .iter()
        .try_fold(1u64, |n, extent| n.checked_mul(*extent));
    match cells {
        Some(cells) if cells <= 1 << 20 => Ok(Some(shape)),
        _ => Err(BuildError::ShardShape(shape)),
    }
}
