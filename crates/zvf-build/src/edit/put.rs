//! Encoding of an edited level.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{links::RowForm, numeric::ByteOrder, path::ChunkCoords};
use zvf_model::{
    array::{Groups, ObjectIndex, ObjectIndexLayout, overlaid},
    key::Key,
    layout::{ArrayRole, GroupRole, LevelKeys},
    level::LevelId,
    metadata::Attributes,
    zarr::{Array, Codec, Codecs, Node},
};

use super::{
    change::Edits,
    chunk::{Chunk, Fragment},
    error::{EditError, damaged, missing},
    image::{CellId, LevelSnapshot, PerChunk},
    links,
    tables::{self},
};
use crate::{CellCompression, design::Profile, output::Output};

impl LevelSnapshot {
    /// Encodes chunks as cells.
    pub(super) fn put_chunks(
        &mut self,
        chunks: &BTreeMap<Vec<i64>, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        for (coords, chunk) in chunks {
            let mut put = |path: &str, bytes: Vec<u8>| self.put(path, coords, bytes, edits);
            put("0/vertices", chunk.positions.clone())?;
            let removed = chunk.rows == 0;
            let index = if removed { Vec::new() } else { chunk.index()? };
            put("0/vertex_fragments", index)?;
            for (path, bytes) in &chunk.vertex {
                put(path, bytes.clone())?;
            }
            for (path, bytes) in &chunk.fragment {
                put(path, if removed { Vec::new() } else { bytes.clone() })?;
            }
        }
        Ok(())
    }

    pub(super) fn put_links(
        &mut self,
        cells: &BTreeMap<CellId, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        for ((segment, source), cell) in cells {
            let path = format!("0/links/0/{segment}");
            let (bytes, index) = links::store(cell, segment)?;
            let empty = cell.rows == 0;
            let or_none = |bytes: Vec<u8>| if empty { Vec::new() } else { bytes };
            self.put(&path, source, or_none(bytes), edits)?;
            if let Some(index) = index
                && self.arrays.contains_key("0/link_fragments")
            {
                self.put("0/link_fragments", source, or_none(index), edits)?;
            }
            for (path, bytes) in &cell.vertex {
                self.put(path, source, or_none(bytes.clone()), edits)?;
            }
        }
        Ok(())
    }

    /// Writes or deletes a cell, and updates the cell list of its array.
    pub(super) fn put(
        &mut self,
        path: &str,
        coords: &[i64],
        bytes: Vec<u8>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let array = self.arrays.get_mut(path);
        let array = array.ok_or_else(|| missing(path))?;
        let node = self.nodes.get_mut(path);
        let node = node.ok_or_else(|| missing(path))?;
        let key = (path.to_owned(), coords.to_vec());
        if bytes.is_empty() {
            if array.present.remove(coords) {
                edits.cells.insert(key, None);
            }
            return Ok(());
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(EditError::Build(crate::BuildError::CellSize {
                chunk: ChunkCoords(coords).to_string(),
                array: path.to_owned(),
                bytes: bytes.len() as u64,
            }));
        }
        grow(array, node, coords)?;
        array.present.insert(coords.to_vec());
        if self.cells.get(&key) != Some(&bytes) {
            edits.cells.insert(key, Some(bytes));
        }
        Ok(())
    }

    /// Writes changed nodes.
    pub(super) fn put_level(&mut self, chunks: &BTreeMap<Vec<i64>, Chunk>, edits: &mut Edits) {
        for (path, array) in &self.arrays {
            let mut keys: Vec<String> = array
                .present
                .iter()
                .map(|at| ChunkCoords(at).to_string())
                .collect();
            keys.sort_unstable();
            if let Some(node) = self.nodes.get_mut(path) {
                node["attributes"]["nonempty_chunks"] = json!(keys);
            }
        }
        let tiles = chunks.values().all(|chunk| {
            let mut end = 0;
            chunk.fragments.iter().all(|fragment| {
                let follows = matches!(fragment, Fragment::Range(start, _) if *start == end);
                if let Fragment::Range(_, next) = fragment {
                    end = *next;
                }
                follows
            }) && end == chunk.rows
        });
        if let Some(node) = self.nodes.get_mut("0") {
            let level = &mut node["attributes"]["zarr_vectors_level"];
            let vertices = level["vertex_count"].as_u64().unwrap_or(0);
            let vertices = vertices
                .saturating_add(edits.added)
                .saturating_sub(edits.removed);
            level["vertex_count"] = json!(vertices);
            if let Some(level) = level.as_object_mut() {
                if !tiles {
                    level.remove("fragments_tile");
                }
                // Links and fragments may have changed; the claim is made by checking all of them.
                if !edits.cells.is_empty() {
                    level.remove("fragment_link_groups");
                }
            }
        }
        self.recount_links(edits);
        edits.nodes = std::mem::take(&mut self.nodes);
        self.nodes.clone_from(&edits.nodes);
        edits.nodes.retain(|path, _| !is_table(path));
    }

    /// Updates the link counts of a family by the difference of its cells before and after. Of
    /// duplicated links the leading copy counts.
    pub(super) fn recount_links(&mut self, edits: &Edits) {
        let Some(family) = self.links else {
            return;
        };
        let mut rows = (0u64, 0u64);
        let mut logical = (0u64, 0u64);
        for ((path, source), after) in &edits.cells {
            let Some(segment) = path.strip_prefix("0/links/0/") else {
                continue;
            };
            let form = self.arrays.get(path);
            let form = form.map_or(RowForm::Plain, |array| array.row_form);
            let count = |bytes: &[u8]| links::counted(bytes, segment, family, form);
            let before = self.cells.get(&(path.clone(), source.clone()));
            let before = before.map_or((0, 0), |bytes| count(bytes));
            let after = after.as_ref().map_or((0, 0), |bytes| count(bytes));
            rows = (rows.0 + before.0, rows.1 + after.0);
            logical = (logical.0 + before.1, logical.1 + after.1);
        }
        for (path, node) in &mut self.nodes {
            let of_links = path == "0/links/0";
            let of_attributes = path.starts_with("0/link_attributes/") && path.ends_with("/0");
            if !of_links && !of_attributes || node["node_type"].as_str() != Some("group") {
                continue;
            }
            let now = |name: &str, (before, after): (u64, u64)| {
                let count = links::count(node, name);
                count.saturating_add(after).saturating_sub(before)
            };
            let (links, physical) = (now("num_links", logical), now("num_physical_records", rows));
            node["attributes"]["num_links"] = json!(links);
            if of_links {
                node["attributes"]["num_physical_records"] = json!(physical);
            }
        }
    }

    pub(super) fn put_tables(&mut self, edits: &mut Edits) -> Result<(), EditError> {
        let outputs = &mut edits.tables;
        let keys = Profile::V09.keys(LevelId::FULL);
        if let Some(ids) = &self.tables.ids {
            self.put_index(ids, keys, outputs)?;
        }
        for (role, tables) in [
            (GroupRole::ObjectAttributes, &self.tables.object),
            (GroupRole::GroupAttributes, &self.tables.group),
        ] {
            let folder = keys.group(role).map_err(crate::BuildError::from)?;
            if !tables.is_empty() {
                outputs.push(self.table_group(folder.clone(), Attributes::new()));
            }
            for (name, table) in tables {
                let key = folder.join(name).map_err(crate::BuildError::from)?;
                let own = self.codecs(&key, || Codec::bytes(8))?;
                let column = crate::stored_column::restored(
                    name,
                    table.kind,
                    table.columns,
                    &table.rows,
                    table.fill.as_ref(),
                )?;
                let mut attributes = table.attributes.clone();
                if table.rows.contains(&None) {
                    attributes.insert("fill_sentinel_meaning".to_owned(), json!("absent"));
                }
                attributes.insert("shape".to_owned(), column.shape().into());
                attributes.insert("dtype".to_owned(), column.values.name().into());
                let rows = crate::tables::EncodedRows::of(&column);
                crate::tables::rows(outputs, own, &key, attributes, &rows);
            }
        }
        if !self.tables.groups.is_empty() {
            let groups = self.tables.groups.iter();
            let members: Vec<Vec<u8>> = groups.map(|ids| tables::members(ids)).collect();
            let groups = Groups {
                is_tagged: true,
                num_groups: Some(members.len() as u64),
                ranges: BTreeMap::new(),
            };
            let key = keys
                .values(&ArrayRole::Groups)
                .map_err(crate::BuildError::from)?;
            let own = self.codecs(&key, Codec::vlen_bytes)?;
            let attributes = self.table_attributes(&key, groups.to_attributes());
            crate::tables::strings(outputs, own, &key, attributes, &members, members.len())?;
        }
        Ok(())
    }

    /// Writes the object index.
    fn put_index(
        &self,
        ids: &[i64],
        keys: LevelKeys,
        outputs: &mut Vec<Output>,
    ) -> Result<(), EditError> {
        let values = |part| keys.values(&part).map_err(crate::BuildError::from);
        let manifests = self.tables.manifests.iter();
        let present = manifests.filter(|bytes| bytes.len() > tables::EMPTY_MANIFEST).count();
        let index = ObjectIndex {
            layout: match self.tables.is_dense {
                true => ObjectIndexLayout::Dense,
                false => ObjectIndexLayout::ManifestsWithIds,
            },
            num_objects: ids.len() as u64,
            num_present: Some(present as u64),
            sid_ndim: self.axes,
            ids_sorted: ids.is_sorted(),
        };
        let key = keys
            .node(&ArrayRole::Manifests)
            .map_err(crate::BuildError::from)?;
        outputs.push(self.table_group(key, index.to_attributes()));
        if self.tables.is_dense {
            let (spans, blocks) = self.tables.dense_rows(self.axes)?;
            let arrays = [
                (ArrayRole::ManifestSpans, 2, spans),
                (
                    ArrayRole::ManifestBlocks,
                    self.axes.saturating_add(1),
                    blocks,
                ),
            ];
            for (part, columns, bytes) in arrays {
                let key = values(part)?;
                let own = self.codecs(&key, || Codec::bytes(8))?;
                let rows = crate::tables::EncodedRows::of_dense_index(columns, &bytes);
                let kept = self.table_attributes(&key, Attributes::new());
                crate::tables::rows(outputs, own, &key, kept, &rows);
            }
        } else {
            let key = values(ArrayRole::Manifests)?;
            let own = self.codecs(&key, Codec::vlen_bytes)?;
            let manifests = &self.tables.manifests;
            let is_sharded = self.vertex_codecs()?.plain_sharding().is_some();
            let max = crate::tables::manifests_per_chunk(manifests, is_sharded);
            let kept = self.table_attributes(&key, Attributes::new());
            crate::tables::strings(outputs, own, &key, kept, manifests, max)?;
        }
        let key = values(ArrayRole::ObjectIds)?;
        let own = self.codecs(&key, || Codec::bytes(8))?;
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let rows = crate::tables::EncodedRows::ids(&bytes);
        let kept = self.table_attributes(&key, Attributes::new());
        crate::tables::rows(outputs, own, &key, kept, &rows);
        Ok(())
    }

    /// Returns the group of a table with these attributes and the unknown ones of its stored node.
    fn table_group(&self, key: Key, attributes: Attributes) -> Output {
        let attributes = self.table_attributes(&key, attributes);
        Output::group(key, attributes)
    }

    /// Returns these attributes of a table and the unknown ones of its stored node.
    fn table_attributes(&self, key: &Key, attributes: Attributes) -> Attributes {
        let stored = self.nodes.get(key.as_str());
        let stored = stored.and_then(|node| node["attributes"].as_object());
        overlaid(stored.unwrap_or(&Map::new()), attributes)
    }

    fn vertex_codecs(&self) -> Result<Codecs, EditError> {
        let path = "0/vertices";
        let array = self.array(path)?;
        let array = array.ok_or_else(|| missing(path))?;
        Ok(array.codecs)
    }

    /// Returns the array at a path, without its attributes.
    pub(super) fn array(&self, path: &str) -> Result<Option<Array>, EditError> {
        let Some(json) = self.nodes.get(path).and_then(Value::as_object) else {
            return Ok(None);
        };
        let members = json.iter().filter(|(name, _)| *name != "attributes");
        let members = members.map(|(name, value)| (name.clone(), value.clone()));
        let key = Key::parse(path).map_err(|error| damaged(path, error))?;
        match Node::from_json(&key, Value::Object(members.collect())) {
            Ok(Node::Array(array)) => Ok(Some(array)),
            Ok(Node::Group(_)) => Ok(None),
            Err(error) => Err(damaged(path, error)),
        }
    }

    /// Returns the codecs of a table: its present codecs without shards and little-endian or, for a
    /// new table, zstd, with a checksum if the vertices have one.
    fn codecs(&self, key: &Key, serializer: fn() -> Codec) -> Result<Codecs, EditError> {
        let Some(array) = self.array(key.as_str())? else {
            let checksum = self.vertex_codecs()?.has_checksum();
            let checksum = checksum.then(Codec::crc32c);
            let compression = CellCompression::Zstd(1)
                .codec(8)
                .into_iter()
                .chain(checksum);
            return Ok(Codecs::new(serializer(), compression));
        };
        // The size of the chunks of a table can change, and inner chunks might no longer divide it.
        let mut own = array.codecs.of_cells().iter();
        let first = own.next().cloned().unwrap_or_else(serializer);
        let first = match first.byte_order() {
            Some(ByteOrder::Big) => Codec::bytes(8),
            _ => first,
        };
        Ok(Codecs::new(first, own.cloned()))
    }
}

pub(super) fn is_table(path: &str) -> bool {
    ["0/object_index", "0/object_attributes", "0/group"]
        .iter()
        .any(|family| path.starts_with(family))
}

/// Extends an array to include a chunk. Grids grow upwards only, because cells keep their index.
pub(super) fn grow(
    array: &mut PerChunk,
    node: &mut Value,
    coords: &[i64],
) -> Result<(), EditError> {
    let mut grown = false;
    for (axis, &at) in coords.iter().enumerate() {
        let origin = array.origin[axis];
        if at < origin {
            if !array.present.is_empty() {
                return Err(EditError::ChunkBelowGrid {
                    axis,
                    chunk: at,
                    first: origin,
                });
            }
            let end = origin.saturating_add_unsigned(array.shape[axis]);
            array.origin[axis] = at;
            array.shape[axis] = end.abs_diff(at);
            grown = true;
        }
        let needed = at.abs_diff(array.origin[axis]) + 1;
        if needed > array.shape[axis] {
            array.shape[axis] = needed;
            grown = true;
        }
    }
    if grown {
        node["shape"] = json!(array.shape);
        let moved = array.origin.iter().any(|at| *at != 0);
        if let Some(attributes) = node["attributes"].as_object_mut()
            && (moved || attributes.contains_key("chunk_grid_origin"))
        {
            attributes.insert("chunk_grid_origin".to_owned(), json!(array.origin));
        }
    }
    Ok(())
}
