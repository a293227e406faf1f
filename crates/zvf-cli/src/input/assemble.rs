//! Geometry out of the interchange arrays.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zvf::build::{Attribute, Geometry, Values};

use super::{
    ColumnError, Input, ReadError, Reading,
    arrays::{Arrays, Group},
    column::{Column, Named},
};

/// Groups with a name get a number, and below this one: attributes of groups have a
/// row for each number.
const MOST_NAMED: u32 = 1 << 20;

pub(super) fn input(arrays: Arrays, reading: &Reading) -> Result<Input, ReadError> {
    let mut geometry = Geometry::new(arrays.positions);
    geometry.part_offsets = arrays.part_offsets;
    geometry.part_objects = arrays.part_objects;
    geometry.object_ids = arrays.object_ids;
    if reading.kind.is_paths() && geometry.part_offsets.is_none() {
        runs(&mut geometry);
    }
    if let Some(links) = arrays.links {
        geometry.link_width = links.width;
        geometry.links = links.ends;
    }
    geometry.objects = arrays.objects;
    geometry.vertex = attributes(arrays.vertex);
    geometry.link = attributes(arrays.link);
    geometry.object = attributes(arrays.object);
    geometry.group = attributes(arrays.group);
    let notes = fragments(arrays.fragment, &mut geometry)?;
    let group_names = groups(arrays.groups, &mut geometry)?;
    Ok(Input {
        geometry,
        group_names,
        axes: arrays.axes,
        files: arrays.files,
        notes,
    })
}

fn attributes(columns: Vec<Named>) -> Vec<Attribute> {
    let columns = columns.into_iter().map(|(name, column)| Attribute {
        name,
        values: column.values,
    });
    columns.collect()
}

/// Vertices one after the other that are of one object are a path.
fn runs(geometry: &mut Geometry) {
    let Some(ids) = geometry.object_ids.take() else {
        return;
    };
    let mut offsets = vec![0];
    let mut objects = Vec::new();
    let mut end = 0;
    for run in ids.chunk_by(|one, next| one == next) {
        objects.extend(run.first());
        end += crate::number::of_len(run.len());
        offsets.push(end);
    }
    geometry.part_offsets = Some(offsets);
    geometry.part_objects = Some(objects);
}

/// The object of each vertex; nothing when there are none.
fn owners(geometry: &Geometry) -> Vec<i64> {
    if let Some(ids) = &geometry.object_ids {
        return ids.clone();
    }
    let Some(offsets) = &geometry.part_offsets else {
        return Vec::new();
    };
    let most = geometry.vertices();
    let mut owners = Vec::with_capacity(most);
    let spans = offsets.iter().zip(offsets.iter().skip(1));
    for (part, (start, end)) in spans.enumerate() {
        let given = geometry.part_objects.as_ref();
        let object = match given {
            Some(objects) => objects.get(part).copied(),
            None => i64::try_from(part).ok(),
        };
        // Offsets are not checked yet.
        let length = usize::try_from(end.saturating_sub(*start)).unwrap_or(usize::MAX);
        let left = most.saturating_sub(owners.len());
        owners.extend(std::iter::repeat_n(object.unwrap_or(-1), length.min(left)));
    }
    owners
}

/// Attributes of fragments come with a row a vertex, as pieces of objects are not
/// known outside a store. Where all vertices of an object agree they are stored as
/// such, and else as attributes of vertices.
fn fragments(columns: Vec<Named>, geometry: &mut Geometry) -> Result<Vec<String>, ReadError> {
    let mut notes = Vec::new();
    if columns.is_empty() {
        return Ok(notes);
    }
    let owners = owners(geometry);
    let objects = match geometry.objects.clone() {
        Some(objects) => objects,
        None if geometry.object_ids.is_some() => {
            let objects: BTreeSet<i64> = owners.iter().copied().collect();
            objects.into_iter().collect()
        }
        None => {
            let mut seen = BTreeSet::new();
            let objects = owners.iter().copied();
            objects.filter(|object| seen.insert(*object)).collect()
        }
    };
    let mut are_used = false;
    for (name, column) in columns {
        let rows = column.values.len();
        if rows == geometry.vertices() {
            if let Some(values) = folded(&column.values, &owners, &objects) {
                are_used = true;
                geometry.fragment.push(Attribute { name, values });
                continue;
            }
            if geometry.vertex.iter().any(|other| other.name == name) {
                return Err(column.error(ColumnError::Twice));
            }
            notes.push(format!(
                "{} is stored as vertex.{name}: it differs within an object, or belongs to none",
                column.label
            ));
            let values = column.values;
            geometry.vertex.push(Attribute { name, values });
        } else if rows == objects.len() {
            are_used = true;
            let values = column.values;
            geometry.fragment.push(Attribute { name, values });
        } else {
            let expected = geometry.vertices();
            let found = rows;
            return Err(column.error(ColumnError::Rows { expected, found }));
        }
    }
    if are_used {
        geometry.objects = Some(objects);
    }
    Ok(notes)
}

/// A row for each object, when all its vertices have the same one.
fn folded(values: &Values, owners: &[i64], objects: &[i64]) -> Option<Values> {
    let mut first: HashMap<i64, usize> = HashMap::new();
    let known: BTreeSet<i64> = objects.iter().copied().collect();
    if owners.len() != values.len() {
        return None;
    }
    for (row, owner) in owners.iter().enumerate() {
        let one = *first.entry(*owner).or_insert(row);
        if !known.contains(owner) || !is_same(values, one, row) {
            return None;
        }
    }
    let rows = objects.iter().map(|object| first.get(object).copied());
    let rows: Option<Vec<usize>> = rows.collect();
    Some(values.gather(rows?.into_iter()))
}

fn is_same(values: &Values, one: usize, other: usize) -> bool {
    match values {
        Values::Numbers(numbers) => numbers.row(one) == numbers.row(other),
        Values::Text(texts) => texts.get(one) == texts.get(other),
    }
}

/// Groups by number, and names of those that have one.
fn groups(groups: Vec<Group>, geometry: &mut Geometry) -> Result<BTreeMap<u32, String>, ReadError> {
    let mut named = Vec::new();
    for group in groups {
        match group.number()? {
            Some(number) => {
                if geometry.groups.insert(number, group.members).is_some() {
                    return Err(group.column.error(ColumnError::Twice));
                }
            }
            None => named.push(group),
        }
    }
    let mut names = BTreeMap::new();
    let mut next = geometry
        .groups
        .keys()
        .next_back()
        .map_or(0, |last| last.saturating_add(1));
    for group in named {
        if next >= MOST_NAMED {
            return Err(group.column.error(ColumnError::Group(group.name)));
        }
        geometry.groups.insert(next, group.members);
        names.insert(next, group.name);
        next += 1;
    }
    if !names.is_empty() {
        let rows = (0..next).map(|number| names.get(&number).cloned());
        geometry.group.push(Attribute {
            name: "name".to_owned(),
            values: Values::Text(rows.collect()),
        });
    }
    Ok(names)
}

impl Group {
    /// `None` when it has a name.
    fn number(&self) -> Result<Option<u32>, ReadError> {
        let is_number =
            !self.name.is_empty() && self.name.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Ok(None);
        }
        let number = self.name.parse::<u32>().ok();
        let number = number.filter(|number| number.to_string() == self.name);
        let error = || self.column.error(ColumnError::Group(self.name.clone()));
        number.ok_or_else(error).map(Some)
    }
}

impl Column {
    /// The same values as an attribute of this name.
    pub(super) fn named(self, name: &str) -> Named {
        (name.to_owned(), self)
    }
}
