//! Detects the generation of a store with the fewest requests.
//!
//! The version in the root proposes a generation. To confirm 0.9, one array suffices, which queries
//! need anyway. Any other store is surveyed, which takes listings. On a backend that
//! cannot list, the nodes that can be found without a listing decide.

use bytes::Bytes;
use futures_util::future::{try_join, try_join3};
use zvf_catalog::LevelCache;
use zvf_model::{
    detection::{Detection, Evidence, GenerationError, NodeForm},
    error_kind::ErrorKind,
    generation::Generation,
    key::Key,
    level::{LevelId, LevelMetadata},
    node_copy::NodeCopy,
    root::RootMetadata,
    zarr::{DataType, Node},
};
use zvf_store::{ListError, Read, Store, TransactionError};

use super::evidence;
use crate::{
    failure::Failure,
    nodes::{self, NodeSource},
    state_error::StateError,
};

/// The result of opening a store.
#[derive(Debug)]
pub struct Opened {
    /// Evidence of the generation in the root.
    pub claim: Evidence,
    /// The metadata of the root.
    pub root: RootMetadata,
    /// Number of the last transaction; 0 if there was none.
    pub transaction: u64,
    /// The generation, and how it was found.
    pub detection: Detection,
    /// The existing levels, ascending.
    pub ids: Vec<LevelId>,
    /// True if the levels were listed and every distinguishing node was read; see `survey`.
    pub is_surveyed: bool,
    /// The metadata of the first level, and the node of its vertices if it was read.
    pub levels: LevelCache,
}

/// The root of a store and the view to read it through.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) store: Store,
    bytes: Bytes,
}

impl Root {
    /// Returns whether two roots have the same contents.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// Reads the root of a store for a writer, in its committed state.
pub(crate) async fn committed(store: &Store, address: &str) -> Result<Root, Failure> {
    let metadata = nodes::metadata(&Key::root())?;
    let Some(bytes) = store.read_one(Read::full(metadata)).await? else {
        return Err(absent(store, address).await);
    };
    let store = store.committed_view(&bytes).await?;
    Ok(Root { store, bytes })
}

/// Reads the root of a store and remembers its transaction.
pub(crate) async fn snapshot(store: &Store, address: &str) -> Result<Root, Failure> {
    let found = store.snapshot().await.map_err(|error| match error {
        TransactionError::Read(error) => Failure::Read(error),
        error => error.into(),
    });
    let Some((view, bytes)) = found? else {
        return Err(absent(store, address).await);
    };
    let store = view;
    Ok(Root { store, bytes })
}

async fn absent(store: &Store, address: &str) -> Failure {
    let address = address.to_owned();
    // If a check itself fails, report the missing root.
    if let Ok(true) = store.is_unfinished().await {
        return Failure::State(StateError::Unfinished { address });
    }
    match store.list(&Key::root(), 1).await {
        Err(missing @ ListError::NoBucket { .. }) => Failure::List(missing),
        _ => Failure::State(StateError::NoStore {
            address,
            exists: true,
        }),
    }
}

/// Opens a store. For 0.9 this takes two requests in one round trip after the root, or none if the
/// root has a copy of the nodes.
///
/// Also returns the store to read from: it shows the state after the transaction that is being
/// applied, if any, and uses the node copy.
pub(crate) async fn open(found: Root, address: &str) -> Result<(Store, Opened), Failure> {
    let Root { mut store, bytes } = found;
    let metadata = nodes::metadata(&Key::root())?;
    let node = Node::parse(&metadata, &bytes)?;
    if Store::may_be_sealed(node.attributes()) {
        store = store.with_seal(&bytes)?;
    } else if store.is_sealed() {
        store = store.without_seal();
    }
    if store.uses_node_copy()
        && let Some(copy) = NodeCopy::current(&metadata, node.attributes())?
    {
        store = store.with_node_copy(copy);
    }
    let mut opened = below(&store, address, &node).await?;
    let state = node.attributes().get("zvf");
    let transaction = state.and_then(|state| state.get("transaction")?.as_u64());
    opened.transaction = transaction.unwrap_or_default();
    Ok((store, opened))
}

/// Detects the generation of the store whose root is `node`, and reads its first level.
pub async fn below(source: impl NodeSource, address: &str, node: &Node) -> Result<Opened, Failure> {
    let key = Key::root();
    let claim = Evidence::of_root(node.attributes());
    let proposed = match claim.detect() {
        Ok(detection) => Some(detection.generation),
        Err(GenerationError::Undetermined) => None,
        Err(refused) => return Err(refused.into()),
    };
    // A rejected generation is reported before faults in the metadata of the root.
    let root = RootMetadata::parse(&key, node.attributes()).map(|mut root| {
        root.notes.extend(node.repeated());
        root
    });
    let root = match root {
        // The rest of such a store may be laid out in another way.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error.into()),
        root => root,
    };
    let mut ids = root.as_ref().map_or_else(|_| Vec::new(), named);
    ids.sort_unstable();
    let first = ids.first().copied();
    let mut nodes_of_level = None;
    if proposed.is_some_and(Generation::is_current)
        && let Some(first) = first
    {
        let found = LevelNodes::at(source, first).await?;
        if found.is_current() {
            let evidence = Evidence {
                vertices: found.vertices.as_ref().map(NodeForm::of),
                ..claim.clone()
            };
            let (detection, root) = (evidence.detect()?, root?);
            return found.opened(claim, root, detection, ids);
        }
        nodes_of_level = Some(found);
    }
    let first = first.unwrap_or(LevelId::FULL);
    let unlistable = match survey(source, address, &claim, first).await {
        Err(failure) if failure.is_unlistable() => failure,
        survey => return survey?.opened(claim, root?),
    };
    let root = root?;
    let nodes_of_level = match nodes_of_level {
        Some(nodes_of_level) => nodes_of_level,
        None => LevelNodes::at(source, first).await?,
    };
    let address = address.to_owned();
    let is_current = proposed.is_some_and(Generation::is_current);
    match (&nodes_of_level.node, &nodes_of_level.vertices) {
        // All chunks are in one array, so that no child has to be found by listing.
        (_, Some(Node::Array(_))) => {}
        // Writers before 0.9 never leave out the group.
        (Some(_), None) if is_current => {}
        (None, None) if is_current => {
            let level = nodes_of_level.level;
            return Err(Failure::State(StateError::AbsentLevel { address, level }));
        }
        _ => return Err(unlistable.while_opening(address)),
    }
    let vertices = nodes_of_level.vertices.as_ref().map(NodeForm::of);
    let evidence = evidence::probe(source, &claim, &nodes_of_level.key, vertices).await?;
    if ids.is_empty() {
        ids.push(first);
    }
    nodes_of_level.opened(claim, root, evidence.detect()?, ids)
}

/// Returns the levels that the root names.
fn named(root: &RootMetadata) -> Vec<LevelId> {
    let datasets = root.datasets.iter();
    datasets.map(|dataset| dataset.level).collect()
}

/// The nodes of a level and of its vertices, from one round trip.
struct LevelNodes {
    level: LevelId,
    key: Key,
    node: Option<Node>,
    vertices: Option<Node>,
}

impl LevelNodes {
    async fn at(source: impl NodeSource, level: LevelId) -> Result<Self, Failure> {
        let key = nodes::child(&Key::root(), &level.to_string())?;
        let keys = [key, vertices_of(level)?];
        let mut found = source.nodes(&keys).await?.into_iter();
        let (node, vertices) = (found.next().flatten(), found.next().flatten());
        let [key, _] = keys;
        Ok(Self {
            level,
            key,
            node,
            vertices,
        })
    }

    /// Returns whether the nodes confirm a declared version of 0.9 or later. Native shards of 0.8.1 look
    /// alike; where they differ, reading fails later with an error.
    fn is_current(&self) -> bool {
        let vertices = self.vertices.as_ref().and_then(Node::as_array);
        let strings =
            vertices.is_some_and(|array| matches!(array.data_type, DataType::VariableBytes));
        self.node.is_some() && strings
    }

    fn opened(
        self,
        claim: Evidence,
        root: RootMetadata,
        detection: Detection,
        ids: Vec<LevelId>,
    ) -> Result<Opened, Failure> {
        let Some(node) = &self.node else {
            return Err(Failure::MissingNode { node: self.key });
        };
        let mut metadata = LevelMetadata::parse(&self.key, self.level, node.attributes(), &root)?;
        metadata.notes.extend(node.repeated());
        let vertices = self.vertices.iter().flat_map(Node::repeated);
        metadata.notes.extend(vertices);
        let levels = LevelCache::default();
        levels.insert(metadata);
        if let Some(vertices) = self.vertices {
            levels.insert_node(self.level, vertices_of(self.level)?, vertices);
        }
        Ok(Opened {
            claim,
            root,
            transaction: 0,
            detection,
            ids,
            is_surveyed: false,
            levels,
        })
    }
}

pub(crate) fn vertices_of(level: LevelId) -> Result<Key, Failure> {
    let level = nodes::child(&Key::root(), &level.to_string())?;
    nodes::child(&level, "vertices")
}

/// The result of listing the levels and reading the nodes that distinguish generations.
pub(crate) struct Survey {
    /// The generation, and how it was found.
    pub(crate) detection: Detection,
    /// The existing levels, ascending.
    pub(crate) ids: Vec<LevelId>,
    first: FirstLevel,
}

/// The finest level of a store.
struct FirstLevel {
    id: LevelId,
    key: Key,
    /// The group; `None` if it has no `zarr.json`.
    node: Option<Node>,
}

/// Lists the levels and reads every node that distinguishes generations. Takes four round trips if
/// `guess` is the first level.
pub(crate) async fn survey(
    source: impl NodeSource,
    address: &str,
    claim: &Evidence,
    guess: LevelId,
) -> Result<Survey, Failure> {
    let root = Key::root();
    let key = nodes::child(&root, &guess.to_string())?;
    let names = source.children(&root);
    let evidence = evidence::gather(source, claim, &key);
    let (names, evidence, node) = try_join3(names, evidence, source.node(&key)).await?;
    let mut ids: Vec<LevelId> = names
        .iter()
        .filter_map(|name| LevelId::parse(name))
        .collect();
    ids.sort_unstable();
    let Some(first) = ids.first().copied() else {
        claim.detect()?;
        let address = address.to_owned();
        return Err(Failure::State(StateError::NoLevel { address }));
    };
    if first == guess {
        return Ok(Survey {
            detection: evidence.detect()?,
            ids,
            first: FirstLevel {
                id: first,
                key,
                node,
            },
        });
    }
    let key = nodes::child(&root, &first.to_string())?;
    let evidence = evidence::gather(source, claim, &key);
    let (evidence, node) = try_join(evidence, source.node(&key)).await?;
    Ok(Survey {
        detection: evidence.detect()?,
        ids,
        first: FirstLevel {
            id: first,
            key,
            node,
        },
    })
}

impl Survey {
    fn opened(self, claim: Evidence, root: RootMetadata) -> Result<Opened, Failure> {
        let FirstLevel { id, key, node } = self.first;
        // A level without a `zarr.json` is a group without attributes.
        let attributes = node
            .map(|node| node.attributes().clone())
            .unwrap_or_default();
        let levels = LevelCache::default();
        levels.insert(LevelMetadata::parse(&key, id, &attributes, &root)?);
        Ok(Opened {
            claim,
            root,
            transaction: 0,
            detection: self.detection,
            ids: self.ids,
            is_surveyed: true,
            levels,
        })
    }
}
