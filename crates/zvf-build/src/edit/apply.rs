//! A change applied to an image.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use zvf_format::{links::RowForm, path::ChunkCoords};

use super::{
    change::Change,
    chunk::{Chunk, Fragment},
    error::{EditError, damaged},
    image::{CellKey, Image, PerChunk},
    links,
    tables::{self, Table},
};
use crate::{
    columns::{self, Column},
    coordinates,
    filing::{self, Cell},
    geometry::{Attribute, GeometryKind, Numbers, Values},
    layout::tables as layout_tables,
    nodes,
    plan::{Output, Plan},
};

/// What a change makes of a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits {
    /// Nodes that are new or say something else, by path.
    pub nodes: BTreeMap<String, Value>,
    /// Cells that are new or hold something else; `None` for those that go.
    pub cells: BTreeMap<CellKey, Option<Vec<u8>>>,
    /// Tables, written anew: nodes and cells. Other chunks of their arrays go.
    pub tables: Vec<Output>,
    /// Attributes of the root.
    pub root: Map<String, Value>,
    /// What another change at the same time must not have touched: chunks and
    /// objects.
    pub touched: BTreeSet<String>,
    /// Vertices that came.
    pub added: u64,
    /// Vertices that went.
    pub removed: u64,
    /// Links that went because one of their ends did, though others stayed.
    pub severed: usize,
    /// Objects that came.
    pub objects: Vec<i64>,
}

impl Image {
    /// Applies a change; all cells that it [needs](Change::needs) are loaded.
    ///
    /// # Errors
    ///
    /// [`EditError`] when it does not fit the level, or the level is damaged.
    pub fn apply(mut self, change: &Change) -> Result<Edits, EditError> {
        let mut edits = Edits::default();
        if self.kind == GeometryKind::Skeletons
            && self.links.as_ref().is_some_and(|family| family.directed)
        {
            return Err(EditError::Unsupported("skeletons were streamed chunk by chunk"));
        }
        let touched = change.chunks(&self)?;
        let mut chunks = BTreeMap::new();
        for coords in &touched {
            chunks.insert(coords.clone(), self.chunk(coords)?);
            edits.touched.insert(format!("0/{}", ChunkCoords(coords)));
        }
        edits.touched.extend(change.remove.iter().map(|id| format!("object/{id}")));
        let fragments_gone = self.fragments_gone(change)?;
        let moved = remove_rows(&mut chunks, change, &fragments_gone, &mut edits)?;
        let mut cells = self.links_after(&touched, &moved, &mut edits, change)?;
        if change.compact {
            self.compact(&mut chunks)?;
        }
        if let Some(plan) = &change.add {
            self.add(plan, change, &mut chunks, &mut cells, &mut edits)?;
        } else {
            self.tables.remove(&change.remove);
        }
        let emptied = chunks.iter().filter(|(_, chunk)| chunk.rows == 0);
        let emptied: BTreeSet<Vec<i64>> = emptied.map(|(coords, _)| coords.clone()).collect();
        if !emptied.is_empty() {
            self.tables.forget(&emptied, self.axes)?;
        }
        self.put_chunks(&chunks, &mut edits)?;
        self.put_links(&cells, &mut edits)?;
        self.put_level(&chunks, &mut edits);
        self.put_tables(&mut edits)?;
        edits.root = self.root;
        Ok(edits)
    }

    /// A chunk as it is.
    fn chunk(&self, coords: &[i64]) -> Result<Chunk, EditError> {
        let cell = |path: &str| self.cells.get(&(path.to_owned(), coords.to_vec()));
        let row = self.axes * self.positions.size();
        let mut chunk = Chunk::default();
        let listed = |path: &str| {
            let array = self.arrays.get(path);
            array.is_some_and(|array| array.present.contains(coords))
        };
        if !listed("0/vertices") {
            for path in self.arrays.keys() {
                if path.starts_with("0/vertex_attributes/") {
                    chunk.vertex.insert(path.clone(), Vec::new());
                } else if path.starts_with("0/fragment_attributes/") {
                    chunk.fragment.insert(path.clone(), Vec::new());
                }
            }
            return Ok(chunk);
        }
        let name = |path: &str| format!("{path}, chunk {}", ChunkCoords(coords));
        let positions = cell("0/vertices");
        let positions = positions.ok_or_else(|| EditError::Missing(name("0/vertices")))?;
        if positions.len() % row != 0 {
            return Err(damaged(&name("0/vertices"), "no whole number of rows"));
        }
        chunk.rows = (positions.len() / row) as u64;
        chunk.positions.clone_from(positions);
        let index = cell("0/vertex_fragments");
        let index = index.ok_or_else(|| EditError::Missing(name("0/vertex_fragments")))?;
        chunk.fragments = Chunk::fragments(&name("0/vertex_fragments"), index, chunk.rows)?;
        for path in self.arrays.keys() {
            let of_vertices = path.starts_with("0/vertex_attributes/");
            let of_fragments = path.starts_with("0/fragment_attributes/");
            if !of_vertices && !of_fragments {
                continue;
            }
            let rows = match of_vertices {
                true => chunk.rows,
                false => chunk.fragments.len() as u64,
            };
            let bytes = cell(path).cloned();
            let bytes = match (bytes, rows) {
                (Some(bytes), _) => bytes,
                (None, 0) => Vec::new(),
                (None, _) => return Err(EditError::Missing(name(path))),
            };
            if rows == 0 && !bytes.is_empty() || rows > 0 && bytes.len() as u64 % rows != 0 {
                return Err(damaged(&name(path), "no whole number of rows"));
            }
            match of_vertices {
                true => chunk.vertex.insert(path.clone(), bytes),
                false => chunk.fragment.insert(path.clone(), bytes),
            };
        }
        Ok(chunk)
    }

    /// Fragments that only objects have that go, by chunk.
    fn fragments_gone(
        &self,
        change: &Change,
    ) -> Result<BTreeMap<Vec<i64>, BTreeSet<u32>>, EditError> {
        let mut gone: BTreeMap<Vec<i64>, BTreeSet<u32>> = BTreeMap::new();
        if change.remove.is_empty() {
            return Ok(gone);
        }
        for id in &change.remove {
            let row = self.tables.row_of.get(id).ok_or(EditError::NoObject(*id))?;
            for (chunk, number) in self.tables.manifest(*row, self.axes)? {
                gone.entry(chunk).or_default().insert(number);
            }
        }
        for (row, id) in self.tables.ids.iter().flatten().enumerate() {
            if change.remove.contains(id) {
                continue;
            }
            for (chunk, number) in self.tables.manifest(row, self.axes)? {
                if let Some(numbers) = gone.get_mut(&chunk) {
                    numbers.remove(&number);
                }
            }
        }
        Ok(gone)
    }

    /// Cells of links whose ends moved.
    fn links_after(
        &self,
        touched: &BTreeSet<Vec<i64>>,
        moved: &BTreeMap<Vec<i64>, Vec<Option<u64>>>,
        edits: &mut Edits,
        change: &Change,
    ) -> Result<BTreeMap<CellKey, Chunk>, EditError> {
        let mut cells = BTreeMap::new();
        for (path, segment, offsets) in links::arrays(self)? {
            let form = links::form(self, &path);
            for source in &self.arrays[&path].present {
                if !links::touches(source, &offsets, touched) {
                    continue;
                }
                let mut cell = links::load(self, &segment, source)?;
                let others = offsets.iter().map(|offset| links::at(source, offset));
                let ends: Vec<Vec<i64>> = [source.clone()].into_iter().chain(others).collect();
                let (gone, severed) = links::renumber(&mut cell, &ends, form, moved)?;
                let duplicate = self.links.as_ref().is_some_and(|family| family.duplicate);
                if !duplicate || links::leads(&segment) {
                    edits.severed += severed;
                }
                cell.without(&gone);
                if change.compact && !cell.fragments.is_empty() {
                    cell.fragments = vec![Fragment::Range(0, cell.rows)];
                }
                cells.insert((segment.clone(), source.clone()), cell);
            }
        }
        Ok(cells)
    }

    /// Drops fragments without rows, and rows without fragments, and sorts objects.
    fn compact(&mut self, chunks: &mut BTreeMap<Vec<i64>, Chunk>) -> Result<(), EditError> {
        if self.tables.ids.is_none() {
            return Ok(());
        }
        let mut numbers: BTreeMap<&[i64], Vec<Option<u32>>> = BTreeMap::new();
        for (coords, chunk) in chunks.iter_mut() {
            let mut next = 0;
            let keep = chunk.fragments.iter().map(|fragment| {
                let number = fragment.rows().next().is_some().then_some(next);
                next += u32::from(number.is_some());
                number
            });
            let keep: Vec<Option<u32>> = keep.collect();
            let before = chunk.fragments.len().max(1);
            for bytes in chunk.fragment.values_mut() {
                let size = (bytes.len() / before).max(1);
                let kept = bytes.chunks_exact(size).zip(&keep);
                let kept = kept.filter(|(_, keep)| keep.is_some());
                *bytes = kept.flat_map(|(row, _)| row).copied().collect();
            }
            let mut at = 0;
            chunk.fragments.retain(|_| {
                at += 1;
                keep[at - 1].is_some()
            });
            numbers.insert(coords, keep);
        }
        let ids = self.tables.ids.clone().unwrap_or_default();
        let mut manifests = Vec::with_capacity(ids.len());
        for row in 0..ids.len() {
            let mut fragments = Vec::new();
            for (chunk, number) in self.tables.manifest(row, self.axes)? {
                let keep = numbers.get(chunk.as_slice()).and_then(|keep| keep.get(number as usize));
                match keep {
                    Some(Some(number)) => fragments.push((chunk, *number)),
                    Some(None) => {}
                    None => {
                        let why = format!("object {} names a fragment that is not there", ids[row]);
                        return Err(damaged("0/object_index/manifests", why));
                    }
                }
            }
            manifests.push(tables::encoded(&fragments, self.axes)?);
        }
        self.tables.manifests = manifests;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|row| ids[*row]);
        let sorted = |rows: &Vec<Option<Vec<u8>>>| order.iter().map(|row| rows[*row].clone()).collect();
        for table in self.tables.object.values_mut() {
            table.rows = sorted(&table.rows);
        }
        let manifests = std::mem::take(&mut self.tables.manifests);
        self.tables.manifests = order.iter().map(|row| manifests[*row].clone()).collect();
        self.tables.ids = Some(order.iter().map(|row| ids[*row]).collect());
        self.tables.row_of = self.tables.ids.iter().flatten().copied().zip(0..).collect();
        Ok(())
    }

    /// Puts what comes behind what is there.
    fn add(
        &mut self,
        plan: &Plan,
        change: &Change,
        chunks: &mut BTreeMap<Vec<i64>, Chunk>,
        cells: &mut BTreeMap<CellKey, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let vertex = self.columns("vertex attribute", "0/vertex_attributes/", &plan.geometry.vertex)?;
        let owners = self.owners(plan);
        let fragment = self.fragment_columns(plan, &owners)?;
        let mut bases: Vec<(u64, u32)> = Vec::with_capacity(plan.arranged.chunks.len());
        for (number, coords) in (0u32..).zip(&plan.arranged.chunks) {
            let chunk = chunks.entry(coords.clone()).or_default();
            bases.push((chunk.rows, chunk.fragments.len() as u32));
            chunk.positions.extend(plan.positions(number));
            for (path, column) in &vertex {
                let bytes = chunk.vertex.entry(path.clone()).or_default();
                bytes.extend(column.gather(plan.input(number)));
            }
            let mut start = chunk.rows;
            let fragments = plan.arranged.fragments(number as usize);
            for (path, column) in &fragment {
                let bytes = chunk.fragment.entry(path.clone()).or_default();
                for fragment in fragments {
                    bytes.extend_from_slice(column.row(fragment.object as usize));
                }
            }
            for fragment in fragments {
                let end = start + u64::from(fragment.rows);
                chunk.fragments.push(Fragment::Range(start, end));
                start = end;
            }
            edits.added += start - chunk.rows;
            chunk.rows = start;
            if plan.objects.is_none() {
                self.sort_into_bins(chunk)?;
            }
        }
        self.add_objects(plan, change, &bases, edits)?;
        self.add_links(plan, &bases, cells)?;
        let bounds = [(&plan.space.lower, true), (&plan.space.upper, false)];
        for (corner, least) in bounds {
            let own = match least {
                true => &mut self.lower,
                false => &mut self.upper,
            };
            for (own, found) in own.iter_mut().zip(corner) {
                *own = match least {
                    true => own.min(*found),
                    false => own.max(*found),
                };
            }
        }
        if let Some(block) = self.root.get_mut("zarr_vectors").and_then(Value::as_object_mut) {
            block.insert("bounds".to_owned(), json!([self.lower, self.upper]));
        }
        Ok(())
    }

    /// Ids of the objects that fragments of a plan have, by row.
    fn owners(&self, plan: &Plan) -> Vec<i64> {
        plan.objects.as_ref().map(|objects| objects.ids.clone()).unwrap_or_default()
    }

    /// Sorts the rows of points into the bins of their chunk.
    fn sort_into_bins(&self, chunk: &mut Chunk) -> Result<(), EditError> {
        let order: Vec<u64> = chunk.fragments.iter().flat_map(|fragment| fragment.rows().collect::<Vec<_>>()).collect();
        let positions = Numbers {
            bytes: chunk.positions.clone(),
            ..Numbers::new(self.positions, self.axes)
        };
        let (count, bins) = match &self.bins {
            Some(bins) => {
                let mut numbers = Vec::with_capacity(order.len());
                let mut values = Vec::new();
                for &row in &order {
                    let row = row as usize;
                    coordinates::block(&positions, row..row + 1, &mut values);
                    let place = bins.place_of(&values);
                    let place = place.ok_or_else(|| damaged("0/vertices", "a position that is none"))?;
                    numbers.push(place.bin);
                }
                (bins.count(), numbers)
            }
            None => (1, vec![0; order.len()]),
        };
        let mut sorted: Vec<usize> = (0..order.len()).collect();
        sorted.sort_by_key(|at| bins[*at]);
        let rows: Vec<usize> = sorted.iter().map(|at| order[*at] as usize).collect();
        let before = usize::try_from(chunk.rows).unwrap_or(0).max(1);
        let gather = |bytes: &mut Vec<u8>| {
            let size = bytes.len() / before;
            let all = rows.iter().flat_map(|row| bytes[row * size..(row + 1) * size].iter());
            *bytes = all.copied().collect();
        };
        gather(&mut chunk.positions);
        chunk.vertex.values_mut().for_each(gather);
        if !chunk.fragment.is_empty() {
            return Err(EditError::Unsupported("bins have attributes"));
        }
        chunk.rows = rows.len() as u64;
        let mut counts = vec![0u64; usize::try_from(count).unwrap_or(1)];
        for bin in &bins {
            counts[*bin as usize] += 1;
        }
        let mut start = 0;
        chunk.fragments = counts
            .iter()
            .map(|rows| {
                let end = start + rows;
                let fragment = Fragment::Range(start, end);
                start = end;
                fragment
            })
            .collect();
        Ok(())
    }

    /// Columns of what comes in the types of the store, by path.
    fn columns(
        &mut self,
        what: &'static str,
        family: &str,
        attributes: &[Attribute],
    ) -> Result<BTreeMap<String, Column>, EditError> {
        let mut columns = BTreeMap::new();
        let named: BTreeSet<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        let paths = self.arrays.keys().filter(|path| path.starts_with(family));
        let stored: Vec<String> = paths.cloned().collect();
        for path in &stored {
            let name = &path[family.len()..];
            if !named.contains(name) {
                let name = name.to_owned();
                return Err(EditError::NoAttribute { what, name });
            }
        }
        for attribute in attributes {
            let path = format!("{family}{}", attribute.name);
            let name = attribute.name.clone();
            if !self.arrays.contains_key(&path) {
                return Err(EditError::NewAttribute { what, name });
            }
            let column = self.column(what, &path, attribute)?;
            columns.insert(path, column);
        }
        Ok(columns)
    }

    /// A column in the type of its array; words that are new are appended to the
    /// dictionary.
    fn column(
        &mut self,
        what: &'static str,
        path: &str,
        attribute: &Attribute,
    ) -> Result<Column, EditError> {
        let node = self.nodes.get_mut(path);
        let node = node.ok_or_else(|| EditError::Missing(path.to_owned()))?;
        let says = &mut node["attributes"];
        let dtype = says["dtype"].as_str().unwrap_or("float32").to_owned();
        let columns: u64 = match says["row_shape"].as_array() {
            Some(shape) => shape.iter().filter_map(Value::as_u64).product(),
            None => 1,
        };
        let name = attribute.name.clone();
        let unlike = |found: String| EditError::AttributeType {
            what,
            name: name.clone(),
            expected: format!("{columns} x {dtype}"),
            found,
        };
        let texts = match (&attribute.values, says["encoding"].as_str() == Some("dictionary")) {
            (Values::Numbers(numbers), false) => {
                let same = numbers.kind.name() == dtype && numbers.columns as u64 == columns;
                let found = format!("{} x {}", numbers.columns, numbers.kind.name());
                if !same {
                    return Err(unlike(found));
                }
                let numbers = numbers.clone();
                return Ok(Column {
                    name,
                    numbers,
                    says: Map::new(),
                });
            }
            (Values::Numbers(numbers), true) => return Err(unlike(numbers.kind.name().to_owned())),
            (Values::Text(_), false) => return Err(unlike("text".to_owned())),
            (Values::Text(texts), true) => texts,
        };
        let fill = says["_FillValue"].as_i64();
        let words = says["categories"].as_array_mut();
        let words = words.ok_or_else(|| damaged(path, "a dictionary without categories"))?;
        let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
        for (number, word) in (0..).zip(words.iter()) {
            if let Some(word) = word.as_str() {
                numbers.insert(word.to_owned(), number);
            }
        }
        let mut codes = Vec::with_capacity(texts.len());
        for text in texts {
            codes.push(match text {
                None => fill.ok_or_else(|| unlike("text with missing values".to_owned()))?,
                Some(text) => {
                    let next = words.len() as i64;
                    *numbers.entry(text.clone()).or_insert_with(|| {
                        words.push(json!(text));
                        next
                    })
                }
            });
        }
        let kind = zvf_format::numeric::Dtype::parse(&dtype);
        let kind = kind.map_err(|error| damaged(path, error))?.kind();
        let most = match kind.name() {
            "int8" => 127,
            "uint8" => 255,
            "int16" => 32_767,
            "uint16" => 65_535,
            _ => i64::from(i32::MAX),
        };
        if words.len() as i64 > most {
            return Err(EditError::Words { what, name, dtype });
        }
        let bytes = codes.iter().flat_map(|code| code.to_le_bytes()[..kind.size()].to_vec());
        Ok(Column {
            name,
            numbers: Numbers {
                bytes: bytes.collect(),
                ..Numbers::new(kind, 1)
            },
            says: Map::new(),
        })
    }

    /// Attributes of fragments by the row of their object: those given, and the ids
    /// that the store keeps by itself.
    fn fragment_columns(
        &mut self,
        plan: &Plan,
        owners: &[i64],
    ) -> Result<BTreeMap<String, Numbers>, EditError> {
        let family = "0/fragment_attributes/";
        let paths = self.arrays.keys().filter(|path| path.starts_with(family));
        let stored: Vec<String> = paths.cloned().collect();
        let mut columns = BTreeMap::new();
        let what = "fragment attribute";
        for attribute in &plan.geometry.fragment {
            if !stored.contains(&format!("{family}{}", attribute.name)) {
                let name = attribute.name.clone();
                return Err(EditError::NewAttribute { what, name });
            }
        }
        for path in stored {
            let name = &path[family.len()..];
            if name == "object_id" {
                let kind = self.arrays[&path].dtype.map(zvf_format::numeric::Dtype::kind);
                let kind = kind.unwrap_or(zvf_format::numeric::Kind::Int64);
                let bytes = owners.iter().flat_map(|id| id.to_le_bytes());
                let numbers = Numbers {
                    bytes: bytes.collect(),
                    ..Numbers::new(kind, 1)
                };
                columns.insert(path, numbers);
                continue;
            }
            let attribute = plan.geometry.fragment.iter().find(|attribute| attribute.name == name);
            let attribute = attribute.ok_or_else(|| EditError::NoAttribute {
                what,
                name: name.to_owned(),
            })?;
            let given = plan.objects.as_ref().map_or(&[][..], |objects| &objects.given);
            let column = self.column(what, &path, attribute)?;
            let mut numbers = Numbers::new(column.numbers.kind, column.numbers.columns);
            for row in given {
                match row {
                    Some(row) => numbers.bytes.extend_from_slice(column.numbers.row(*row)),
                    None => numbers.bytes.resize(numbers.bytes.len() + numbers.row_size(), 0),
                }
            }
            columns.insert(path, numbers);
        }
        Ok(columns)
    }

    /// Adds objects, or puts new ones in the place of those that go.
    fn add_objects(
        &mut self,
        plan: &Plan,
        change: &Change,
        bases: &[(u64, u32)],
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let Some(objects) = &plan.objects else {
            if self.tables.ids.is_some() {
                return Err(EditError::Kind {
                    expected: "points of objects",
                    found: "points without objects; give them object_ids",
                });
            }
            return Ok(());
        };
        if self.tables.ids.is_none() && self.chunks().next().is_some() {
            return Err(EditError::Kind {
                expected: "points without objects",
                found: "points of objects",
            });
        }
        let new: BTreeSet<i64> = objects.ids.iter().copied().collect();
        let there = |id: &&i64| self.tables.row_of.contains_key(*id) && !change.remove.contains(*id);
        if let Some(id) = new.iter().find(there) {
            return Err(EditError::ObjectThere(*id));
        }
        let gone: BTreeSet<i64> = change.remove.difference(&new).copied().collect();
        self.tables.remove(&gone);
        for (row, id) in objects.ids.iter().enumerate() {
            let entries = plan.arranged.manifests.of(row).iter();
            let fragments = entries.map(|entry| {
                let chunk = plan.arranged.fragments[*entry as usize].chunk;
                let coords = plan.arranged.chunks[chunk as usize].clone();
                (coords, bases[chunk as usize].1 + plan.arranged.number(*entry))
            });
            let fragments: Vec<_> = fragments.collect();
            edits.touched.insert(format!("object/{id}"));
            match self.tables.row_of.get(id) {
                Some(row) => self.tables.manifests[*row] = tables::encoded(&fragments, self.axes)?,
                None => {
                    self.tables.push(*id, &fragments, self.axes)?;
                    edits.objects.push(*id);
                }
            }
        }
        for attribute in &plan.geometry.object {
            self.object_attribute(attribute, objects)?;
        }
        for (number, members) in &plan.geometry.groups {
            let number = *number as usize;
            if self.tables.groups.len() <= number {
                self.tables.groups.resize(number + 1, Vec::new());
            }
            let own = &mut self.tables.groups[number];
            let more: Vec<i64> = members.iter().filter(|id| !own.contains(id)).copied().collect();
            own.extend(more);
        }
        self.group_attributes(&plan.geometry.group)
    }

    fn object_attribute(
        &mut self,
        attribute: &Attribute,
        objects: &crate::objects::Objects,
    ) -> Result<(), EditError> {
        let rows = self.tables.manifests.len();
        let table = Table::like(attribute, self.tables.object.get(&attribute.name), false, rows)?;
        let table = self.tables.object.entry(attribute.name.clone()).or_insert(table);
        for (row, id) in objects.ids.iter().enumerate() {
            let value = objects.given[row].and_then(|at| Table::value(attribute, at));
            if let (Some(row), Some(value)) = (self.tables.row_of.get(id), value) {
                table.rows[*row] = Some(value);
            }
        }
        Ok(())
    }

    fn group_attributes(&mut self, attributes: &[Attribute]) -> Result<(), EditError> {
        for attribute in attributes {
            let rows = self.tables.groups.len().max(attribute.values.len());
            if self.tables.groups.len() < rows {
                self.tables.groups.resize(rows, Vec::new());
            }
            let table = Table::like(attribute, self.tables.group.get(&attribute.name), true, rows)?;
            let table = self.tables.group.entry(attribute.name.clone()).or_insert(table);
                table.rows.resize(rows, None);
            for at in 0..attribute.values.len() {
                // What a group has already stays.
                if table.rows[at].is_none() {
                    table.rows[at] = Table::value(attribute, at);
                }
            }
        }
        Ok(())
    }

    fn add_links(
        &mut self,
        plan: &Plan,
        bases: &[(u64, u32)],
        cells: &mut BTreeMap<CellKey, Chunk>,
    ) -> Result<(), EditError> {
        let Some(filed) = &plan.links else {
            return Ok(());
        };
        let width = filed.width.get();
        if let Some(family) = &self.links
            && family.width != width
        {
            return Err(EditError::LinkWidth {
                expected: family.width,
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
                return Err(EditError::NoAttribute { what, name });
            }
        }
        for column in &plan.link {
            if !names.contains(&column.name) && !self.nodes.contains_key("0/links/0") {
                continue;
            }
            if !names.contains(&column.name) {
                let name = column.name.clone();
                return Err(EditError::NewAttribute { what, name });
            }
        }
        let inside = filed.inside.iter().map(|(chunk, cell)| (vec![*chunk; width], cell));
        let between = filed.between.iter().map(|(chunks, cell)| (chunks.clone(), cell));
        for (chunks, cell) in inside.chain(between) {
            let coords: Vec<&[i64]> = chunks
                .iter()
                .map(|chunk| plan.arranged.chunks[*chunk as usize].as_slice())
                .collect();
            let (segment, offsets) = filing::offsets(&coords);
            let form = self.link_array(plan, &segment, &offsets)?;
            let columns = self.link_columns(plan, &segment)?;
            let key = (segment.clone(), coords[0].to_vec());
            if !cells.contains_key(&key) {
                let loaded = links::load(self, &segment, coords[0])?;
                cells.insert(key.clone(), loaded);
            }
            if let Some(own) = cells.get_mut(&key) {
                append_links(own, cell, &chunks, bases, form, &columns);
            }
        }
        Ok(())
    }

    /// The array of a segment, made where there is none yet; the form of its rows.
    fn link_array(
        &mut self,
        plan: &Plan,
        segment: &str,
        offsets: &[Vec<i64>],
    ) -> Result<RowForm, EditError> {
        let path = format!("0/links/0/{segment}");
        let family = self.links.get_or_insert_with(|| super::image::Family {
            width: offsets.len() + 1,
            directed: plan.design.directed,
            duplicate: plan.design.duplicate,
        });
        let (directed, duplicate) = (family.directed, family.duplicate);
        if !self.nodes.contains_key("0/links/0") {
            let says = json!({
                "zv_array": "links_family", "level_delta": 0, "link_width": offsets.len() + 1,
                "directed": directed, "store": if duplicate { "duplicate" } else { "canonical" },
                "sid_ndim": self.axes, "num_links": 0, "num_physical_records": 0,
            });
            self.nodes.insert("0/links".to_owned(), nodes::group(Map::new()));
            self.nodes.insert("0/links/0".to_owned(), nodes::group(crate::plan::says(says)));
        }
        let crosses = !links::is_zero(segment);
        let permuted = crosses && (!directed || duplicate);
        let form = match permuted {
            true => RowForm::Permuted,
            false => RowForm::Plain,
        };
        let says = json!({
            "zv_array": "links", "dtype": "int64", "offsets": offsets, "has_perm": permuted,
            "link_width": offsets.len() + 1, "level_delta": 0,
        });
        self.array_like_vertices(&path, crate::plan::says(says))?;
        if !crosses {
            let says = json!({"zv_array": "link_fragments", "encoding": "fragment_index_v1"});
            self.array_like_vertices("0/link_fragments", crate::plan::says(says))?;
        }
        Ok(form)
    }

    /// Columns of link attributes by the path of their array for a segment.
    fn link_columns(
        &mut self,
        plan: &Plan,
        segment: &str,
    ) -> Result<BTreeMap<String, Column>, EditError> {
        let mut columns = BTreeMap::new();
        for attribute in &plan.geometry.link {
            let path = format!("0/link_attributes/{}/0/{segment}", attribute.name);
            if !self.arrays.contains_key(&path) {
                let own = plan.link.iter().find(|column| column.name == attribute.name);
                let prefix = format!("0/link_attributes/{}/0/", attribute.name);
                let like = self.nodes.iter().find(|(path, _)| path.starts_with(&prefix));
                // What one array of the family says, all do.
                let mut says = match (like, own) {
                    (Some((_, node)), _) => crate::plan::says(node["attributes"].clone()),
                    (None, Some(column)) => column.says.clone(),
                    (None, None) => Map::new(),
                };
                let links = self.nodes.get(&format!("0/links/0/{segment}"));
                let offsets = links.map(|node| node["attributes"]["offsets"].clone());
                says.insert("offsets".to_owned(), offsets.unwrap_or_default());
                says.insert("level_delta".to_owned(), json!(0));
                self.array_like_vertices(&path, says)?;
            }
            let column = self.column("link attribute", &path, attribute)?;
            columns.insert(path, column);
        }
        Ok(columns)
    }

    /// Makes an array with a cell for each chunk, stored as vertices are.
    fn array_like_vertices(
        &mut self,
        path: &str,
        mut says: Map<String, Value>,
    ) -> Result<(), EditError> {
        if self.arrays.contains_key(path) {
            return Ok(());
        }
        let vertices = self.nodes.get("0/vertices").cloned();
        let mut node = vertices.ok_or_else(|| EditError::Missing("0/vertices".to_owned()))?;
        let array = self.arrays.get("0/vertices").cloned();
        let mut array = array.ok_or_else(|| EditError::Missing("0/vertices".to_owned()))?;
        array.present.clear();
        let dtype = says.get("dtype").and_then(Value::as_str);
        array.dtype = dtype.and_then(|text| zvf_format::numeric::Dtype::parse(text).ok());
        if array.origin.iter().any(|at| *at != 0) {
            says.insert("chunk_grid_origin".to_owned(), json!(array.origin));
        }
        node["attributes"] = Value::Object(says);
        self.nodes.insert(path.to_owned(), node);
        self.arrays.insert(path.to_owned(), array);
        Ok(())
    }

    /// Writes chunks down as cells.
    fn put_chunks(
        &mut self,
        chunks: &BTreeMap<Vec<i64>, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        for (coords, chunk) in chunks {
            let mut put = |path: &str, bytes: Vec<u8>| self.put(path, coords, bytes, edits);
            put("0/vertices", chunk.positions.clone())?;
            let gone = chunk.rows == 0;
            let index = match gone {
                true => Vec::new(),
                false => chunk.index()?,
            };
            put("0/vertex_fragments", index)?;
            for (path, bytes) in &chunk.vertex {
                put(path, bytes.clone())?;
            }
            for (path, bytes) in &chunk.fragment {
                put(path, if gone { Vec::new() } else { bytes.clone() })?;
            }
        }
        Ok(())
    }

    fn put_links(
        &mut self,
        cells: &BTreeMap<CellKey, Chunk>,
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

    /// Writes a cell down, or that it goes, and in the list of its array.
    fn put(
        &mut self,
        path: &str,
        coords: &[i64],
        bytes: Vec<u8>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let array = self.arrays.get_mut(path);
        let array = array.ok_or_else(|| EditError::Missing(path.to_owned()))?;
        let node = self.nodes.get_mut(path);
        let node = node.ok_or_else(|| EditError::Missing(path.to_owned()))?;
        let key = (path.to_owned(), coords.to_vec());
        if bytes.is_empty() {
            if array.present.remove(coords) {
                edits.cells.insert(key, None);
            }
            return Ok(());
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(EditError::Refused(crate::Refusal::CellSize {
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

    /// Nodes that say something else now.
    fn put_level(&mut self, chunks: &BTreeMap<Vec<i64>, Chunk>, edits: &mut Edits) {
        for (path, array) in &self.arrays {
            let mut keys: Vec<String> = array.present.iter().map(|at| ChunkCoords(at).to_string()).collect();
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
            let vertices = vertices.saturating_add(edits.added).saturating_sub(edits.removed);
            level["vertex_count"] = json!(vertices);
            if let (false, Some(level)) = (tiles, level.as_object_mut()) {
                level.remove("fragments_tile");
            }
        }
        self.recount_links(edits);
        edits.nodes = std::mem::take(&mut self.nodes);
        self.nodes.clone_from(&edits.nodes);
        edits.nodes.retain(|path, _| !is_table(path));
    }

    /// Families say how many links there are now: what cells held before and hold
    /// after. Of links that are stored several times the copy whose first end is the
    /// first counts.
    fn recount_links(&mut self, edits: &Edits) {
        let Some(family) = &self.links else {
            return;
        };
        let mut rows = (0u64, 0u64);
        let mut logical = (0u64, 0u64);
        for ((path, source), after) in &edits.cells {
            let Some(segment) = path.strip_prefix("0/links/0/") else {
                continue;
            };
            let form = links::form(self, path);
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

    fn put_tables(&mut self, edits: &mut Edits) -> Result<(), EditError> {
        let codecs = |path: &str, strings: bool, nodes: &BTreeMap<String, Value>| -> Vec<Value> {
            let own = nodes.get(path).and_then(|node| node["codecs"].as_array().cloned());
            let vertices = || {
                let codecs = nodes.get("0/vertices").map(|node| node["codecs"].clone());
                let checksum = has_checksum(&codecs.unwrap_or_default());
                let first = match strings {
                    true => nodes::vlen(),
                    false => nodes::bytes(8),
                };
                let mut all = vec![first, json!({
                    "name": "zstd", "configuration": {"level": 1, "checksum": false},
                })];
                all.extend(checksum.then(|| json!({"name": "crc32c"})));
                all
            };
            own.unwrap_or_else(vertices)
        };
        let outputs = &mut edits.tables;
        if let Some(ids) = &self.tables.ids {
            let present = self.tables.manifests.iter().filter(|bytes| bytes.len() > 4).count();
            let says = json!({
                "zv_array": "object_index", "num_objects": ids.len(), "num_present": present,
                "sid_ndim": self.axes, "layout": "vlen_manifests_v2",
                "object_ids_sorted": ids.is_sorted(),
            });
            outputs.push(crate::plan::group("0/object_index", says));
            let path = "0/object_index/manifests";
            let own = codecs(path, true, &self.nodes);
            let most = layout_tables::MANIFESTS;
            layout_tables::strings(outputs, own, path, Map::new(), &self.tables.manifests, most)?;
            let path = "0/object_index/object_ids";
            let own = codecs(path, false, &self.nodes);
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let rows = layout_tables::Rows::ids(&bytes);
            layout_tables::rows(outputs, own, path, Map::new(), &rows);
        }
        for (family, tables) in [
            ("object_attributes", &self.tables.object),
            ("group_attributes", &self.tables.group),
        ] {
            if !tables.is_empty() {
                outputs.push(crate::plan::bare(format!("0/{family}")));
            }
            for (name, table) in tables {
                let path = format!("0/{family}/{name}");
                let own = codecs(&path, false, &self.nodes);
                let column = columns::restored(name, table.kind, table.columns, &table.rows)?;
                let mut says = table.attributes.clone();
                says.insert("shape".to_owned(), layout_tables::shape(&column));
                says.insert("dtype".to_owned(), json!(column.dtype));
                let rows = layout_tables::Rows::of(&column);
                layout_tables::rows(outputs, own, &path, says, &rows);
            }
        }
        if !self.tables.groups.is_empty() {
            let groups = self.tables.groups.iter();
            let members: Vec<Vec<u8>> = groups.map(|ids| tables::members(ids)).collect();
            let says = json!({"zv_array": "groups", "num_groups": members.len()});
            let own = codecs("0/groups", true, &self.nodes);
            let says = crate::plan::says(says);
            layout_tables::strings(outputs, own, "0/groups", says, &members, members.len())?;
        }
        Ok(())
    }
}

/// Whether cells end in a checksum, in shards or not.
fn has_checksum(codecs: &Value) -> bool {
    let all = codecs.as_array().into_iter().flatten();
    let mut all = all.map(|codec| (codec["name"].as_str(), &codec["configuration"]["codecs"]));
    all.any(|(name, inner)| name == Some("crc32c") || has_checksum(inner))
}

fn is_table(path: &str) -> bool {
    ["0/object_index", "0/object_attributes", "0/group"]
        .iter()
        .any(|family| path.starts_with(family))
}

/// Takes rows out of chunks: those of fragments that go and that no other has.
fn remove_rows(
    chunks: &mut BTreeMap<Vec<i64>, Chunk>,
    change: &Change,
    gone: &BTreeMap<Vec<i64>, BTreeSet<u32>>,
    edits: &mut Edits,
) -> Result<BTreeMap<Vec<i64>, Vec<Option<u64>>>, EditError> {
    let mut moved = BTreeMap::new();
    for (coords, chunk) in chunks.iter_mut() {
        let mut rows = vec![false; usize::try_from(chunk.rows).unwrap_or(0)];
        let mut wanted = false;
        if let Some(numbers) = gone.get(coords) {
            for number in numbers {
                let fragment = chunk.fragments.get(*number as usize).ok_or_else(|| {
                    let why = format!("an object names fragment {number} of chunk {}", ChunkCoords(coords));
                    damaged("0/object_index/manifests", why)
                })?;
                fragment.rows().for_each(|row| rows[row as usize] = true);
                wanted = true;
            }
            for (number, fragment) in (0u32..).zip(&chunk.fragments) {
                if !numbers.contains(&number) {
                    fragment.rows().for_each(|row| rows[row as usize] = false);
                }
            }
        }
        if let Some(own) = change.remove_rows.get(coords) {
            for row in own {
                let slot = usize::try_from(*row).ok().and_then(|row| rows.get_mut(row));
                *slot.ok_or_else(|| damaged("0/vertices", "a row that is not there"))? = true;
                wanted = true;
            }
        }
        if change.compact {
            let mut used = vec![false; rows.len()];
            for fragment in &chunk.fragments {
                fragment.rows().for_each(|row| used[row as usize] = true);
            }
            for (gone, used) in rows.iter_mut().zip(&used) {
                *gone |= !used;
                wanted |= !used;
            }
        }
        if !wanted {
            continue;
        }
        edits.removed += rows.iter().filter(|gone| **gone).count() as u64;
        // A fragment that goes stays as a number without rows.
        for number in gone.get(coords).into_iter().flatten() {
            if let Some(fragment) = chunk.fragments.get_mut(*number as usize) {
                let start = fragment.rows().next().unwrap_or(0);
                *fragment = match fragment {
                    Fragment::Range(start, end) if (*start..*end).all(|row| rows[row as usize]) => {
                        Fragment::Range(*start, *end)
                    }
                    _ => Fragment::Range(start, start),
                };
            }
        }
        moved.insert(coords.clone(), chunk.without(&rows));
    }
    Ok(moved)
}

/// Makes room for a chunk in an array: upwards alone, as cells keep their place.
fn grow(array: &mut PerChunk, node: &mut Value, coords: &[i64]) -> Result<(), EditError> {
    let mut grown = false;
    for axis in 0..coords.len() {
        let (at, origin) = (coords[axis], array.origin[axis]);
        if at < origin {
            if !array.present.is_empty() {
                return Err(EditError::Below {
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
        if let Some(says) = node["attributes"].as_object_mut()
            && (moved || says.contains_key("chunk_grid_origin"))
        {
            says.insert("chunk_grid_origin".to_owned(), json!(array.origin));
        }
    }
    Ok(())
}

/// Puts links behind those of a cell, as one more group.
fn append_links(
    own: &mut Chunk,
    cell: &Cell,
    chunks: &[u32],
    bases: &[(u64, u32)],
    form: RowForm,
    columns: &BTreeMap<String, Column>,
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
        own.vertex.entry(path.clone()).or_default().extend(column.gather(rows));
    }
}
