//! Upkeep of the node copy in the root.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};
use zvf_model::{
    key::Key,
    metadata::Attributes,
    node_copy::{MAX_NODES, MEMBER, NodeCopy},
};

use super::{
    layout::{ATTRIBUTES, ROOT},
    root_members::RootMembers,
};

/// The nodes that a transaction puts and deletes.
#[derive(Debug, Default)]
pub(super) struct NodeChanges {
    /// `None` for a deleted node.
    changed: BTreeMap<Key, Option<Value>>,
    /// There are more nodes than a copy may hold, so none is written.
    too_many: bool,
}

impl NodeChanges {
    pub(super) fn put(&mut self, file: &Key, bytes: &Bytes) {
        // Bytes that are not JSON become null, which sends readers to the object itself.
        self.change(file, || {
            Some(serde_json::from_slice(bytes).unwrap_or_default())
        });
    }

    pub(super) fn delete(&mut self, file: &Key) {
        self.change(file, || None);
    }

    pub(super) fn discard(&mut self, file: &Key) {
        if let Some(node) = node_of(file) {
            self.changed.remove(&node);
        }
    }

    /// Adds later changes, which override these.
    pub(super) fn extend(&mut self, later: Self) {
        self.changed.extend(later.changed);
        self.too_many |= later.too_many;
    }

    fn change(&mut self, file: &Key, change: impl FnOnce() -> Option<Value>) {
        let Some(node) = node_of(file).filter(|_| !self.too_many) else {
            return;
        };
        self.changed.insert(node, change());
        if self.changed.len() > MAX_NODES {
            self.too_many = true;
            self.changed.clear();
        }
    }

    /// Applies the changes to `copy` and returns it as JSON, as of `transaction`; `None` when there
    /// cannot be a copy.
    pub(super) fn apply_to(&self, mut copy: NodeCopy, transaction: u64) -> Option<Value> {
        if self.too_many {
            return None;
        }
        for (key, node) in &self.changed {
            match node {
                Some(node) => copy.put(key.clone(), node.clone()),
                None => copy.remove(key),
            }
        }
        copy.to_json(transaction)
    }
}

/// Returns the node whose metadata are at `file`; `None` for other objects and for the root.
fn node_of(file: &Key) -> Option<Key> {
    let node = file.parent().filter(|_| file.name() == Some(ROOT))?;
    (!node.is_root()).then_some(node)
}

/// Returns the copy in the attributes of a root, if it is as of `transaction`.
pub(super) fn copy_in(file: &Key, root: &Attributes, transaction: u64) -> Option<NodeCopy> {
    // A copy that cannot be parsed is dropped.
    let copy = NodeCopy::parse(file, root).ok().flatten();
    copy.filter(|copy| copy.transaction() == transaction)
}

/// Returns whether a root has a copy, of any transaction.
pub(super) fn has_copy(root: &[u8]) -> bool {
    RootMembers::parse(root).is_some_and(|members| members.has_node_copy)
}

/// Formats a root: indented, except for the node copy, which is on one line.
pub(super) fn to_text(document: &mut Map<String, Value>) -> serde_json::Result<Bytes> {
    let attributes = document.get_mut(ATTRIBUTES).and_then(Value::as_object_mut);
    let copy = attributes.and_then(|all| all.get_mut(MEMBER));
    let Some(copy) = copy else {
        return Ok(serde_json::to_vec_pretty(document)?.into());
    };
    let copy = core::mem::take(copy);
    let text = serde_json::to_string_pretty(document)?;
    // Members of the attributes are indented by four spaces, and JSON strings contain no newline.
    let prefix = format!("\n    \"{MEMBER}\": ");
    let text = match text
        .split(&format!("{prefix}null"))
        .collect::<Vec<_>>()
        .as_slice()
    {
        [before, after] => format!("{before}{prefix}{copy}{after}"),
        // Another object has such a member at the same depth.
        _ => {
            if let Some(Value::Object(all)) = document.get_mut(ATTRIBUTES) {
                all.insert(MEMBER.to_owned(), copy);
            }
            serde_json::to_string_pretty(document)?
        }
    };
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_node_copy_is_written_on_one_line() {
        let root = json!({
            "attributes": {"a": [1, 2], MEMBER: {"nodes": {"0": [0]}}, "zvg": {}},
            "node_type": "group",
            "zarr_format": 3,
        });
        let mut document = root.as_object().unwrap().clone();
        let written = to_text(&mut document).unwrap();
        let lines = core::str::from_utf8(&written).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), root);
        assert!(
            lines.contains("\n    \"zvf_nodes\": {\"nodes\":{\"0\":[0]}},\n"),
            "{lines}"
        );
        assert!(lines.contains("      1,\n"), "{lines}");
    }

    #[test]
    fn a_root_with_two_such_members_is_written_unchanged() {
        let root = json!({"attributes": {MEMBER: {"a": 1}}, "another": {MEMBER: null}});
        let mut document = root.as_object().unwrap().clone();
        let written = to_text(&mut document).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), root);
    }
}
