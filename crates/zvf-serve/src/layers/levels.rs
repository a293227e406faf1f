//! The levels of a store that show what level 0 shows.

use zvf::Dataset;
use zvf_model::level::LevelId;

use super::LayerError;

/// Levels above 0.
#[derive(Debug, Default)]
pub(crate) struct UsableLevels {
    /// Levels that can be used, the finest first.
    pub(crate) chosen: Vec<LevelId>,
    /// Other levels, with the reason why they cannot.
    pub(crate) left_out: Vec<(LevelId, &'static str)>,
}

/// Chooses levels. A level is left out if it does not show the objects of level 0 in their present
/// form: because edits have changed a finer level, or because ids are not kept and `needs_ids`.
pub(crate) async fn usable_levels(
    dataset: &Dataset,
    needs_ids: bool,
) -> Result<UsableLevels, LayerError> {
    let stale: Vec<LevelId> = dataset.root().stale_levels().collect();
    let mut found = UsableLevels::default();
    for id in dataset.levels().iter().filter(|id| **id != LevelId::FULL) {
        let level = dataset.level(*id).await?;
        if stale.contains(id) {
            let reason = "the store was changed after it was built";
            found.left_out.push((*id, reason));
        } else if needs_ids && !level.preserves_object_ids {
            found.left_out.push((*id, "its objects have other ids"));
        } else {
            found.chosen.push(*id);
        }
    }
    Ok(found)
}
