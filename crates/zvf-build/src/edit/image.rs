//! Snapshot of a level.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_format::numeric::{Dtype, Kind};
use zvf_model::{
    grid::{Bins, ChunkShape},
    key::Key,
    root::RootMetadata,
    row_id::RowId,
    zarr::{Array, Node},
};

use super::{
    error::{EditError, damaged},
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
    /// All nodes of the level by path.
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
    /// Stored type.
    pub(super) dtype: Option<Dtype>,
}

/// Policy of the level's links.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) width: usize,
    pub(super) directed: bool,
    pub(super) duplicate: bool,
}

impl LevelSnapshot {
    /// Creates a snapshot from the attributes of the root and the nodes of level 0 by path,
    /// including `0`.
    ///
    /// # Errors
    ///
    /// [`EditError`] when a node is invalid, or the store cannot be edited.
    pub fn new(
        root: Map<String, Value>,
        nodes: BTreeMap<String, Value>,
    ) -> Result<Self, EditError> {
        // Nodes of unknown kinds are not edited.
        let metadata = RootMetadata::parse(&Key::root(), &root);
        let metadata = metadata.map_err(|error| damaged("zarr.json", error))?;
        let block = root.get("zarr_vectors").cloned().unwrap_or_default();
        let list = |value: &Value| -> Option<Vec<f64>> {
            value.as_array()?.iter().map(Value::as_f64).collect()
        };
        let missing = |what: &str| damaged("zarr.json", format!("no {what}"));
        let types = block.get("geometry_types").and_then(Value::as_array);
        let first = types
            .and_then(|types| types.first())
            .and_then(Value::as_str);
        let kind = GeometryKind::ALL
            .into_iter()
            .find(|kind| Some(kind.as_str()) == first);
        let kind = kind.ok_or(EditError::Unsupported(
            "the store does not declare its kind of geometry",
        ))?;
        let level = nodes
            .get("0")
            .ok_or_else(|| EditError::NotLoaded("0".to_owned()))?;
        let level = &level["attributes"]["zarr_vectors_level"];
        if level.get("chunk_attribute_name").is_some() {
            return Err(EditError::Unsupported(
                "the store is chunked by an attribute",
            ));
        }
        let extents = level.get("chunk_shape").or(block.get("chunk_shape"));
        let extents = extents
            .and_then(list)
            .ok_or_else(|| missing("chunk_shape"))?;
        let chunk = ChunkShape::new(&extents).map_err(|error| damaged("zarr.json", error))?;
        let axes = chunk.axes();
        let bins = block.get("base_bin_shape").and_then(list);
        let bins = bins.map(|bins| {
            let shape = ChunkShape::new(&bins).map_err(|error| damaged("zarr.json", error))?;
            Bins::new(&chunk, shape).map_err(|error| damaged("zarr.json", error))
        });
        let bounds = block.get("bounds").and_then(Value::as_array);
        let corner = |at: usize| bounds.and_then(|bounds| bounds.get(at)).and_then(list);
        let corners = corner(0).zip(corner(1));
        let (lower, upper) = corners.ok_or_else(|| missing("bounds"))?;
        if lower.len() != axes || upper.len() != axes {
            return Err(damaged(
                "zarr.json",
                "its bounds have another number of axes",
            ));
        }
        let mut image = Self {
            kind,
            axes,
            chunk,
            bins: bins.transpose()?,
            lower,
            upper,
            positions: Kind::Float32,
            shards: metadata.shard_shape,
            root,
            nodes,
            arrays: BTreeMap::new(),
            links: None,
            tables: Tables::default(),
            cells: BTreeMap::new(),
        };
        image.read_arrays()?;
        image.read_links();
        let vertices = image.arrays.get("0/vertices");
        let vertices = vertices.ok_or_else(|| EditError::NotLoaded("0/vertices".to_owned()))?;
        image.positions = vertices.dtype.map_or(Kind::Float32, Dtype::kind);
        if image.bins.is_some() && image.kind != GeometryKind::Points {
            image.bins = None;
        }
        Ok(image)
    }

    fn read_arrays(&mut self) -> Result<(), EditError> {
        for (path, json) in &self.nodes {
            let Some(array) = array(path, json)? else {
                continue;
            };
            if !is_per_chunk(path) {
                continue;
            }
            let key = Key::parse(path).map_err(|error| damaged(path, error))?;
            let presence = zvf_model::array::Presence::parse(&key, &array, self.axes);
            let presence = presence.map_err(|error| damaged(path, error))?;
            // An array without a list is not empty: a change would replace its cells.
            if let Some(note) = presence.notes.first() {
                return Err(damaged(path, &note.fault));
            }
            let presence = presence.value;
            let attributes = &array.attributes;
            let origin = attributes
                .get("chunk_grid_origin")
                .and_then(Value::as_array);
            let origin = origin.map(|origin| origin.iter().filter_map(Value::as_i64).collect());
            let dtype = attributes.get("dtype").and_then(Value::as_str);
            let dtype = dtype.map(|text| Dtype::parse(text).map_err(|error| damaged(path, error)));
            let dtype = dtype.transpose()?;
            let big =
                dtype.is_some_and(|dtype| dtype.order() == zvf_format::numeric::ByteOrder::Big);
            if big && dtype.is_some_and(|dtype| dtype.size() > 1) {
                return Err(EditError::Unsupported(
                    "numbers are stored with the most significant byte first",
                ));
            }
            if attributes.get("encoding").and_then(Value::as_str) == Some("draco") {
                return Err(EditError::Unsupported("vertices are encoded with Draco"));
            }
            let array = PerChunk {
                origin: origin.unwrap_or_else(|| vec![0; self.axes]),
                shape: array.shape.clone(),
                present: presence
                    .chunks()
                    .map(|chunk| chunk.coords().to_vec())
                    .collect(),
                dtype,
            };
            self.arrays.insert(path.clone(), array);
        }
        Ok(())
    }

    fn read_links(&mut self) {
        let Some(family) = self.nodes.get("0/links/0") else {
            return;
        };
        let attributes = &family["attributes"];
        let width = attributes.get("link_width").and_then(Value::as_u64);
        let Some(width) = width.filter(|width| (1..=8).contains(width)) else {
            return;
        };
        self.links = Some(Family {
            width: width as usize,
            directed: attributes["directed"].as_bool().unwrap_or(false),
            duplicate: attributes["store"].as_str() == Some("duplicate"),
        });
    }

    /// Returns the paths of tables, which must be loaded completely.
    pub fn table_paths(&self) -> Vec<String> {
        let tables = self.nodes.iter().filter(|(path, json)| {
            let is_array = json["node_type"].as_str() == Some("array");
            is_array && is_table(path)
        });
        tables.map(|(path, _)| path.clone()).collect()
    }

    /// Loads the decoded chunks of a table: frames, or numbers.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the chunks disagree with the table's metadata.
    pub fn load_table(
        &mut self,
        path: &str,
        chunks: Vec<Option<Vec<u8>>>,
    ) -> Result<(), EditError> {
        let json = self.nodes.get(path);
        let json = json.ok_or_else(|| EditError::NotLoaded(path.to_owned()))?;
        let array = array(path, json)?.ok_or_else(|| EditError::NotLoaded(path.to_owned()))?;
        self.tables.load(path, &array, chunks)
    }

    /// Loads a cell. An absent cell that is listed as present stays missing.
    pub fn load(&mut self, key: CellId, payload: Vec<u8>) {
        self.cells.insert(key, payload);
    }

    /// Completes loading of the tables.
    ///
    /// # Errors
    ///
    /// [`EditError`] when tables disagree.
    pub fn finish_tables(&mut self) -> Result<(), EditError> {
        let index = self.nodes.get("0/object_index");
        let index = index.map(|index| &index["attributes"]);
        let groups = self.nodes.get("0/groups");
        let groups = groups.map(|groups| &groups["attributes"]);
        self.tables.finish(index, groups, self.axes)
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

    /// Returns the number of ends of a link; 2 without links.
    pub fn link_width(&self) -> usize {
        self.links.as_ref().map_or(2, |family| family.width)
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

    /// Returns the number of objects.
    pub fn objects(&self) -> usize {
        self.tables.ids.as_ref().map_or(0, Vec::len)
    }
}

/// Parses the node of an array.
pub(super) fn array(path: &str, json: &Value) -> Result<Option<Array>, EditError> {
    if json.get("node_type").and_then(Value::as_str) != Some("array") {
        return Ok(None);
    }
    let key = Key::parse(path).map_err(|error| damaged(path, error))?;
    match Node::from_json(&key, json.clone()).map_err(|error| damaged(path, error))? {
        Node::Array(array) => Ok(Some(array)),
        Node::Group(_) => Ok(None),
    }
}

/// Returns whether an array has one cell for each chunk.
fn is_per_chunk(path: &str) -> bool {
    let families = ["vertex_attributes/", "fragment_attributes/", "links/0/"];
    let path = path.strip_prefix("0/").unwrap_or(path);
    let of_links = path.strip_prefix("link_attributes/").and_then(|rest| {
        let mut parts = rest.split('/');
        let (_, delta, _) = (parts.next()?, parts.next()?, parts.next()?);
        Some(delta == "0")
    });
    ["vertices", "vertex_fragments", "link_fragments"].contains(&path)
        || families.iter().any(|family| path.starts_with(family))
        || of_links == Some(true)
}

fn is_table(path: &str) -> bool {
    let path = path.strip_prefix("0/").unwrap_or(path);
    path == "groups"
        || ["object_index/", "object_attributes/", "group_attributes/"]
            .iter()
            .any(|family| path.starts_with(family))
}
