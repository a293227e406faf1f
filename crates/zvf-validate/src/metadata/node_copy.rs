//! The node copy in the root.

use zvf_model::{
    key::Key,
    node_copy::{CopiedNode, MEMBER, NodeCopy, is_copy_of},
};

use crate::{context::Context, rule::Rule, rules::metadata as rules, store::StoreMetadata};

/// Maximum number of node names in a message.
const MAX_NAMES: usize = 4;

/// Compares the copy, if any, with every node.
pub(super) fn check(context: &Context<'_>, store: &StoreMetadata) {
    let root = Key::root();
    let Some(node) = store.tree.node(&root) else {
        return;
    };
    let find = |rule: &'static Rule, message: String| {
        // The repair rewrites the whole copy.
        context.report_attribute(rule, &root, &[MEMBER], message, None);
    };
    let copy = match NodeCopy::parse(&root, node.attributes()) {
        Ok(Some(copy)) => copy,
        Ok(None) => return,
        Err(error) => {
            return find(
                &rules::NODE_COPY,
                format!("{}: {}", error.path, error.fault),
            );
        }
    };
    if !copy.is_of(node.attributes()) {
        let message = format!("it belongs to transaction {}", copy.transaction());
        return find(&rules::NODE_COPY_BEHIND, message);
    }
    for key in copy.keys() {
        // Either the copy or the node is right: a file may be lost or exchanged, and another program
        // may have changed the node.
        let message = match copy.get(key) {
            _ if !store.tree.has_file(key) => "the node copy has it, but it does not exist",
            CopiedNode::Node(json) => match store.tree.node(key) {
                Some(node) if !is_copy_of(key, json, node) => "it differs from the node copy",
                // An unreadable node is reported already.
                _ => continue,
            },
            CopiedNode::Absent | CopiedNode::Separate => continue,
        };
        context.report(&rules::NODE_COPY, key, message);
    }
    let paths = store.tree.keys().filter(|path| !path.is_empty());
    let is_missing =
        |path: &&str| Key::parse(path).is_ok_and(|key| copy.get(&key) == CopiedNode::Absent);
    let mut wrong: Vec<&str> = paths.filter(is_missing).collect();
    if wrong.is_empty() {
        return;
    }
    let others = wrong.len().saturating_sub(MAX_NAMES);
    wrong.truncate(MAX_NAMES);
    let wrong = wrong.join(", ");
    let message = match others {
        0 => format!("without {wrong}"),
        others => format!("without {wrong}, and {others} more"),
    };
    find(&rules::NODE_COPY, message);
}
