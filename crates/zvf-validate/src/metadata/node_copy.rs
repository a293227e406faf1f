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
    let mut wrong = Vec::new();
    for key in copy.keys() {
        match copy.get(key) {
            _ if !store.tree.has_file(key) => wrong.push(format!("{key} does not exist")),
            CopiedNode::Node(json) => {
                // An unreadable node is reported already.
                let node = store.tree.node(key);
                if node.is_some_and(|node| !is_copy_of(key, json, node)) {
                    wrong.push(format!("{key} differs"));
                }
            }
            CopiedNode::Absent | CopiedNode::Separate => {}
        }
    }
    for path in store.tree.keys().filter(|path| !path.is_empty()) {
        if Key::parse(path).is_ok_and(|key| copy.get(&key) == CopiedNode::Absent) {
            wrong.push(format!("{path} is missing"));
        }
    }
    if wrong.is_empty() {
        return;
    }
    let others = wrong.len().saturating_sub(MAX_NAMES);
    wrong.truncate(MAX_NAMES);
    let mut message = wrong.join(", ");
    if others > 0 {
        message = format!("{message}, and {others} more");
    }
    find(&rules::NODE_COPY, message);
}
