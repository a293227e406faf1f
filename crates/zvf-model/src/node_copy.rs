//! A copy of the nodes below the root, in the root.
//!
//! A store that is far away is read node by node, each a request, and which there
//! are is found out by asking. The attribute `zvf_nodes` of the root says all of it
//! with the one request that opens the store:
//!
//! ```json
//! {"transaction": 3,
//!  "forms": [{"zarr_format": 3, "node_type": "group"}],
//!  "nodes": {"0": [0, {"zarr_vectors_level": {}}], "0/links": [0], "0/vertices": null}}
//! ```
//!
//! A node is the number of its form, which is all but its attributes, and these
//! where it has some. Arrays of a store differ in their attributes alone, so that a
//! few forms do for all. `null` is a node too long to be copied: it is there, and
//! is read by itself. What is not named is not there.
//!
//! The number is that of the transaction that wrote the copy. One that does not
//! keep it up leaves another number in the root, and the copy counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    key::Key,
    metadata::{Attributes, Fields, JsonField, MetadataError, MetadataFault},
};

/// The attribute of the root.
pub const MEMBER: &str = "zvf_nodes";
/// The attribute that transactions keep.
const HEAD: &str = "zvf";
/// A node of more bytes of attributes is not copied: lists of chunks grow with
/// the store, and the root is read whole by everybody.
pub const LONGEST: usize = 16 << 10;
/// Bytes of a copy: of one that is longer, the longest nodes are left out.
pub const MOST_BYTES: usize = 256 << 10;
/// Nodes of a copy. A store of more goes without.
pub const MOST_NODES: usize = 1 << 14;

/// All nodes below the root, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeCopy {
    transaction: u64,
    forms: Vec<Map<String, Value>>,
    nodes: BTreeMap<Key, Option<Short>>,
}

/// A node that is copied.
#[derive(Clone, Debug, PartialEq)]
struct Short {
    form: usize,
    attributes: Option<Attributes>,
}

/// What a copy knows of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// No node.
    Absent,
    /// A node that is to be read.
    Apart,
    /// The node's `zarr.json`.
    Node(Value),
}

impl NodeCopy {
    /// One of no nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The copy in the attributes of the root, `key` being its `zarr.json`; `None`
    /// when there is none, or one of another transaction than the last.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] when there is one and it cannot be understood.
    pub fn current(key: &Key, root: &Attributes) -> Result<Option<Self>, MetadataError> {
        let copy = Self::parse(key, root)?;
        Ok(copy.filter(|copy| copy.is_of(root)))
    }

    /// Whether it is of the last transaction that the root tells of.
    pub fn is_of(&self, root: &Attributes) -> bool {
        self.transaction == last(root)
    }

    /// The copy in the attributes of the root, whatever transaction it is of.
    ///
    /// # Errors
    ///
    /// As for [`current`](Self::current).
    pub fn parse(key: &Key, root: &Attributes) -> Result<Option<Self>, MetadataError> {
        let Some(place) = Fields::attributes(key, root).get(MEMBER) else {
            return Ok(None);
        };
        let fields = place.fields()?;
        let transaction = fields.require("transaction")?.u64()?;
        let forms = fields.require("forms")?;
        let forms = forms.each(|form| Ok(form.fields()?.map().clone()))?;
        let mut nodes = BTreeMap::new();
        let named = fields.require("nodes")?.fields()?;
        if named.map().len() > MOST_NODES {
            let (expected, found) = (MOST_NODES, named.map().len());
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

    /// The transaction that wrote it; 0 of a store that had none.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// What it knows of a node, which is not the root.
    pub fn get(&self, key: &Key) -> Known {
        match self.nodes.get(key) {
            None => Known::Absent,
            Some(None) => Known::Apart,
            Some(Some(node)) => {
                let mut whole = self.forms.get(node.form).cloned().unwrap_or_default();
                if let Some(attributes) = &node.attributes {
                    let attributes = Value::Object(attributes.clone());
                    whole.insert("attributes".to_owned(), attributes);
                }
                Known::Node(Value::Object(whole))
            }
        }
    }

    /// Keys of all nodes, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.nodes.keys()
    }

    /// Names of the nodes right below a key, and of what others are in; ascending.
    pub fn children(&self, key: &Key) -> Vec<String> {
        let below = |other: &'_ Key| -> Option<String> {
            let rest = other.as_str().strip_prefix(key.as_str())?;
            let rest = match key.is_root() {
                true => rest,
                false => rest.strip_prefix('/')?,
            };
            let (name, _) = rest.split_once('/').unwrap_or((rest, ""));
            Some(name.to_owned())
        };
        let from = self.nodes.range(key..).map(|(other, _)| other);
        let near = from.take_while(|other| other.as_str().starts_with(key.as_str()));
        let names: BTreeSet<String> = near.filter_map(below).collect();
        names.into_iter().collect()
    }

    /// Whether a node is an array, or too long to be copied: what is below such is
    /// not known.
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

    /// Puts a node in. One that is no object, or too long, is left to be read.
    pub fn put(&mut self, key: Key, node: Value) {
        let short = self.shortened(node);
        self.nodes.insert(key, short);
    }

    /// Takes a node out.
    pub fn remove(&mut self, key: &Key) {
        self.nodes.remove(key);
    }

    fn shortened(&mut self, node: Value) -> Option<Short> {
        let Value::Object(mut form) = node else {
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

    /// The attribute's value, as of a transaction; `None` of too many nodes.
    pub fn to_json(&self, transaction: u64) -> Option<Value> {
        if self.nodes.len() > MOST_NODES {
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
        fit(&mut nodes, MOST_BYTES.saturating_sub(of_forms));
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

/// The number of the last transaction, as the root has it.
fn last(root: &Attributes) -> u64 {
    let head = root.get(HEAD).and_then(|head| head.get("transaction"));
    head.and_then(Value::as_u64).unwrap_or(0)
}

/// Bytes of an object as text.
fn length(object: &Map<String, Value>) -> usize {
    serde_json::to_vec(object).map_or(usize::MAX, |text| text.len())
}

/// Leaves the longest nodes to be read until the others fit.
fn fit(nodes: &mut Map<String, Value>, most: usize) {
    let mut sizes: Vec<(usize, String)> = nodes
        .iter()
        .map(|(path, node)| (node.to_string().len(), path.clone()))
        .collect();
    let mut total: usize = sizes
        .iter()
        .map(|(size, path)| size.saturating_add(path.len()).saturating_add(4))
        .fold(0, usize::saturating_add);
    sizes.sort_unstable();
    while total > most
        && let Some((size, path)) = sizes.pop()
    {
        nodes.insert(path, Value::Null);
        total = total.saturating_sub(size);
    }
}
