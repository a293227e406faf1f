//! Encoding of an edited level.

use std::{collections::BTreeMap, sync::Arc};

use zvf_format::{links::RowForm, numeric::ByteOrder, path::ChunkCoords};
use zvf_model::{
    array::{
        Groups, LinkFamily, ObjectIndex, ObjectIndexLayout, Presence, Table as TableMetadata,
        overlaid,
    },
    key::Key,
    layout::{ArrayRole, GroupRole},
    level::LevelMetadataChange,
    metadata::Attributes,
    zarr::{Array, Codec, Codecs, Node},
};

use super::{
    change::Edits,
    chunk::{Chunk, Fragment},
    error::{EditError, missing},
    image::{CellId, LevelSnapshot, PerChunk},
    links,
    tables::{self},
};
use crate::{CellCompression, output::Output};

impl LevelSnapshot {
    /// Encodes chunks as cells.
    pub(super) fn put_chunks(
        &mut self,
        chunks: &BTreeMap<Vec<i64>, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let keys = Arc::clone(&self.keys);
        for (coords, chunk) in chunks {
            let mut put = |array: &Key, bytes: Vec<u8>| self.put(array, coords, bytes, edits);
            put(&keys.vertices, chunk.positions.clone())?;
            let removed = chunk.rows == 0;
            let fragments = &keys.vertex_fragments;
            let index = if removed {
                Vec::new()
            } else {
                chunk.index(fragments)?
            };
            put(fragments, index)?;
            for (array, bytes) in &chunk.vertex {
                put(array, bytes.clone())?;
            }
            for (array, bytes) in &chunk.fragment {
                put(array, if removed { Vec::new() } else { bytes.clone() })?;
            }
        }
        Ok(())
    }

    pub(super) fn put_links(
        &mut self,
        cells: &BTreeMap<CellId, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let keys = Arc::clone(&self.keys);
        let fragments = &keys.link_fragments;
        for ((array, source), cell) in cells {
            let (bytes, index) = links::store(cell, array, fragments)?;
            let empty = cell.rows == 0;
            let or_none = |bytes: Vec<u8>| if empty { Vec::new() } else { bytes };
            self.put(array, source, or_none(bytes), edits)?;
            if let Some(index) = index
                && self.arrays.contains_key(fragments)
            {
                self.put(fragments, source, or_none(index), edits)?;
            }
            for (array, bytes) in &cell.vertex {
                self.put(array, source, or_none(bytes.clone()), edits)?;
            }
        }
        Ok(())
    }

    /// Writes or deletes a cell, and updates the cell list of its array.
    fn put(
        &mut self,
        key: &Key,
        coords: &[i64],
        bytes: Vec<u8>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let (Some(array), Some(Node::Array(node))) =
            (self.arrays.get_mut(key), self.nodes.get_mut(key))
        else {
            return Err(missing(key));
        };
        let cell = (key.clone(), coords.to_vec());
        if bytes.is_empty() {
            if array.present.remove(coords) {
                edits.cells.insert(cell, None);
            }
            return Ok(());
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(EditError::Build(crate::BuildError::CellSize {
                chunk: ChunkCoords(coords).to_string(),
                array: key.to_string(),
                bytes: bytes.len() as u64,
            }));
        }
        grow(array, node, coords)?;
        array.present.insert(coords.to_vec());
        if self.cells.get(&cell) != Some(&bytes) {
            edits.cells.insert(cell, Some(bytes));
        }
        Ok(())
    }

    /// Writes changed nodes.
    pub(super) fn put_level(&mut self, chunks: &BTreeMap<Vec<i64>, Chunk>, edits: &mut Edits) {
        for (key, array) in &self.arrays {
            if let Some(node) = self.nodes.get_mut(key) {
                let chunks = array.present.iter().map(Vec::as_slice);
                Presence::set_list(node.attributes_mut(), chunks);
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
        let level = self
            .nodes
            .get_mut(&self.keys.level)
            .map(Node::attributes_mut);
        if let Some(mut level) = level.and_then(LevelMetadataChange::of_existing) {
            let vertices = level.vertex_count().saturating_add(edits.added);
            level.set_vertex_count(vertices.saturating_sub(edits.removed));
            if !tiles {
                level.set_fragments_tile(false);
            }
            // Links and fragments may have changed; the claim is made by checking all of them.
            if !edits.cells.is_empty() {
                level.remove_fragment_link_groups();
            }
        }
        self.recount_links(edits);
        let nodes = self
            .nodes
            .iter()
            .filter(|(key, _)| !self.keys.all.is_table(key))
            .map(|(key, node)| (key.clone(), node.clone()));
        edits.nodes = nodes.collect();
    }

    /// Updates the link counts of a family by the difference of its cells before and after. Of
    /// duplicated links the leading copy counts.
    pub(super) fn recount_links(&mut self, edits: &Edits) {
        let Some(family) = &self.links else {
            return;
        };
        let mut rows = (0u64, 0u64);
        let mut logical = (0u64, 0u64);
        for (cell, after) in &edits.cells {
            let array = &cell.0;
            if !array.is_below(&self.keys.link_family) {
                continue;
            }
            let form = self
                .arrays
                .get(array)
                .map_or(RowForm::Plain, PerChunk::row_form);
            let count = |bytes: &[u8]| links::counted(bytes, links::segment(array), family, form);
            let before = self.cells.get(cell).map_or((0, 0), |bytes| count(bytes));
            let after = after.as_ref().map_or((0, 0), |bytes| count(bytes));
            rows = (rows.0 + before.0, rows.1 + after.0);
            logical = (logical.0 + before.1, logical.1 + after.1);
        }
        for (key, node) in &mut self.nodes {
            let is_family = *key == self.keys.link_family;
            let Node::Group(group) = node else { continue };
            if is_family || self.keys.is_link_attribute_family(key) {
                LinkFamily::change_links(&mut group.attributes, |links| {
                    links.saturating_add(logical.1).saturating_sub(logical.0)
                });
            }
            if is_family {
                LinkFamily::change_records(&mut group.attributes, |records| {
                    records.saturating_add(rows.1).saturating_sub(rows.0)
                });
            }
        }
    }

    pub(super) fn put_tables(&mut self, edits: &mut Edits) -> Result<(), EditError> {
        let outputs = &mut edits.tables;
        let keys = self.keys.all;
        if let Some(ids) = &self.tables.ids {
            self.put_index(ids, outputs)?;
        }
        for (role, tables) in [
            (GroupRole::ObjectAttributes, &self.tables.object),
            (GroupRole::GroupAttributes, &self.tables.group),
        ] {
            let folder = keys.group(role)?;
            if !tables.is_empty() {
                outputs.push(self.table_group(folder.clone(), Attributes::new()));
            }
            for (name, table) in tables {
                let key = folder.join(name)?;
                let own = self.codecs(&key, || Codec::bytes(8))?;
                let column = crate::stored_column::restored(
                    name,
                    table.kind,
                    table.columns,
                    &table.rows,
                    table.fill.as_ref(),
                )?;
                let mut attributes = table.attributes.clone();
                let has_absent = table.rows.contains(&None);
                let (values, shape) = (column.values, column.shape());
                TableMetadata::set_rows(&mut attributes, values, shape, has_absent);
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
            let key = keys.values(&ArrayRole::Groups)?;
            let own = self.codecs(&key, Codec::vlen_bytes)?;
            let attributes = self.table_attributes(&key, groups.to_attributes());
            crate::tables::strings(outputs, own, &key, attributes, &members, members.len())?;
        }
        Ok(())
    }

    /// Writes the object index.
    fn put_index(&self, ids: &[i64], outputs: &mut Vec<Output>) -> Result<(), EditError> {
        let keys = self.keys.all;
        let values = |part| keys.values(&part);
        let manifests = self.tables.manifests.iter();
        let present = manifests
            .filter(|bytes| bytes.len() > tables::EMPTY_MANIFEST)
            .count();
        let index = ObjectIndex {
            layout: if self.tables.is_dense {
                ObjectIndexLayout::Dense
            } else {
                ObjectIndexLayout::ManifestsWithIds
            },
            num_objects: ids.len() as u64,
            num_present: Some(present as u64),
            sid_ndim: self.axes,
            ids_sorted: ids.is_sorted(),
        };
        let key = keys.node(&ArrayRole::Manifests)?;
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
            let is_sharded = self.vertices()?.codecs.plain_sharding().is_some();
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
        match self.nodes.get(key) {
            Some(node) => overlaid(node.attributes(), attributes),
            None => attributes,
        }
    }

    /// Returns the array of vertices.
    pub(super) fn vertices(&self) -> Result<&Array, EditError> {
        let vertices = &self.keys.vertices;
        let node = self.nodes.get(vertices).and_then(Node::as_array);
        node.ok_or_else(|| missing(vertices))
    }

    /// Returns the codecs of a table: its present codecs without shards and little-endian or, for a
    /// new table, zstd, with a checksum if the vertices have one.
    fn codecs(&self, key: &Key, serializer: fn() -> Codec) -> Result<Codecs, EditError> {
        let Some(array) = self.nodes.get(key).and_then(Node::as_array) else {
            let checksum = self.vertices()?.codecs.has_checksum().then(Codec::crc32c);
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

/// Extends an array to include a chunk. Grids grow upwards only, because cells keep their index.
fn grow(array: &mut PerChunk, node: &mut Array, coords: &[i64]) -> Result<(), EditError> {
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
        node.shape.clone_from(&array.shape);
        Presence::set_origin(&mut node.attributes, &array.origin);
    }
    Ok(())
}
