//! Number of chunks in one object of the store.

use serde_json::{Value, json};

use crate::{
    design::{Design, Profile, ShardingPolicy},
    error::BuildError,
    metadata,
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
    checked(shape).map(Some)
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

/// Returns the node of an array that is added to a level of 0.9, given the node of another array of
/// the level. The array has the shards that the root declares for added arrays, or by default those
/// of the other array. As in new levels, it has no shards if none would have two cells.
///
/// # Errors
///
/// [`BuildError::ShardShape`] if a shard would have too many cells.
pub fn added_array(other: Value, declared: Option<&[u64]>) -> Result<Value, BuildError> {
    let mut node = other;
    let grid: Vec<u64> = node["shape"].as_array().map_or_else(Vec::new, |shape| {
        shape.iter().filter_map(Value::as_u64).collect()
    });
    let Some(declared) = declared.filter(|shape| shape.len() <= grid.len()) else {
        return Ok(node);
    };
    // If attributes divide the level into chunks too, they are the first axes of the grid. Shards
    // do not extend along them.
    let leading = grid.len() - declared.len();
    let shard = checked([vec![1; leading], declared.to_vec()].concat())?;
    let ones = vec![1; grid.len()];
    let codecs = node["codecs"].as_array().map_or(&[][..], Vec::as_slice);
    let cell = metadata::unsharded(codecs);
    let is_shared = shard
        .iter()
        .zip(&grid)
        .any(|(shard, grid)| *shard.min(grid) > 1);
    let (chunk, codecs) = match is_shared {
        true => (shard, vec![metadata::sharding(&ones, &cell)]),
        false => (ones, cell),
    };
    node["chunk_grid"]["configuration"]["chunk_shape"] = json!(chunk);
    node["codecs"] = json!(codecs);
    Ok(node)
}
