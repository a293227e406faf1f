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

/// Folders of a level with a subfolder for each attribute of links, which has one for each delta.
const ATTRIBUTES: [&str; 2] = [
    GroupRole::LinkAttributes.name(),
    GroupRole::CrossChunkLinkAttributes.name(),
];

/// Selects levels.
type LevelFilter<'a> = &'a (dyn Fn(LevelId) -> bool + Sync);

/// Deletes levels from `first` on, and the links of other levels to them with their values.
pub(super) async fn levels(
    store: &Store,
    transaction: &mut Transaction,
    first: LevelId,
    levels: &[LevelId],
) -> Result<(), Failure> {
    let is_deleted = |target: LevelId| target >= first;
    for level in levels {
        let group = nodes::child(&Key::root(), &level.to_string())?;
        let mut folders = Vec::new();
        if is_deleted(*level) {
            folders.push(group);
        } else {
            for family in BY_DELTA {
                let family = nodes::child(&group, family)?;
                folders.extend(deltas(store, &family, *level, &is_deleted).await?.0);
            }
            folders.extend(values(store, &group, *level, &is_deleted).await?);
        }
        delete(store, transaction, &folders).await?;
    }
    Ok(())
}

/// Deletes the values of the links between `target` and other levels, which are linked anew.
pub(super) async fn values_of_links(
    store: &Store,
    transaction: &mut Transaction,
    target: LevelId,
    levels: &[LevelId],
) -> Result<(), Failure> {
    for level in levels {
        let group = nodes::child(&Key::root(), &level.to_string())?;
        let is_linked = |other: LevelId| other != *level && (other == target || *level == target);
        let folders = values(store, &group, *level, &is_linked).await?;
        delete(store, transaction, &folders).await?;
    }
    Ok(())
}

/// Returns the folders of link attributes between `level` and the levels that `filter` selects.
async fn values(
    store: &Store,
    group: &Key,
    level: LevelId,
    filter: LevelFilter<'_>,
) -> Result<Vec<Key>, Failure> {
    let mut folders = Vec::new();
    for family in ATTRIBUTES {
        let family = nodes::child(group, family)?;
        for name in nodes::children(store, &family).await?.folders {
            let attribute = nodes::child(&family, &name)?;
            match deltas(store, &attribute, level, filter).await? {
                (selected, 0) if !selected.is_empty() => folders.push(attribute),
                (selected, _) => folders.extend(selected),
            }
        }
    }
    Ok(folders)
}

/// Returns the subfolders of a folder whose deltas lead to levels that `filter` selects, and the number of
/// the others.
async fn deltas(
    store: &Store,
    family: &Key,
    level: LevelId,
    filter: LevelFilter<'_>,
) -> Result<(Vec<Key>, usize), Failure> {
    let mut selected = Vec::new();
    let names = nodes::children(store, family).await?.folders;
    for name in &names {
        let delta = Delta::parse(name).ok();
        let target = delta.and_then(|delta| level.offset(delta.levels()));
        if target.is_some_and(filter) {
            selected.push(nodes::child(family, name)?);
        }
    }
    let others = names.len().saturating_sub(selected.len());
    Ok((selected, others))
}

async fn delete(
    store: &Store,
    transaction: &mut Transaction,
    folders: &[Key],
) -> Result<(), Failure> {
    for folder in folders {
        for file in store.list_to_delete(folder, MAX_FILES).await? {
            transaction
                .delete(nodes::below(folder, &file.name)?)
                .await?;
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
