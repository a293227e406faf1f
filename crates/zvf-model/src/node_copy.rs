//! A copy of the nodes below the root, in the root.
//!
//! Reading a remote store node by node takes a request for each node, and further requests to
//! discover them. The attribute `zvf_nodes` of the root contains all nodes, so the request that
//! opens the store is sufficient:
//!
//! ```json
//! {"transaction": 3,
//!  "forms": [{"zarr_format": 3, "node_type": "group"}],
//!  "nodes": {"0": [0, {"zarr_vectors_level": {}}], "0/links": [0], "0/vertices": null}}
//! ```
//!
//! A node is the number of its form, which is everything except its attributes, followed by its
//! attributes if it has any. Most arrays of a store differ only in their attributes, so a few forms
//! suffice. `null` is a node too long to be copied, which must be read separately. Nodes that are
//! not listed do not exist.
//!
//! The list of the chunks of an array, `nonempty_chunks`, is copied as the attribute
//! `zvf_chunk_runs`: the number of absent chunks before a run of chunks, in the order of the grid,
//! and the length of the run, for each run. For the chunks `0.1`, `0.2` and `1.0` of an array of
//! 2 × 3 chunks it is `[1, 3]`. A list that is not sorted as text is copied unchanged.
//!
//! `transaction` is the number of the transaction that wrote the copy. A transaction that does not
//! maintain the copy leaves another number in the root, which invalidates the copy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    array::Presence,
    key::Key,
    metadata::{Attributes, Fields, JsonField, MetadataError, MetadataFault, dialect},
    zarr::Node,
};

/// The attribute of the root.
pub const MEMBER: &str = "zvf_nodes";
/// The attribute of transactions.
pub(crate) const HEAD: &str = "zvf";
/// Maximum length of a node's attributes in bytes; longer nodes are not copied, because every reader
/// fetches the whole root, and the lists of scattered chunks grow with the store.
pub const LONGEST: usize = 16 << 10;
/// Maximum length of a copy in bytes; the longest nodes are omitted to stay below it.
pub const MAX_BYTES: usize = 256 << 10;
/// Maximum number of nodes in a copy. Larger stores have no copy.
pub const MAX_NODES: usize = 1 << 14;

/// All nodes below the root, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeCopy {
    transaction: u64,
    forms: Vec<Map<String, Value>>,
    nodes: BTreeMap<Key, Option<Short>>,
}

/// A copied node.
#[derive(Clone, Debug, PartialEq)]
struct Short {
    form: usize,
    attributes: Option<Attributes>,
}

/// State of a key in a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum CopiedNode {
    /// No node.
    Absent,
    /// A node that must be read separately.
    Separate,
    /// The node's `zarr.json`, with the list of chunks as runs.
    Node(Value),
}

/// Replaces the list of chunks in the `zarr.json` of a node by runs, as the copy does.
#[must_use]
pub fn with_chunk_runs(mut node: Value) -> Value {
    let extents = node.get("shape").and_then(Value::as_array);
    let shape: Option<Vec<u64>> =
        extents.and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let attributes = node.get_mut("attributes").and_then(Value::as_object_mut);
    if let (Some(shape), Some(attributes)) = (shape, attributes) {
        dialect::change_members(attributes, |members| {
            Presence::shorten_list(members, &shape);
        });
    }
    node
}

/// Returns whether `copied`, the `zarr.json` in a copy, has the contents of a node.
pub fn is_copy_of(key: &Key, copied: Value, node: &Node) -> bool {
    let shortened = |mut node: Node| {
        if let Node::Array(array) = &mut node {
            Presence::shorten_list(&mut array.attributes, &array.shape);
        }
        node
    };
    let copied = Node::from_json(key, copied);
    copied.is_ok_and(|copied| shortened(copied) == shortened(node.clone()))
}

impl NodeCopy {
    /// Creates a copy without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the copy in the attributes of the root, whose `zarr.json` is `key`; `None` if there is
    /// none, or it does not belong to the last transaction.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the copy is malformed.
    pub fn current(key: &Key, root: &Attributes) -> Result<Option<Self>, MetadataError> {
        let copy = Self::parse(key, root)?;
        Ok(copy.filter(|copy| copy.is_of(root)))
    }

    /// Returns whether it belongs to the last transaction of the root.
    pub fn is_of(&self, root: &Attributes) -> bool {
        self.transaction == last(root)
    }

    /// Reads the copy in the attributes of the root, of any transaction.
    ///
    /// # Errors
    ///
    /// Errors of [`current`](Self::current).
    pub fn parse(key: &Key, root: &Attributes) -> Result<Option<Self>, MetadataError> {
        let Some(place) = Fields::attributes(key, root).get(MEMBER) else {
            return Ok(None);
        };
        let fields = place.fields()?;
        let transaction = fields.require("transaction")?.u64()?;
        let forms = fields
            .require("forms")?
            .each(|form| Ok(form.fields()?.map().clone()))?;
        let mut nodes = BTreeMap::new();
        let named = fields.require("nodes")?.fields()?;
        if named.map().len() > MAX_NODES {
            let (expected, found) = (MAX_NODES, named.map().len());
            return Err(fields.fault("nodes", MetadataFault::Length { expected, found }));
        }
        for (path, node) in named.iter() {
            let key = Key::parse(path).map_err(|fault| node.error(fault.into()))?;
            nodes.insert(key, Short::parse(&node, forms.len())?);
        }
        Ok(Some(Self {
            transaction,
            forms,
            nodes,
        }))
    }

    /// Returns the transaction that wrote it; 0 without transactions.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// Returns the state of a node other than the root.
    pub fn get(&self, key: &Key) -> CopiedNode {
        match self.nodes.get(key) {
            None => CopiedNode::Absent,
            Some(None) => CopiedNode::Separate,
            Some(Some(node)) => {
                let mut whole = self.forms.get(node.form).cloned().unwrap_or_default();
                if let Some(attributes) = &node.attributes {
                    let attributes = Value::Object(attributes.clone());
                    whole.insert("attributes".to_owned(), attributes);
                }
                CopiedNode::Node(Value::Object(whole))
            }
        }
    }

    /// Returns the keys of all nodes, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.nodes.keys()
    }

    /// Returns the names of the nodes and folders directly below a key, in ascending order.
    pub fn children(&self, key: &Key) -> Vec<String> {
        let below = |other: &'_ Key| -> Option<String> {
            let rest = other.as_str().strip_prefix(key.as_str())?;
            let rest = if key.is_root() {
                rest
            } else {
                rest.strip_prefix('/')?
            };
            let (name, _) = rest.split_once('/').unwrap_or((rest, ""));
            Some(name.to_owned())
        };
        let from = self.nodes.range(key..).map(|(other, _)| other);
        let near = from.take_while(|other| other.as_str().starts_with(key.as_str()));
        let names: BTreeSet<String> = near.filter_map(below).collect();
        names.into_iter().collect()
    }

    /// Returns whether a node is an array or too long to be copied, so that the objects below it
    /// are unknown.
    pub fn may_be_array(&self, key: &Key) -> bool {
        match self.nodes.get(key) {
            None => false,
            Some(None) => true,
            Some(Some(node)) => self
                .forms
                .get(node.form)
                .is_some_and(|form| form.get("node_type").and_then(Value::as_str) != Some("group")),
        }
    }

    /// Inserts a node. A node that is not an object or is too long is marked to be read separately.
    pub fn put(&mut self, key: Key, node: Value) {
        let short = self.shortened(node);
        self.nodes.insert(key, short);
    }

    /// Removes a node.
    pub fn remove(&mut self, key: &Key) {
        self.nodes.remove(key);
    }

    fn shortened(&mut self, node: Value) -> Option<Short> {
        let Value::Object(mut form) = with_chunk_runs(node) else {
            return None;
        };
        let attributes = match form.remove("attributes") {
            None => None,
            Some(Value::Object(attributes)) => Some(attributes),
            Some(_) => return None,
        };
        let own = attributes.as_ref().map_or(0, length);
        if own > LONGEST || length(&form) > LONGEST {
            return None;
        }
        let known = self.forms.iter().position(|other| *other == form);
        let form = known.unwrap_or_else(|| {
            self.forms.push(form);
            self.forms.len().saturating_sub(1)
        });
        Some(Short { form, attributes })
    }

    /// Returns the value of the attribute for a transaction; `None` if there are too many nodes.
    pub fn to_json(&self, transaction: u64) -> Option<Value> {
        if self.nodes.len() > MAX_NODES {
            return None;
        }
        let mut used: BTreeMap<usize, usize> = BTreeMap::new();
        let mut forms = Vec::new();
        let mut nodes = Map::new();
        for (key, short) in &self.nodes {
            let value = short.as_ref().map(|short| {
                let form = *used.entry(short.form).or_insert_with(|| {
                    forms.push(self.forms.get(short.form).cloned().unwrap_or_default());
                    forms.len().saturating_sub(1)
                });
                match &short.attributes {
                    Some(attributes) => json!([form, attributes]),
                    None => json!([form]),
                }
            });
            nodes.insert(key.as_str().to_owned(), value.unwrap_or_default());
        }
        let of_forms = forms.iter().map(length).fold(0, usize::saturating_add);
        fit(&mut nodes, MAX_BYTES.saturating_sub(of_forms));
        Some(json!({"transaction": transaction, "forms": forms, "nodes": nodes}))
    }
}

impl Short {
    fn parse(place: &JsonField<'_>, forms: usize) -> Result<Option<Self>, MetadataError> {
        if place.value().is_null() {
            return Ok(None);
        }
        let parts: Vec<JsonField<'_>> = place.items()?.collect();
        let (form, attributes) = match parts.as_slice() {
            [form] => (form, None),
            [form, attributes] => (form, Some(attributes.fields()?.map().clone())),
            _ => {
                let (expected, found) = (2, parts.len());
                return Err(place.error(MetadataFault::Length { expected, found }));
            }
        };
        let last = u64::try_from(forms).unwrap_or(u64::MAX).saturating_sub(1);
        let number = form.unsigned(0, last)?;
        let number = usize::try_from(number)
            .ok()
            .filter(|number| *number < forms);
        Ok(Some(Self {
            form: number.ok_or_else(|| form.no_integer(0, last))?,
            attributes,
        }))
    }
}

/// Returns the number of the last transaction of the root.
fn last(root: &Attributes) -> u64 {
    let head = root.get(HEAD).and_then(|head| head.get("transaction"));
    head.and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the number of bytes of an object as text.
fn length(object: &Map<String, Value>) -> usize {
    serde_json::to_vec(object).map_or(usize::MAX, |text| text.len())
}

/// Replaces the longest nodes by `null` until the others fit.
fn fit(nodes: &mut Map<String, Value>, max: usize) {
    let mut sizes: Vec<(usize, String)> = nodes
        .iter()
        .map(|(path, node)| (node.to_string().len(), path.clone()))
        .collect();
    let mut total: usize = sizes
        .iter()
        .map(|(size, path)| size.saturating_add(path.len()).saturating_add(4))
        .fold(0, usize::saturating_add);
    sizes.sort_unstable();
    while total > max {
        let Some((size, path)) = sizes.pop() else {
            break;
        };
        nodes.insert(path, Value::Null);
        total = total.saturating_sub(size);
    }
}
