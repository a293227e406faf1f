//! Detects the generation of a store with the fewest requests.
//!
//! The version in the root proposes a generation. To confirm 0.9, one array suffices, which queries
//! need anyway. Any other store is [surveyed](survey), which takes listings. On a backend that
//! cannot list, the nodes that can be found without a listing decide.

use futures_util::future::{try_join, try_join3};
use zvf_model::{
    detection::{Detection, Evidence, GenerationError, NodeForm},
    generation::Generation,
    key::Key,
    level::{LevelId, LevelMetadata},
    node_copy::NodeCopy,
    root::RootMetadata,
    zarr::{DataType, Node},
};
use zvf_query::LevelCache;
use zvf_store::{ListError, Read, Store};

use super::evidence;
use crate::{failure::Failure, nodes};

/// The result of opening a store.
pub(crate) struct Opened {
    pub(crate) claim: Evidence,
    pub(crate) root: RootMetadata,
    pub(crate) detection: Detection,
    /// The existing levels, ascending.
    pub(crate) ids: Vec<LevelId>,
    /// True if the levels were listed and every distinguishing node was read; see [`survey`].
    pub(crate) is_surveyed: bool,
    /// The metadata of the first level, and the node of its vertices if it was read.
    pub(crate) levels: LevelCache,
}

/// Opens a store. For 0.9 this takes three requests in two round trips, or one request if the root
/// has a copy of the nodes.
///
/// Also returns the store to read from: it shows the state after the transaction that is being
/// applied, if any, and uses the node copy.
pub(crate) async fn open(store: &Store, address: &str) -> Result<(Store, Opened), Failure> {
    let key = Key::root();
    let metadata = nodes::metadata(&key)?;
    let Some(bytes) = store.read_one(Read::full(metadata.clone())).await? else {
        let address = address.to_owned();
        // If the check itself fails, report the missing root.
        return Err(match store.is_unfinished().await {
            Ok(true) => Failure::Unfinished { address },
            _ => Failure::NoStore { address },
        });
    };
    let node = Node::parse(&metadata, &bytes)?;
    let mut store = store.committed_view(&bytes).await?;
    if store.uses_node_copy()
        && let Some(copy) = NodeCopy::current(&metadata, node.attributes())?
    {
        store = store.with_node_copy(copy);
    }
    let opened = below(&store, address, &node).await?;
    Ok((store, opened))
}

/// Detects the generation of the store whose root is `node`, and reads its first level.
async fn below(store: &Store, address: &str, node: &Node) -> Result<Opened, Failure> {
    let key = Key::root();
    let claim = Evidence::of_root(node.attributes());
    let proposed = match claim.detect() {
        Ok(detection) => Some(detection.generation),
        Err(GenerationError::Undetermined) => None,
        Err(refused) => return Err(refused.into()),
    };
    // A rejected generation is reported before faults in the metadata of the root.
    let root = RootMetadata::parse(&key, node.attributes());
    let mut ids = root.as_ref().map_or_else(|_| Vec::new(), named);
    ids.sort_unstable();
    let first = ids.first().copied();
    let mut look = None;
    if proposed == Some(Generation::V0_9)
        && let Some(first) = first
    {
        let found = Look::at(store, first).await?;
        if found.is_of_0_9() {
            let evidence = Evidence {
                vertices: found.vertices.as_ref().map(NodeForm::of),
                ..claim.clone()
            };
            let (detection, root) = (evidence.detect()?, root?);
            return found.opened(claim, root, detection, ids);
        }
        look = Some(found);
    }
    let first = first.unwrap_or(LevelId::FULL);
    let source = match survey(store, address, &claim, first).await {
        Err(Failure::List(source @ ListError::Unlistable { .. })) => source,
        survey => return survey?.opened(claim, root?),
    };
    let root = root?;
    let look = match look {
        Some(look) => look,
        None => Look::at(store, first).await?,
    };
    let address = address.to_owned();
    let is_0_9 = proposed == Some(Generation::V0_9);
    match (&look.node, &look.vertices) {
        // All chunks are in one array, so that no child has to be found by listing.
        (_, Some(Node::Array(_))) => {}
        // Writers before 0.9 never leave out the group.
        (Some(_), None) if is_0_9 => {}
        (None, None) if is_0_9 => {
            let level = look.level;
            return Err(Failure::AbsentLevel { address, level });
        }
        _ => return Err(Failure::Unlistable { address, source }),
    }
    let vertices = look.vertices.as_ref().map(NodeForm::of);
    let evidence = evidence::probe(store, &claim, &look.key, vertices).await?;
    if ids.is_empty() {
        ids.push(first);
    }
    look.opened(claim, root, evidence.detect()?, ids)
}

/// Returns the levels that the root names.
fn named(root: &RootMetadata) -> Vec<LevelId> {
    let datasets = root.datasets.iter();
    datasets.map(|dataset| dataset.level).collect()
}

/// The nodes of a level and of its vertices, from one round trip.
struct Look {
    level: LevelId,
    key: Key,
    node: Option<Node>,
    vertices: Option<Node>,
}

impl Look {
    async fn at(store: &Store, level: LevelId) -> Result<Self, Failure> {
        let key = nodes::child(&Key::root(), &level.to_string())?;
        let keys = [key, vertices_of(level)?];
        let mut found = nodes::read(store, &keys).await?.into_iter();
        let (node, vertices) = (found.next().flatten(), found.next().flatten());
        let [key, _] = keys;
        Ok(Self {
            level,
            key,
            node,
            vertices,
        })
    }

    /// Returns whether the nodes confirm a declared version of 0.9. Native shards of 0.8.1 look
    /// alike; where they differ, reading fails later with an error.
    fn is_of_0_9(&self) -> bool {
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
        let metadata = LevelMetadata::parse(&self.key, self.level, node.attributes(), &root)?;
        let levels = LevelCache::default();
        levels.insert(metadata);
        if let Some(vertices) = self.vertices {
            levels.insert_node(self.level, vertices_of(self.level)?, vertices);
        }
        Ok(Opened {
            claim,
            root,
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
    pub(crate) detection: Detection,
    /// The existing levels, ascending.
    pub(crate) ids: Vec<LevelId>,
    first: (LevelId, Key, Option<Node>),
}

/// Lists the levels and reads every node that distinguishes generations. Takes four round trips if
/// `guess` is the first level.
pub(crate) async fn survey(
    store: &Store,
    address: &str,
    claim: &Evidence,
    guess: LevelId,
) -> Result<Survey, Failure> {
    let root = Key::root();
    let key = nodes::child(&root, &guess.to_string())?;
    let listing = nodes::children(store, &root);
    let evidence = evidence::gather(store, claim, &key);
    let (listing, evidence, node) =
        try_join3(listing, evidence, nodes::read_one(store, &key)).await?;
    let names = listing.folders.iter();
    let mut ids: Vec<LevelId> = names.filter_map(|name| LevelId::parse(name)).collect();
    ids.sort_unstable();
    let Some(first) = ids.first().copied() else {
        claim.detect()?;
        let address = address.to_owned();
        return Err(Failure::NoLevel { address });
    };
    if first == guess {
        return Ok(Survey {
            detection: evidence.detect()?,
            ids,
            first: (first, key, node),
        });
    }
    let key = nodes::child(&root, &first.to_string())?;
    let evidence = evidence::gather(store, claim, &key);
    let (evidence, node) = try_join(evidence, nodes::read_one(store, &key)).await?;
    Ok(Survey {
        detection: evidence.detect()?,
        ids,
        first: (first, key, node),
    })
}

impl Survey {
    fn opened(self, claim: Evidence, root: RootMetadata) -> Result<Opened, Failure> {
        let (level, key, node) = self.first;
        // A level without a `zarr.json` is a group without attributes.
        let attributes = node.map(|node| node.attributes().clone());
        let attributes = attributes.unwrap_or_default();
        let levels = LevelCache::default();
        levels.insert(LevelMetadata::parse(&key, level, &attributes, &root)?);
        Ok(Opened {
            claim,
            root,
            detection: self.detection,
            ids: self.ids,
            is_surveyed: true,
            levels,
        })
    }
}
