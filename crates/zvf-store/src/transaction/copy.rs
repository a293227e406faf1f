//! Keeping the copy of the nodes in the root what the nodes are.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};
use zvf_model::{
    key::Key,
    metadata::Attributes,
    node_copy::{MOST_NODES, NodeCopy},
};

use super::{head::ATTRIBUTES, root::Members};

pub(super) use zvf_model::node_copy::MEMBER;

const FILE: &str = "zarr.json";

/// Nodes that are put and deleted, for the copy of the next state.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// `None` is one that goes.
    changed: BTreeMap<Key, Option<Value>>,
    /// More than a copy has: then there is none.
    too_many: bool,
}

impl Nodes {
    pub(super) fn put(&mut self, file: &Key, bytes: &Bytes) {
        // What is no JSON is nobody's node, and left to be read.
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

    /// Adds later changes.
    pub(super) fn extend(&mut self, later: Self) {
        self.changed.extend(later.changed);
        self.too_many |= later.too_many;
    }

    fn change(&mut self, file: &Key, change: impl FnOnce() -> Option<Value>) {
        let Some(node) = node_of(file).filter(|_| !self.too_many) else {
            return;
        };
        self.changed.insert(node, change());
        if self.changed.len() > MOST_NODES {
            self.too_many = true;
            self.changed.clear();
        }
    }

    /// The copy of a state that these changes make of that of `copy`, as of a
    /// transaction; `None` when there cannot be one.
    pub(super) fn over(&self, mut copy: NodeCopy, transaction: u64) -> Option<Value> {
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

/// The node that a file is of; `None` for other files, and for the root's.
fn node_of(file: &Key) -> Option<Key> {
    let node = file.parent().filter(|_| file.name() == Some(FILE))?;
    (!node.is_root()).then_some(node)
}

/// The copy in a root, if it was of this transaction.
pub(super) fn copy_in(file: &Key, root: &Attributes, transaction: u64) -> Option<NodeCopy> {
    // One that cannot be understood is not kept up.
    let copy = NodeCopy::parse(file, root).ok().flatten();
    copy.filter(|copy| copy.transaction() == transaction)
}

/// Whether a root has one, of whatever transaction.
pub(super) fn has_copy(root: &[u8]) -> bool {
    Members::of(root).is_some_and(|members| members.has_copy)
}

/// The text of a root: indented, but for the copy, which is for programs.
pub(super) fn text(document: &mut Map<String, Value>) -> serde_json::Result<Bytes> {
    let attributes = document.get_mut(ATTRIBUTES).and_then(Value::as_object_mut);
    let copy = attributes.and_then(|all| all.get_mut(MEMBER));
    let Some(copy) = copy else {
        return Ok(serde_json::to_vec_pretty(document)?.into());
    };
    let copy = core::mem::take(copy);
    let text = serde_json::to_string_pretty(document)?;
    // Two levels deep; no text in JSON has an end of line in it.
    let place = format!("\n    \"{MEMBER}\": ");
    let text = match text
        .split(&format!("{place}null"))
        .collect::<Vec<_>>()
        .as_slice()
    {
        [before, after] => format!("{before}{place}{copy}{after}"),
        // Another member has one like it.
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
    fn a_root_is_the_same_document_with_its_copy_on_one_line() {
        let root = json!({
            "attributes": {"a": [1, 2], MEMBER: {"nodes": {"0": [0]}}, "zvg": {}},
            "node_type": "group",
            "zarr_format": 3,
        });
        let mut document = root.as_object().unwrap().clone();
        let written = text(&mut document).unwrap();
        let lines = core::str::from_utf8(&written).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), root);
        assert!(
            lines.contains("\n    \"zvf_nodes\": {\"nodes\":{\"0\":[0]}},\n"),
            "{lines}"
        );
        assert!(lines.contains("      1,\n"), "{lines}");
    }

    #[test]
    fn a_root_with_two_such_members_is_the_same_document() {
        let root = json!({"attributes": {MEMBER: {"a": 1}}, "another": {MEMBER: null}});
        let mut document = root.as_object().unwrap().clone();
        let written = text(&mut document).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), root);
    }
}
