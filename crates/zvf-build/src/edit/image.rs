//! Snapshot of a level.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_format::{
    links::{LinkWidth, RowForm},
    numeric::{ByteOrder, Dtype, Kind},
};
use zvf_model::{
    array::{LinkFamily, LinkStore, VertexEncoding},
    grid::{Bins, ChunkShape},
    level_content::{CellContent, ChunkArray, LevelContent},
    root::RootMetadata,
    row_id::RowId,
    word::Word,
};

use super::{
    error::{EditError, damaged, missing},
    tables::Tables,
};
use crate::{
    GeometryKind,
    design::{Design, OutOfBounds},
};

/// Array path and chunk of a cell.
pub type CellId = (String, Vec<i64>);

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
    pub(super) root: Map<String, Value>,
    /// The nodes of the level by path, in which a change is written.
    pub(super) nodes: BTreeMap<String, Value>,
    /// Arrays with one cell for each chunk.
    pub(super) arrays: BTreeMap<String, PerChunk>,
    pub(super) links: Option<Family>,
    pub(super) tables: Tables,
    pub(super) cells: BTreeMap<CellId, Vec<u8>>,
}

/// Array with one cell for each chunk.
#[derive(Clone, Debug)]
pub(super) struct PerChunk {
    pub(super) origin: Vec<i64>,
    pub(super) shape: Vec<u64>,
    pub(super) present: BTreeSet<Vec<i64>>,
    /// Type of a number; `None` for fragment indexes.
    pub(super) dtype: Option<Dtype>,
    /// Form of the rows of links, which may have a permutation column.
    pub(super) row_form: RowForm,
}

impl From<ChunkArray> for PerChunk {
    fn from(array: ChunkArray) -> Self {
        let chunks = array.chunks.iter().map(|chunk| chunk.coords().to_vec());
        Self {
            origin: array.grid.origin().to_vec(),
            shape: array.grid.shape().to_vec(),
            present: chunks.collect(),
            dtype: array.cells.dtype(),
            row_form: match &array.cells {
                CellContent::Links(links) => links.row_form,
                _ => RowForm::Plain,
            },
        }
    }
}

/// Policy of the level's links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) width: LinkWidth,
    pub(super) directed: bool,
    pub(super) duplicate: bool,
}

impl From<LinkFamily> for Family {
    fn from(family: LinkFamily) -> Self {
        Self {
            width: family.width,
            directed: family.directed,
            duplicate: family.store == LinkStore::Duplicate,
        }
    }
}

impl LevelSnapshot {
    /// Creates a snapshot of level 0 as its catalog opened it. `root` is the attributes of the root,
    /// and `nodes` the nodes of the level by path, including `0`, in which a change is written.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the store has something that edits do not support.
    pub fn new(
        metadata: &RootMetadata,
        content: LevelContent,
        root: Map<String, Value>,
        nodes: BTreeMap<String, Value>,
    ) -> Result<Self, EditError> {
        let first = metadata.geometry_kinds.first();
        let kind = first.and_then(Word::known);
        let kind = kind.ok_or(EditError::Unsupported(
            "the store does not declare its kind of geometry",
        ))?;
        if content.metadata.attribute_chunking.is_some() {
            return Err(EditError::Unsupported(
                "the store is chunked by an attribute",
            ));
        }
        let chunk = content.metadata.effective_chunk_shape(metadata).clone();
        let bins = metadata.base_bin_shape.clone();
        let bins = bins.filter(|_| kind == GeometryKind::Points);
        let bins = bins.map(|bins| Bins::new(&chunk, bins)).transpose();
        let bins = bins.map_err(|error| damaged("zarr.json", error))?;
        let bounds = metadata.bounds.as_ref();
        let bounds = bounds.ok_or_else(|| damaged("zarr.json", "no bounds"))?;
        let mut arrays = BTreeMap::new();
        for array in content.arrays {
            let path = array.node.as_str().to_owned();
            check_encoding(&array.cells)?;
            arrays.insert(path, PerChunk::from(array));
        }
        let vertices: Option<&PerChunk> = arrays.get("0/vertices");
        let vertices = vertices.ok_or_else(|| missing("0/vertices"))?;
        let positions = vertices.dtype;
        let tables = Tables::new(
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
            nodes,
            arrays,
            links: content.links.map(Family::from),
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
            duplicate: self.links.as_ref().is_some_and(|family| family.duplicate),
            step_links: self.links.is_some(),
            bounds: Some((self.lower.clone(), self.upper.clone())),
            out_of_bounds,
            ..Design::new(self.kind)
        }
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
            .get("0/vertices")
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
