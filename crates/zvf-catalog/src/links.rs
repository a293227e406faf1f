//! Links of a level, of every generation.
//!
//! | stored as | a cell is | its chunks |
//! |---|---|---|
//! | 0.9: one array per tuple of offsets | an element | the element's chunk, and its anchor plus each offset |
//! | 0.8: links inside chunks; one array per tuple of chunks | an array | the chunk; the cell key |
//! | 0.6, 0.7: links inside chunks, one table | an array; the table | the chunk; in the records |
//! | 0.8-padded: links inside chunks, one array of pairs | a block; a chunk of the array | the chunk; by the numbers of the vertices |
//!
//! A [`LinkSet`] lists all cells of one delta without reading them, in the order of the format:
//! links of 0.9 by array and cell, both as text; links of older generations first inside chunks,
//! by chunk, then between chunks, by cell key as text. Rows inside a cell are in stored order.
//!
//! The ends of a record are in the order in which the writer received them. Callers check the rows
//! against the vertices.
//!
//! `open` opens arrays of 0.9, `legacy` those up to 0.8.1, `unlisted` probes stores that cannot
//! list; `read` fetches cells, `groups` fetches parts of them, and `decode` decodes them.

mod by_chunk;
mod cells;
mod content;
mod decode;
mod groups;
mod legacy;
mod numbered;
mod open;
mod read;
mod stored;
#[cfg(test)]
mod tests;
mod unlisted;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use futures_util::future::try_join;
use zvf_format::{
    links::{LinkWidth, RowForm},
    numeric::{Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{CellAttribute, LinkFamily, VertexEncoding, VertexNumbering, VertexPairs},
    fetch::{AnyArray, BoxFuture},
    generation::Generation,
    geometry_kind::GeometryKind,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, CrossChunkForm, LinkForm},
    level::LevelId,
    root::LinksConvention,
};

use crate::{
    catalog::Catalog,
    cell_rows::CellRows,
    chunked_array::{ChunkedArray, child},
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
};

use by_chunk::CellsByChunk;
pub use cells::{CellLinks, LinkBlobs, LinkCells};
pub use read::FetchedLinks;
pub use stored::{StoredLinkFamily, StoredLinks};

/// The records to return of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkView {
    /// Each link once, with known defects of writers corrected.
    Logical,
    /// Every stored row, including all copies of a link.
    Stored,
}

/// The cells of all links of one delta, without their records.
#[derive(Debug)]
pub struct LinkSet {
    /// Level of the other ends minus that of end 0.
    pub(crate) delta: Delta,
    /// The requested attributes, in order.
    pub attributes: Vec<LinkAttribute>,
    /// `false` if rows in links between chunks are not rows of vertices, as in stores of paths from
    /// some writers.
    pub rows_are_known: bool,
    /// `true` if rows of links may be wrong in chunks of several fragments: some writers regrouped
    /// vertices without updating the links.
    pub(crate) may_be_shuffled: bool,
    /// All cells, in the order of the format.
    pub cells: Vec<LinkCellSource>,
    /// The cells at each chunk, once a query has asked for those of some chunks.
    by_chunk: OnceLock<CellsByChunk>,
    sources: Vec<LinkSource>,
    /// The groups of links inside chunks, if the level declares that they follow the fragments.
    groups: Option<Arc<ChunkedArray>>,
}

/// An attribute of links.
#[derive(Clone, Debug)]
pub struct LinkAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Metadata of the values; `None` if no link has a value.
    pub metadata: Option<Arc<CellAttribute>>,
}

/// One cell of a [`LinkSet`].
#[derive(Clone, Debug)]
pub struct LinkCellSource {
    /// The chunk of each end in stored order. For a delta other than 0, one of the stored ends is in
    /// the level, the others are in its target. `None` for a table, whose records contain their
    /// chunks.
    pub chunks: Option<Vec<ChunkCoord>>,
    /// `true` if all ends are in one chunk of one level.
    pub is_inside: bool,
    /// Number of the source in the set.
    source: usize,
    /// Index of the cell in its source: the chunk, or all numbers of a cell key.
    at: ChunkCoord,
}

/// The links of a cell, with ends in the order in which the writer received them.
#[derive(Clone, Debug)]
pub struct LinkRecords {
    /// Node with the links' metadata.
    pub node: Key,
    /// Number of ends per record.
    pub width: usize,
    /// Chunks of the ends.
    pub chunks: Vec<ChunkCoord>,
    /// For each end an index into `chunks` and a row. For a delta other than 0, end 0 is in a chunk
    /// of the level and the others are in chunks of its target.
    pub ends: Vec<(u32, u64)>,
    /// For each attribute one row per record; `None` if there are no values.
    pub attributes: Vec<Option<CellRows>>,
    /// `true` if rows are those of the stored vertices even if these have lost the order of their
    /// writer, because vertices and records are in one Draco stream.
    pub is_with_vertices: bool,
    /// `true` if records could not be read. Their ends are in `chunks`, or anywhere if `chunks` is
    /// empty.
    pub is_unreadable: bool,
    /// The number of groups of the cell, if only the groups of some fragments were read.
    pub groups: Option<u32>,
}

impl LinkRecords {
    /// Returns the chunk of an end.
    #[inline]
    pub fn chunk_of(&self, end: (u32, u64)) -> Option<&ChunkCoord> {
        self.chunks.get(usize::try_from(end.0).ok()?)
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        let ends = size_of_val(self.ends.as_slice());
        let values = self.attributes.iter().flatten();
        let values = values.map(|values| values.bytes.len()).sum::<usize>();
        u64::try_from(ends.saturating_add(values)).unwrap_or(u64::MAX)
    }
}

/// Cells that are stored in one form.
#[derive(Debug)]
struct LinkSource {
    /// The node that describes them.
    node: Key,
    /// The node that describes all of the family.
    family_node: Key,
    cells: LinkStorage,
    form: LinkCellForm,
    width: LinkWidth,
    directed: bool,
    /// `true` if the order of ends has to be reversed.
    is_reversed: bool,
    /// Index of the family within the delta; all arrays of 0.9 belong to one family.
    family: usize,
    /// Number of records that the family declares, if any.
    records: Option<u64>,
    /// Values of the attributes of the set, in their order; `None` for one without values.
    attributes: Vec<Option<AttributeCells>>,
}

#[derive(Debug)]
enum LinkStorage {
    Each(Arc<ChunkedArray>),
    /// The array of a table; if the flag is `true`, it may be absent, because there are no records.
    Table(Key, bool),
    /// The array of pairs of numbered vertices.
    Pairs(AnyArray),
}

impl LinkStorage {
    /// Returns the node that damage is reported of.
    fn node(&self) -> &Key {
        match self {
            Self::Each(family) => &family.node,
            Self::Table(key, _) => key,
            Self::Pairs(array) => array.node(),
        }
    }
}

/// Values of an attribute for the cells of a source.
#[derive(Debug)]
struct AttributeCells {
    metadata: Arc<CellAttribute>,
    cells: LinkStorage,
}

/// The encoding of a cell's payload.
#[derive(Debug)]
enum LinkCellForm {
    /// Rows.
    Flat(Dtype),
    /// Rows, or rows in groups if the cell starts with a header of groups: links inside chunks of a
    /// level without fragments of links, which would declare the groups.
    MaybeGroups,
    /// Rows in groups.
    Groups(Dtype, RowForm),
    /// One permuted row per group.
    Records,
    /// Records that contain chunk coordinates of this many numbers.
    Table(usize),
    /// Rows of a padded array, followed by fill values.
    Padded(Kind),
    /// Pairs of numbers of vertices.
    Pairs(VertexPairs, VertexNumbering),
    /// The triangles in a Draco stream of vertices, within a budget.
    Draco(u64),
}

impl LinkSet {
    /// Returns the cells that may have an end in one of these chunks, ascending. The first call
    /// visits all cells.
    pub fn cells_at<'c>(&self, chunks: impl IntoIterator<Item = &'c ChunkCoord>) -> Vec<usize> {
        let by_chunk = self.by_chunk.get_or_init(|| CellsByChunk::of(&self.cells));
        by_chunk.at(chunks)
    }

    /// Returns the number of ends per link; `None` for an empty set.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Width`] if families disagree.
    pub fn width(&self) -> Result<Option<LinkWidth>, Damage> {
        let mut sources = self.sources.iter();
        let Some(first) = sources.next() else {
            return Ok(None);
        };
        match sources.find(|source| source.width != first.width) {
            None => Ok(Some(first.width)),
            Some(other) => {
                let (found, expected) = (other.width.get(), first.width.get());
                Err(Damage::new(&other.node, Fault::Width { found, expected }))
            }
        }
    }

    /// Compares the number of records read with the declared number and notes a difference. This is
    /// the only sign of a cell truncated between two records.
    pub(crate) fn note_counts(&self, read: &[LinkRecords], diagnostics: &Diagnostics) {
        let mut families = BTreeMap::new();
        for source in &self.sources {
            families.entry(source.family).or_insert((source, 0_u64));
        }
        for (cell, records) in self.cells.iter().zip(read) {
            let source = self.sources.get(cell.source);
            let family = source.and_then(|source| families.get_mut(&source.family));
            if let Some((_, loaded)) = family {
                *loaded = loaded.saturating_add(u64::try_from(records.len()).unwrap_or(u64::MAX));
            }
        }
        for (source, loaded) in families.into_values() {
            let declared = source.records.unwrap_or(loaded);
            if declared != loaded {
                diagnostics.note(format!(
                    "{}: {loaded} links, where {declared} are declared",
                    source.family_node
                ));
            }
        }
    }

    /// Notes that links of a chunk may be wrong because the chunk has several fragments.
    pub fn note_fragments(&self, chunk: &ChunkCoord, fragments: u32, diagnostics: &Diagnostics) {
        if self.may_be_shuffled && fragments > 1 {
            diagnostics.note(format!(
                "chunk {chunk} has several fragments: links written up to 0.8.0 may name \
                 other vertices there"
            ));
        }
    }
}

impl Catalog<'_> {
    /// Returns the deltas of a level's links, ascending. Takes one round trip on first use. A store
    /// that cannot list is probed for the deltas to all levels of the root.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the links cannot be listed or probed.
    pub fn link_deltas<'f>(
        &'f self,
        level: &'f Level,
    ) -> BoxFuture<'f, Result<Vec<Delta>, CatalogError>> {
        Box::pin(async move {
            let node = Self::node_of(level)?;
            let (links, crossing) = (child(&node, "links")?, child(&node, "cross_chunk_links")?);
            let old = self.layout.cross_chunk != CrossChunkForm::Links;
            let crossing = async {
                if old {
                    return self.children(level, &crossing).await;
                }
                Ok(Arc::default())
            };
            let listed = try_join(self.children(level, &links), crossing).await;
            let (links, crossing) = match listed {
                Err(error) if unlisted::is_unlistable(&error) => {
                    return self.probe_deltas(level, old).await;
                }
                listed => listed?,
            };
            let names = links.iter().chain(crossing.iter());
            let mut deltas: BTreeSet<Delta> =
                names.filter_map(|name| Delta::parse(name).ok()).collect();
            if self.vertex_pairs(level).await?.is_some() {
                deltas.insert(Delta::INTRA);
            }
            Ok(deltas.into_iter().collect())
        })
    }

    /// Opens all links of a delta, inside and between chunks. Returns `None` if there are none.
    /// `target` is the level of the other ends.
    ///
    /// Takes two round trips on first use: node and listing of the family, then its arrays and
    /// attributes.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if metadata is damaged or cannot be read.
    pub fn links<'f>(
        &'f self,
        level: &'f Level,
        target: Option<&'f Level>,
        delta: Delta,
        attributes: &'f [String],
        view: LinkView,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Option<LinkSet>, CatalogError>> {
        Box::pin(async move {
            let opened = match self.layout.links {
                LinkForm::PerOffsets => {
                    let arrays = self.link_arrays(level, target, delta, attributes, view);
                    let old = self.has_legacy_links(level.id(), delta);
                    let (arrays, has_old) = try_join(arrays, old).await?;
                    if has_old {
                        return Err(CatalogError::LegacyLinks(Self::node_of(level)?));
                    }
                    arrays
                }
                LinkForm::PerDelta => self.legacy_links(level, delta, attributes, view).await?,
            };
            let mut opened = opened;
            // Tools that copy cells copy the streams.
            let is_mesh = self.root.holds(GeometryKind::Mesh);
            if delta == Delta::INTRA && is_mesh && view == LinkView::Logical {
                self.add_draco_triangles(level, attributes, &mut opened)
                    .await?;
            }
            if opened.sources.is_empty() {
                return Ok(None);
            }
            self.link_set(delta, attributes, opened, diagnostics)
                .map(Some)
        })
    }

    /// Returns whether the links inside a level have a direction; `false` before 0.9. Reads at most one
    /// node.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level or the node cannot be read.
    pub fn has_directed_links(&self, level: LevelId) -> BoxFuture<'_, Result<bool, CatalogError>> {
        Box::pin(async move {
            if self.layout.links == LinkForm::PerDelta {
                return Ok(false);
            }
            let level = self.level(level).await?;
            let family = ArrayRole::LinkFamily(Delta::INTRA);
            let node = self.chunked_array(&level, &family).await?;
            Ok(node.is_some_and(|node| LinkFamily::declared_policy(&node.attributes).0))
        })
    }

    /// Adds the triangles inside chunks whose vertices are encoded with Draco. Other levels of
    /// meshes cost no request, as their vertices are read as well.
    async fn add_draco_triangles(
        &self,
        level: &Level,
        attributes: &[String],
        opened: &mut OpenedLinks,
    ) -> Result<(), CatalogError> {
        let vertices = self.chunked_array(level, &ArrayRole::Vertices).await?;
        let Some(vertices) = vertices.filter(|vertices| vertices.is_draco()) else {
            return Ok(());
        };
        let Ok(width) = LinkWidth::new(3) else {
            return Ok(());
        };
        let source = opened.sources.len();
        // Cells of a padded array, which lists no chunks, have rows and no streams.
        let chunks = vertices.chunks().ok_or_else(|| CatalogError::Encoding {
            node: vertices.node.clone(),
            encoding: VertexEncoding::Draco.as_str().to_owned(),
        })?;
        for chunk in chunks {
            opened.cells.push(LinkCellSource {
                chunks: Some(vec![chunk.clone(); width.get()]),
                is_inside: true,
                source,
                at: chunk,
            });
        }
        opened.sources.push(LinkSource {
            node: vertices.node.clone(),
            family_node: vertices.node.clone(),
            cells: LinkStorage::Each(vertices),
            form: LinkCellForm::Draco(self.fetch.budget()),
            width,
            directed: false,
            is_reversed: false,
            family: 1,
            records: None,
            attributes: attributes.iter().map(|_| None).collect(),
        });
        Ok(())
    }

    fn link_set(
        &self,
        delta: Delta,
        names: &[String],
        opened: OpenedLinks,
        diagnostics: &Diagnostics,
    ) -> Result<LinkSet, CatalogError> {
        let OpenedLinks {
            sources,
            cells,
            groups,
        } = opened;
        let mut attributes = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            attributes.push(attribute(&sources, &cells, at, name, diagnostics)?);
        }
        let crossing = cells.iter().any(|cell| !cell.is_inside);
        let rows_are_known = delta != Delta::INTRA || !crossing || self.crossing_rows_are_known();
        if !rows_are_known {
            diagnostics.note(
                "rows in links between chunks are not those of vertices, as always where this \
                 kind of store was written",
            );
        }
        if sources.iter().any(|source| source.is_reversed) {
            diagnostics.note(
                "links between chunks name the parent first where links inside chunks name the \
                 child first: they were turned round",
            );
        }
        Ok(LinkSet {
            delta,
            attributes,
            rows_are_known,
            may_be_shuffled: delta == Delta::INTRA && self.links_may_be_shuffled(),
            cells,
            by_chunk: OnceLock::new(),
            sources,
            groups,
        })
    }

    /// Returns whether rows in links between chunks are rows of vertices: not in paths of 0.6 and
    /// 0.7, nor in lines of any generation.
    fn crossing_rows_are_known(&self) -> bool {
        let old = matches!(self.layout.generation, Generation::V0_6 | Generation::V0_7);
        let convention = self.root.links_convention.clone().unwrap_or_default();
        let is_wrong = |kind: GeometryKind| match kind {
            GeometryKind::Lines => true,
            GeometryKind::Polylines | GeometryKind::Streamlines => old,
            _ => false,
        };
        convention != LinksConvention::ImplicitSequential || !self.root.kinds().any(is_wrong)
    }

    fn links_may_be_shuffled(&self) -> bool {
        let old = matches!(
            self.layout.generation,
            Generation::V0_6 | Generation::V0_7 | Generation::V0_8_0
        );
        old && (self.root.holds(GeometryKind::Graphs) || self.root.holds(GeometryKind::Skeletons))
    }
}

/// Sources and cells of a set.
#[derive(Debug, Default)]
struct OpenedLinks {
    sources: Vec<LinkSource>,
    cells: Vec<LinkCellSource>,
    groups: Option<Arc<ChunkedArray>>,
}

/// The type of an attribute, equal in all sources that have it.
fn attribute(
    sources: &[LinkSource],
    cells: &[LinkCellSource],
    at: usize,
    name: &str,
    diagnostics: &Diagnostics,
) -> Result<LinkAttribute, CatalogError> {
    let mut metadata: Option<&Arc<CellAttribute>> = None;
    let mut is_partial = false;
    for (number, source) in sources.iter().enumerate() {
        let Some(Some(values)) = source.attributes.get(at) else {
            is_partial |= cells.iter().any(|cell| cell.source == number);
            continue;
        };
        let first = *metadata.get_or_insert(&values.metadata);
        let same =
            first.dtype == values.metadata.dtype && first.dictionary == values.metadata.dictionary;
        if !same {
            return Err(Damage::new(values.cells.node(), Fault::Values).into());
        }
    }
    if is_partial && metadata.is_some() {
        diagnostics.note(format!("some links have no value of {name}"));
    }
    Ok(LinkAttribute {
        name: name.to_owned(),
        metadata: metadata.cloned(),
    })
}
