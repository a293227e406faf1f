//! Addition of links, and creation of their arrays.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use zvf_format::{
    links::{LinkWidth, RowForm},
    path::Delta,
};
use zvf_model::{
    array::{
        CellAttribute, FragmentArray, LinkArray, LinkFamily, LinkFamilyForm, LinkStore, Presence,
    },
    key::Key,
    layout::{ArrayRole, LinkOffsets},
    level_content::CellContent,
    metadata::Attributes,
    zarr::Node,
};

use super::{
    add::check_width,
    chunk::Chunk,
    error::{EditError, missing},
    image::{CellId, LevelSnapshot},
    links,
};
use crate::{
    link_placement::{self, Cell},
    plan::WritePlan,
    sharding::added_array,
    stored_column::StoredColumn,
};

impl LevelSnapshot {
    pub(super) fn add_links(
        &mut self,
        plan: &WritePlan,
        bases: &[(u64, u32)],
        cells: &mut BTreeMap<CellId, Chunk>,
    ) -> Result<(), EditError> {
        let Some(filed) = &plan.links else {
            return Ok(());
        };
        let width = filed.width.get();
        if let Some(family) = &self.links
            && family.width != filed.width
        {
            return Err(EditError::LinkWidth {
                expected: family.width.get(),
                found: width,
            });
        }
        let what = "link attribute";
        let names: BTreeSet<Cow<'_, str>> = self
            .nodes
            .keys()
            .filter_map(|node| self.keys.link_attribute(node))
            .collect();
        for name in &names {
            if filed.logical > 0 && !plan.link.iter().any(|column| column.name == *name) {
                let name = name.clone().into_owned();
                return Err(EditError::MissingAttribute { what, name });
            }
        }
        for column in &plan.link {
            let is_known = names.contains(column.name.as_str());
            if !is_known && self.nodes.contains_key(&self.keys.link_family) {
                let name = column.name.clone();
                return Err(EditError::UnknownAttribute { what, name });
            }
        }
        let inside = filed
            .inside
            .iter()
            .map(|(chunk, cell)| (vec![*chunk; width], cell));
        let between = filed
            .between
            .iter()
            .map(|(chunks, cell)| (chunks.clone(), cell));
        for (chunks, cell) in inside.chain(between) {
            let coords: Vec<&[i64]> = chunks
                .iter()
                .map(|chunk| plan.layout.chunks[*chunk as usize].as_slice())
                .collect();
            let (segment, offsets) = link_placement::offsets(&coords);
            let array = links::array(self, &segment)?;
            let form = self.link_array(plan, filed.width, &array, &offsets)?;
            let columns = self.link_columns(plan, &segment, &offsets)?;
            let key = (array, coords[0].to_vec());
            if !cells.contains_key(&key) {
                let loaded = links::load(self, &key.0, coords[0])?;
                cells.insert(key.clone(), loaded);
            }
            if let Some(own) = cells.get_mut(&key) {
                for (array, column) in &columns {
                    let cell = own.vertex.get(array).map_or(&[][..], Vec::as_slice);
                    check_width(array, coords[0], cell, own.rows, &column.numbers)?;
                }
                let groups = if links::is_zero(&segment) {
                    plan.link_groups(chunks[0], cell)
                } else {
                    vec![cell.len() as u64]
                };
                append_links(own, cell, &chunks, bases, form, &columns);
                own.push_ranges(groups);
            }
        }
        Ok(())
    }

    /// Creates an array of links if it does not exist, and returns the form of its rows.
    fn link_array(
        &mut self,
        plan: &WritePlan,
        width: LinkWidth,
        key: &Key,
        offsets: &[Vec<i64>],
    ) -> Result<RowForm, EditError> {
        let keys = Arc::clone(&self.keys);
        let family = self.links.get_or_insert(LinkFamily {
            delta: Delta::INTRA,
            width,
            directed: plan.design.directed,
            store: if plan.design.duplicate {
                LinkStore::Duplicate
            } else {
                LinkStore::Canonical
            },
            sid_ndim: Some(self.axes),
            num_links: Some(0),
            num_physical_records: Some(0),
        });
        if !self.nodes.contains_key(&keys.link_family) {
            let groups = [
                (&keys.links, Attributes::new()),
                (
                    &keys.link_family,
                    family.to_attributes(LinkFamilyForm::Merged),
                ),
            ]
            .map(|(key, attributes)| (key.clone(), Node::group(attributes)));
            self.nodes.extend(groups);
        }
        let array = LinkArray::new(family, offsets);
        let (form, attributes) = (array.row_form, array.to_attributes(family));
        self.array_like_vertices(key, attributes, CellContent::Links(array))?;
        if links::is_zero(links::segment(key)) {
            let attributes = FragmentArray::Links.to_attributes();
            self.array_like_vertices(&keys.link_fragments, attributes, CellContent::Fragments)?;
        }
        Ok(form)
    }

    /// Returns columns of links with these offsets by array.
    fn link_columns(
        &mut self,
        plan: &WritePlan,
        segment: &str,
        offsets: &[Vec<i64>],
    ) -> Result<BTreeMap<Key, StoredColumn>, EditError> {
        let delta = Delta::INTRA;
        let mut columns = BTreeMap::new();
        for attribute in &plan.geometry.link {
            let name = attribute.name.as_str();
            let family = ArrayRole::LinkAttributeFamily(name, delta);
            let family = self.keys.all.node(&family)?;
            let role = ArrayRole::LinkAttribute(name, delta, LinkOffsets::Segment(segment));
            let key = self.keys.all.node(&role)?;
            if !self.arrays.contains_key(&key) {
                let own = plan.link.iter().find(|column| column.name == name);
                let like = self
                    .arrays
                    .iter()
                    .filter(|(key, _)| key.is_below(&family))
                    .find_map(|(key, array)| match &array.cells {
                        CellContent::Attribute(metadata) => Some((self.nodes.get(key)?, metadata)),
                        _ => None,
                    });
                // All arrays of a family have the attributes of the first.
                let (mut attributes, metadata) = match (like, own) {
                    (Some((node, metadata)), _) => (node.attributes().clone(), metadata.clone()),
                    (None, Some(own)) => (own.metadata.to_attributes(), own.metadata.clone()),
                    (None, None) => return Err(missing(&family)),
                };
                CellAttribute::set_offsets(&mut attributes, offsets, delta);
                self.array_like_vertices(&key, attributes, CellContent::Attribute(metadata))?;
            }
            let words = self.categories(&key).map(<[_]>::len);
            let column = self.column("link attribute", &key, attribute)?;
            if self.categories(&key).map(<[_]>::len) != words {
                self.share_categories(&family, &key);
            }
            columns.insert(key, column);
        }
        Ok(columns)
    }

    /// Returns the words of an array of text.
    fn categories(&self, array: &Key) -> Option<&[Value]> {
        match &self.arrays.get(array)?.cells {
            CellContent::Attribute(metadata) => Some(&metadata.dictionary.as_ref()?.categories),
            _ => None,
        }
    }

    /// Copies the words of an array to all arrays of its family, because readers require equal
    /// dictionaries.
    fn share_categories(&mut self, family: &Key, array: &Key) {
        let Some(words) = self.categories(array).map(<[_]>::to_vec) else {
            return;
        };
        for (key, array) in &mut self.arrays {
            if let CellContent::Attribute(metadata) = &mut array.cells
                && key.is_below(family)
                && let Some(dictionary) = &mut metadata.dictionary
                && let Some(node) = self.nodes.get_mut(key)
            {
                dictionary.categories.clone_from(&words);
                CellAttribute::set_categories(node.attributes_mut(), &words);
            }
        }
    }

    /// Creates an array with one cell for each chunk. It has the encoding of the vertices, and the
    /// shards that the root declares for new arrays.
    fn array_like_vertices(
        &mut self,
        key: &Key,
        mut attributes: Attributes,
        cells: CellContent,
    ) -> Result<(), EditError> {
        if self.arrays.contains_key(key) {
            return Ok(());
        }
        let added = added_array(self.vertices()?, self.shards.as_deref())?;
        let vertices = &self.keys.vertices;
        let mut array = self
            .arrays
            .get(vertices)
            .cloned()
            .ok_or_else(|| missing(vertices))?;
        array.present.clear();
        array.cells = cells;
        Presence::set_origin(&mut attributes, &array.origin);
        let node = added.with_attributes(attributes).into();
        self.nodes.insert(key.clone(), node);
        self.arrays.insert(key.clone(), array);
        Ok(())
    }
}

/// Appends links to a cell, without their groups.
pub(super) fn append_links(
    own: &mut Chunk,
    cell: &Cell,
    chunks: &[u32],
    bases: &[(u64, u32)],
    form: RowForm,
    columns: &BTreeMap<Key, StoredColumn>,
) {
    let width = chunks.len();
    for (at, ends) in cell.ends.chunks_exact(width).enumerate() {
        if form == RowForm::Permuted {
            let code = cell.codes.get(at).copied().unwrap_or(0);
            own.positions.extend(code.to_le_bytes());
        }
        for (end, chunk) in ends.iter().zip(chunks) {
            let row = u64::from(*end) + bases[*chunk as usize].0;
            own.positions.extend(row.to_le_bytes());
        }
    }
    for (path, column) in columns {
        let rows = cell.links.iter().map(|link| *link as usize);
        own.vertex
            .entry(path.clone())
            .or_default()
            .extend(column.gather(rows));
    }
}
