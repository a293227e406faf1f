//! Stale levels: the record in the root of coarser levels that no longer match level 0.
//!
//! | attribute of the root | holds |
//! |---|---|
//! | [`STALE_LEVELS`] | levels built before the last change of a finer one |
//! | [`STALE_CHUNKS`] | chunks that changed since, by level; a missing list means all chunks |
//! | [`PENDING_LEVELS`] | levels that a refresh deleted and has not built again |

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use zvf_model::{key::Key, level::LevelId};
use zvf_store::Store;

use crate::{failure::Failure, nodes};

/// Attribute of the root: chunks that changed since the next level was built.
pub(crate) const STALE_CHUNKS: &str = "zvf_stale_chunks";
/// Attribute of the root: levels that are stale.
pub(crate) const STALE_LEVELS: &str = "zvf_stale_levels";
/// Attribute of the root: recipes of the levels that a refresh has still to build.
#[cfg(feature = "pyramid")]
pub(crate) const PENDING_LEVELS: &str = "zvf_pending_levels";

/// Maximum number of changed chunks listed in the root; beyond it all chunks count as changed.
const MAX_STALE_CHUNKS: usize = 1 << 14;

/// Returns the levels that exist and are coarser than `level`, ascending. They are listed, because
/// `multiscales` of the root need not name all of them.
pub(crate) async fn coarser_levels(store: &Store, level: LevelId) -> Result<Vec<LevelId>, Failure> {
    let names = nodes::children(store, &Key::root()).await?.folders;
    let levels = names.iter().filter_map(|name| LevelId::parse(name));
    let mut coarser: Vec<LevelId> = levels.filter(|other| *other > level).collect();
    coarser.sort_unstable();
    Ok(coarser)
}

/// Marks the levels `coarser` than `level` stale, without a list of the chunks of `level` that
/// changed.
#[cfg(feature = "validate")]
pub(crate) fn mark_all_stale(root: &mut Map<String, Value>, level: LevelId, coarser: &[LevelId]) {
    if coarser.is_empty() {
        return;
    }
    let mut stale: Vec<u64> = coarser.iter().map(|level| level.number().into()).collect();
    let known = root.get(STALE_LEVELS).and_then(Value::as_array);
    stale.extend(known.into_iter().flatten().filter_map(Value::as_u64));
    stale.sort_unstable();
    stale.dedup();
    root.insert(STALE_LEVELS.to_owned(), json!(stale));
    if let Some(chunks) = root.get_mut(STALE_CHUNKS).and_then(Value::as_object_mut) {
        chunks.remove(&level.to_string());
        if chunks.is_empty() {
            root.remove(STALE_CHUNKS);
        }
    }
}

/// Marks the levels `coarser` than level 0 stale, and lists the chunks of level 0 that changed.
///
/// `touched` are paths of cells; those of level 0 start with `0/`. The list is dropped once the
/// root does not know every earlier change or it would exceed [`MAX_STALE_CHUNKS`].
pub(crate) fn mark_stale(
    mut root: Map<String, Value>,
    coarser: &[LevelId],
    touched: &BTreeSet<String>,
) -> Map<String, Value> {
    if coarser.is_empty() {
        return root;
    }
    let coarser: Vec<u64> = coarser.iter().map(|level| level.number().into()).collect();
    let was_behind = root
        .insert(STALE_LEVELS.to_owned(), json!(coarser))
        .is_some();
    let mut chunks = match root.remove(STALE_CHUNKS) {
        Some(Value::Object(chunks)) => chunks,
        _ => Map::new(),
    };
    // After a change that was not recorded by chunk, the list would be incomplete.
    if !was_behind || chunks.contains_key("0") {
        let known = chunks.remove("0");
        let known = known
            .as_ref()
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut names: BTreeSet<&str> = known.filter_map(Value::as_str).collect();
        names.extend(touched.iter().filter_map(|name| name.strip_prefix("0/")));
        if names.len() <= MAX_STALE_CHUNKS {
            chunks.insert("0".to_owned(), json!(names));
        }
    }
    if !chunks.is_empty() {
        root.insert(STALE_CHUNKS.to_owned(), Value::Object(chunks));
    }
    root
}
