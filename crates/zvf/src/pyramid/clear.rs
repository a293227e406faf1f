//! Deletes levels that are replaced.

use serde_json::{Map, Value};
use zvf_format::path::Delta;
use zvf_model::{
    key::Key,
    level::{ADDITIVE_LEVELS, LevelId},
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
const BY_DELTA: [&str; 2] = ["links", "cross_chunk_links"];

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
    "preserved_object_ids",
    "shared_fragments",
    "multiscale_links",
];

/// Removes levels from `first` on from the root. Level 0 may share fragments itself.
pub(super) fn root(root: &mut Map<String, Value>, first: LevelId, is_shared: bool) {
    if first == LevelId::new(1)
        && let Some(block) = root.get_mut("zarr_vectors").and_then(Value::as_object_mut)
    {
        let is_kept = |token: &Value| {
            let is_of_levels = LEVEL_CAPABILITIES.iter().any(|own| token == own);
            !is_of_levels || (is_shared && token == "shared_fragments")
        };
        let lists = ["format_capabilities", "required_capabilities"];
        for list in lists {
            if let Some(tokens) = block.get_mut(list).and_then(Value::as_array_mut) {
                tokens.retain(is_kept);
            }
        }
        // An empty list of requirements is left out.
        let required = block.get("required_capabilities");
        if required
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            block.remove("required_capabilities");
        }
    }
    let is_gone = |name: Option<&Value>| {
        let name = name.and_then(Value::as_str).and_then(LevelId::parse);
        name.is_some_and(|level| level >= first)
    };
    let scales = root
        .get_mut("multiscales")
        .and_then(|scales| scales.get_mut(0));
    let datasets = scales.and_then(|scale| scale.get_mut("datasets"));
    if let Some(datasets) = datasets.and_then(Value::as_array_mut) {
        datasets.retain(|dataset| !is_gone(dataset.get("path")));
    }
    let nodes = root.get_mut("ome").and_then(|ome| ome.get_mut("nodes"));
    if let Some(nodes) = nodes.and_then(Value::as_array_mut) {
        nodes.retain(|node| !is_gone(node.get("name")));
    }
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
