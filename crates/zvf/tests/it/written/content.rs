//! The content of a store, independent of its chunks. Vertices are identified by their attribute
//! `tag`, which is unique.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use zvf::{Dataset, Query};
use zvf_build::{Column, ColumnValues, Design, GeometryBuilder, NumericColumn};
use zvf_catalog::Scope;
use zvf_model::level::LevelId;

/// The content of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    /// By tag: coordinates, and attributes by name.
    pub(crate) vertices: BTreeMap<u64, (Vec<u8>, Row)>,
    /// The object of each vertex, in stores with objects and without paths.
    pub(crate) owners: BTreeMap<u64, i64>,
    /// Tags of paths by object.
    pub(crate) paths: BTreeMap<i64, Vec<u64>>,
    /// Tags of the ends of each link and its attributes, sorted.
    pub(crate) links: Vec<(Vec<u64>, Row)>,
    /// Attributes by object, including objects without vertices.
    pub(crate) objects: BTreeMap<i64, Row>,
    /// Members and attributes by group.
    pub(crate) groups: BTreeMap<u64, (Vec<i64>, Row)>,
}

/// Values by name; missing values have no entry.
pub(crate) type Row = BTreeMap<String, String>;

fn number(bytes: &[u8]) -> String {
    format!("{bytes:02x?}")
}

fn row(attributes: &[Column], at: usize) -> Row {
    let value = |attribute: &Column| match &attribute.values {
        ColumnValues::Numeric(numbers) => Some(number(numbers.row(at).unwrap())),
        texts @ ColumnValues::Dictionary { .. } => texts.text_at(at).map(str::to_owned),
    };
    let row = attributes.iter();
    row.filter_map(|attribute| Some((attribute.name.clone(), value(attribute)?)))
        .collect()
}

fn read(columns: &[Column], at: usize) -> Row {
    let value = |column: &Column| {
        if column.is_null(at) {
            return None;
        }
        Some(match &column.values {
            ColumnValues::Numeric(rows) => {
                let size = rows.row_size();
                number(&rows.bytes[at * size..(at + 1) * size])
            }
            ColumnValues::Dictionary { codes, words } => words[codes[at] as usize].clone(),
        })
    };
    let row = columns.iter();
    row.filter_map(|column| Some((column.name.clone(), value(column)?)))
        .collect()
}

/// Returns the tag of each vertex.
fn tags(values: &ColumnValues) -> Vec<u64> {
    match values {
        ColumnValues::Numeric(NumericColumn { bytes, .. }) => tags_of(bytes),
        ColumnValues::Dictionary { .. } => panic!("tags are numbers"),
    }
}

fn tags_of(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

impl Content {
    /// Returns the expected content of a store of this geometry.
    pub(crate) fn of(geometry: &GeometryBuilder, design: &Design) -> Self {
        let attribute = geometry
            .vertex
            .iter()
            .find(|attribute| attribute.name == "tag");
        let tags = tags(&attribute.unwrap().values);
        let mut content = Self::default();
        for (at, tag) in tags.iter().enumerate() {
            let position = geometry.positions.row(at).unwrap().to_vec();
            content
                .vertices
                .insert(*tag, (position, row(&geometry.vertex, at)));
        }
        assert_eq!(content.vertices.len(), tags.len());
        let mut ids: Vec<i64> = Vec::new();
        let speaks = !geometry.object.is_empty()
            || !geometry.groups.is_empty()
            || geometry.objects.is_some();
        if let Some(offsets) = &geometry.owners.offsets() {
            for (part, ends) in offsets.windows(2).enumerate() {
                let id = geometry
                    .owners
                    .ids()
                    .as_ref()
                    .map_or(part as i64, |ids| ids[part]);
                ids.push(id);
                let rows = ends[0] as usize..ends[1] as usize;
                if !rows.is_empty() {
                    content.paths.insert(id, tags[rows].to_vec());
                }
            }
        } else if let Some(own) = &geometry.owners.ids() {
            content.owners = tags.iter().copied().zip(own.iter().copied()).collect();
        } else if design.kind.is_linked() {
            content.owners = tags.iter().map(|tag| (*tag, 0)).collect();
        } else if speaks {
            content.owners = tags.iter().copied().zip(0..).collect();
        }
        let width = geometry.links.width;
        for (at, ends) in geometry.links.ends.chunks_exact(width).enumerate() {
            let ends = ends.iter().map(|end| tags[*end as usize]).collect();
            content.links.push((ends, row(&geometry.link, at)));
        }
        content.links.sort();
        let mut known: Vec<i64> = content
            .owners
            .values()
            .copied()
            .chain(ids.iter().copied())
            .collect();
        if design.kind.is_paths() && geometry.objects.is_none() {
            known.clone_from(&ids);
        } else {
            known.sort_unstable();
            known.dedup();
        }
        let listed = geometry.objects.clone().unwrap_or_else(|| known.clone());
        for id in known.iter().chain(&listed) {
            content.objects.entry(*id).or_default();
        }
        for (at, id) in listed.iter().enumerate() {
            content.objects.insert(*id, row(&geometry.object, at));
        }
        if design.profile != zvf_build::Profile::V09 {
            // Ids are row numbers, so the ids in between are objects too.
            let last = content.objects.keys().next_back().copied();
            for id in 0..last.unwrap_or(-1) {
                content.objects.entry(id).or_default();
            }
        }
        let attributes = geometry
            .group
            .iter()
            .map(|attribute| attribute.values.len());
        let count = attributes.max().unwrap_or(0) as u64;
        let last = geometry.groups.keys().next_back();
        let count = count.max(last.map_or(0, |last| u64::from(*last) + 1));
        for group in 0..count {
            // Repeated members are stored once.
            let mut members = Vec::new();
            for id in geometry.groups.get(&(group as u32)).into_iter().flatten() {
                if !members.contains(id) {
                    members.push(*id);
                }
            }
            let row = row(&geometry.group, group as usize);
            content.groups.insert(group, (members, row));
        }
        content
    }

    /// Adds the content of appended geometry.
    pub(crate) fn add(&mut self, more: Self) {
        let vertices = self.vertices.len() + more.vertices.len();
        self.vertices.extend(more.vertices);
        assert_eq!(self.vertices.len(), vertices);
        self.owners.extend(more.owners);
        self.paths.extend(more.paths);
        self.links.extend(more.links);
        self.links.sort();
        self.objects.extend(more.objects);
        for (group, (members, row)) in more.groups {
            match self.groups.entry(group) {
                Entry::Vacant(entry) => {
                    entry.insert((members, row));
                }
                Entry::Occupied(mut entry) => {
                    let own = entry.get_mut();
                    for id in members {
                        if !own.0.contains(&id) {
                            own.0.push(id);
                        }
                    }
                    // Existing attributes of a group are kept.
                    for (name, value) in row {
                        own.1.entry(name).or_insert(value);
                    }
                }
            }
        }
    }

    /// Removes objects; returns the number of links that lose some but not all ends.
    pub(crate) fn remove(&mut self, ids: &BTreeSet<i64>) -> usize {
        let owners = self.owners.iter().filter(|(_, id)| ids.contains(id));
        let mut gone: BTreeSet<u64> = owners.map(|(tag, _)| *tag).collect();
        for id in ids {
            gone.extend(self.paths.remove(id).into_iter().flatten());
            self.objects.remove(id);
        }
        for (members, _) in self.groups.values_mut() {
            members.retain(|id| !ids.contains(id));
        }
        self.remove_vertices(&gone).1
    }

    /// Removes vertices; returns the number of links that lose an end, and the number of these that
    /// do not lose all ends.
    pub(crate) fn remove_vertices(&mut self, gone: &BTreeSet<u64>) -> (usize, usize) {
        self.vertices.retain(|tag, _| !gone.contains(tag));
        self.owners.retain(|tag, _| !gone.contains(tag));
        let (mut links, mut severed) = (0, 0);
        self.links.retain(|(ends, _)| {
            let lost = ends.iter().filter(|end| gone.contains(end)).count();
            links += usize::from(lost > 0);
            severed += usize::from(lost > 0 && lost < ends.len());
            lost == 0
        });
        (links, severed)
    }

    /// Reads the content of a store.
    pub(crate) async fn read(dataset: &Dataset) -> Self {
        let result = dataset.query(&Query::new()).await.unwrap();
        assert_eq!(result.skipped, []);
        let mut content = Self::default();
        let tags = result
            .vertex
            .iter()
            .find(|column| column.name == "tag")
            .unwrap();
        let ColumnValues::Numeric(tags) = &tags.values else {
            panic!("tags are numbers")
        };
        let tags = tags_of(&tags.bytes);
        let size = result.positions.row_size();
        for (at, tag) in tags.iter().enumerate() {
            let position = result.positions.bytes[at * size..(at + 1) * size].to_vec();
            let mut row = read(&result.vertex, at);
            for (name, value) in read(&result.fragment, at) {
                row.insert(format!("fragment.{name}"), value);
            }
            let before = content.vertices.insert(*tag, (position, row));
            assert_eq!(before, None, "vertex {tag} is there twice");
        }
        if let Some(ids) = &result.object_ids {
            content.owners = tags
                .iter()
                .copied()
                .zip(ids.numbers().iter().copied())
                .collect();
        }
        if let Some(parts) = &result.parts {
            for (part, ends) in parts.offsets.windows(2).enumerate() {
                let path = tags[ends[0] as usize..ends[1] as usize].to_vec();
                if !path.is_empty() {
                    content.paths.insert(parts.objects[part], path);
                }
            }
        }
        if let Some(links) = &result.links {
            for (at, ends) in links.ends.chunks_exact(links.width as usize).enumerate() {
                let ends = ends.iter().map(|end| tags[*end as usize]).collect();
                content.links.push((ends, read(&result.link, at)));
            }
            content.links.sort();
        }
        content.tables(dataset).await;
        content
    }

    async fn tables(&mut self, dataset: &Dataset) {
        let catalog = dataset.catalog();
        let level = LevelId::FULL;
        if let Some(objects) = catalog.object_list(level).await.unwrap() {
            let names = catalog.attribute_list(level, Scope::Object).await.unwrap();
            let mut columns = Vec::new();
            for name in names.iter() {
                columns.push(catalog.object_values(level, name, None).await.unwrap());
            }
            for at in 0..objects.len() {
                let id = objects.id(at).unwrap();
                self.objects.insert(id, read(&columns, at));
            }
        }
        if let Some(groups) = catalog.group_list(level).await.unwrap() {
            let names = catalog.attribute_list(level, Scope::Group).await.unwrap();
            let mut columns = Vec::new();
            for name in names.iter() {
                columns.push(catalog.group_values(level, name, None).await.unwrap());
            }
            for group in 0..groups.len() {
                let members = groups.members(group).unwrap().iter().collect();
                self.groups
                    .insert(group, (members, read(&columns, group as usize)));
            }
        }
    }
}
