//! Skeletons, graphs and meshes: the vertices and links of each object.

use std::collections::HashMap;

use zvf::{Query, QueryResult};
use zvf_precomputed::{LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest, Skeleton};

use super::{
    Export, ExportError, ExportedLayer, LayerKind,
    attributes::{SkeletonPlan, narrow},
    segments::ONLY,
    skeletons::{SkeletonSink, shader_of},
    survey::{StoreSurvey, finite, query},
};

/// Vertices that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// Writes a skeleton for each object.
pub(super) async fn write_skeletons(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<ExportedLayer>, ExportError> {
    let plan = SkeletonPlan::new(&survey.vertex, &[], notes);
    let mut sink = SkeletonSink::new(work, survey, plan.attributes.clone())?;
    let mut dropped = 0_u64;
    for_each_group(work, survey, |batch| {
        for shape in shapes(batch, survey.has_objects, &mut dropped) {
            let Some(positions) = positions(batch, &shape.rows) else {
                dropped = dropped.saturating_add(1);
                continue;
            };
            let mut attributes = vec![Vec::new(); plan.attributes.len()];
            plan.push(&batch.vertex, &shape.rows, &mut attributes);
            let edges = shape
                .links
                .iter()
                .filter_map(|link| link.as_slice().first_chunk());
            let skeleton = Skeleton {
                positions,
                edges: edges.copied().collect(),
                attributes,
            };
            sink.push(shape.object, &skeleton)?;
        }
        Ok(())
    })
    .await?;
    note_dropped(dropped, notes);
    Ok(Some(sink.finish(survey, shader_of(&plan))?))
}

/// Writes a mesh for each object, in a single resolution.
pub(super) async fn write_meshes(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<ExportedLayer>, ExportError> {
    let scale = work.space.nanometres();
    let scale = scale.ok_or_else(|| ExportError::Axes(work.space.rank()))?;
    let folder = LayerKind::Meshes.folder();
    let (mut dropped, mut meshes) = (0_u64, 0_u64);
    if !survey.vertex.columns.is_empty() {
        notes.push("attributes of vertices are left out: meshes have no place for them".to_owned());
    }
    for_each_group(work, survey, |batch| {
        for shape in shapes(batch, survey.has_objects, &mut dropped) {
            let Some(mut positions) = positions(batch, &shape.rows) else {
                dropped = dropped.saturating_add(1);
                continue;
            };
            for point in &mut positions {
                for (along, scale) in point.iter_mut().zip(scale) {
                    *along = narrow(f64::from(*along) * scale);
                }
            }
            let triangles = shape.links.iter().flat_map(|face| fan(face));
            let mesh = LegacyMeshFragment {
                positions,
                triangles: triangles.collect(),
            };
            let object = shape.object;
            let fragment = format!("{object}:0:0");
            work.output
                .write(&format!("{folder}/{fragment}"), &mesh.encode()?)?;
            let manifest = LegacyMeshManifest {
                fragments: vec![fragment],
            };
            let path = format!("{folder}/{object}:0");
            work.output.write(&path, manifest.to_json().as_bytes())?;
            meshes = meshes.saturating_add(1);
        }
        Ok(())
    })
    .await?;
    note_dropped(dropped, notes);
    let info = LegacyMeshInfo {
        segment_properties: survey.segments.write(work, LayerKind::Meshes)?,
    };
    work.output
        .write(&format!("{folder}/info"), info.to_json().as_bytes())?;
    Ok(Some(ExportedLayer {
        kind: LayerKind::Meshes,
        items: meshes,
        shader: None,
        shown: match survey.has_objects {
            true => survey.segments.shown(),
            false => vec![ONLY],
        },
        is_related: false,
    }))
}

fn note_dropped(dropped: u64, notes: &mut Vec<String>) {
    if dropped > 0 {
        notes.push(format!(
            "{dropped} vertices, links or objects left out: outside of objects, between objects, \
             or with coordinates that are not finite"
        ));
    }
}

/// Divides a polygon into triangles around its first corner.
fn fan(face: &[u32]) -> Vec<[u32; 3]> {
    let Some((first, others)) = face.split_first() else {
        return Vec::new();
    };
    let pairs = others.windows(2);
    let triangles = pairs.filter_map(|pair| match pair {
        [a, b] => Some([*first, *a, *b]),
        _ => None,
    });
    triangles.collect()
}

/// Reads groups of objects, or the whole store if it has no objects.
async fn for_each_group(
    work: &Export<'_>,
    survey: &StoreSurvey,
    mut each: impl FnMut(&QueryResult) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    if !survey.has_objects {
        return each(&work.dataset.query(&query(work)).await?);
    }
    let ids: Vec<i64> = survey
        .segments
        .ids
        .iter()
        .copied()
        .filter(|id| *id >= 0)
        .collect();
    let objects = u64::try_from(ids.len()).unwrap_or(u64::MAX).max(1);
    let average = survey.vertices.div_ceil(objects).max(1);
    let group = usize::try_from(AT_ONCE.div_ceil(average)).unwrap_or(1);
    let mut done = 0_u64;
    for ids in ids.chunks(group.clamp(1, 16_384)) {
        work.meter.set(done, objects);
        done = done.saturating_add(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        let query: Query = query(work).objects(ids);
        each(&work.dataset.query(&query).await?)?;
    }
    Ok(())
}

/// The vertices and links of an object in a result.
struct ObjectShape {
    object: u64,
    /// Rows of the result.
    rows: Vec<usize>,
    /// Links as places in `rows`.
    links: Vec<Vec<u32>>,
}

/// Divides a result by object.
fn shapes(batch: &QueryResult, has_objects: bool, dropped: &mut u64) -> Vec<ObjectShape> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut shapes: Vec<ObjectShape> = Vec::new();
    let mut owners: Vec<Option<RowPlace>> = Vec::with_capacity(batch.positions.len());
    let ids = batch.object_ids.as_ref();
    for row in 0..batch.positions.len() {
        let object = match has_objects {
            true => ids.and_then(|ids| u64::try_from(*ids.get(row)?).ok()),
            false => Some(ONLY),
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
                links: Vec::new(),
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
    let links = batch.links.as_ref();
    let width = links.and_then(|links| usize::try_from(links.width).ok());
    let ends = links.map(|links| links.ends.as_slice()).unwrap_or_default();
    for link in ends.chunks_exact(width.unwrap_or(2).max(1)) {
        let places = link.iter().map(|end| {
            let row = usize::try_from(end.saturating_sub(batch.first_row)).ok()?;
            owners.get(row).copied().flatten()
        });
        let places: Option<Vec<RowPlace>> = places.collect();
        let first = places.as_ref().and_then(|places| places.first().copied());
        let same = places
            .zip(first)
            .filter(|(places, first)| places.iter().all(|place| place.shape == first.shape));
        match same.and_then(|(places, first)| Some((places, shapes.get_mut(first.shape)?))) {
            Some((places, shape)) => {
                shape
                    .links
                    .push(places.iter().map(|place| place.place).collect());
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
fn positions(batch: &QueryResult, rows: &[usize]) -> Option<Vec<[f32; 3]>> {
    let view = batch.positions.view()?;
    let points = rows
        .iter()
        .map(|row| <[f32; 3]>::try_from(finite(&view, *row, 3)?).ok());
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_become_triangles() {
        assert_eq!(fan(&[5, 6, 7]), [[5, 6, 7]]);
        assert_eq!(fan(&[5, 6, 7, 8]), [[5, 6, 7], [5, 7, 8]]);
        assert!(fan(&[5, 6]).is_empty());
    }
}
