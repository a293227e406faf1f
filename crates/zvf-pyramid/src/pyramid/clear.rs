//! Deletes levels that are replaced.

use zvf_dataset::{Failure, nodes};
use zvf_format::path::Delta;
use zvf_model::{
    key::Key,
    layout::GroupRole,
    level::{ADDITIVE_LEVELS, LevelId},
    metadata::Attributes,
    root::{MULTISCALE_LINKS, PRESERVED_OBJECT_IDS, RootChange, SHARED_FRAGMENTS},
    stale_levels::StaleLevels,
};
use zvf_store::{Store, Transaction};

use super::pending::PENDING_LEVELS;

/// Upper bound on the files of a level.
const MAX_FILES: usize = 1 << 26;
/// Folders of a level with a subfolder for each delta.
const BY_DELTA: [&str; 2] = [GroupRole::Links.name(), GroupRole::CrossChunkLinks.name()];

/// Deletes levels from `first` on, and the links of other levels to them.
pub(super) async fn levels(
    store: &Store,
    transaction: &mut Transaction,
    first: LevelId,
    levels: &[LevelId],
) -> Result<(), Failure> {
    for level in levels {
        let group = nodes::child(&Key::root(), &level.to_string())?;
        let mut folders = Vec::new();
        if *level >= first {
            folders.push(group);
        } else {
            for family in BY_DELTA {
                let family = nodes::child(&group, family)?;
                for name in nodes::children(store, &family).await?.folders {
                    let delta = Delta::parse(&name).ok();
                    let target = delta.and_then(|delta| level.offset(delta.levels()));
                    if target.is_some_and(|target| target >= first) {
                        folders.push(nodes::child(&family, &name)?);
                    }
                }
            }
        }
        for folder in folders {
            for file in store.list_to_delete(&folder, MAX_FILES).await? {
                transaction
                    .delete(nodes::below(&folder, &file.name)?)
                    .await?;
            }
        }
    }
    Ok(())
}

/// Capabilities of the root that describe levels other than the finest.
const LEVEL_CAPABILITIES: [&str; 4] = [
    ADDITIVE_LEVELS,
    PRESERVED_OBJECT_IDS,
    SHARED_FRAGMENTS,
    MULTISCALE_LINKS,
];

/// Removes levels from `first` on from the root. Level 0 may share fragments itself.
pub(super) fn root(root: &mut Attributes, first: LevelId, is_shared: bool) {
    let mut change = RootChange::of(root);
    if first == LevelId::new(1) {
        change.retain_all_capabilities(|token| {
            let is_of_levels = LEVEL_CAPABILITIES.contains(&token);
            !is_of_levels || (is_shared && token == SHARED_FRAGMENTS)
        });
    }
    change.remove_levels(|level| level >= first);
    root.remove(PENDING_LEVELS);
    let mut stale = StaleLevels::parse(root);
    stale.remove_from(first);
    stale.write(root);
}
