//! The levels of detail of meshes, and their encoding.

use std::collections::HashMap;

use rayon::prelude::*;
use zvf::{Dataset, Query, QueryResult};
use zvf_catalog::Selection;
use zvf_model::level::LevelId;
use zvf_precomputed::{CutMesh, MultilodMeshInfo, TriangleMesh, VertexBits};
use zvf_query::LevelChoice;

use super::{
    LayerError, LayerInput,
    levels::usable_levels,
    segments::PROPERTIES,
    shapes::{mesh_of, shapes},
    survey::StoreSurvey,
};

/// About the most triangles of a finest node. A viewer loads and draws nodes as a whole.
pub(crate) const NODE_TRIANGLES: usize = 16_384;
/// Bits of coordinates in a node.
pub(crate) const BITS: VertexBits = VertexBits::Sixteen;

/// The levels of a store that are levels of detail of its meshes.
#[derive(Clone, Debug)]
pub(crate) struct MeshLevels {
    /// Levels above 0, the finest first.
    coarser: Vec<LevelId>,
    has_objects: bool,
}

/// The levels of one object, the finest first.
pub(crate) struct ObjectMesh {
    pub(crate) object: u64,
    pub(crate) levels: Vec<TriangleMesh>,
}

/// A manifest and the fragments of a mesh.
pub(crate) struct EncodedMesh {
    pub(crate) manifest: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl MeshLevels {
    /// Chooses the levels.
    pub(crate) async fn new(
        dataset: &Dataset,
        has_objects: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, LayerError> {
        let levels = usable_levels(dataset, has_objects).await?;
        for (id, reason) in levels.left_out {
            notes.push(format!("level {id} is left out of the meshes: {reason}"));
        }
        Ok(Self {
            coarser: levels.chosen,
            has_objects,
        })
    }

    /// Reads the same objects on all levels, the finest first.
    pub(crate) async fn read(
        &self,
        dataset: &Dataset,
        query: &Query,
    ) -> Result<Vec<QueryResult>, LayerError> {
        // Attributes are not drawn, and a level may lack some.
        let query = query.clone().columns(Selection::none());
        let mut results = vec![dataset.query(&query).await?];
        for level in &self.coarser {
            results.extend(coarse(dataset, &query, *level).await?);
        }
        Ok(results)
    }

    /// Returns the levels above 0, the finest first.
    #[cfg(feature = "server")]
    pub(crate) fn coarser(&self) -> &[LevelId] {
        &self.coarser
    }

    /// Reads one object of the level that the query names; `None` if the level lacks it.
    #[cfg(feature = "server")]
    pub(crate) async fn read_object(
        &self,
        dataset: &Dataset,
        query: &Query,
        id: u64,
    ) -> Result<Option<TriangleMesh>, LayerError> {
        let query = query.clone().columns(Selection::none());
        let result = match dataset.query(&query).await {
            Ok(result) => result,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut shapes = shapes(&result, self.has_objects, &mut 0).into_iter();
        let shape = shapes.find(|shape| shape.object == id);
        Ok(shape.and_then(|shape| mesh_of(&result, &shape)))
    }

    /// Divides what [`read`](Self::read) returned by object. Counts what is left out.
    pub(crate) fn meshes(&self, results: &[QueryResult], dropped: &mut u64) -> Vec<ObjectMesh> {
        let mut meshes: Vec<ObjectMesh> = Vec::new();
        let mut places: HashMap<u64, usize> = HashMap::new();
        for (level, result) in results.iter().enumerate() {
            let mut outside = 0_u64;
            for shape in shapes(result, self.has_objects, &mut outside) {
                let mesh = mesh_of(result, &shape);
                let place = places.get(&shape.object).copied();
                match (mesh, level, place.and_then(|at| meshes.get_mut(at))) {
                    (Some(mesh), 0, None) => {
                        places.insert(shape.object, meshes.len());
                        meshes.push(ObjectMesh {
                            object: shape.object,
                            levels: vec![mesh],
                        });
                    }
                    (Some(mesh), _, Some(known)) => known.levels.push(mesh),
                    _ => outside = outside.saturating_add(1),
                }
            }
            if level == 0 {
                *dropped = dropped.saturating_add(outside);
            }
        }
        meshes
    }
}

/// Reads the objects of a query on a coarser level; `None` if it has none of them.
async fn coarse(
    dataset: &Dataset,
    query: &Query,
    level: LevelId,
) -> Result<Option<QueryResult>, LayerError> {
    let query = query.clone().level(LevelChoice::Number(level));
    let result = match dataset.query(&query).await {
        // The level lacks some of the objects.
        Err(error) if error.is_not_found() => dataset.query(&query.keep_going(true)).await,
        result => result,
    };
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the document of multi-resolution meshes, without shards.
pub(crate) fn mesh_info(
    reading: &LayerInput<'_>,
    survey: &StoreSurvey,
) -> Result<MultilodMeshInfo, LayerError> {
    let scale = reading.space.nanometres();
    let [x, y, z] = scale.ok_or_else(|| LayerError::Axes(reading.space.rank()))?;
    Ok(MultilodMeshInfo {
        vertex_bits: BITS,
        transform: [x, 0., 0., 0., 0., y, 0., 0., 0., 0., z, 0.],
        segment_properties: survey
            .segments
            .has_document()
            .then(|| PROPERTIES.to_owned()),
        ..MultilodMeshInfo::default()
    })
}

/// Encodes a mesh on all cores; `None` if it has no triangles.
pub(crate) fn encode(levels: &[TriangleMesh]) -> Result<Option<EncodedMesh>, LayerError> {
    let Some(cut) = CutMesh::new(levels, BITS, NODE_TRIANGLES)? else {
        return Ok(None);
    };
    let encoded: Vec<Vec<u8>> = cut
        .fragments()
        .par_iter()
        .map(|fragment| fragment.mesh().encode())
        .collect::<Result<_, _>>()?;
    let joined = cut.join(&encoded)?;
    Ok(Some(EncodedMesh {
        manifest: joined.manifest.encode()?,
        data: joined.data,
    }))
}
