//! Objects of a store: ids, and rows of their attributes.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use zvf_model::object_ids::Owner;

use crate::{
    design::Design,
    error::BuildError,
    geometry::{GeometryBuilder, VertexOwners},
    vertex_layout::NO_OBJECT,
};

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
        geometry: &GeometryBuilder,
        design: &Design,
    ) -> Result<Option<(Self, Vec<u32>)>, BuildError> {
        let vertices = geometry.vertices();
        let own = match &geometry.owners {
            VertexOwners::Paths { objects: None, .. } => OwnIds::Each(geometry.owners.paths()),
            VertexOwners::Paths {
                objects: Some(ids), ..
            }
            | VertexOwners::Vertices(ids) => OwnIds::Given(ids),
            // Points become one object each; linked geometry is a single object.
            VertexOwners::Unnamed if design.kind.is_linked() => OwnIds::One(vertices),
            VertexOwners::Unnamed if implies_objects(geometry) => OwnIds::Each(vertices),
            VertexOwners::Unnamed => return Ok(None),
        };
        let (objects, row_of) = match own {
            OwnIds::Given(ids) => {
                let ids = ids.iter().copied().filter(|id| *id != Owner::NONE);
                Self::numbered(ids, geometry, design)?
            }
            OwnIds::Each(things) => Self::numbered(0..things as i64, geometry, design)?,
            OwnIds::One(things) => Self::numbered(0..things.min(1) as i64, geometry, design)?,
        };
        let row = |id| row_of.get(id).unwrap_or(NO_OBJECT);
        let rows = match own {
            OwnIds::Given(ids) => ids.iter().map(|id| row(*id)).collect(),
            OwnIds::Each(things) => (0..things as i64).map(row).collect(),
            OwnIds::One(things) => vec![row(0); things],
        };
        Ok(Some((objects, rows)))
    }

    /// Returns the objects with these ids and those with attributes.
    pub(crate) fn among(
        own: impl Iterator<Item = i64>,
        geometry: &GeometryBuilder,
        design: &Design,
    ) -> Result<Self, BuildError> {
        Self::numbered(own, geometry, design).map(|(objects, _)| objects)
    }

    fn numbered(
        own: impl Iterator<Item = i64>,
        geometry: &GeometryBuilder,
        design: &Design,
    ) -> Result<(Self, RowById), BuildError> {
        let listed = geometry.objects.iter().flatten().copied();
        let mut ids = distinct(own.chain(listed));
        if !design.profile.is_current() {
            // Ids are rows: unused ids in between become empty objects.
            let rows = ids.last().map_or(0, |last| last + 1);
            ids = (0..rows).collect();
        }
        let row_of = RowById::new(&ids);
        let objects = Self {
            attribute_rows: attribute_rows(geometry, &ids, &row_of)?,
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

/// Ids of the objects of vertices or paths.
#[derive(Clone, Copy)]
enum OwnIds<'a> {
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
pub(crate) fn implies_objects(geometry: &GeometryBuilder) -> bool {
    geometry.objects.is_some()
        || !geometry.object.is_empty()
        || !geometry.fragment.is_empty()
        || !geometry.groups.is_empty()
        || !geometry.group.is_empty()
}

/// Returns the attribute row of each row of the index.
fn attribute_rows(
    geometry: &GeometryBuilder,
    ids: &[i64],
    row_of: &RowById,
) -> Result<Vec<Option<usize>>, BuildError> {
    let mut given = vec![None; ids.len()];
    let own = match (&geometry.objects, &geometry.owners) {
        (Some(objects), _) => Cow::Borrowed(objects.as_slice()),
        // Attribute rows follow the order of the paths.
        (
            None,
            VertexOwners::Paths {
                objects: Some(ids), ..
            },
        ) => Cow::Borrowed(ids.as_slice()),
        // Attribute rows exist for used ids only.
        (None, owners) => {
            let used = owners.ids().unwrap_or(ids).iter().copied();
            Cow::Owned(distinct(used.filter(|id| *id != Owner::NONE)))
        }
    };
    for (at, id) in own.iter().enumerate() {
        if let Some(row) = row_of.get(*id) {
            given[row as usize] = Some(at);
        }
    }
    geometry.check_described(own.len())?;
    Ok(given)
}

/// Returns the members of a group in their order, each once.
pub(crate) fn distinct_members(ids: &[i64]) -> Vec<i64> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
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
