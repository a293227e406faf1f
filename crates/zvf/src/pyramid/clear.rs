//! Deletes levels that are replaced.

use serde_json::{Map, Value};
use zvf_format::path::Delta;
use zvf_model::{
    key::Key,
    layout::GroupRole,
    level::{ADDITIVE_LEVELS, LevelId},
    root::{MULTISCALE_LINKS, PRESERVED_OBJECT_IDS, RootChange, SHARED_FRAGMENTS},
};
use zvf_store::{Store, Transaction};

use crate::{
    failure::Failure,
    nodes,
    stale::{PENDING_LEVELS, STALE_CHUNKS, STALE_LEVELS},
};

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
        let folders: Vec<String> = match *level >= first {
            true => vec![level.to_string()],
            false => {
                let mut folders = Vec::new();
                for family in BY_DELTA {
                    let path = format!("{level}/{family}");
                    let key = nodes::named(Key::parse(&path), &path)?;
                    let names = nodes::children(store, &key).await?.folders;
                    let leads = |name: &String| {
                        let delta = Delta::parse(name).ok();
                        let target = delta.and_then(|delta| level.offset(delta.levels()));
                        target.is_some_and(|target| target >= first)
                    };
                    folders.extend(
                        names
                            .into_iter()
                            .filter(leads)
                            .map(|name| format!("{path}/{name}")),
                    );
                }
                folders
            }
        };
        for folder in folders {
            let key = nodes::named(Key::parse(&folder), &folder)?;
            for file in store.list_to_delete(&key, MAX_FILES).await? {
                let path = format!("{folder}/{}", file.name);
                transaction
                    .delete(nodes::named(Key::parse(&path), &path)?)
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
pub(super) fn root(root: &mut Map<String, Value>, first: LevelId, is_shared: bool) {
    let mut change = RootChange::of(root);
    if first == LevelId::new(1) {
        change.retain_all_capabilities(|token| {
            let is_of_levels = LEVEL_CAPABILITIES.contains(&token);
            !is_of_levels || (is_shared && token == SHARED_FRAGMENTS)
        });
    }
    change.remove_levels(|level| level >= first);
    root.remove(PENDING_LEVELS);
    if let Some(chunks) = root.get_mut(STALE_CHUNKS).and_then(Value::as_object_mut) {
        // Stale chunks matter only to levels that remain.
        chunks.retain(|level, _| {
            LevelId::parse(level).is_some_and(|level| level.offset(1) < Some(first))
        });
        if chunks.is_empty() {
            root.remove(STALE_CHUNKS);
        }
    }
    if let Some(stale) = root.get_mut(STALE_LEVELS).and_then(Value::as_array_mut) {
        let first = u64::from(first.number());
        stale.retain(|level| level.as_u64().is_some_and(|level| level < first));
        if stale.is_empty() {
            root.remove(STALE_LEVELS);
        }
    }
}
