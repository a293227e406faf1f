//! Arrays of a level with one cell per chunk, in every storage form.
//!
//! | generation | form |
//! |---|---|
//! | 0.9 | one array of byte strings, or one padded array of numbers |
//! | up to 0.8.1 | a child array per chunk, possibly packed into shards |

use core::ops::{Range, RangeInclusive};
use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::try_join;
use zvf_model::{
    array::{LegacyShardIndex, Padded, Presence, SHARD_PREFIX, VertexEncoding},
    fetch::{AnyArray, CellRef, CellRequest, Port},
    grid::ChunkCoord,
    key::Key,
    layout::ChunkForm,
    metadata::Attributes,
    zarr::{Array, DataType, Node},
};

use crate::{
    deferred::presence,
    error::{CatalogError, Damage, Fault},
    fragments::FragmentTableCache,
};

/// All coordinates of chunks.
pub const EVERYWHERE: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// An array of a level with one cell per chunk.
#[derive(Debug)]
pub struct ChunkedArray {
    /// The node with the array's metadata.
    pub node: Key,
    /// Attributes of the node.
    pub attributes: Attributes,
    /// Names of children that are not chunks.
    pub(crate) unrecognized_children: Vec<String>,
    /// Decoded fragment indexes, if this array holds them.
    pub(crate) fragment_tables: FragmentTableCache,
    form: ChunkStorage,
}

#[derive(Debug)]
enum ChunkStorage {
    /// One array of byte strings.
    Cells { array: AnyArray, presence: Presence },
    /// One array of numbers. Which chunks are in use follows from other arrays.
    Padded { array: AnyArray, padded: Padded },
    /// An array, or a range of a shard, per chunk.
    Children(BTreeMap<ChunkCoord, Child>),
    /// A node without cells.
    NodeOnly(Box<Node>),
}

#[derive(Debug)]
enum Child {
    Own(Key),
    Span(AnyArray, Range<u64>),
    /// A range of an array of bytes that has the cells of all chunks.
    Part(Key, Range<u64>),
}

impl ChunkedArray {
    /// Returns the array with all cells; `None` if each chunk has its own.
    pub(crate) fn array(&self) -> Option<&AnyArray> {
        match &self.form {
            ChunkStorage::Cells { array, .. } | ChunkStorage::Padded { array, .. } => Some(array),
            ChunkStorage::Children(_) | ChunkStorage::NodeOnly(_) => None,
        }
    }

    /// Returns the chunks of an array of byte strings; `None` for other forms.
    pub(crate) fn presence(&self) -> Option<&Presence> {
        match &self.form {
            ChunkStorage::Cells { presence, .. } => Some(presence),
            _ => None,
        }
    }

    /// Opens the array described by the node at `key`.
    ///
    /// Reads the node, unless `read` has it, and lists its children where chunks may be children;
    /// shards up to 0.8.0 take one more round trip, and so does the listing of an array that does not
    /// list its chunks. Returns `None` if nothing is stored at `key`.
    pub(crate) async fn open(
        fetch: Port<'_>,
        key: &Key,
        read: Option<Node>,
        form: Option<ChunkForm>,
        arity: usize,
    ) -> Result<Option<Self>, CatalogError> {
        let node = async {
            match read {
                Some(node) => Ok(Some(node)),
                None => {
                    let nodes = fetch.nodes(core::slice::from_ref(key)).await?;
                    Ok(nodes.into_iter().next().flatten())
                }
            }
        };
        let names = async {
            match form {
                Some(ChunkForm::Child) => fetch.children(key).await,
                _ => Ok(Vec::new()),
            }
        };
        let (node, mut names) = try_join(node, names).await?;
        let mut unrecognized_children = Vec::new();
        let (attributes, form) = match (node, form) {
            (None, _) if names.is_empty() => return Ok(None),
            (None, _) => return Err(Damage::new(key, Fault::Missing).into()),
            (Some(Node::Array(array)), Some(ChunkForm::Padded)) => {
                let padded = Padded::parse(key, &array, arity)?;
                let attributes = array.attributes.clone();
                let array = padded.cells(fetch.array(key, Arc::new(array))?)?;
                (attributes, ChunkStorage::Padded { array, padded })
            }
            (Some(Node::Array(mut array)), Some(_)) => {
                if !one_string_a_chunk(&array) {
                    return Err(Damage::new(key, Fault::Kind).into());
                }
                let presence = presence(fetch, key, &array, arity).await?;
                Presence::remove_list(&mut array.attributes);
                let attributes = array.attributes.clone();
                let array = fetch.array(key, Arc::new(array))?;
                (attributes, ChunkStorage::Cells { array, presence })
            }
            (Some(Node::Group(group)), Some(form)) => {
                if form != ChunkForm::Child {
                    names = fetch.children(key).await?;
                }
                let children = children(fetch, key, &names, arity).await?;
                names.retain(|name| !is_chunk(name, arity));
                unrecognized_children = names;
                (group.attributes, ChunkStorage::Children(children))
            }
            (Some(node), None) => (
                node.attributes().clone(),
                ChunkStorage::NodeOnly(Box::new(node)),
            ),
        };
        Ok(Some(Self {
            node: key.clone(),
            attributes,
            unrecognized_children,
            fragment_tables: FragmentTableCache::default(),
            form,
        }))
    }

    /// Creates an array whose cells are children with known names. Names that are not keys of
    /// `arity` coordinates are ignored. Takes one round trip if there are shards.
    pub(crate) async fn of_children(
        fetch: Port<'_>,
        key: &Key,
        attributes: Attributes,
        names: &[String],
        arity: usize,
    ) -> Result<Self, CatalogError> {
        Ok(Self {
            node: key.clone(),
            attributes,
            unrecognized_children: Vec::new(),
            fragment_tables: FragmentTableCache::default(),
            form: ChunkStorage::Children(children(fetch, key, names, arity).await?),
        })
    }

    /// Creates an array whose cells are ranges of one array of bytes.
    pub(crate) fn of_parts(
        key: &Key,
        attributes: Attributes,
        data: &Key,
        parts: impl IntoIterator<Item = (ChunkCoord, Range<u64>)>,
    ) -> Self {
        let parts = parts.into_iter();
        let children = parts.map(|(chunk, part)| (chunk, Child::Part(data.clone(), part)));
        Self {
            node: key.clone(),
            attributes,
            unrecognized_children: Vec::new(),
            fragment_tables: FragmentTableCache::default(),
            form: ChunkStorage::Children(children.collect()),
        }
    }

    /// Returns the chunks that have a cell, ascending; `None` if this array does not list them.
    pub(crate) fn chunks(&self) -> Option<Vec<ChunkCoord>> {
        self.chunks_where(&EVERYWHERE, |_| true)
    }

    /// Returns the chunks that have a cell, have a first coordinate in `first`, and satisfy
    /// `is_wanted`, ascending; `None` if this array does not list its chunks.
    pub fn chunks_where(
        &self,
        first: &RangeInclusive<i64>,
        is_wanted: impl Fn(&ChunkCoord) -> bool,
    ) -> Option<Vec<ChunkCoord>> {
        match &self.form {
            ChunkStorage::Cells { presence, .. } => Some(presence.chunks_where(first, is_wanted)),
            ChunkStorage::Children(children) => {
                let is_wanted = |chunk: &&ChunkCoord| {
                    let coord = chunk.coords().first();
                    coord.is_none_or(|coord| first.contains(coord)) && is_wanted(chunk)
                };
                Some(children.keys().filter(is_wanted).cloned().collect())
            }
            ChunkStorage::Padded { .. } => None,
            ChunkStorage::NodeOnly(_) => Some(Vec::new()),
        }
    }

    /// Returns the number of chunks that have a cell; `None` if this array does not list them.
    pub fn count(&self) -> Option<usize> {
        match &self.form {
            ChunkStorage::Cells { presence, .. } => Some(presence.len()),
            ChunkStorage::Children(children) => Some(children.len()),
            ChunkStorage::Padded { .. } => None,
            ChunkStorage::NodeOnly(_) => Some(0),
        }
    }

    /// Returns whether `chunk` has a cell. A padded array has one for every chunk of its grid.
    pub fn has(&self, chunk: &ChunkCoord) -> bool {
        match &self.form {
            ChunkStorage::Cells { presence, .. } => presence.contains(chunk),
            ChunkStorage::Children(children) => children.contains_key(chunk),
            ChunkStorage::Padded { padded, .. } => padded.grid.cell_of(chunk.coords()).is_ok(),
            ChunkStorage::NodeOnly(_) => false,
        }
    }

    /// Returns the request for the cell of `chunk`, or for a byte range of its payload; `None` if
    /// the chunk has no cell.
    pub fn cell_request(
        &self,
        chunk: &ChunkCoord,
        part: Option<Range<u64>>,
    ) -> Option<CellRequest> {
        match &self.form {
            ChunkStorage::Cells { array, presence } => {
                let cell = presence.grid().cell_of(chunk.coords()).ok()?;
                let cell = presence
                    .contains(chunk)
                    .then(|| CellRef::Element(array.clone(), cell))?;
                Some(CellRequest { cell, part })
            }
            ChunkStorage::Padded { array, padded } => {
                let mut cell = padded.grid.cell_of(chunk.coords()).ok()?;
                cell.resize(array.metadata().rank(), 0);
                let cell = CellRef::Element(array.clone(), cell);
                Some(CellRequest { cell, part })
            }
            ChunkStorage::Children(children) => match children.get(chunk)? {
                Child::Own(key) => Some(CellRequest {
                    cell: CellRef::Child(key.clone()),
                    part,
                }),
                Child::Span(shard, span) => Some(CellRequest {
                    cell: CellRef::Element(shard.clone(), vec![0]),
                    part: Some(within(span, part)),
                }),
                Child::Part(data, span) => Some(CellRequest {
                    cell: CellRef::Child(data.clone()),
                    part: Some(within(span, part)),
                }),
            },
            ChunkStorage::NodeOnly(_) => None,
        }
    }

    /// Returns whether byte ranges of cells can be read alone. Responses then include the cell's size.
    pub(crate) fn is_plain(&self) -> bool {
        match &self.form {
            ChunkStorage::Cells { .. } if self.is_draco() => false,
            ChunkStorage::Cells { array, .. } | ChunkStorage::Padded { array, .. } => {
                array.is_plain()
            }
            ChunkStorage::Children(_) | ChunkStorage::NodeOnly(_) => false,
        }
    }

    /// Returns whether byte ranges of compressed cells can be read alone, once a request for an empty
    /// range has located them.
    pub(crate) fn is_in_blocks(&self) -> bool {
        match &self.form {
            ChunkStorage::Cells { array, .. } | ChunkStorage::Padded { array, .. } => {
                !self.is_draco() && array.is_in_blocks()
            }
            ChunkStorage::Children(_) | ChunkStorage::NodeOnly(_) => false,
        }
    }

    /// Returns whether byte ranges of cells can be read without the rest of the cells.
    pub(crate) fn has_parts(&self) -> bool {
        self.is_plain() || self.is_in_blocks()
    }

    /// Returns whether cells are Draco streams.
    pub(crate) fn is_draco(&self) -> bool {
        let encoding = self.attributes.get("encoding");
        encoding.and_then(|encoding| encoding.as_str()) == Some(VertexEncoding::Draco.as_str())
    }

    /// Returns the payload size of `chunk`, given the `size` of the cell that holds it.
    pub(crate) fn payload_size(&self, chunk: &ChunkCoord, size: u64) -> u64 {
        match &self.form {
            ChunkStorage::Children(children) => match children.get(chunk) {
                Some(Child::Span(_, span) | Child::Part(_, span)) => {
                    span.end.saturating_sub(span.start)
                }
                _ => size,
            },
            _ => size,
        }
    }

    /// Returns the shape of a padded array; `None` for other forms.
    pub(crate) fn padded(&self) -> Option<&Padded> {
        match &self.form {
            ChunkStorage::Padded { padded, .. } => Some(padded),
            _ => None,
        }
    }

    /// Returns the node of an array without cells.
    pub(crate) fn bare(&self) -> Option<&Node> {
        match &self.form {
            ChunkStorage::NodeOnly(node) => Some(node),
            _ => None,
        }
    }
}

/// Returns the key of the store's object that holds an element: a chunk or shard.
pub fn object_of(array: &AnyArray, element: &[u64]) -> Option<Key> {
    let metadata = array.metadata();
    let chunk = metadata.chunk_of(element).ok()?;
    metadata.chunk_key(array.node(), &chunk).ok()
}

fn one_string_a_chunk(array: &Array) -> bool {
    let strings = matches!(array.data_type, DataType::VariableBytes);
    strings && array.decoded_shape().iter().all(|extent| *extent == 1)
}

/// Returns whether a child is a chunk or a shard of chunks.
fn is_chunk(name: &str, arity: usize) -> bool {
    name.starts_with(SHARD_PREFIX) || ChunkCoord::parse(name, arity).is_ok()
}

/// Opens the chunks among the children of a group. Takes one round trip if there are shards.
async fn children(
    fetch: Port<'_>,
    key: &Key,
    names: &[String],
    arity: usize,
) -> Result<BTreeMap<ChunkCoord, Child>, CatalogError> {
    let mut children = BTreeMap::new();
    let mut shards = Vec::new();
    for name in names {
        if name.starts_with(SHARD_PREFIX) {
            shards.push(child(key, name)?);
        } else if let Ok(chunk) = ChunkCoord::parse(name, arity) {
            children.insert(chunk, Child::Own(child(key, name)?));
        }
    }
    let nodes = if shards.is_empty() {
        Vec::new()
    } else {
        fetch.nodes(&shards).await?
    };
    for (key, node) in shards.iter().zip(nodes) {
        let Some(Node::Array(array)) = node else {
            return Err(Damage::new(key, Fault::Kind).into());
        };
        let index = LegacyShardIndex::parse(key, &array.attributes, arity, array.elements())?;
        let array = fetch.array(key, Arc::new(array))?;
        for span in index.spans() {
            let range = span.offset..span.offset.saturating_add(span.len);
            // A chunk outside the shards was written after the shards were packed.
            let at = children.entry(span.chunk.clone());
            at.or_insert_with(|| Child::Span(array.clone(), range));
        }
    }
    Ok(children)
}

/// Returns a part of a span; all of it if `part` is `None`.
fn within(span: &Range<u64>, part: Option<Range<u64>>) -> Range<u64> {
    let Some(part) = part else {
        return span.clone();
    };
    let end = span.start.saturating_add(part.end).min(span.end);
    span.start.saturating_add(part.start).min(end)..end
}

/// Returns the key of a child whose name comes from the store.
///
/// # Errors
///
/// Returns [`CatalogError::Name`] if the name cannot be part of a key.
pub fn child(key: &Key, name: &str) -> Result<Key, CatalogError> {
    key.join(name).map_err(|source| CatalogError::Name {
        name: name.to_owned(),
        source,
    })
}
