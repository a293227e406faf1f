//! Marks coarser levels that no longer match a level that changed.

use zvf_dataset::{Failure, nodes};
use zvf_model::{
    grid::ChunkCoord, key::Key, level::LevelId, metadata::Attributes, stale_levels::StaleLevels,
};
use zvf_store::Store;

/// Returns the levels that exist and are coarser than `level`, ascending. They are listed, because
/// `multiscales` of the root need not name all of them.
pub async fn coarser_levels(store: &Store, level: LevelId) -> Result<Vec<LevelId>, Failure> {
    let names = nodes::children(store, &Key::root()).await?.folders;
    let levels = names.iter().filter_map(|name| LevelId::parse(name));
    let mut coarser: Vec<LevelId> = levels.filter(|other| *other > level).collect();
    coarser.sort_unstable();
    Ok(coarser)
}

/// Marks the levels `coarser` than level 0 stale in the attributes of the root, and lists the chunks of
/// level 0 that changed.
pub fn mark_stale(
    root: &mut Attributes,
    coarser: &[LevelId],
    changed: impl IntoIterator<Item = ChunkCoord>,
) {
    let mut stale = StaleLevels::parse(root);
    stale.add_chunks(coarser, changed);
    stale.write(root);
}

/// Marks the levels `coarser` than `level` stale in the attributes of the root, without a list of the
/// chunks of `level` that changed.
pub fn mark_all_stale(root: &mut Attributes, level: LevelId, coarser: &[LevelId]) {
    let mut stale = StaleLevels::parse(root);
    stale.add(level, coarser);
    stale.write(root);
}
