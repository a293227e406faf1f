//! Encoding of an edited level.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{links::RowForm, path::ChunkCoords};

use super::{
    change::Edits,
    chunk::{Chunk, Fragment},
    error::{EditError, missing},
    image::{CellId, LevelSnapshot, PerChunk},
    links,
    tables::{self},
};
use crate::{
    CellCompression, metadata,
    migrate::overlaid,
    output::{self, Output},
};

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
        if let Some(ids) = &self.tables.ids {
            let present = self
                .tables
                .manifests
                .iter()
                .filter(|bytes| bytes.len() > tables::EMPTY_MANIFEST)
                .count();
            let layout = match self.tables.is_dense {
                true => tables::DENSE_LAYOUT,
                false => "vlen_manifests_v2",
            };
            let attributes = json!({
                "zv_array": "object_index", "num_objects": ids.len(), "num_present": present,
                "sid_ndim": self.axes, "layout": layout,
                "object_ids_sorted": ids.is_sorted(),
            });
            outputs.push(self.table_group("0/object_index", attributes));
            if self.tables.is_dense {
                let (spans, blocks) = self.tables.dense_rows(self.axes)?;
                let arrays = [
                    ("manifest_spans", 2, spans),
                    ("manifest_blocks", self.axes.saturating_add(1), blocks),
                ];
                for (name, columns, bytes) in arrays {
                    let path = format!("0/object_index/{name}");
                    let own = codecs(&path, false, &self.nodes);
                    let rows = crate::tables::EncodedRows::of_dense_index(columns, &bytes);
                    let kept = self.table_attributes(&path, json!({}));
                    crate::tables::rows(outputs, own, &path, kept, &rows);
                }
            } else {
                let path = "0/object_index/manifests";
                let own = codecs(path, true, &self.nodes);
                let manifests = &self.tables.manifests;
                let is_sharded = self
                    .nodes
                    .get("0/vertices")
                    .is_some_and(metadata::is_sharded);
                let max = crate::tables::manifests_per_chunk(manifests, is_sharded);
                let kept = self.table_attributes(path, json!({}));
                crate::tables::strings(outputs, own, path, kept, manifests, max)?;
            }
            let path = "0/object_index/object_ids";
            let own = codecs(path, false, &self.nodes);
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let rows = crate::tables::EncodedRows::ids(&bytes);
            let kept = self.table_attributes(path, json!({}));
            crate::tables::rows(outputs, own, path, kept, &rows);
        }
        for (family, tables) in [
            ("object_attributes", &self.tables.object),
            ("group_attributes", &self.tables.group),
        ] {
            if !tables.is_empty() {
                outputs.push(self.table_group(&format!("0/{family}"), json!({})));
            }
            for (name, table) in tables {
                let path = format!("0/{family}/{name}");
                let own = codecs(&path, false, &self.nodes);
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
                attributes.insert("shape".to_owned(), crate::tables::shape(&column));
                attributes.insert("dtype".to_owned(), json!(column.dtype));
                let rows = crate::tables::EncodedRows::of(&column);
                crate::tables::rows(outputs, own, &path, attributes, &rows);
            }
        }
        if !self.tables.groups.is_empty() {
            let groups = self.tables.groups.iter();
            let members: Vec<Vec<u8>> = groups.map(|ids| tables::members(ids)).collect();
            let attributes = json!({"zv_array": "groups", "num_groups": members.len()});
            let own = codecs("0/groups", true, &self.nodes);
            let attributes = self.table_attributes("0/groups", attributes);
            crate::tables::strings(
                outputs,
                own,
                "0/groups",
                attributes,
                &members,
                members.len(),
            )?;
        }
        Ok(())
    }

    /// Returns the group of a table with these attributes and the unknown ones of its stored node.
    fn table_group(&self, path: &str, attributes: Value) -> Output {
        let attributes = self.table_attributes(path, attributes);
        output::node(path, output::group_metadata(&attributes))
    }

    /// Returns these attributes of a table and the unknown ones of its stored node.
    fn table_attributes(&self, path: &str, attributes: Value) -> Map<String, Value> {
        let stored = self.nodes.get(path);
        let stored = stored.and_then(|node| node["attributes"].as_object());
        overlaid(stored.unwrap_or(&Map::new()), attributes)
    }
}

/// Returns the codecs of a table: its present codecs without shards and little-endian or, for a new
/// table, zstd, with a checksum if the vertices have one.
fn codecs(path: &str, strings: bool, nodes: &BTreeMap<String, Value>) -> Vec<Value> {
    let own = nodes
        .get(path)
        .and_then(|node| node["codecs"].as_array().cloned());
    let vertices = || {
        let codecs = nodes.get("0/vertices").map(|node| node["codecs"].clone());
        let checksum = has_checksum(&codecs.unwrap_or_default());
        let first = if strings {
            metadata::vlen()
        } else {
            metadata::bytes(8)
        };
        let mut all = vec![first];
        all.extend(
            CellCompression::Zstd(1)
                .codec(8)
                .as_ref()
                .map(metadata::described),
        );
        all.extend(checksum.then(|| json!({"name": "crc32c"})));
        all
    };
    // The size of the chunks of a table can change, and inner chunks might no longer divide it.
    let mut codecs = own.map_or_else(vertices, |own| metadata::unsharded(&own));
    for codec in &mut codecs {
        if codec["name"] == "bytes" && codec["configuration"]["endian"] == "big" {
            codec["configuration"]["endian"] = json!("little");
        }
    }
    codecs
}

/// Returns whether cells carry a checksum, inside shards or not.
pub(super) fn has_checksum(codecs: &Value) -> bool {
    let all = codecs.as_array().into_iter().flatten();
    let mut all = all.map(|codec| (codec["name"].as_str(), &codec["configuration"]["codecs"]));
    all.any(|(name, inner)| name == Some("crc32c") || has_checksum(inner))
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
