//! A cache and the node copy in front of any [`Fetch`].

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{
    AnyArray, CellOptions, CellRef, CellRequest, Fetch, FetchError, FetchProblem, Fetched,
    MaybeSend,
};
use crate::{
    key::Key,
    node_copy::{CopiedNode, NodeCopy},
    payload_cache::{PayloadCache, PayloadKey},
    zarr::{Array, Node},
};

/// An implementation of [`Fetch`] in front of another one: it caches decoded cells, and takes nodes
/// from the [copy](crate::node_copy) in the root.
///
/// ```
/// # async fn doc<F: zvf_model::fetch::Fetch>(inner: F) -> Result<(), Box<dyn std::error::Error>> {
/// use zvf_model::fetch::CachedFetch;
///
/// let mut cached = CachedFetch::new(inner).with_cache(64 << 20);
/// cached.read_node_copy().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct CachedFetch<F> {
    inner: F,
    nodes: Option<NodeCopy>,
    cells: Option<PayloadCache<CellKey>>,
}

/// An element of an array, or a child, which has no index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CellKey {
    node: Key,
    index: Vec<u64>,
}

impl PayloadKey for CellKey {
    fn heap_bytes(&self) -> usize {
        let index = self.index.len().saturating_mul(size_of::<u64>());
        self.node.as_str().len().saturating_add(index)
    }
}

impl<F: Fetch> CachedFetch<F> {
    /// Creates a port that passes everything on.
    pub fn new(inner: F) -> Self {
        Self {
            inner,
            nodes: None,
            cells: None,
        }
    }

    /// Caches decoded cells of up to `bytes` bytes, together with their keys; 0 caches none. The
    /// least recently used cells are evicted.
    #[must_use]
    pub fn with_cache(self, bytes: u64) -> Self {
        Self {
            cells: (bytes > 0).then(|| PayloadCache::new(bytes)),
            ..self
        }
    }

    /// Reads the root and takes other nodes from the copy in it from now on, if there is one of the
    /// last transaction. Returns the root, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the root cannot be read or its copy is malformed.
    pub async fn read_node_copy(&mut self) -> Result<Option<Node>, FetchError> {
        let key = Key::root();
        let mut nodes = self.inner.nodes(core::slice::from_ref(&key)).await?;
        let root = nodes.pop().flatten();
        if let Some(root) = &root {
            let metadata = metadata(&key)?;
            let copy = NodeCopy::current(&metadata, root.attributes());
            self.nodes = copy.map_err(|source| damaged(&metadata, source))?;
        }
        Ok(root)
    }

    /// Returns the port behind the cache.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Returns what the copy knows of a node; `None` if it has to be read.
    fn copied(&self, key: &Key) -> Option<CopiedNode> {
        let copy = self.nodes.as_ref().filter(|_| !key.is_root())?;
        match copy.get(key) {
            CopiedNode::Separate => None,
            known => Some(known),
        }
    }

    async fn read(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let Some(cache) = &self.cells else {
            return self.inner.cells(wanted, options).await;
        };
        let keys: Vec<CellKey> = wanted.iter().map(|wanted| wanted.cell.key()).collect();
        let cached = cache
            .get(keys.iter().map(Some))
            .into_iter()
            .zip(wanted)
            .map(|(payload, wanted)| payload?.part(wanted.part.as_ref()));
        let mut results: Vec<_> = cached.collect();
        let missing = results
            .iter()
            .zip(wanted)
            .zip(&keys)
            .filter(|((result, _), _)| result.is_none());
        let (requests, keys): (Vec<_>, Vec<_>) = missing
            .map(|((_, wanted), key)| (wanted.request(options), key))
            .unzip();
        if requests.is_empty() {
            return results.into_iter().map(Ok).collect();
        }
        let fetched = self.inner.cells(&requests, options).await;
        if !options.bypasses_cache {
            let whole = keys.into_iter().zip(&requests).zip(&fetched).filter_map(
                |((key, request), fetched)| match fetched {
                    // A copy, because the bytes may be a small part of a large buffer.
                    Ok(Some(fetched)) if request.part.is_none() => {
                        Some((key.clone(), Bytes::copy_from_slice(&fetched.bytes)))
                    }
                    _ => None,
                },
            );
            cache.insert(whole);
        }
        let mut fetched = fetched.into_iter();
        let results = results.iter_mut().zip(wanted).map(|(result, wanted)| {
            if let Some(cached) = result.take() {
                return Ok(Some(cached));
            }
            let Some(fetched) = fetched.next() else {
                let key = wanted.cell.node().clone();
                let (problem, source) = (
                    FetchProblem::Unavailable,
                    "the port returned no response".into(),
                );
                return Err(FetchError {
                    key,
                    problem,
                    source,
                });
            };
            // Only requests without a part stand for those with one.
            match (fetched?, wanted.request(options).part) {
                (Some(whole), None) => match whole.bytes.part(wanted.part.as_ref()) {
                    Some(part) => Ok(Some(part)),
                    None => Err(beyond(wanted)),
                },
                (fetched, _) => Ok(fetched),
            }
        });
        results.collect()
    }
}

/// Cuts a part out of a payload.
trait Payload {
    fn part(&self, part: Option<&Range<u64>>) -> Option<Fetched>;
}

impl Payload for Bytes {
    fn part(&self, part: Option<&Range<u64>>) -> Option<Fetched> {
        let size = u64::try_from(self.len()).ok()?;
        let bytes = match part {
            None => self.clone(),
            Some(part) => {
                let (start, end) = (part.start.try_into().ok()?, part.end.try_into().ok()?);
                self.get(start..end)?;
                self.slice(start..end)
            }
        };
        Some(Fetched { bytes, size })
    }
}

impl CellRef {
    fn key(&self) -> CellKey {
        match self {
            Self::Element(array, index) => CellKey {
                node: array.node().clone(),
                index: index.clone(),
            },
            Self::Child(node) => CellKey {
                node: node.clone(),
                index: Vec::new(),
            },
        }
    }
}

impl CellRequest {
    /// Returns the request to the port behind the cache: for a part of a cell that is decoded as a
    /// whole, the whole cell, if it is going to be cached.
    fn request(&self, options: CellOptions) -> Self {
        let is_whole = match &self.cell {
            CellRef::Element(array, _) => !array.is_plain(),
            CellRef::Child(_) => false,
        };
        let part = self.part.clone();
        Self {
            cell: self.cell.clone(),
            part: part.filter(|_| !is_whole || options.bypasses_cache),
        }
    }
}

fn metadata(key: &Key) -> Result<Key, FetchError> {
    key.metadata().map_err(|source| damaged(key, source))
}

fn damaged(key: &Key, source: impl core::error::Error + Send + Sync + 'static) -> FetchError {
    FetchError {
        key: key.clone(),
        problem: FetchProblem::Damaged,
        source: Box::new(source),
    }
}

fn beyond(wanted: &CellRequest) -> FetchError {
    FetchError {
        key: wanted.cell.node().clone(),
        problem: FetchProblem::Damaged,
        source: "the requested part is beyond the end of the cell".into(),
    }
}

impl<F: Fetch + MaybeSend> Fetch for CachedFetch<F> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.inner.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let copied: Vec<_> = keys.iter().map(|key| self.copied(key)).collect();
        let missing: Vec<Key> = keys
            .iter()
            .zip(&copied)
            .filter(|(_, copied)| copied.is_none())
            .map(|(key, _)| key.clone())
            .collect();
        let read = if missing.is_empty() {
            Vec::new()
        } else {
            self.inner.nodes(&missing).await?
        };
        let mut read = read.into_iter();
        let nodes = keys.iter().zip(copied).map(|(key, copied)| match copied {
            Some(CopiedNode::Node(json)) => {
                let metadata = metadata(key)?;
                let node = Node::from_json(&metadata, json);
                node.map(Some).map_err(|source| damaged(&metadata, source))
            }
            Some(_) => Ok(None),
            // One node was read for each that the copy does not have.
            None => Ok(read.next().flatten()),
        });
        nodes.collect()
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.read(wanted, options).await
    }

    async fn prepare(&self, arrays: &[AnyArray], max_requests: usize) {
        self.inner.prepare(arrays, max_requests).await;
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        match self.nodes.as_ref().filter(|copy| !copy.may_be_array(key)) {
            Some(copy) => Ok(copy.children(key)),
            None => self.inner.children(key).await,
        }
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.inner.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        self.inner.files(prefix).await
    }

    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        self.inner.fragment_lengths_bytes(node)
    }

    async fn fragment_lengths(&self, cells: &[CellRef]) -> Result<Vec<Option<Bytes>>, FetchError> {
        self.inner.fragment_lengths(cells).await
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        self.inner.confirm_now()
    }

    async fn confirm(&self) -> Result<(), FetchError> {
        self.inner.confirm().await
    }

    fn budget(&self) -> u64 {
        self.inner.budget()
    }

    fn at_once(&self) -> u64 {
        self.inner.at_once()
    }
}
