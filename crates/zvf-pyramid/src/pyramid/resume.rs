//! Resumes builds that were interrupted.

use zvf_dataset::{Dataset, Failure, base};
use zvf_model::level::LevelId;

use super::{CrossLevel, CrossLevelDepth, LevelDesign, PyramidOptions, metadata, refresh, stats};

/// Returns whether a level exists exactly as it would be built, and no level is stale.
pub(super) async fn is_made(
    dataset: &Dataset,
    level: LevelId,
    design: &LevelDesign,
    options: &PyramidOptions,
) -> Result<bool, Failure> {
    if options.overwrite || !base::surveyed(dataset).await?.levels().contains(&level) {
        return Ok(false);
    }
    let root = dataset.root();
    let (storage, depth) = if design.additive {
        (CrossLevel::None, CrossLevelDepth::Levels(0))
    } else {
        (options.cross_level, options.depth_of())
    };
    let is_linked = metadata::stored(root) == storage && root.cross_level_depth == Some(depth);
    if !is_linked || root.stale_levels().next().is_some() {
        return Ok(false);
    }
    let attributes = refresh::attributes(dataset, &level.to_string()).await?;
    Ok(stats::is_made(&attributes, design, &options.rules))
}
