//! Counts the contents of a level.

use std::collections::BTreeMap;

use futures_util::future::try_join3;
use zvf_format::{fragment::FragmentIndex, path::Delta};
use zvf_model::{
    array::{
        LegacyShardIndex, LinkFamily, ObjectIndex, Padded, Presence, SHARD_PREFIX, VertexEncoding,
        VertexPairs, Vertices,
    },
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, ChunkForm, CrossChunkForm, GroupRole, LevelKeys, LinkForm, LinkOffsets},
    level::{LevelId, LevelMetadata, Refinement},
    zarr::{Array, Node},
};
use zvf_store::{CellRead, DecodedForm, Read};

use super::{Dataset, check_finished, object_count};
use crate::{failure::Failure, nodes};

/// Upper bound on the files of a level, above that of any known store.
const MAX_FILES: usize = 1 << 26;
/// Cells read concurrently; each is dropped as soon as it is counted.
const BATCH: usize = 64;
/// Cell headers read concurrently.
const HEADERS: usize = 1024;
/// Size of the item count and the item length that precede the payload of an uncompressed cell.
const FRAME_HEADER: u64 = 8;

/// The contents of a level, counted. Further geometries of a composite store count in
/// [`bytes`](Self::bytes) only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelInfo {
    /// Number of the level.
    pub level: LevelId,
    /// Vertices in all chunks; `None` if they are encoded with Draco: counting would decode them.
    pub vertices: Option<u64>,
    /// Chunks with vertices.
    pub chunks: u64,
    /// Objects that are not empty; `None` without an object index.
    pub objects: Option<u64>,
    /// Links stored within the level, inside chunks and between them; `None` if a link family does
    /// not declare its number of links.
    pub links: Option<u64>,
    /// Size of all files of the level, in bytes.
    pub bytes: u64,
    /// True if a finer level changed after this level was built from it.
    pub is_behind: bool,
    /// True if the level holds a part of its content and coarser levels hold the rest, so that a
    /// viewer draws both together. Counts are those of the level itself.
    pub is_additive: bool,
}

/// Counts the contents of a level.
pub(crate) async fn count_level(
    dataset: &Dataset,
    level: &LevelMetadata,
) -> Result<LevelInfo, Failure> {
    Counter::new(dataset, level).await?.count().await
}

struct Counter<'a> {
    dataset: &'a Dataset,
    level: &'a LevelMetadata,
    /// Number of coordinates in a chunk key.
    arity: usize,
    /// Sizes of all files, by path relative to the level.
    files: BTreeMap<String, u64>,
    root: Key,
}

/// The bytes or rows of each chunk of an array.
enum Sizes {
    Bytes(Vec<u64>),
    Rows(Vec<u64>),
}

impl<'a> Counter<'a> {
    async fn new(dataset: &'a Dataset, level: &'a LevelMetadata) -> Result<Self, Failure> {
        check_finished(level)?;
        let root = nodes::child(&Key::root(), &level.level.to_string())?;
        let files = dataset.store().list_all(&root, MAX_FILES).await?;
        Ok(Self {
            dataset,
            level,
            arity: level.arity(dataset.root()),
            files: files
                .into_iter()
                .map(|file| (file.name, file.size))
                .collect(),
            root,
        })
    }

    async fn count(&self) -> Result<LevelInfo, Failure> {
        let counts = try_join3(self.vertices(), self.objects(), self.links());
        let ((chunks, vertices), objects, links) = counts.await?;
        Ok(LevelInfo {
            level: self.level.level,
            vertices,
            chunks,
            objects,
            links,
            // For a zip file these are the sizes that its directory declares.
            bytes: sum(self.files.values()),
            is_behind: {
                let mut stale = self.dataset.root().stale_levels();
                stale.any(|level| level == self.level.level)
            },
            is_additive: self.level.is_additive() || self.level.refinement == Refinement::Add,
        })
    }

    /// Counts chunks and vertices.
    async fn vertices(&self) -> Result<(u64, Option<u64>), Failure> {
        let part = ArrayRole::Vertices;
        let Some((key, node)) = self.node(&part).await? else {
            return Ok((0, Some(0)));
        };
        let metadata = Vertices::parse(&key, node.attributes())?.value;
        let sizes = self
            .sizes(&key, &node, &part, &ArrayRole::VertexFragments)
            .await?;
        let chunks = sizes.chunks();
        if metadata.encoding != VertexEncoding::Raw {
            return Ok((chunks, None));
        }
        let axes = self.dataset.root().axes.len();
        let row = metadata.dtype.size().saturating_mul(axes);
        Ok((chunks, Some(sizes.rows(&key, row)?)))
    }

    async fn objects(&self) -> Result<Option<u64>, Failure> {
        let Some((key, node)) = self.node(&ArrayRole::Manifests).await? else {
            return Ok(None);
        };
        let index = ObjectIndex::parse(&key, node.attributes())?.value;
        let present = object_count::present(self.dataset, self.level.level, &index).await?;
        Ok(Some(present))
    }

    async fn links(&self) -> Result<Option<u64>, Failure> {
        let delta = Delta::INTRA;
        let inside = match self.node(&ArrayRole::LinkFamily(delta)).await? {
            None => Some(0),
            Some((key, node)) if self.dataset.layout().links == LinkForm::PerOffsets => {
                let family = LinkFamily::parse(&key, delta, node.attributes())?.value;
                let links = family.map_or(Some(0), |family| family.num_links);
                let prefix = format!("{}/", self.below(&key));
                // Writers add the number with the first links, so that a family without cells has
                // none.
                let written = self
                    .files_below(&prefix)
                    .any(|(file, _)| !file.ends_with("zarr.json"));
                links.or((!written).then_some(0))
            }
            Some((key, node)) => {
                let family = LinkFamily::parse_intra(&key, delta, node.attributes())?.value;
                match family {
                    None => Some(0),
                    Some(family) => Some(self.links_inside(&key, &node, &family).await?),
                }
            }
        };
        if self.dataset.layout().cross_chunk == CrossChunkForm::Links {
            return Ok(inside);
        }
        let between = match self.node(&ArrayRole::CrossChunkLinks(delta)).await? {
            None => Some(self.pairs().await?),
            Some((key, node)) => {
                let family = LinkFamily::parse_cross_chunk(&key, delta, node.attributes())?.value;
                family.map_or(Some(0), |family| family.num_links)
            }
        };
        let sum = |(inside, between): (u64, u64)| inside.saturating_add(between);
        Ok(inside.zip(between).map(sum))
    }

    /// Counts the links between chunks of a padded store that has them as one array of pairs.
    async fn pairs(&self) -> Result<u64, Failure> {
        if self.dataset.layout().chunks != ChunkForm::Padded {
            return Ok(0);
        }
        let keys = LevelKeys {
            layout: *self.dataset.layout(),
            level: self.level.level,
        };
        let key = keys
            .group(GroupRole::CrossChunkLinks)
            .map_err(|source| Failure::Name {
                name: self.root.to_string(),
                source,
            })?;
        match nodes::read_one(self.dataset.store(), &key).await? {
            Some(Node::Array(array)) => Ok(VertexPairs::parse(&key, &array)?.rows),
            _ => Ok(0),
        }
    }

    /// Counts the links inside chunks of a store up to 0.8.1.
    async fn links_inside(
        &self,
        key: &Key,
        node: &Node,
        family: &LinkFamily,
    ) -> Result<u64, Failure> {
        let (width, arity) = (family.width.get(), self.arity);
        let part = ArrayRole::Links(family.delta, LinkOffsets::Zero { width, arity });
        let sizes = self
            .sizes(key, node, &part, &ArrayRole::LinkFragments)
            .await?;
        sizes.rows(key, size_of::<i64>().saturating_mul(width))
    }

    /// Returns the node that describes `part`; `None` if the level has no such part.
    async fn node(&self, part: &ArrayRole<'_>) -> Result<Option<(Key, Node)>, Failure> {
        let key = self
            .dataset
            .layout()
            .described_at(self.level.level, part)
            .map_err(|source| Failure::Name {
                name: self.root.to_string(),
                source,
            })?;
        let Some(key) = key else {
            return Ok(None);
        };
        let node = nodes::read_one(self.dataset.store(), &key).await?;
        let prefix = format!("{}/", self.below(&key));
        if node.is_none() && self.files_below(&prefix).next().is_some() {
            return Err(Failure::MissingNode { node: key });
        }
        Ok(node.map(|node| (key, node)))
    }

    /// Returns the size of each chunk of `part`, which `node` at `key` describes.
    async fn sizes(
        &self,
        key: &Key,
        node: &Node,
        part: &ArrayRole<'_>,
        fragments: &ArrayRole<'_>,
    ) -> Result<Sizes, Failure> {
        let form = self.dataset.layout().chunk_form(part);
        match (form, node) {
            (Some(ChunkForm::Cell), Node::Array(array)) => {
                Ok(Sizes::Bytes(self.cells(key, array).await?))
            }
            (Some(ChunkForm::Padded), Node::Array(array)) => {
                let capacity = Padded::parse(key, array, self.arity)?.rows;
                self.extents(fragments, capacity).await
            }
            _ => Ok(Sizes::Bytes(self.children(key).await?)),
        }
    }

    /// Returns the sizes of chunks that are separate arrays or spans of a shard, from metadata.
    async fn children(&self, key: &Key) -> Result<Vec<u64>, Failure> {
        let mut chunks = Vec::new();
        for (key, name, array) in self.arrays_below(key).await? {
            if name.starts_with(SHARD_PREFIX) {
                let bytes = array.elements();
                let index = LegacyShardIndex::parse(&key, &array.attributes, self.arity, bytes)?;
                let spans = index.spans().iter();
                chunks.extend(spans.map(|span| span.len));
            } else if ChunkCoord::parse(&name, self.arity).is_ok() {
                chunks.push(array.elements());
            }
        }
        Ok(chunks)
    }

    /// Returns the files whose path starts with `prefix`, as the rest of the path and the size.
    fn files_below(&self, prefix: &str) -> impl Iterator<Item = (&str, u64)> {
        let files = self.files.range(prefix.to_owned()..);
        files.map_while(move |(file, size)| Some((file.strip_prefix(prefix)?, *size)))
    }

    /// Reads the arrays that are direct children of `key`.
    async fn arrays_below(&self, key: &Key) -> Result<Vec<(Key, String, Array)>, Failure> {
        let prefix = format!("{}/", self.below(key));
        let files = self.files_below(&prefix);
        let mut names: Vec<&str> = files
            .filter_map(|(file, _)| Some(file.split_once('/')?.0))
            .collect();
        names.dedup();
        let keys = names
            .iter()
            .map(|name| nodes::child(key, name))
            .collect::<Result<Vec<_>, _>>()?;
        let found = nodes::read(self.dataset.store(), &keys).await?;
        let mut arrays = Vec::with_capacity(keys.len());
        for ((key, name), node) in keys.into_iter().zip(names).zip(found) {
            match node {
                Some(Node::Array(array)) => arrays.push((key, name.to_owned(), array)),
                Some(Node::Group(_)) => {}
                None => return Err(Failure::MissingNode { node: key }),
            }
        }
        Ok(arrays)
    }

    /// Returns the sizes of chunks that are cells of one array.
    async fn cells(&self, key: &Key, array: &Array) -> Result<Vec<u64>, Failure> {
        let port = self.dataset.cells().port();
        let presence = zvf_catalog::presence(port, key, array, self.arity).await?;
        let cells = nodes::cell_array(key, array.clone())?;
        let missing = |chunk: &ChunkCoord| Failure::MissingCell {
            node: key.clone(),
            cell: chunk.to_string(),
        };
        let single = array.decoded_shape().iter().all(|extent| *extent == 1);
        if !single || cells.codecs().form() != DecodedForm::VlenFrame {
            return Err(Failure::NoCells { node: key.clone() });
        }
        if cells.is_plain() && !cells.is_sharded() {
            return self.plain_cells(key, array, &presence).await;
        }
        let mut chunks = Vec::with_capacity(presence.len());
        let present: Vec<_> = presence.cells().collect();
        for batch in present.chunks(BATCH) {
            let wanted: Vec<CellRead<'_>> = batch
                .iter()
                .map(|present| CellRead {
                    array: &cells,
                    index: &present.cell,
                    part: None,
                })
                .collect();
            let payloads = self.dataset.cells().read(&wanted).await?;
            for (present, payload) in batch.iter().zip(payloads) {
                let payload = payload.ok_or_else(|| missing(&present.chunk))?;
                chunks.push(bytes(payload.len()));
            }
        }
        Ok(chunks)
    }

    /// Returns the sizes of uncompressed cells, each in its own file, from the sizes of the files.
    /// The length in the header of a file reveals truncation.
    async fn plain_cells(
        &self,
        key: &Key,
        array: &Array,
        presence: &Presence,
    ) -> Result<Vec<u64>, Failure> {
        let mut sizes = Vec::with_capacity(presence.len());
        let present: Vec<_> = presence.cells().collect();
        for batch in present.chunks(HEADERS) {
            let mut reads = Vec::with_capacity(batch.len());
            for present in batch {
                let no_cell = |source| Failure::Index {
                    node: key.clone(),
                    source,
                };
                let index = array.chunk_of(&present.cell).map_err(no_cell)?;
                let file = array.chunk_key(key, &index).map_err(no_cell)?;
                reads.push(Read::bounded(file, 0..FRAME_HEADER));
            }
            let headers = self.dataset.store().read(&reads).await?;
            for ((present, read), header) in batch.iter().zip(&reads).zip(headers) {
                let size = self.files.get(self.below(&read.key));
                let (Some(size), Some(header)) = (size, header) else {
                    return Err(Failure::MissingCell {
                        node: key.clone(),
                        cell: present.chunk.to_string(),
                    });
                };
                let payload = size.saturating_sub(FRAME_HEADER);
                if announced(&header) != Some(payload) {
                    return Err(Failure::CutCell {
                        key: read.key.clone(),
                        bytes: *size,
                    });
                }
                sizes.push(payload);
            }
        }
        Ok(sizes)
    }

    /// Reads the number of rows that the fragments of each chunk use, which a padded array does not
    /// declare.
    async fn extents(&self, fragments: &ArrayRole<'_>, capacity: u64) -> Result<Sizes, Failure> {
        let Some((key, _)) = self.node(fragments).await? else {
            return Ok(Sizes::Rows(Vec::new()));
        };
        let mut rows = Vec::new();
        for (key, name, array) in self.arrays_below(&key).await? {
            if ChunkCoord::parse(&name, self.arity).is_err() {
                continue;
            }
            let index = vec![0; array.rank()];
            let cells = nodes::cell_array(&key, array)?;
            let cell = CellRead {
                array: &cells,
                index: &index,
                part: None,
            };
            let blob = self
                .dataset
                .cells()
                .read_one(cell)
                .await?
                .unwrap_or_default();
            let index = FragmentIndex::parse(&blob).map_err(|source| Failure::Fragments {
                node: key.clone(),
                source,
            })?;
            let extent = index.extent();
            if extent > capacity {
                return Err(Failure::NoRoom {
                    node: key,
                    rows: extent,
                    capacity,
                });
            }
            rows.push(extent);
        }
        Ok(Sizes::Rows(rows))
    }

    /// Returns the path of `key` relative to the level.
    fn below<'k>(&self, key: &'k Key) -> &'k str {
        let below = key.as_str().strip_prefix(self.root.as_str());
        below
            .and_then(|below| below.strip_prefix('/'))
            .unwrap_or_default()
    }
}

/// Returns the length of the only item of a frame, from its header.
fn announced(header: &[u8]) -> Option<u64> {
    let (count, rest) = header.split_first_chunk()?;
    let (length, _) = rest.split_first_chunk()?;
    let only = u32::from_le_bytes(*count) == 1;
    only.then(|| u32::from_le_bytes(*length).into())
}

impl Sizes {
    fn chunks(&self) -> u64 {
        match self {
            Self::Bytes(sizes) | Self::Rows(sizes) => bytes(sizes.len()),
        }
    }

    /// Returns the number of rows in all chunks, for rows of `row` bytes.
    fn rows(&self, node: &Key, row: usize) -> Result<u64, Failure> {
        let chunks = match self {
            Self::Rows(rows) => return Ok(sum(rows)),
            Self::Bytes(chunks) => chunks,
        };
        let row = bytes(row);
        let mut rows: u64 = 0;
        for bytes in chunks {
            if bytes.checked_rem(row) != Some(0) {
                return Err(Failure::Rows {
                    node: node.clone(),
                    bytes: *bytes,
                    row,
                });
            }
            rows = rows.saturating_add(bytes.checked_div(row).unwrap_or(0));
        }
        Ok(rows)
    }
}

fn sum<'n>(numbers: impl IntoIterator<Item = &'n u64>) -> u64 {
    let numbers = numbers.into_iter();
    numbers.fold(0, |sum, number| sum.saturating_add(*number))
}

fn bytes(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
