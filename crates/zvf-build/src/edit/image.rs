//! Snapshot of a level.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zvf_format::{
    links::RowForm,
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{LinkFamily, LinkStore, VertexEncoding},
    attribute_name::label,
    grid::{Bins, ChunkShape},
    key::Key,
    layout::{AddressError, ArrayRole, GroupRole, LevelKeys},
    level::LevelId,
    level_content::{CellContent, ChunkArray, LevelContent},
    metadata::Attributes,
    root::RootMetadata,
    row_id::RowId,
    scope::Scope,
    word::Word,
    zarr::Node,
};

use super::{
    error::{EditError, damaged, missing},
    tables::Tables,
};
use crate::{
    GeometryKind, Profile,
    design::{Design, OutOfBounds, StepLinks},
};

/// Array and chunk of a cell.
pub type CellId = (Key, Vec<i64>);

/// Keys of the nodes of level 0 that changes write.
#[derive(Clone, Debug)]
pub(super) struct NodeKeys {
    pub(super) all: LevelKeys,
    pub(super) level: Key,
    pub(super) vertices: Key,
    pub(super) vertex_fragments: Key,
    pub(super) link_fragments: Key,
    /// The groups of attributes with a cell for each chunk.
    attributes: Vec<(Scope, Key)>,
    /// Attribute of fragments: the object that they belong to.
    pub(super) owners: Key,
    /// The families of links.
    pub(super) links: Key,
    /// The family of the links inside the level.
    pub(super) link_family: Key,
    pub(super) link_attributes: Key,
}

impl NodeKeys {
    fn new() -> Result<Self, AddressError> {
        let all = Profile::V09.keys(LevelId::FULL);
        Ok(Self {
            all,
            level: all.level()?,
            vertices: all.node(&ArrayRole::Vertices)?,
            vertex_fragments: all.node(&ArrayRole::VertexFragments)?,
            link_fragments: all.node(&ArrayRole::LinkFragments)?,
            attributes: Scope::OF_CHUNKS
                .into_iter()
                .map(|scope| Ok((scope, all.group(scope.group())?)))
                .collect::<Result<_, AddressError>>()?,
            owners: all.node(&ArrayRole::OWNERS)?,
            links: all.group(GroupRole::Links)?,
            link_family: all.node(&ArrayRole::LinkFamily(Delta::INTRA))?,
            link_attributes: all.group(GroupRole::LinkAttributes)?,
        })
    }

    /// Returns the scope of an attribute with a cell for each chunk; `None` for other nodes.
    pub(super) fn scope_of(&self, array: &Key) -> Option<Scope> {
        let mut attributes = self.attributes.iter();
        let own = attributes.find(|(_, group)| array.is_below(group));
        own.map(|(scope, _)| *scope)
    }

    /// Returns whether the cells of an array belong to links.
    pub(super) fn is_of_links(&self, array: &Key) -> bool {
        *array == self.link_fragments
            || array.is_below(&self.links)
            || array.is_below(&self.link_attributes)
    }

    /// Returns whether a node is the family of an attribute of the links inside the level.
    pub(super) fn is_link_attribute_family(&self, node: &Key) -> bool {
        let mut below = self.below_link_attributes(node);
        let family = (below.next(), below.next(), below.next());
        matches!(family, (Some(_), Some(delta), None) if *delta == *Delta::INTRA.to_string())
    }

    /// Returns the name of an attribute of links from one of its nodes; `None` for other nodes.
    pub(super) fn link_attribute<'k>(&self, node: &'k Key) -> Option<Cow<'k, str>> {
        self.below_link_attributes(node).next().map(label)
    }

    /// Returns the segments of a node below the attributes of links; none for other nodes.
    fn below_link_attributes<'k>(&self, node: &'k Key) -> impl Iterator<Item = &'k str> {
        let folder = self.link_attributes.segments().count();
        let is_below = node.is_below(&self.link_attributes);
        node.segments().skip(folder).filter(move |_| is_below)
    }
}

/// Nodes, tables and loaded cells of a level of generation 0.9.
#[derive(Clone, Debug)]
pub struct LevelSnapshot {
    pub(super) kind: GeometryKind,
    pub(super) axes: usize,
    pub(super) chunk: ChunkShape,
    pub(super) bins: Option<Bins>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) positions: Kind,
    /// Number of chunks along each axis of the shards of added arrays.
    pub(super) shards: Option<Vec<u64>>,
    /// Attributes of the root.
    pub(super) root: Attributes,
    pub(super) keys: Arc<NodeKeys>,
    /// The nodes of the level, in which a change is written.
    pub(super) nodes: BTreeMap<Key, Node>,
    /// Arrays with one cell for each chunk.
    pub(super) arrays: BTreeMap<Key, PerChunk>,
    pub(super) links: Option<LinkFamily>,
    pub(super) tables: Tables,
    pub(super) cells: BTreeMap<CellId, Vec<u8>>,
}

/// Array with one cell for each chunk.
#[derive(Clone, Debug)]
pub(super) struct PerChunk {
    pub(super) origin: Vec<i64>,
    pub(super) shape: Vec<u64>,
    pub(super) present: BTreeSet<Vec<i64>>,
    pub(super) cells: CellContent,
}

impl PerChunk {
    /// Returns the form of the rows of links, which may have a permutation column.
    pub(super) fn row_form(&self) -> RowForm {
        match &self.cells {
            CellContent::Links(links) => links.row_form,
            _ => RowForm::Plain,
        }
    }
}

impl From<ChunkArray> for PerChunk {
    fn from(array: ChunkArray) -> Self {
        let chunks = array.chunks.iter().map(|chunk| chunk.coords().to_vec());
        Self {
            origin: array.grid.origin().to_vec(),
            shape: array.grid.shape().to_vec(),
            present: chunks.collect(),
            cells: array.cells,
        }
    }
}

impl LevelSnapshot {
    /// Creates a snapshot of level 0 as its catalog opened it. `root` is the attributes of the root,
    /// and `nodes` the nodes at and below the level, in which a change is written.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the store has something that edits do not support.
    pub fn new(
        metadata: &RootMetadata,
        content: LevelContent,
        root: Attributes,
        nodes: BTreeMap<Key, Node>,
    ) -> Result<Self, EditError> {
        let keys = NodeKeys::new()?;
        let first = metadata.geometry_kinds.first();
        let kind = first.and_then(Word::known).ok_or(EditError::Unsupported(
            "the store does not declare its kind of geometry",
        ))?;
        if content.metadata.attribute_chunking.is_some() {
            return Err(EditError::Unsupported(
                "the store is chunked by an attribute",
            ));
        }
        let chunk = content.metadata.effective_chunk_shape(metadata).clone();
        let bins = metadata
            .base_bin_shape
            .clone()
            .filter(|_| kind == GeometryKind::Points);
        let bins = bins.map(|bins| Bins::new(&chunk, bins)).transpose();
        let of_root = Key::root().metadata()?;
        let bins = bins.map_err(|error| damaged(&of_root, error))?;
        let bounds = metadata
            .bounds
            .as_ref()
            .ok_or_else(|| damaged(&of_root, "no bounds"))?;
        let mut arrays = BTreeMap::new();
        for array in content.arrays {
            check_encoding(&array.cells)?;
            arrays.insert(array.node.clone(), PerChunk::from(array));
        }
        let vertices: Option<&PerChunk> = arrays.get(&keys.vertices);
        let vertices = vertices.ok_or_else(|| missing(&keys.vertices))?;
        let positions = vertices.cells.dtype();
        let tables = Tables::new(
            keys.all,
            content.objects,
            content.object_attributes,
            content.groups,
            content.group_attributes,
        );
        Ok(Self {
            kind,
            axes: chunk.axes(),
            chunk,
            bins,
            lower: bounds.lower().to_vec(),
            upper: bounds.upper().to_vec(),
            positions: positions.map_or(Kind::Float32, Dtype::kind),
            shards: metadata.shard_shape.clone(),
            root,
            keys: Arc::new(keys),
            nodes,
            arrays,
            links: content.links,
            tables: tables?,
            cells: BTreeMap::new(),
        })
    }

    /// Loads a cell.
    pub fn load(&mut self, key: CellId, payload: Vec<u8>) {
        self.cells.insert(key, payload);
    }

    /// Returns the design for geometry to add.
    pub fn design(&self, out_of_bounds: OutOfBounds) -> Design {
        let bins = self.bins.as_ref().filter(|_| self.tables.ids.is_none());
        Design {
            chunk_shape: Some(self.chunk.extents().to_vec()),
            bin_shape: bins.map(|bins| bins.shape().extents().to_vec()),
            dtype: Some(self.positions),
            directed: self.links.as_ref().is_some_and(|family| family.directed),
            duplicate: self.has_copies(),
            step_links: self.step_links(),
            bounds: Some((self.lower.clone(), self.upper.clone())),
            out_of_bounds,
            ..Design::new(self.kind)
        }
    }

    /// Returns the steps of paths that are stored as links.
    fn step_links(&self) -> StepLinks {
        // Links inside chunks have fragments.
        let has_inside = self.arrays.contains_key(&self.keys.link_fragments);
        match (&self.links, has_inside) {
            (None, _) => StepLinks::None,
            (Some(_), true) => StepLinks::All,
            (Some(_), false) => StepLinks::Between,
        }
    }

    /// Returns whether each chunk that a link touches stores a copy of it.
    pub(super) fn has_copies(&self) -> bool {
        let family = self.links.as_ref();
        family.is_some_and(|family| family.store == LinkStore::Duplicate)
    }

    /// Returns the kind of geometry.
    pub fn kind(&self) -> GeometryKind {
        self.kind
    }

    /// Returns an id greater than all object ids; `None` without an object index.
    pub fn next_id(&self) -> Option<i64> {
        let ids = self.tables.ids.as_ref()?;
        Some(ids.iter().max().map_or(0, |id| id.saturating_add(1)).max(0))
    }

    /// Returns whether the level has an object of this id.
    pub fn has_object(&self, id: i64) -> bool {
        self.tables.row_of.contains_key(&id)
    }

    /// Returns the chunks with vertices.
    pub fn chunks(&self) -> impl Iterator<Item = &Vec<i64>> {
        self.arrays
            .get(&self.keys.vertices)
            .into_iter()
            .flat_map(|array| &array.present)
    }

    /// Returns rows with these addresses by chunk.
    ///
    /// # Errors
    ///
    /// [`EditError::UnknownRow`] if there is no such chunk.
    pub fn rows_by_chunk(
        &self,
        ids: impl IntoIterator<Item = RowId>,
    ) -> Result<BTreeMap<Vec<i64>, BTreeSet<u64>>, EditError> {
        let chunks: Vec<&Vec<i64>> = self.chunks().collect();
        let mut rows: BTreeMap<Vec<i64>, BTreeSet<u64>> = BTreeMap::new();
        let mut ids: Vec<RowId> = ids.into_iter().collect();
        ids.sort_unstable();
        for same in ids.chunk_by(|one, next| one.chunk() == next.chunk()) {
            let Some(first) = same.first() else {
                continue;
            };
            let rank = usize::try_from(first.chunk()).unwrap_or(usize::MAX);
            let chunk = chunks.get(rank).ok_or_else(|| EditError::UnknownRow {
                chunk: format!("number {rank}"),
                row: first.row(),
            })?;
            rows.insert((*chunk).clone(), same.iter().map(|id| id.row()).collect());
        }
        Ok(rows)
    }
}

/// Refuses cells that edits cannot rewrite.
fn check_encoding(cells: &CellContent) -> Result<(), EditError> {
    let is_big = |dtype: &Dtype| dtype.order() == ByteOrder::Big && dtype.size() > 1;
    if cells.dtype().is_some_and(|dtype| is_big(&dtype)) {
        return Err(EditError::Unsupported(
            "numbers are stored with the most significant byte first",
        ));
    }
    match cells {
        CellContent::Vertices(vertices) if vertices.encoding == VertexEncoding::Draco => {
            Err(EditError::Unsupported("vertices are encoded with Draco"))
        }
        _ => Ok(()),
    }
}
