//! Addition of links, and creation of their arrays.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use zvf_format::{
    links::{LinkWidth, RowForm},
    path::Delta,
};
use zvf_model::{
    array::{FragmentArray, LinkArray, LinkFamily, LinkFamilyForm, LinkStore},
    zarr::Node,
};

use super::{
    add::check_width,
    chunk::{Chunk, Fragment},
    error::{EditError, missing},
    image::{CellId, Family, LevelSnapshot},
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
        let names: BTreeSet<String> = self
            .nodes
            .keys()
            .filter_map(|path| path.strip_prefix("0/link_attributes/"))
            .filter_map(|rest| rest.split('/').next())
            .map(str::to_owned)
            .collect();
        for name in &names {
            if filed.logical > 0 && !plan.link.iter().any(|column| column.name == *name) {
                let name = name.clone();
                return Err(EditError::MissingAttribute { what, name });
            }
        }
        for column in &plan.link {
            if !names.contains(&column.name) && !self.nodes.contains_key("0/links/0") {
                continue;
            }
            if !names.contains(&column.name) {
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
            let form = self.link_array(plan, filed.width, &segment, &offsets)?;
            let columns = self.link_columns(plan, &segment)?;
            let key = (segment.clone(), coords[0].to_vec());
            if !cells.contains_key(&key) {
                let loaded = links::load(self, &segment, coords[0])?;
                cells.insert(key.clone(), loaded);
            }
            if let Some(own) = cells.get_mut(&key) {
                for (path, column) in &columns {
                    let cell = own.vertex.get(path).map_or(&[][..], Vec::as_slice);
                    check_width(path, coords[0], cell, own.rows, &column.numbers)?;
                }
                append_links(own, cell, &chunks, bases, form, &columns);
            }
        }
        Ok(())
    }

    /// Creates the array of a segment if it does not exist, and returns the form of its rows.
    pub(super) fn link_array(
        &mut self,
        plan: &WritePlan,
        width: LinkWidth,
        segment: &str,
        offsets: &[Vec<i64>],
    ) -> Result<RowForm, EditError> {
        let path = format!("0/links/0/{segment}");
        let family = self.links.get_or_insert(Family {
            width,
            directed: plan.design.directed,
            duplicate: plan.design.duplicate,
        });
        let family = LinkFamily {
            delta: Delta::INTRA,
            width: family.width,
            directed: family.directed,
            store: match family.duplicate {
                true => LinkStore::Duplicate,
                false => LinkStore::Canonical,
            },
            sid_ndim: Some(self.axes),
            num_links: Some(0),
            num_physical_records: Some(0),
        };
        if !self.nodes.contains_key("0/links/0") {
            self.nodes
                .insert("0/links".to_owned(), Node::group(Map::new()).to_json());
            self.nodes.insert(
                "0/links/0".to_owned(),
                Node::group(family.to_attributes(LinkFamilyForm::Merged)).to_json(),
            );
        }
        let crosses = !links::is_zero(segment);
        let array = LinkArray::new(&family, offsets);
        self.array_like_vertices(&path, array.to_attributes(&family))?;
        if let Some(stored) = self.arrays.get_mut(&path) {
            stored.row_form = array.row_form;
        }
        if !crosses {
            let fragments = FragmentArray::Links.to_attributes();
            self.array_like_vertices("0/link_fragments", fragments)?;
        }
        Ok(array.row_form)
    }

    /// Returns link attribute columns by array path for a segment.
    pub(super) fn link_columns(
        &mut self,
        plan: &WritePlan,
        segment: &str,
    ) -> Result<BTreeMap<String, StoredColumn>, EditError> {
        let mut columns = BTreeMap::new();
        for attribute in &plan.geometry.link {
            let path = format!("0/link_attributes/{}/0/{segment}", attribute.name);
            if !self.arrays.contains_key(&path) {
                let own = plan
                    .link
                    .iter()
                    .find(|column| column.name == attribute.name);
                let prefix = format!("0/link_attributes/{}/0/", attribute.name);
                let like = self
                    .nodes
                    .iter()
                    .find(|(path, _)| path.starts_with(&prefix));
                // All arrays of a family have the attributes of the first.
                let mut attributes = match (like, own) {
                    (Some((_, node)), _) => {
                        let attributes = node["attributes"].as_object();
                        attributes.cloned().unwrap_or_default()
                    }
                    (None, Some(column)) => column.metadata.to_attributes(),
                    (None, None) => Map::new(),
                };
                let links = self.nodes.get(&format!("0/links/0/{segment}"));
                let offsets = links.map(|node| node["attributes"]["offsets"].clone());
                attributes.insert("offsets".to_owned(), offsets.unwrap_or_default());
                attributes.insert("level_delta".to_owned(), json!(0));
                self.array_like_vertices(&path, attributes)?;
            }
            let words = self.categories(&path).map(Vec::len);
            let column = self.column("link attribute", &path, attribute)?;
            if self.categories(&path).map(Vec::len) != words {
                let family = format!("0/link_attributes/{}/0/", attribute.name);
                self.share_categories(&family, &path);
            }
            columns.insert(path, column);
        }
        Ok(columns)
    }

    /// Returns the words of an array of text.
    fn categories(&self, path: &str) -> Option<&Vec<Value>> {
        self.nodes.get(path)?["attributes"]["categories"].as_array()
    }

    /// Copies the words of an array to all arrays of its family, because readers require equal
    /// dictionaries.
    fn share_categories(&mut self, family: &str, path: &str) {
        let Some(words) = self.categories(path).cloned() else {
            return;
        };
        for (path, node) in &mut self.nodes {
            if path.starts_with(family)
                && let Some(own) = node["attributes"].get_mut("categories")
            {
                *own = json!(words);
            }
        }
    }

    /// Creates an array with one cell for each chunk. It has the encoding of the vertices, and the
    /// shards that the root declares for new arrays.
    pub(super) fn array_like_vertices(
        &mut self,
        path: &str,
        mut attributes: Map<String, Value>,
    ) -> Result<(), EditError> {
        if self.arrays.contains_key(path) {
            return Ok(());
        }
        let vertices = self.array("0/vertices")?;
        let vertices = vertices.ok_or_else(|| missing("0/vertices"))?;
        let node = added_array(&vertices, self.shards.as_deref())?;
        let array = self.arrays.get("0/vertices").cloned();
        let mut array = array.ok_or_else(|| missing("0/vertices"))?;
        array.present.clear();
        let dtype = attributes.get("dtype").and_then(Value::as_str);
        array.dtype = dtype.and_then(|text| zvf_format::numeric::Dtype::parse(text).ok());
        if array.origin.iter().any(|at| *at != 0) {
            attributes.insert("chunk_grid_origin".to_owned(), json!(array.origin));
        }
        let node = node.with_attributes(attributes).to_json();
        self.nodes.insert(path.to_owned(), node);
        self.arrays.insert(path.to_owned(), array);
        Ok(())
    }
}

/// Appends links to a cell as one more group.
pub(super) fn append_links(
    own: &mut Chunk,
    cell: &Cell,
    chunks: &[u32],
    bases: &[(u64, u32)],
    form: RowForm,
    columns: &BTreeMap<String, StoredColumn>,
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
    let start = own.rows;
    own.rows += cell.links.len() as u64;
    own.fragments.push(Fragment::Range(start, own.rows));
    for (path, column) in columns {
        let rows = cell.links.iter().map(|link| *link as usize);
        own.vertex
            .entry(path.clone())
            .or_default()
            .extend(column.gather(rows));
    }
}
