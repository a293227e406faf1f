//! Nodes and cells to write.

use serde_json::{Map, Value, json};

/// A node or a cell to write to the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The `zarr.json` of a group or an array.
    Node {
        /// Its path.
        path: String,
        /// Metadata.
        json: Value,
    },
    /// A cell of an array.
    Cell {
        /// The array's path.
        array: String,
        /// The element.
        index: Vec<u64>,
        /// Its payload.
        payload: Vec<u8>,
    },
}

/// Returns the members of a JSON object; none for any other value.
pub(crate) fn json_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Returns a node with this `zarr.json`.
pub(crate) fn node(path: impl Into<String>, json: Value) -> Output {
    Output::Node {
        path: path.into(),
        json,
    }
}

/// Returns a group with these attributes.
pub(crate) fn group(path: impl Into<String>, attributes: Value) -> Output {
    node(path, group_metadata(&json_object(attributes)))
}

/// Returns a group without attributes.
pub(crate) fn empty_group(path: impl Into<String>) -> Output {
    group(path, json!({}))
}

/// Returns the `zarr.json` of a group with these attributes.
pub fn group_metadata(attributes: &Map<String, Value>) -> Value {
    json!({"attributes": attributes, "zarr_format": 3, "node_type": "group"})
}
