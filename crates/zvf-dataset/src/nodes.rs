//! Nodes of a store: `zarr.json` and children.

use std::sync::Arc;

use zvf_catalog::CatalogError;
use zvf_model::array::Presence;
use zvf_model::{
    fetch::{MaybeSend, MaybeSync, Port},
    key::Key,
    node_copy::CopiedNode,
    zarr::{Array, Node},
};
use zvf_store::{CellArray, Listing, Read, Store};

use crate::failure::Failure;

/// Maximum number of children of a node.
const MAX_CHILDREN: usize = 1 << 24;

/// The source from which opening a store reads nodes and the names of their children.
pub trait NodeSource: Copy + MaybeSend + MaybeSync {
    /// Reads the nodes at `keys` in one round trip; `None` where there is no `zarr.json`.
    fn nodes(
        self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, Failure>> + MaybeSend;

    /// Lists the names of the children of a node, in ascending order.
    fn children(self, key: &Key) -> impl Future<Output = Result<Vec<String>, Failure>> + MaybeSend;

    /// Reads one node.
    fn node(self, key: &Key) -> impl Future<Output = Result<Option<Node>, Failure>> + MaybeSend {
        async move {
            let nodes = self.nodes(core::slice::from_ref(key)).await?;
            Ok(nodes.into_iter().next().flatten())
        }
    }
}

impl NodeSource for &Store {
    async fn nodes(self, keys: &[Key]) -> Result<Vec<Option<Node>>, Failure> {
        read(self, keys).await
    }

    async fn children(self, key: &Key) -> Result<Vec<String>, Failure> {
        Ok(children(self, key).await?.folders)
    }
}

impl NodeSource for Port<'_> {
    async fn nodes(self, keys: &[Key]) -> Result<Vec<Option<Node>>, Failure> {
        Ok(Self::nodes(self, keys).await.map_err(CatalogError::from)?)
    }

    async fn children(self, key: &Key) -> Result<Vec<String>, Failure> {
        Ok(Self::children(self, key)
            .await
            .map_err(CatalogError::from)?)
    }
}

/// Reads the nodes at `keys` in one round trip; `None` where there is no `zarr.json`.
pub async fn read(store: &Store, keys: &[Key]) -> Result<Vec<Option<Node>>, Failure> {
    let mut known = Vec::with_capacity(keys.len());
    let mut reads = Vec::new();
    for key in keys {
        let file = metadata(key)?;
        known.push(match store.copied_node(key) {
            Some(CopiedNode::Node(json)) => Some(Some(Node::from_json(&file, json)?)),
            Some(_) => Some(None),
            None => {
                reads.push(Read::full(file));
                None
            }
        });
    }
    let results = if reads.is_empty() {
        Vec::new()
    } else {
        store.read(&reads).await?
    };
    let mut read = reads.iter().zip(results);
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

/// Returns the key of the `zarr.json` of a node.
pub fn metadata(key: &Key) -> Result<Key, Failure> {
    named(key.metadata(), "zarr.json")
}

/// Reads one node.
pub async fn read_one(store: &Store, key: &Key) -> Result<Option<Node>, Failure> {
    let nodes = read(store, core::slice::from_ref(key)).await?;
    Ok(nodes.into_iter().next().flatten())
}

/// Lists the children of a node.
pub async fn children(store: &Store, key: &Key) -> Result<Listing, Failure> {
    Ok(store.list(key, MAX_CHILDREN).await?)
}

/// Returns the key of a child, whose name comes from the store.
pub fn child(key: &Key, name: &str) -> Result<Key, Failure> {
    named(key.join(name), name)
}

/// Returns the key of a file that a listing of a folder names.
pub fn below(folder: &Key, file: &str) -> Result<Key, Failure> {
    named(folder.join_path(file), file)
}

/// Returns a key that contains `name`, which comes from the store.
pub fn named<T>(key: Result<T, zvf_model::key::KeyError>, name: &str) -> Result<T, Failure> {
    key.map_err(|source| Failure::Name {
        name: name.to_owned(),
        source,
    })
}

/// Returns the reader of the cells of an array.
pub fn cell_array(key: &Key, array: impl Into<Arc<Array>>) -> Result<CellArray, Failure> {
    CellArray::new(key.clone(), array).map_err(|source| Failure::Array {
        node: key.clone(),
        source,
    })
}

/// Returns the key of a part of a level, which a writer puts there.
#[cfg(feature = "write")]
pub fn place<E: Into<zvf_build::BuildError>>(key: Result<Key, E>) -> Result<Key, Failure> {
    key.map_err(|error| Failure::Build(error.into()))
}

/// Returns the index of a chunk's cell in an array, counted from the array's origin.
pub fn element(array: &CellArray, chunk: &[i64]) -> Result<Vec<u64>, Failure> {
    let origin = Presence::origin_of(&array.metadata().attributes);
    let steps = chunk.iter().zip(origin).map(|(at, origin)| {
        let step = at
            .checked_sub(origin)
            .and_then(|step| u64::try_from(step).ok());
        step.ok_or_else(|| Failure::NoCells {
            node: array.node().clone(),
        })
    });
    steps.collect()
}
