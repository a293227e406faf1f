//! Meshes of one state of a store, encoded on request.
//!
//! A viewer requests the manifest of an object and then ranges of its fragments. The encoded object
//! is cached, so that it is encoded once.

use std::ops::ControlFlow;

use zvf::{Dataset, Query};
use zvf_catalog::Selection;
use zvf_precomputed::TriangleMesh;

use super::{
    live_skeletons::SegmentRead, object_rows::ObjectRows, object_sizes::ObjectSize, pool::on_pool,
};
use crate::layers::{
    LayerError,
    meshes::{EncodedMesh, MeshLevels, encode},
    shapes::{fan, positions},
};

/// An object on its levels of detail.
pub(super) struct MeshRequest {
    pub(super) id: u64,
    /// The way to read each level, the finest first.
    pub(super) reads: Vec<SegmentRead>,
}

/// Returns the mesh of an object; `None` if it has no triangles.
pub(super) async fn encoded_mesh(
    levels: &MeshLevels,
    dataset: &Dataset,
    request: MeshRequest,
) -> Result<Option<EncodedMesh>, LayerError> {
    let mut meshes = Vec::new();
    for read in &request.reads {
        let mesh = match read {
            SegmentRead::Selected { query, .. } => {
                levels.read_object(dataset, query, request.id).await?
            }
            SegmentRead::Streamed {
                query,
                object,
                size,
            } => streamed(dataset, query, *object, *size).await?,
        };
        // Vertices without triangles are not drawn.
        meshes.extend(mesh.filter(|mesh| !mesh.triangles.is_empty()));
    }
    on_pool(move || encode(&meshes)).await
}

/// Returns the mesh of the only object of a level; `None` if a coordinate is not finite.
async fn streamed(
    dataset: &Dataset,
    query: &Query,
    object: Option<i64>,
    size: ObjectSize,
) -> Result<Option<TriangleMesh>, LayerError> {
    let query = query.clone().columns(Selection::none());
    let mut rows = ObjectRows::new(object);
    let mut mesh = TriangleMesh::default();
    mesh.positions.reserve_exact(size.vertices_to_reserve());
    mesh.triangles.reserve_exact(size.links_to_reserve());
    let mut is_finite = Ok(true);
    let read = dataset.batches(&query, |batch| {
        is_finite = rows.add(&batch).map(|own| {
            let positions = positions(&batch, &own);
            mesh.positions
                .extend_from_slice(positions.as_deref().unwrap_or_default());
            positions.is_some()
        });
        rows.links(&batch, |face| mesh.triangles.extend(fan(face)));
        match is_finite {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    read.await?;
    Ok(is_finite?.then_some(mesh))
}
