//! Nodes and cells to write.

use zvf_model::{key::Key, metadata::Attributes, zarr::Node};

/// A node or a cell to write to the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A group or an array.
    Node {
        /// Its key.
        key: Key,
        /// Metadata.
        node: Node,
    },
    /// A cell of an array.
    Cell {
        /// The array.
        array: Key,
        /// The element.
        index: Vec<u64>,
        /// Its payload.
        payload: Vec<u8>,
    },
}

impl Output {
    /// Returns a group or an array.
    pub fn node(key: Key, node: impl Into<Node>) -> Self {
        let node = node.into();
        Self::Node { key, node }
    }

    /// Returns a group with these attributes.
    pub fn group(key: Key, attributes: Attributes) -> Self {
        Self::node(key, Node::group(attributes))
    }

    /// Returns a group without attributes.
    pub fn empty_group(key: Key) -> Self {
        Self::group(key, Attributes::new())
    }
}
