//! Meshes of one state of a store, encoded on request.
//!
//! A viewer asks for the manifest of an object and then for ranges of its fragments. The encoded
//! object is kept, so that it is encoded once.

use zvf::{Dataset, Query};
use zvf_model::level::LevelId;

use super::pool::on_pool;
use crate::layers::{
    LayerError,
    meshes::{EncodedMesh, MeshLevels, encode},
};

/// Returns the mesh of an object on a level and the coarser ones; `None` if it has no triangles.
pub(super) async fn encoded_mesh(
    levels: &MeshLevels,
    dataset: &Dataset,
    id: u64,
    query: &Query,
    level: LevelId,
) -> Result<Option<EncodedMesh>, LayerError> {
    let mut meshes = levels.read_object(dataset, query, level, id).await?;
    // Vertices without triangles.
    meshes.retain(|mesh| !mesh.triangles.is_empty());
    on_pool(move || encode(&meshes)).await
}
