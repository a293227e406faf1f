//! Objects of a store: ids, and rows of their attributes.

use std::collections::{HashMap, HashSet};

use crate::{
    design::{Design, Profile},
    error::BuildError,
    geometry::Geometry,
};
use zvf_model::column::Column;

/// Upper bound on the numbers of groups. A number takes memory for all smaller ones: groups are rows of
/// one chunk, in which missing groups have empty rows. `zvf query` lists as many groups.
const MAX_GROUPS: u32 = 1 << 20;

/// Objects by row of the object index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ObjectRows {
    /// Id of each row, ascending.
    pub(crate) ids: Vec<i64>,
    /// Row of the geometry's object attributes for each row of the index, if any.
    pub(crate) attribute_rows: Vec<Option<usize>>,
}

impl ObjectRows {
    /// Returns the objects and the object row of each vertex or path; `None` when neither ids nor
    /// object columns are given.
    pub(crate) fn of(
        geometry: &Geometry,
        design: &Design,
    ) -> Result<Option<(Self, Vec<u32>)>, BuildError> {
        let has_objects = geometry.object_ids.is_some() || implies_objects(geometry);
        let things = match &geometry.part_offsets {
            Some(offsets) => offsets.len() - 1,
            None => geometry.vertices(),
        };
        let is_path = design.kind.is_paths();
        let own = match (is_path, &geometry.part_objects, &geometry.object_ids) {
            (true, Some(ids), _) | (false, _, Some(ids)) => Owners::Given(ids),
            (true, None, _) => Owners::Each(things),
            // Points become one object each; linked geometry is a single object.
            (false, _, None) if design.kind.is_linked() => Owners::One(things),
            (false, _, None) if has_objects => Owners::Each(things),
            (false, _, None) => return Ok(None),
        };
        let (objects, row_of) = match own {
            Owners::Given(ids) => Self::numbered(ids.iter().copied(), geometry, design)?,
            Owners::Each(things) => Self::numbered(0..things as i64, geometry, design)?,
            Owners::One(things) => Self::numbered(0..things.min(1) as i64, geometry, design)?,
        };
        let row = |id| row_of.get(id).unwrap_or(u32::MAX);
        let rows = match own {
            Owners::Given(ids) => ids.iter().map(|id| row(*id)).collect(),
            Owners::Each(things) => (0..things as i64).map(row).collect(),
            Owners::One(things) => vec![row(0); things],
        };
        Ok(Some((objects, rows)))
    }

    /// Returns the objects with these ids and those with attributes.
    pub(crate) fn among(
        own: impl Iterator<Item = i64>,
        geometry: &Geometry,
        design: &Design,
    ) -> Result<Self, BuildError> {
        Self::numbered(own, geometry, design).map(|(objects, _)| objects)
    }

    fn numbered(
        own: impl Iterator<Item = i64>,
        geometry: &Geometry,
        design: &Design,
    ) -> Result<(Self, RowById), BuildError> {
        let listed = geometry.objects.iter().flatten().copied();
        let mut ids = distinct(own.chain(listed));
        if design.profile != Profile::V09 {
            // Ids are rows: unused ids in between become empty objects.
            let rows = ids.last().map_or(0, |last| last + 1);
            ids = (0..rows).collect();
        }
        let row_of = RowById::new(&ids);
        let objects = Self {
            attribute_rows: attribute_rows(geometry, design, &ids, &row_of)?,
            ids,
        };
        for (group, members) in &geometry.groups {
            if let Some(&id) = members.iter().find(|id| row_of.get(**id).is_none()) {
                let what = format!("group {group}");
                return Err(BuildError::UnknownObject { what, id });
            }
        }
        Ok((objects, row_of))
    }

    /// Returns the map from ids to rows.
    pub(crate) fn rows(&self) -> RowById {
        RowById::new(&self.ids)
    }
}

/// Source of the objects of vertices or paths.
#[derive(Clone, Copy)]
enum Owners<'a> {
    Given(&'a [i64]),
    /// Each vertex or path is an object.
    Each(usize),
    /// All belong to one object.
    One(usize),
}

/// Returns distinct ids in ascending order. Consecutive repeats are skipped first, so memory is
/// bound by the number of runs rather than vertices.
fn distinct(all: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = Vec::new();
    for id in all {
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns whether object, fragment or group columns imply objects.
pub(crate) fn implies_objects(geometry: &Geometry) -> bool {
    geometry.objects.is_some()
        || !geometry.object.is_empty()
        || !geometry.fragment.is_empty()
        || !geometry.groups.is_empty()
        || !geometry.group.is_empty()
}

/// Returns the attribute row of each row of the index.
fn attribute_rows(
    geometry: &Geometry,
    design: &Design,
    ids: &[i64],
    row_of: &RowById,
) -> Result<Vec<Option<usize>>, BuildError> {
    let mut given = vec![None; ids.len()];
    let rows = match (&geometry.objects, &geometry.part_objects) {
        (Some(objects), _) => {
            for (at, id) in objects.iter().enumerate() {
                if let Some(row) = row_of.get(*id) {
                    given[row as usize] = Some(at);
                }
            }
            objects.len()
        }
        // Attribute rows follow the order of the paths.
        (None, Some(parts)) if design.kind.is_paths() => {
            for (at, id) in parts.iter().enumerate() {
                if let Some(row) = row_of.get(*id) {
                    given[row as usize] = Some(at);
                }
            }
            parts.len()
        }
        (None, _) => {
            // Attribute rows exist for used ids only.
            let own = geometry.object_ids.as_deref().unwrap_or(ids);
            let own = distinct(own.iter().copied());
            for (at, id) in own.iter().enumerate() {
                if let Some(row) = row_of.get(*id) {
                    given[row as usize] = Some(at);
                }
            }
            own.len()
        }
    };
    let length = |what, attributes: &[Column]| crate::check::attributes(what, attributes, rows);
    length("object attribute", &geometry.object)?;
    length("fragment attribute", &geometry.fragment)?;
    check_groups(geometry)?;
    Ok(given)
}

/// Checks the numbers and attributes of groups.
pub(crate) fn check_groups(geometry: &Geometry) -> Result<(), BuildError> {
    let groups = geometry.groups.keys().next_back();
    if let Some(&number) = groups.filter(|number| **number >= MAX_GROUPS) {
        return Err(BuildError::GroupNumber(number));
    }
    let groups = groups.map_or(0, |last| *last as usize + 1);
    let rows = groups.max(longest(geometry));
    crate::check::attributes("group attribute", &geometry.group, rows)
}

/// Returns the members of a group in their order, each once.
pub(crate) fn distinct_members(ids: &[i64]) -> Vec<i64> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}

/// Returns the number of group attribute rows; a group may have attributes and no members.
fn longest(geometry: &Geometry) -> usize {
    let rows = geometry
        .group
        .iter()
        .map(|attribute| attribute.values.len());
    rows.max().unwrap_or(0)
}

/// Map from object ids to rows.
pub(crate) enum RowById {
    /// Ids equal rows.
    Same(usize),
    Table(HashMap<i64, u32>),
}

impl RowById {
    fn new(ids: &[i64]) -> Self {
        if ids.iter().zip(0..).all(|(id, row)| *id == row) {
            Self::Same(ids.len())
        } else {
            Self::Table(ids.iter().copied().zip(0..).collect())
        }
    }

    pub(crate) fn get(&self, id: i64) -> Option<u32> {
        match self {
            Self::Same(rows) => u32::try_from(id).ok().filter(|row| (*row as usize) < *rows),
            Self::Table(table) => table.get(&id).copied(),
        }
    }
}
