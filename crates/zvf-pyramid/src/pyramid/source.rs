//! The finer level that a level is built from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::future::{join, join_all};
use zvf_build::{
    ShardingPolicy,
    coarsen::{AggregatedAttribute, FineChunk, FragmentReference, Ownership, Topology},
};
use zvf_catalog::{Catalog, CellLinks, LinkCells, ObjectSet, Scope, StoredArray};
use zvf_dataset::{
    Dataset, Failure, StateError,
    base::{self, check_whole_level},
    nodes,
};
use zvf_format::{numeric::Dtype, path::Delta};
use zvf_model::{
    array::{CellAttribute, Presence, VertexEncoding, Vertices},
    geometry_kind::GeometryKind,
    grid::ChunkCoord,
    layout::ArrayRole,
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::LinksConvention,
    word::Word,
};

use super::design::Coarsening;

/// Size of a level that another level is built from.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelSize {
    pub(super) vertices: u64,
    pub(super) chunks: u64,
    /// Ratio of the vertices of the next finer level to its own.
    pub(super) fewer: Option<f64>,
}

/// A level, opened to be read chunk by chunk.
pub(super) struct Source<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) id: LevelId,
    pub(super) metadata: LevelMetadata,
    pub(super) vertices: StoredArray,
    pub(super) fragments: StoredArray,
    pub(super) positions: Dtype,
    pub(super) vertex: Vec<Attribute>,
    pub(super) fragment: Vec<Attribute>,
    pub(super) links: Option<Links>,
    pub(super) objects: Option<Arc<ObjectSet>>,
    pub(super) is_shared: bool,
}

/// An attribute with one cell for each chunk.
pub(super) struct Attribute {
    pub(super) name: String,
    part: StoredArray,
    metadata: CellAttribute,
}

/// Links within a level.
pub(super) struct Links {
    pub(super) cells: LinkCells,
    pub(super) width: usize,
    pub(super) directed: bool,
    pub(super) duplicate: bool,
    /// True if links between chunks name the parent first instead of the child. Queries assume so
    /// for skeletons written as a stream.
    pub(super) is_turned: bool,
    /// Attributes of the nodes of the link families.
    pub(super) attributes: Attributes,
    pub(super) fields: Vec<AggregatedAttribute>,
    /// Attributes of the nodes of the link attributes.
    pub(super) field_attributes: Vec<Attributes>,
}

/// The payloads of a chunk.
pub(super) struct Payloads {
    pub(super) vertices: Bytes,
    pub(super) fragments: Bytes,
    pub(super) vertex: Vec<Option<Bytes>>,
    pub(super) fragment: Vec<Option<Bytes>>,
}

impl Payloads {
    /// Returns the size of the payloads in bytes.
    pub(super) fn size(&self) -> u64 {
        let values: usize = self
            .vertex
            .iter()
            .chain(&self.fragment)
            .flatten()
            .map(Bytes::len)
            .sum();
        (self.vertices.len() + self.fragments.len() + values) as u64
    }
}

impl Attribute {
    /// Returns the attributes of the node.
    pub(super) fn attributes(&self) -> &Attributes {
        self.part.attributes()
    }

    pub(super) fn field(
        &self,
        coarsening: &Coarsening,
        keeps: bool,
    ) -> Result<AggregatedAttribute, Failure> {
        field(&self.name, &self.metadata, coarsening, keeps)
    }
}

/// Returns how the values of an attribute are aggregated.
fn field(
    name: &str,
    metadata: &CellAttribute,
    coarsening: &Coarsening,
    keeps: bool,
) -> Result<AggregatedAttribute, Failure> {
    let columns = metadata.row_shape.as_ref().map(|shape| {
        let columns = shape.iter().product::<u64>();
        usize::try_from(columns).unwrap_or(usize::MAX)
    });
    let dictionary = metadata.dictionary.as_ref();
    Ok(AggregatedAttribute {
        name: name.to_owned(),
        dtype: metadata.dtype,
        // Cells written by the reference implementation hold more values than their shape declares.
        columns: None,
        rule: coarsening.rule(
            name,
            metadata.dtype.kind(),
            columns,
            dictionary.is_some(),
            keeps,
        )?,
        missing: dictionary.and_then(|dictionary| dictionary.fill),
    })
}

impl<'a> Source<'a> {
    /// Opens a level and the arrays of its chunks.
    pub(super) async fn open(
        dataset: &'a Dataset,
        id: LevelId,
        coarsening: &Coarsening,
    ) -> Result<Self, Failure> {
        let catalog = dataset.catalog();
        let metadata = base::level(dataset, id).await?;
        check_whole_level(&metadata)?;
        let (vertices, fragments) = join(
            catalog.stored_array(id, &ArrayRole::Vertices),
            catalog.stored_array(id, &ArrayRole::VertexFragments),
        )
        .await;
        let (Some(vertices), Some(fragments)) = (vertices?, fragments?) else {
            return Err(Failure::State(StateError::AbsentLevel {
                address: dataset.address().to_owned(),
                level: id,
            }));
        };
        let array = Vertices::parse(vertices.node(), vertices.attributes())?.value;
        if array.encoding != VertexEncoding::Raw {
            return Err(Failure::NoPyramid {
                why: "its vertices are compressed with Draco, which is not supported",
            });
        }
        if vertices.padded().is_some() {
            return Err(Failure::NoPyramid {
                why: "the profile 0.8-padded has no coarser levels; convert the store to 0.9 with \
                      `zvf migrate` first",
            });
        }
        let vertex = attributes(&catalog, id, Scope::Vertex).await?;
        let fragment = attributes(&catalog, id, Scope::Fragment).await?;
        let objects = catalog.object_list(id).await?;
        let links = if is_linked(dataset) {
            Self::links(dataset, id, coarsening).await?
        } else {
            None
        };
        Ok(Self {
            dataset,
            id,
            positions: array.dtype,
            is_shared: metadata.shared_fragments,
            metadata,
            vertices,
            fragments,
            vertex,
            fragment,
            links,
            objects,
        })
    }

    async fn links(
        dataset: &Dataset,
        id: LevelId,
        coarsening: &Coarsening,
    ) -> Result<Option<Links>, Failure> {
        let catalog = dataset.catalog();
        let Some(cells) = catalog.all_link_cells(id, Delta::INTRA).await? else {
            return Ok(None);
        };
        let families = cells.families();
        let Some((_, width)) = families.first() else {
            return Ok(None);
        };
        let (mut directed, mut duplicate, mut attributes) = (false, false, Attributes::new());
        for (node, node_width) in &families {
            if node_width != width {
                return Err(Failure::NoPyramid {
                    why: "its links do not all have the same number of ends",
                });
            }
            let own = of_node(dataset, node).await?;
            directed |= own.get("directed").and_then(serde_json::Value::as_bool) == Some(true);
            duplicate |= own.get("store").and_then(serde_json::Value::as_str) == Some("duplicate");
            attributes.extend(own);
        }
        let (mut fields, mut field_attributes) = (Vec::new(), Vec::new());
        for (number, (name, metadata)) in cells.attributes().enumerate() {
            let Some(metadata) = metadata else { continue };
            if fields.len() != number {
                return Err(Failure::NoPyramid {
                    why: "the type of an attribute of its links is not declared",
                });
            }
            let mut attributes = Attributes::new();
            let mut metadata = metadata.clone();
            for node in cells.attribute_nodes(number) {
                let own = of_node(dataset, &node).await?;
                // In 0.8 only links between chunks declare the shape of a row.
                if metadata.row_shape.is_none() {
                    metadata.row_shape = CellAttribute::parse(&node, &own)?.value.row_shape;
                }
                attributes.extend(own);
            }
            // No link is kept as it was: each represents all links that were merged.
            fields.push(field(name, &metadata, coarsening, false)?);
            CellAttribute::remove_links(&mut attributes);
            Presence::remove_list(&mut attributes);
            field_attributes.push(attributes);
        }
        let root = dataset.root();
        let is_turned = root.names_parents_first(dataset.detection().generation)
            && directed
            && width.get() == 2;
        Ok(Some(Links {
            width: width.get(),
            is_turned,
            cells,
            directed,
            duplicate,
            attributes,
            fields,
            field_attributes,
        }))
    }

    pub(super) fn catalog(&self) -> Catalog<'_> {
        self.dataset.catalog()
    }

    /// Returns the chunks of the level, ascending.
    pub(super) fn chunks(&self) -> Vec<ChunkCoord> {
        let mut chunks = self.vertices.chunks().to_vec();
        chunks.extend_from_slice(self.fragments.chunks());
        chunks.sort_unstable();
        chunks.dedup();
        chunks
    }

    /// Returns the number of vertex cells in each shard.
    pub(super) fn sharding(&self) -> ShardingPolicy {
        let array = self.vertices.array();
        match array.and_then(|array| array.metadata().sharding().zip(Some(array))) {
            Some((inner, array)) => {
                let outer = array.metadata().chunk_shape.iter();
                let cells = outer.zip(&inner.chunk_shape);
                ShardingPolicy::Shape(cells.map(|(outer, inner)| outer / inner.max(&1)).collect())
            }
            None => ShardingPolicy::None,
        }
    }

    /// Returns the number of chunks, and the size of the positions according to the declared count.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let axes = self.dataset.root().axes.len();
        let row = (self.positions.size() * axes) as u64;
        let vertices = self.metadata.vertex_count.unwrap_or(0);
        let chunks = self.vertices.chunks().len() as u64;
        (chunks, vertices.saturating_mul(row))
    }

    /// Returns the attributes of a scope of [chunks](Scope::OF_CHUNKS).
    pub(super) fn attributes(&self, scope: Scope) -> &[Attribute] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link | Scope::Object | Scope::Group => &[],
        }
    }

    /// Counts vertices and chunks.
    pub(super) async fn size(&self) -> Result<LevelSize, Failure> {
        let info = base::count(self.dataset, &self.metadata).await?;
        Ok(LevelSize {
            vertices: info.vertices.unwrap_or(0),
            chunks: info.chunks,
            fewer: None,
        })
    }

    /// Returns whether the objects are paths.
    pub(super) fn is_paths(&self) -> bool {
        self.dataset.root().kinds().any(GeometryKind::is_paths)
    }

    /// Calls `each` with the object, fragment and position of each vertex that fragments of a chunk
    /// name.
    pub(super) fn positions(
        &self,
        chunk: &ChunkCoord,
        payloads: &Payloads,
        named: &[FragmentReference],
        each: &mut dyn FnMut(u32, u32, &[f64]),
    ) -> Result<(), Failure> {
        let fine = FineChunk {
            name: format!("{}/vertices/{chunk}", self.id),
            positions: &payloads.vertices,
            fragments: &payloads.fragments,
            named,
            ..FineChunk::default()
        };
        let axes = self.dataset.root().axes.len();
        let has_objects = self.objects.is_some();
        Ok(fine.each_position(self.positions, axes, has_objects, each)?)
    }

    /// Returns whether each axis is spatial. Chunks are not merged along others, such as time and
    /// channels, so that chunks of one step keep the steps apart.
    pub(super) fn spatial_axes(&self) -> Vec<bool> {
        let axes = self.dataset.root().axes.iter();
        axes.map(|axis| axis.kind.as_deref().is_none_or(|kind| kind == "space"))
            .collect()
    }

    /// Returns how objects own vertices.
    pub(super) fn shape(&self, shares: bool) -> Ownership {
        // A linked vertex is one vertex for all its links, and belongs to one object.
        let shares = shares && self.links.is_none();
        if self.objects.is_some() && (self.is_paths() || self.is_shared || shares) {
            return if self.links.is_none() && !self.is_paths() {
                Ownership::SharedPoints
            } else {
                Ownership::Shared
            };
        }
        let convention = self.dataset.root().links_convention.clone();
        // Links that the order of rows implies have two ends.
        let are_edges = self.links.as_ref().is_some_and(|links| links.width == 2);
        if convention == Some(Word::Known(LinksConvention::ImplicitWithBranches)) && are_edges {
            Ownership::Trees
        } else {
            Ownership::Exclusive
        }
    }

    /// Returns the structure of the geometry.
    pub(super) fn topology(&self) -> Topology {
        let links = self.links.as_ref();
        self.shape(false).topology(links.map(|links| links.width))
    }

    /// Returns the references of objects to fragments, by chunk.
    pub(super) fn named(&self) -> BTreeMap<ChunkCoord, Vec<FragmentReference>> {
        let mut named: BTreeMap<ChunkCoord, Vec<FragmentReference>> = BTreeMap::new();
        let Some(objects) = &self.objects else {
            return named;
        };
        let mut by_number: Vec<Vec<FragmentReference>> = Vec::new();
        for index in 0..objects.len() {
            let row = objects.row(index).and_then(|row| u32::try_from(row).ok());
            let Some(object) = row else { continue };
            for (at, piece) in (0u32..).zip(objects.fragments(index)) {
                let number = piece.chunk as usize;
                if by_number.len() <= number {
                    by_number.resize(number + 1, Vec::new());
                }
                by_number[number].push(FragmentReference {
                    object,
                    at,
                    fragment: piece.fragment,
                });
            }
        }
        for (number, own) in (0u32..).zip(by_number) {
            if let Some(chunk) = objects.chunk(number) {
                named.insert(chunk.clone(), own);
            }
        }
        named
    }

    /// Reads the payloads of chunks. All arrays are read concurrently, each in one round trip.
    pub(super) async fn read(&self, chunks: &[ChunkCoord]) -> Result<Vec<Payloads>, Failure> {
        let catalog = self.catalog();
        let own = join(
            cells(&catalog, &self.vertices, chunks),
            cells(&catalog, &self.fragments, chunks),
        );
        let vertex = attribute_cells(self, &self.vertex, chunks);
        let fragment = attribute_cells(self, &self.fragment, chunks);
        let ((own, vertex), fragment) = join(join(own, vertex), fragment).await;
        let (rows, indexes) = (own.0?, own.1?);
        let (mut vertex, mut fragment) = (vertex?, fragment?);
        let payloads = rows
            .into_iter()
            .zip(indexes)
            .enumerate()
            .map(|(at, (rows, index))| {
                let take = |all: &mut Vec<Vec<Option<Bytes>>>| {
                    all.iter_mut()
                        .map(|cells| cells[at].take())
                        .collect::<Vec<_>>()
                };
                Payloads {
                    vertices: rows.unwrap_or_default(),
                    fragments: index.unwrap_or_default(),
                    vertex: take(&mut vertex),
                    fragment: take(&mut fragment),
                }
            });
        Ok(payloads.collect())
    }

    /// Returns whether a cell holds the first copy of its links. With duplicated links, every chunk
    /// that a link touches has a copy.
    pub(super) fn is_first_copy(&self, cell: &CellLinks) -> bool {
        let is_copied = self.links.as_ref().is_some_and(|links| links.duplicate);
        !is_copied || cell.chunks.first() <= cell.chunks.iter().min()
    }

    /// Reads cells of links. Links of trees are returned with the child first.
    pub(super) async fn read_links(&self, cells: &[usize]) -> Result<Vec<CellLinks>, Failure> {
        let Some(links) = self.links.as_ref().filter(|_| !cells.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut read = self.catalog().read_links(&links.cells, cells).await?;
        for (own, cell) in read.iter_mut().zip(cells) {
            if links.is_turned && !links.cells.is_aligned(*cell) {
                own.ends.chunks_exact_mut(2).for_each(<[_]>::reverse);
            }
        }
        Ok(read)
    }

    /// Returns the ids of the objects, by row.
    pub(super) fn ids(&self) -> Vec<i64> {
        let objects = self.objects.as_deref();
        let indices = 0..objects.map_or(0, ObjectSet::len);
        indices
            .filter_map(|index| objects.and_then(|objects| objects.id(index)))
            .collect()
    }

    /// Returns the chunk of the coarser level that covers `chunk`.
    pub(super) fn chunk_of(&self, chunk: &ChunkCoord, scale: &[i64]) -> ChunkCoord {
        let leading = usize::from(self.metadata.attribute_chunking.is_some());
        let coords = chunk.coords().iter().enumerate().map(|(axis, at)| {
            if axis < leading {
                *at
            } else {
                at.div_euclid(scale.get(axis - leading).copied().unwrap_or(1))
            }
        });
        ChunkCoord::new(coords.collect::<Vec<i64>>())
    }

    /// Sorts the cells of links by the chunks of the coarser level: cells within one chunk, cells
    /// that touch a chunk, and cells between several chunks.
    pub(super) fn sorted_links(&self, scale: &[i64]) -> SortedLinks {
        let mut sorted = SortedLinks::default();
        let Some(links) = &self.links else {
            return sorted;
        };
        for cell in 0..links.cells.len() {
            let chunks = links.cells.chunks(cell).unwrap_or_default();
            let coarse: BTreeSet<ChunkCoord> = chunks
                .iter()
                .map(|chunk| self.chunk_of(chunk, scale))
                .collect();
            match coarse.len() {
                0 => {}
                1 => {
                    let coarse = coarse.into_iter().next();
                    sorted
                        .inside
                        .entry(coarse.unwrap_or_else(|| ChunkCoord::new(Vec::new())))
                        .or_default()
                        .push(cell);
                }
                _ => {
                    for chunk in &coarse {
                        sorted.touching.entry(chunk.clone()).or_default().push(cell);
                    }
                    let key: Vec<ChunkCoord> = coarse.into_iter().collect();
                    sorted.between.entry(key).or_default().push(cell);
                }
            }
        }
        sorted
    }
}

/// Cells of links, by the chunks of the coarser level.
#[derive(Default)]
pub(super) struct SortedLinks {
    pub(super) inside: BTreeMap<ChunkCoord, Vec<usize>>,
    pub(super) touching: BTreeMap<ChunkCoord, Vec<usize>>,
    pub(super) between: BTreeMap<Vec<ChunkCoord>, Vec<usize>>,
}

/// Returns whether links carry more than the order of vertices.
fn is_linked(dataset: &Dataset) -> bool {
    dataset.root().kinds().any(GeometryKind::is_linked)
}

async fn attributes(
    catalog: &Catalog<'_>,
    id: LevelId,
    scope: Scope,
) -> Result<Vec<Attribute>, Failure> {
    let mut attributes = Vec::new();
    for name in catalog.attribute_list(id, scope).await?.iter() {
        let Some(part) = catalog.stored_array(id, &scope.array(name)).await? else {
            continue;
        };
        attributes.push(Attribute {
            name: name.clone(),
            metadata: CellAttribute::parse(part.node(), part.attributes())?.value,
            part,
        });
    }
    Ok(attributes)
}

async fn attribute_cells(
    source: &Source<'_>,
    attributes: &[Attribute],
    chunks: &[ChunkCoord],
) -> Result<Vec<Vec<Option<Bytes>>>, Failure> {
    let catalog = source.catalog();
    let all = attributes
        .iter()
        .map(|attribute| cells(&catalog, &attribute.part, chunks));
    join_all(all).await.into_iter().collect()
}

/// Reads the cells of an array; `None` for chunks without a cell.
async fn cells(
    catalog: &Catalog<'_>,
    part: &StoredArray,
    chunks: &[ChunkCoord],
) -> Result<Vec<Option<Bytes>>, Failure> {
    let has = |chunk: &&ChunkCoord| part.chunks().binary_search(chunk).is_ok();
    let present: Vec<ChunkCoord> = chunks.iter().filter(has).cloned().collect();
    let mut read = catalog.stored_cells(part, &present).await.into_iter();
    let mut cells = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        cells.push(if has(&chunk) {
            read.next()
                .transpose()
                .map_err(zvf_catalog::CatalogError::from)?
        } else {
            None
        });
    }
    Ok(cells)
}

/// Reads the attributes of a node.
pub(super) async fn of_node(
    dataset: &Dataset,
    key: &zvf_model::key::Key,
) -> Result<Attributes, Failure> {
    let node = nodes::read_one(dataset.store(), key).await?;
    Ok(node
        .map(|node| node.attributes().clone())
        .unwrap_or_default())
}
