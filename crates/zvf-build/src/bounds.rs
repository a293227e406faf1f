//! Bounds of a store, and vertices outside them.

use std::collections::HashSet;

use crate::{
    coordinates,
    design::{Design, OutOfBounds},
    error::BuildError,
    geometry::{GeometryBuilder, LinkEnds, VertexOwners},
    objects,
};
use zvf_model::column::{Column, NumericColumn};

/// Converts positions to the type that the design stores.
pub(crate) fn stored(
    mut geometry: GeometryBuilder,
    design: &Design,
) -> Result<GeometryBuilder, BuildError> {
    match design.dtype {
        Some(kind) if kind != geometry.positions.kind => {
            geometry.positions = coordinates::converted(&geometry.positions, kind)?;
            Ok(geometry)
        }
        _ => Ok(geometry),
    }
}

/// Lower and upper bound of each axis.
pub(crate) type Corners = (Vec<f64>, Vec<f64>);

/// Returns the bounds of the store and the geometry within them, by the design's policy.
pub(crate) fn bounded(
    geometry: GeometryBuilder,
    design: &Design,
) -> Result<(GeometryBuilder, Corners), BuildError> {
    let found = coordinates::extent(&geometry.positions)?;
    let Some((lower, upper)) = &design.bounds else {
        return Ok((geometry, found));
    };
    let axes = geometry.axes();
    for bounds in [lower, upper] {
        if bounds.len() != axes {
            let (what, found) = ("the list of bounds", bounds.len());
            return Err(BuildError::AxisCount {
                what,
                expected: axes,
                found,
            });
        }
    }
    let pairs = lower.iter().zip(upper).enumerate();
    for (axis, (&lower, &upper)) in pairs {
        if !(lower.is_finite() && upper.is_finite() && lower <= upper) {
            return Err(BuildError::InvalidBounds { axis, lower, upper });
        }
    }
    let inside = |axis: usize| lower[axis] <= found.0[axis] && found.1[axis] <= upper[axis];
    if (0..axes).all(inside) {
        return Ok((geometry, (lower.clone(), upper.clone())));
    }
    match design.out_of_bounds {
        OutOfBounds::Reject => Err(first(&geometry.positions, lower, upper)),
        OutOfBounds::Drop => {
            let geometry = without(geometry, design.kind.is_linked(), lower, upper)?;
            Ok((geometry, (lower.clone(), upper.clone())))
        }
        OutOfBounds::Expand => {
            let min = lower.iter().zip(&found.0).map(|(a, b)| a.min(*b));
            let max = upper.iter().zip(&found.1).map(|(a, b)| a.max(*b));
            Ok((geometry, (min.collect(), max.collect())))
        }
    }
}

/// Returns the error that names the first vertex outside the bounds.
fn first(positions: &NumericColumn, lower: &[f64], upper: &[f64]) -> BuildError {
    let mut values = Vec::new();
    for vertex in 0..positions.len() {
        coordinates::block(positions, vertex..vertex + 1, &mut values);
        for (axis, &value) in values.iter().enumerate() {
            if !(lower[axis] <= value && value <= upper[axis]) {
                return BuildError::OutOfBounds {
                    vertex,
                    axis,
                    value,
                    lower: lower[axis],
                    upper: upper[axis],
                };
            }
        }
    }
    BuildError::AllOutside
}

/// Returns whether each vertex is stored. A design can drop the vertices outside the bounds.
pub(crate) fn kept(positions: &NumericColumn, design: &Design) -> Vec<bool> {
    match (&design.bounds, design.out_of_bounds) {
        (Some((lower, upper)), OutOfBounds::Drop) => inside(positions, lower, upper),
        _ => vec![true; positions.len()],
    }
}

/// Returns whether each vertex lies within the bounds.
fn inside(positions: &NumericColumn, lower: &[f64], upper: &[f64]) -> Vec<bool> {
    let axes = positions.row_len();
    let (mut keep, mut values) = (Vec::with_capacity(positions.len()), Vec::new());
    for start in (0..positions.len()).step_by(coordinates::BLOCK) {
        let end = (start + coordinates::BLOCK).min(positions.len());
        coordinates::block(positions, start..end, &mut values);
        keep.extend(values.chunks_exact(axes).map(|position| {
            let axes = position.iter().zip(lower.iter().zip(upper));
            axes.into_iter()
                .all(|(value, (lower, upper))| lower <= value && value <= upper)
        }));
    }
    keep
}

/// Drops the vertices outside the bounds, the paths and links that use them, and the objects that
/// have no vertex left.
fn without(
    mut geometry: GeometryBuilder,
    is_linked: bool,
    lower: &[f64],
    upper: &[f64],
) -> Result<GeometryBuilder, BuildError> {
    let mut keep = inside(&geometry.positions, lower, upper);
    let before = ids(&geometry, is_linked);
    if let VertexOwners::Paths { offsets, objects } = &mut geometry.owners {
        let mut kept = vec![0];
        let mut parts = Vec::new();
        let mut end = 0;
        for (part, ends) in offsets.windows(2).enumerate() {
            let vertices = &mut keep[ends[0] as usize..ends[1] as usize];
            if vertices.iter().all(|keep| *keep) {
                end += ends[1] - ends[0];
                kept.push(end);
                parts.push(part);
            } else {
                vertices.fill(false);
            }
        }
        // Paths without ids keep the index that they had in the input.
        let id = |part: &usize| match &*objects {
            Some(objects) => objects[*part],
            None => *part as i64,
        };
        *objects = Some(parts.iter().map(id).collect());
        *offsets = kept;
    } else if let (VertexOwners::Unnamed, Some(before)) = (&geometry.owners, &before) {
        geometry.owners = VertexOwners::Vertices(before.clone());
    }
    let rows: Vec<usize> = keep
        .iter()
        .enumerate()
        .filter_map(|(at, keep)| keep.then_some(at))
        .collect();
    if rows.is_empty() {
        return Err(BuildError::AllOutside);
    }
    let mut number = vec![-1i64; keep.len()];
    for (at, row) in rows.iter().enumerate() {
        number[*row] = at as i64;
    }
    let LinkEnds { width, ends: links } = &geometry.links;
    let mut stored_links = Vec::new();
    let mut kept_links = Vec::new();
    for (link, ends) in links.chunks_exact((*width).max(1)).enumerate() {
        let ends = ends.iter().map(|end| number[*end as usize]);
        if ends.clone().all(|end| end >= 0) {
            stored_links.extend(ends);
            kept_links.push(link);
        }
    }
    geometry.links.ends = stored_links;
    let positions = geometry.positions.take(rows.iter().copied());
    geometry.positions = positions.ok_or_else(|| BuildError::RowCount {
        what: "geometry",
        name: "positions".to_owned(),
        expected: keep.len(),
        found: geometry.positions.len(),
    })?;
    gather(&mut geometry.vertex, &rows);
    gather(&mut geometry.fragment_rows, &rows);
    gather(&mut geometry.link, &kept_links);
    if let VertexOwners::Vertices(ids) = &mut geometry.owners {
        *ids = rows.iter().map(|row| ids[*row]).collect();
    }
    without_objects(&mut geometry, before);
    Ok(geometry)
}

/// Returns the object id of each vertex or path of the input, where there are objects.
fn ids(geometry: &GeometryBuilder, is_linked: bool) -> Option<Vec<i64>> {
    match &geometry.owners {
        VertexOwners::Paths { objects: None, .. } => {
            Some((0..geometry.owners.paths() as i64).collect())
        }
        VertexOwners::Unnamed if objects::implies_objects(geometry) && !is_linked => {
            Some((0..geometry.vertices() as i64).collect())
        }
        // Linked geometry without ids is a single object, which stays.
        owners => owners.ids().map(<[i64]>::to_vec),
    }
}

/// Drops attribute rows and group members of objects without any vertex left.
fn without_objects(geometry: &mut GeometryBuilder, before: Option<Vec<i64>>) {
    let Some(before) = before else {
        return;
    };
    let listed = geometry.objects.clone().unwrap_or_else(|| {
        let mut ids = before.clone();
        if geometry.owners.offsets().is_none() {
            ids.sort_unstable();
            ids.dedup();
        }
        ids
    });
    let ids = geometry.owners.ids().unwrap_or_default();
    let now: HashSet<i64> = ids.iter().copied().collect();
    let had: HashSet<i64> = before.into_iter().collect();
    // An object that had no vertex before is not affected.
    retain_objects(geometry, &listed, |id| {
        now.contains(id) || !had.contains(id)
    });
}

/// Drops the attribute rows, which follow `listed`, and the group members of objects that do not
/// stay.
pub(crate) fn retain_objects(
    geometry: &mut GeometryBuilder,
    listed: &[i64],
    stays: impl Fn(&i64) -> bool,
) {
    let rows: Vec<usize> = (0..listed.len())
        .filter(|row| stays(&listed[*row]))
        .collect();
    geometry.objects = Some(rows.iter().map(|row| listed[*row]).collect());
    gather(&mut geometry.object, &rows);
    gather(&mut geometry.fragment, &rows);
    for members in geometry.groups.values_mut() {
        members.retain(&stays);
    }
}

fn gather(attributes: &mut [Column], rows: &[usize]) {
    for attribute in attributes {
        *attribute = attribute.take(rows.iter().copied());
    }
}
