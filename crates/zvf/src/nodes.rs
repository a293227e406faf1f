//! Nodes of the store: their `zarr.json`, and their children.

use std::sync::Arc;

use zvf_model::{
    key::Key,
    node_copy::Known,
    zarr::{Array, Node},
};
use zvf_store::{CellArray, Listing, Read, Store};

use crate::error::Error;

/// More children of a node than any known store has.
const MOST_CHILDREN: usize = 1 << 24;

/// The nodes at `keys`, in one round trip; `None` where there is no
/// `zarr.json`.
pub(crate) async fn read(store: &Store, keys: &[Key]) -> Result<Vec<Option<Node>>, Error> {
    let mut known = Vec::with_capacity(keys.len());
    let mut reads = Vec::new();
    for key in keys {
        let file = metadata(key)?;
        known.push(match store.copied_node(key) {
            Some(Known::Node(json)) => Some(Some(Node::from_json(&file, json)?)),
            Some(_) => Some(None),
            None => {
                reads.push(Read::full(file));
                None
            }
        });
    }
    let answers = match reads.is_empty() {
        true => Vec::new(),
        false => store.read(&reads).await?,
    };
    let mut read = reads.iter().zip(answers);
    let mut nodes = Vec::with_capacity(keys.len());
    for known in known {
        let node = match (known, &mut read) {
            (Some(node), _) => node,
            (None, read) => match read.next() {
                Some((read, Some(bytes))) => Some(Node::parse(&read.key, &bytes)?),
                _ => None,
            },
        };
        nodes.push(node);
    }
    Ok(nodes)
}

/// The key of a node's `zarr.json`.
pub(crate) fn metadata(key: &Key) -> Result<Key, Error> {
    named(key.metadata(), "zarr.json")
}

/// One node.
pub(crate) async fn read_one(store: &Store, key: &Key) -> Result<Option<Node>, Error> {
    let nodes = read(store, core::slice::from_ref(key)).await?;
    Ok(nodes.into_iter().next().flatten())
}

/// The children of a node.
pub(crate) async fn children(store: &Store, key: &Key) -> Result<Listing, Error> {
    Ok(store.list(key, MOST_CHILDREN).await?)
}

/// A child's key, from a name that the store gave.
pub(crate) fn child(key: &Key, name: &str) -> Result<Key, Error> {
    named(key.join(name), name)
}

pub(crate) fn named<T>(key: Result<T, zvf_model::key::KeyError>, name: &str) -> Result<T, Error> {
    key.map_err(|source| Error::Name {
        name: name.to_owned(),
        source,
    })
}

/// Where the cells of an array are.
pub(crate) fn cell_array(key: &Key, array: impl Into<Arc<Array>>) -> Result<CellArray, Error> {
    CellArray::new(key.clone(), array).map_err(|source| Error::Array {
        node: key.clone(),
        source,
    })
}
