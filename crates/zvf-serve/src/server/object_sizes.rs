//! Vertices and links of the objects of a level, counted in one pass over it.

use std::{collections::HashMap, ops::ControlFlow};

use zvf::{Dataset, ObjectIds, Query};
use zvf_catalog::Selection;
use zvf_model::level::LevelId;
use zvf_query::LevelChoice;

use crate::layers::LayerError;

/// Maximum number of objects whose vertices are known.
const MAX_SIZES: usize = 1 << 17;

/// The sizes of the objects of a level.
#[derive(Debug, Default)]
pub(super) struct ObjectSizes {
    total: ObjectSize,
    vertices: HashMap<i64, u64>,
    /// `true` if there are too many objects; `vertices` is then empty.
    is_partial: bool,
    has_objects: bool,
}

/// The size of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectSize {
    pub(super) vertices: u64,
    /// Links, or the triangles of faces: those of the level in proportion to the vertices, unless the
    /// object is the only one.
    pub(super) links: u64,
}

impl ObjectSize {
    /// Returns the vertices for which memory is reserved.
    pub(super) fn vertices_to_reserve(self) -> usize {
        usize::try_from(self.vertices).unwrap_or(0)
    }

    /// Returns the links for which memory is reserved.
    pub(super) fn links_to_reserve(self) -> usize {
        usize::try_from(self.links).unwrap_or(0)
    }
}

impl ObjectSizes {
    /// Counts the vertices of each object, and all links. Memory that is reserved for them later is
    /// justified by rows that were read.
    pub(super) async fn read(
        dataset: &Dataset,
        level: LevelId,
        has_objects: bool,
    ) -> Result<Self, LayerError> {
        let query = Query::new()
            .columns(Selection::none())
            .level(LevelChoice::Number(level));
        let mut sizes = Self {
            has_objects,
            ..Self::default()
        };
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let read = dataset.batches(&query, |batch| {
            let rows = count(batch.positions.len());
            sizes.total.vertices = sizes.total.vertices.saturating_add(rows);
            if let Some(links) = &batch.links {
                let triangles = u64::from(links.width.saturating_sub(2).max(1));
                let links = count(links.len()).saturating_mul(triangles);
                sizes.total.links = sizes.total.links.saturating_add(links);
            }
            let ids = batch.object_ids.iter().filter(|_| !sizes.is_partial);
            for (owner, rows) in ids.flat_map(ObjectIds::runs) {
                if let Some(id) = owner.object() {
                    let vertices = sizes.vertices.entry(id).or_default();
                    *vertices = vertices.saturating_add(count(rows));
                }
            }
            if sizes.vertices.len() > MAX_SIZES {
                (sizes.vertices, sizes.is_partial) = (HashMap::new(), true);
            }
            ControlFlow::Continue(())
        });
        read.await?;
        sizes.vertices.shrink_to_fit();
        Ok(sizes)
    }

    /// Returns whether a query must count the vertices of each object.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the size of an object; `None` if it has no vertices, or if there are too many objects.
    pub(super) fn of(&self, object: u64) -> Option<ObjectSize> {
        if !self.has_objects {
            return Some(self.total).filter(|total| total.vertices > 0);
        }
        let vertices = self.vertices.get(&i64::try_from(object).ok()?)?;
        Some(self.of_vertices(*vertices))
    }

    /// Returns the size of an object with this many vertices.
    pub(super) fn of_vertices(&self, vertices: u64) -> ObjectSize {
        let all = u128::from(self.total.vertices.max(1));
        let links = u128::from(self.total.links) * u128::from(vertices);
        let links = links.div_ceil(all).min(u128::from(self.total.links));
        ObjectSize {
            vertices,
            links: u64::try_from(links).unwrap_or(u64::MAX),
        }
    }

    /// Returns whether the level has one object at most. It is read faster, and in less memory, without
    /// a selection of objects.
    pub(super) fn has_one_object(&self) -> bool {
        !self.has_objects || self.vertices.len() <= 1 && !self.is_partial
    }
}
