//! Skeletons of one state of a store, encoded on request.

use std::ops::ControlFlow;

use zvf::{Dataset, Query};
use zvf_precomputed::Skeleton;

use super::{object_rows::ObjectRows, object_sizes::ObjectSize};
use crate::layers::{LayerError, check_undamaged, shapes::shapes, skeletons::SkeletonLayer};

/// The way to read a segment.
#[derive(Debug)]
pub(super) enum SegmentRead {
    /// A query selects the segment.
    Selected { query: Query, size: ObjectSize },
    /// The only object of a level is collected from the batches of the level. This takes a fifth of the
    /// memory.
    Streamed {
        /// The query for the level.
        query: Query,
        /// The object; all vertices if `None`.
        object: Option<i64>,
        size: ObjectSize,
    },
}

impl SegmentRead {
    /// Returns the query whose batches contain the segment.
    pub(super) fn query(&self) -> &Query {
        match self {
            Self::Selected { query, .. } | Self::Streamed { query, .. } => query,
        }
    }

    /// Returns the object whose vertices belong to the segment; `None` if all vertices do.
    pub(super) fn object(&self) -> Option<i64> {
        match self {
            Self::Selected { .. } => None,
            Self::Streamed { object, .. } => *object,
        }
    }

    pub(super) fn size(&self) -> ObjectSize {
        match self {
            Self::Selected { size, .. } | Self::Streamed { size, .. } => *size,
        }
    }
}

/// Returns an encoded skeleton; `None` if it has no vertices.
pub(super) async fn encoded_skeleton(
    layer: &SkeletonLayer,
    dataset: &Dataset,
    read: &SegmentRead,
    id: u64,
    has_objects: bool,
) -> Result<Option<Vec<u8>>, LayerError> {
    let skeleton = match read {
        SegmentRead::Selected { query, .. } => {
            let batch = dataset.query(query).await?;
            check_undamaged(&batch.skipped)?;
            if layer.is_path {
                Some(layer.of_paths(&batch)?)
            } else {
                let mut shapes = shapes(&batch, has_objects, &mut 0).into_iter();
                let shape = shapes.find(|shape| shape.object == id);
                shape.and_then(|shape| layer.of_shape(&batch, &shape))
            }
        }
        SegmentRead::Streamed {
            query,
            object,
            size,
        } => streamed(layer, dataset, query, *object, *size).await?,
    };
    let skeleton = skeleton.filter(|skeleton| !skeleton.positions.is_empty());
    let bytes = skeleton.map(|skeleton| skeleton.encode(&layer.info.vertex_attributes));
    Ok(bytes.transpose()?)
}

/// Returns the skeleton of the only object of a level; `None` if a coordinate is not finite.
async fn streamed(
    layer: &SkeletonLayer,
    dataset: &Dataset,
    query: &Query,
    object: Option<i64>,
    size: ObjectSize,
) -> Result<Option<Skeleton>, LayerError> {
    let mut rows = ObjectRows::new(object);
    let mut skeleton = layer.empty();
    skeleton.positions.reserve_exact(size.vertices_to_reserve());
    skeleton.edges.reserve_exact(size.links_to_reserve());
    let mut is_finite = Ok(true);
    let read = dataset.batches(query, |batch| {
        is_finite = rows
            .add(&batch)
            .map(|own| layer.push_rows(&batch, &own, &mut skeleton));
        rows.links(&batch, |ends| {
            skeleton.edges.extend(ends.first_chunk::<2>().copied());
        });
        match is_finite {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    read.await?;
    Ok(is_finite?.then_some(skeleton))
}
