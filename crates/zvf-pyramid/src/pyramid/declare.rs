//! Declares additive levels in the draft of the format after 0.9.2: `refinement: add`.

use zvf_dataset::{Failure, base, nodes};
use zvf_model::{
    key::Key,
    level::{self, ADDITIVE_LEVELS, LevelId, LevelMetadataChange, Refinement},
    root::RootChange,
    zarr::{GroupNode, Node},
};
use zvf_store::Store;
use zvf_write::{
    commit::commit_or_abort,
    writer::encode::{bytes_of, root_bytes},
};

use super::{pending::PENDING_LEVELS, refresh::attributes};

/// Declares levels 1 to `count`, which hold each point once, in one transaction. The coarsest is
/// complete, each other one together with the coarser ones. Does nothing if they are declared so.
///
/// The levels are built before they are declared, because a level that is to be completed by one
/// that does not exist is damaged.
pub(super) async fn additive(store: &Store, count: u32) -> Result<(), Failure> {
    let mut transaction = store.begin().await?;
    let dataset = base::open(store.clone()).await?;
    let generation = dataset.layout().generation;
    let mut changed = Vec::new();
    for number in 1..=count {
        let level = LevelId::new(number);
        let before = attributes(&dataset, &level.to_string()).await?;
        let mut after = before.clone();
        level::remove_additive(&mut after);
        if let Some(mut change) = LevelMetadataChange::of_existing(&mut after) {
            change.set_refinement(if number < count {
                Refinement::Add
            } else {
                Refinement::Replace
            });
        }
        if after != before {
            let key = nodes::child(&Key::root(), &level.to_string())?;
            changed.push((key, after));
        }
    }
    if changed.is_empty() {
        return Ok(transaction.abort().await?);
    }
    for (key, attributes) in changed {
        let node = bytes_of(&key, GroupNode::new(attributes), generation);
        transaction.put(nodes::metadata(&key)?, node).await?;
    }
    transaction.touch("*");
    let key = nodes::metadata(&Key::root())?;
    let mut root = Node::parse(&key, transaction.root())?.attributes().clone();
    if count > 1 {
        let mut change = RootChange::of(&mut root);
        change.use_capability(ADDITIVE_LEVELS);
        change.require_capability(ADDITIVE_LEVELS);
    }
    root.remove(PENDING_LEVELS);
    let root = root_bytes(root, generation);
    commit_or_abort(transaction, &root).await?;
    Ok(())
}
