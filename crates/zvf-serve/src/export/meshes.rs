//! Meshes as files.

use zvf_precomputed::{LegacyMeshInfo, LegacyMeshManifest};

use super::{Export, ExportError, objects};
use crate::layers::{
    Layer, LayerError, LayerKind,
    segments::{ONLY, PROPERTIES},
    shapes::{mesh_of, note_dropped, shapes},
    survey::StoreSurvey,
};

/// Writes a mesh for each object, in a single resolution.
pub(super) async fn write(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    let space = work.reading.space;
    let scale = space.nanometres();
    let scale = scale.ok_or_else(|| LayerError::Axes(space.rank()))?;
    let folder = LayerKind::Meshes.folder();
    let (mut dropped, mut meshes) = (0_u64, 0_u64);
    if !survey.vertex.columns.is_empty() {
        notes.push("attributes of vertices are left out: meshes have no place for them".to_owned());
    }
    objects::for_each_group(work, survey, |batch| {
        for shape in shapes(batch, survey.has_objects, &mut dropped) {
            let Some(mesh) = mesh_of(batch, &shape, scale) else {
                dropped = dropped.saturating_add(1);
                continue;
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
    let properties = survey.segments.to_json();
    if let Some(json) = &properties {
        let path = format!("{folder}/{PROPERTIES}/info");
        work.output.write(&path, json.as_bytes())?;
    }
    let info = LegacyMeshInfo {
        segment_properties: properties.map(|_| PROPERTIES.to_owned()),
    };
    work.output
        .write(&format!("{folder}/info"), info.to_json().as_bytes())?;
    Ok(Layer {
        kind: LayerKind::Meshes,
        items: meshes,
        shader: None,
        shown: match survey.has_objects {
            true => survey.segments.shown(),
            false => vec![ONLY],
        },
        is_related: false,
    })
}
