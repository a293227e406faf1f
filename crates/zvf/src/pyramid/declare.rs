//! Declares additive levels in the draft of the format after 0.9.2: `refinement: add`.

use serde_json::{Value, json};
use zvf_model::{
    key::Key,
    level::{ADDITIVE_LEVELS, LevelId},
    zarr::Node,
};
use zvf_store::Store;

use super::{metadata::token, refresh::attributes};
use crate::{
    commit::commit_or_abort, dataset::Dataset, failure::Failure, nodes, stale::PENDING_LEVELS,
    writer::encode::text,
};

/// Declares levels 1 to `count`, which hold each point once, in one transaction. The coarsest is
/// complete, each other one together with the coarser ones. Does nothing if they are declared so.
///
/// The levels are built before they are declared, because a level that is to be completed by one
/// that does not exist is damaged.
pub(super) async fn additive(store: &Store, count: u32) -> Result<(), Failure> {
    let mut transaction = store.begin().await?;
    let dataset = Dataset::open_store(store.clone()).await?;
    let mut changed = Vec::new();
    for number in 1..=count {
        let level = LevelId::new(number);
        let before = attributes(&dataset, &level.to_string()).await?;
        let mut after = before.clone();
        after.remove("zvf_additive");
        if let Some(block) = after
            .get_mut("zarr_vectors_level")
            .and_then(Value::as_object_mut)
        {
            match number < count {
                true => drop(block.insert("refinement".to_owned(), json!("add"))),
                false => drop(block.remove("refinement")),
            }
        }
        if after != before {
            let key = nodes::child(&Key::root(), &level.to_string())?;
            changed.push((nodes::metadata(&key)?, after));
        }
    }
    if changed.is_empty() {
        return Ok(transaction.abort().await?);
    }
    for (key, attributes) in changed {
        let node = text(&zvf_build::group_metadata(&attributes));
        transaction.put(key, node).await?;
    }
    transaction.touch("*");
    let key = nodes::metadata(&Key::root())?;
    let root = Node::parse(&key, transaction.root())?;
    let mut root = root.attributes().clone();
    if count > 1
        && let Some(block) = root.get_mut("zarr_vectors").and_then(Value::as_object_mut)
    {
        for list in ["format_capabilities", "required_capabilities"] {
            token(block, list, ADDITIVE_LEVELS);
        }
    }
    root.remove(PENDING_LEVELS);
    let root = text(&zvf_build::group_metadata(&root));
    commit_or_abort(transaction, &root).await?;
    Ok(())
}
