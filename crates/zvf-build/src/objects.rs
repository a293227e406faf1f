//! The objects of a store: their ids, and the rows of their attributes.

use std::collections::HashMap;

use crate::{
    design::{Design, Profile},
    geometry::{Attribute, Geometry},
    refusal::Refusal,
};

/// Objects by row of the object index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Objects {
    /// The id of each row, ascending.
    pub(crate) ids: Vec<i64>,
    /// For each row the row of attributes in the geometry, where it has one.
    pub(crate) given: Vec<Option<usize>>,
}

impl Objects {
    /// The objects there are, and the row of each vertex or path; no objects where
    /// nothing speaks of them.
    pub(crate) fn of(
        geometry: &Geometry,
        design: &Design,
    ) -> Result<Option<(Self, Vec<u32>)>, Refusal> {
        let speaks = geometry.object_ids.is_some() || speaks(geometry);
        let things = match &geometry.part_offsets {
            Some(offsets) => offsets.len() - 1,
            None => geometry.vertices(),
        };
        let own: Vec<i64> = if design.kind.is_paths() {
            match &geometry.part_objects {
                Some(ids) => ids.clone(),
                None => (0..things as i64).collect(),
            }
        } else {
            match &geometry.object_ids {
                Some(ids) => ids.clone(),
                // One object to each point; one in all of what is linked.
                None if design.kind.is_linked() => vec![0; things],
                None if speaks => (0..things as i64).collect(),
                None => return Ok(None),
            }
        };
        let objects = Self::among(&own, geometry, design)?;
        let row_of = RowOf::new(&objects.ids);
        let rows = own.iter().map(|id| row_of.get(*id).unwrap_or(u32::MAX));
        let rows = rows.collect();
        Ok(Some((objects, rows)))
    }

    /// The objects of these ids, and those that have attributes.
    pub(crate) fn among(
        own: &[i64],
        geometry: &Geometry,
        design: &Design,
    ) -> Result<Self, Refusal> {
        let mut ids = own.to_vec();
        ids.extend(geometry.objects.iter().flatten());
        ids.sort_unstable();
        ids.dedup();
        if design.profile != Profile::V09 {
            // Ids are rows: those in between are objects without anything.
            let rows = ids.last().map_or(0, |last| last + 1);
            ids = (0..rows).collect();
        }
        let row_of = RowOf::new(&ids);
        let objects = Self {
            given: given(geometry, design, &ids, &row_of)?,
            ids,
        };
        for (group, members) in &geometry.groups {
            if let Some(&id) = members.iter().find(|id| row_of.get(**id).is_none()) {
                let what = format!("group {group}");
                return Err(Refusal::NoObject { what, id });
            }
        }
        Ok(objects)
    }

    /// The row of an id.
    pub(crate) fn rows(&self) -> RowOf {
        RowOf::new(&self.ids)
    }
}

/// Whether anything but ids says that there are objects.
pub(crate) fn speaks(geometry: &Geometry) -> bool {
    geometry.objects.is_some()
        || !geometry.object.is_empty()
        || !geometry.fragment.is_empty()
        || !geometry.groups.is_empty()
        || !geometry.group.is_empty()
}

/// For each row of the index the row of attributes.
fn given(
    geometry: &Geometry,
    design: &Design,
    ids: &[i64],
    row_of: &RowOf,
) -> Result<Vec<Option<usize>>, Refusal> {
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
        // In the order of the paths.
        (None, Some(parts)) if design.kind.is_paths() => {
            for (at, id) in parts.iter().enumerate() {
                if let Some(row) = row_of.get(*id) {
                    given[row as usize] = Some(at);
                }
            }
            parts.len()
        }
        (None, _) => {
            // Those there are, not those in between.
            let mut own: Vec<i64> = geometry.object_ids.clone().unwrap_or_else(|| ids.to_vec());
            own.sort_unstable();
            own.dedup();
            for (at, id) in own.iter().enumerate() {
                if let Some(row) = row_of.get(*id) {
                    given[row as usize] = Some(at);
                }
            }
            own.len()
        }
    };
    let length = |what, attributes: &[Attribute]| crate::check::attributes(what, attributes, rows);
    length("object attribute", &geometry.object)?;
    length("fragment attribute", &geometry.fragment)?;
    let groups = geometry.groups.keys().next_back();
    let groups = groups.map_or(0, |last| *last as usize + 1);
    crate::check::attributes(
        "group attribute",
        &geometry.group,
        groups.max(longest(geometry)),
    )?;
    Ok(given)
}

/// Groups may have attributes and no members.
fn longest(geometry: &Geometry) -> usize {
    let rows = geometry
        .group
        .iter()
        .map(|attribute| attribute.values.len());
    rows.max().unwrap_or(0)
}

/// Rows by id.
pub(crate) enum RowOf {
    /// Ids are rows.
    Same(usize),
    Table(HashMap<i64, u32>),
}

impl RowOf {
    fn new(ids: &[i64]) -> Self {
        match ids.iter().zip(0..).all(|(id, row)| *id == row) {
            true => Self::Same(ids.len()),
            false => Self::Table(ids.iter().copied().zip(0..).collect()),
        }
    }

    pub(crate) fn get(&self, id: i64) -> Option<u32> {
        match self {
            Self::Same(rows) => u32::try_from(id).ok().filter(|row| (*row as usize) < *rows),
            Self::Table(table) => table.get(&id).copied(),
        }
    }
}
