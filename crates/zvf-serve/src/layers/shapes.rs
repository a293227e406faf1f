//! The vertices and links of each object, and meshes of triangles.

use std::collections::HashMap;

use zvf::QueryResult;
use zvf_precomputed::TriangleMesh;

use super::{float_positions::FloatPositions, segments::ONLY_SEGMENT};

/// Notes elements that no object holds whole.
pub(crate) fn note_dropped(dropped: u64, notes: &mut Vec<String>) {
    if dropped > 0 {
        notes.push(format!(
            "{dropped} vertices, links or objects left out: outside of objects, in several objects, between \
             objects, or with coordinates that are not finite"
        ));
    }
}

/// Returns a mesh of triangles; `None` if a coordinate is not finite.
pub(crate) fn mesh_of(batch: &QueryResult, shape: &ObjectShape) -> Option<TriangleMesh> {
    let triangles = shape.links().flat_map(fan);
    Some(TriangleMesh {
        positions: positions(batch, &shape.rows)?,
        triangles: triangles.collect(),
    })
}

/// Divides a polygon into triangles around its first corner.
pub(crate) fn fan(face: &[u32]) -> impl Iterator<Item = [u32; 3]> {
    let pairs = face.get(1..).unwrap_or_default().windows(2);
    pairs.filter_map(|pair| match (face.first(), pair) {
        (Some(first), [a, b]) => Some([*first, *a, *b]),
        _ => None,
    })
}

/// The vertices and links of an object in a result.
pub(crate) struct ObjectShape {
    pub(crate) object: u64,
    /// Rows of the result.
    pub(crate) rows: Vec<usize>,
    /// The ends of all links, as places in `rows`.
    ends: Vec<u32>,
    /// The number of ends of a link.
    width: usize,
}

impl ObjectShape {
    /// Iterates over the ends of each link, as places in `rows`.
    pub(crate) fn links(&self) -> impl Iterator<Item = &[u32]> {
        self.ends.chunks_exact(self.width)
    }
}

/// Divides a result by object.
pub(crate) fn shapes(
    batch: &QueryResult,
    has_objects: bool,
    dropped: &mut u64,
) -> Vec<ObjectShape> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut shapes: Vec<ObjectShape> = Vec::new();
    let links = batch.links.as_ref();
    let width = links
        .and_then(|links| usize::try_from(links.width).ok())
        .unwrap_or(2)
        .max(1);
    let mut owners: Vec<Option<RowPlace>> = Vec::with_capacity(batch.positions.len());
    let ids = batch.object_ids.as_ref();
    for row in 0..batch.positions.len() {
        let object = if has_objects {
            ids.and_then(|ids| u64::try_from(ids.get(row)?.object()?).ok())
        } else {
            Some(ONLY_SEGMENT)
        };
        let Some(object) = object else {
            *dropped = dropped.saturating_add(1);
            owners.push(None);
            continue;
        };
        let at = *places.entry(object).or_insert_with(|| {
            shapes.push(ObjectShape {
                object,
                rows: Vec::new(),
                ends: Vec::new(),
                width,
            });
            shapes.len().saturating_sub(1)
        });
        let Some(shape) = shapes.get_mut(at) else {
            continue;
        };
        let place = u32::try_from(shape.rows.len()).unwrap_or(u32::MAX);
        owners.push(Some(RowPlace { shape: at, place }));
        shape.rows.push(row);
    }
    let ends = links.map(|links| links.ends.as_slice()).unwrap_or_default();
    for link in ends.chunks_exact(width) {
        let place = |end: &u64| {
            let row = usize::try_from(end.saturating_sub(batch.first_row)).ok()?;
            owners.get(row).copied().flatten()
        };
        let first = link.first().and_then(place);
        let is_inside = |first: RowPlace| {
            let mut places = link.iter().map(place);
            places.all(|place| place.is_some_and(|place| place.shape == first.shape))
        };
        let shape = first.filter(|first| is_inside(*first));
        match shape.and_then(|first| shapes.get_mut(first.shape)) {
            Some(shape) => {
                let places = link.iter().filter_map(place);
                shape.ends.extend(places.map(|place| place.place));
            }
            None => *dropped = dropped.saturating_add(1),
        }
    }
    shapes
}

/// The place of a row in the shape of its object.
#[derive(Clone, Copy)]
struct RowPlace {
    shape: usize,
    place: u32,
}

/// Returns the positions of rows; `None` if a coordinate is not finite.
pub(crate) fn positions(batch: &QueryResult, rows: &[usize]) -> Option<Vec<[f32; 3]>> {
    let positions = FloatPositions::of(batch, 3)?;
    let points = rows
        .iter()
        .map(|row| <[f32; 3]>::try_from(&*positions.row(*row)?).ok());
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_become_triangles() {
        let parts = |face: &[u32]| fan(face).collect::<Vec<_>>();
        assert_eq!(parts(&[5, 6, 7]), [[5, 6, 7]]);
        assert_eq!(parts(&[5, 6, 7, 8]), [[5, 6, 7], [5, 7, 8]]);
        assert!(parts(&[5, 6]).is_empty());
    }
}
