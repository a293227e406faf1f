//! Memory of an object while it is read and encoded.

use super::{live_skeletons::SegmentRead, object_sizes::ObjectSize};
use crate::layers::skeletons::SkeletonLayer;

/// Bytes of memory for each vertex and link.
#[derive(Clone, Copy, Debug)]
pub(super) struct EncodingCost {
    /// Cost of an object that a query selects: all its chunks are in memory, besides the result.
    selected: RowCost,
    /// Cost of an object that is collected from batches of its level.
    streamed: RowCost,
    is_path: bool,
}

#[derive(Clone, Copy, Debug)]
struct RowCost {
    vertex: u64,
    link: u64,
}

impl RowCost {
    fn of(self, size: ObjectSize) -> u64 {
        let vertices = size.vertices.saturating_mul(self.vertex);
        vertices.saturating_add(size.links.saturating_mul(self.link))
    }
}

impl EncodingCost {
    /// Meshes. A query takes this for a torus of 1 000 000 vertices and 2 000 000 triangles. Of a
    /// collected object, a vertex takes two positions, and a triangle its rows and the parts to which
    /// it is cut, two on average.
    pub(super) const MESH: Self = Self {
        selected: RowCost {
            vertex: 120,
            link: 130,
        },
        streamed: RowCost {
            vertex: 30,
            link: 48,
        },
        is_path: false,
    };

    /// Skeletons with these attributes.
    pub(super) fn of_skeleton(layer: &SkeletonLayer) -> Self {
        let attributes = layer.attribute_bytes().saturating_mul(3);
        let cost = |vertex: u64, link| RowCost {
            vertex: attributes.saturating_add(vertex),
            link,
        };
        Self {
            selected: cost(120, 100),
            streamed: cost(32, 24),
            is_path: layer.is_path,
        }
    }

    /// Returns whether a query counts the vertices of each segment. Paths and groups are too many to
    /// list the sizes of all.
    pub(super) fn is_counted(&self, is_group: bool) -> bool {
        self.is_path || is_group
    }

    /// Returns the memory for an object.
    pub(super) fn of(&self, read: &SegmentRead) -> u64 {
        match read {
            SegmentRead::Selected { size, .. } => self.selected.of(*size),
            SegmentRead::Streamed { size, .. } => self.streamed.of(*size),
        }
    }

    /// Returns the memory for an object that is encoded with its coarser levels. Levels are read
    /// one after another, so only the first takes the memory of its query.
    pub(super) fn of_levels<'a>(&self, reads: impl IntoIterator<Item = &'a SegmentRead>) -> u64 {
        let mut reads = reads.into_iter();
        let first = reads.next().map_or(0, |read| self.of(read));
        let further = reads.map(|read| self.streamed.of(read.size()));
        first.saturating_add(further.fold(0, u64::saturating_add))
    }
}
