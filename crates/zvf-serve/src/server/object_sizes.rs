//! Vertices and links of the objects of a level, counted in one pass over it.

use std::{collections::HashMap, ops::ControlFlow};

use zvf::{Dataset, Query};
use zvf_model::level::LevelId;
use zvf_query::{LevelChoice, Selection};

use crate::layers::LayerError;

/// Vertices of an object that is always encoded as one of this size.
const SMALL: u64 = 1 << 12;
/// Maximum number of objects with known vertices; beyond it, small objects are left out.
const MAX_KEPT: usize = 1 << 20;

/// The sizes of the objects of a level.
#[derive(Debug, Default)]
pub(super) struct ObjectSizes {
    total: ObjectSize,
    vertices: HashMap<i64, u64>,
    /// `true` if `vertices` leaves out small objects.
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
        let query = Query::new().columns(Selection::none());
        let query = query.level(LevelChoice::Number(level));
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
            let ids = batch.object_ids.as_deref().unwrap_or_default();
            for same in ids.chunk_by(|a, b| a == b) {
                if let Some(id) = same.first() {
                    let vertices = sizes.vertices.entry(*id).or_default();
                    *vertices = vertices.saturating_add(count(same.len()));
                }
            }
            ControlFlow::Continue(())
        });
        read.await?;
        if sizes.vertices.len() > MAX_KEPT {
            sizes.vertices.retain(|_, vertices| *vertices > SMALL);
            sizes.is_partial = true;
        }
        sizes.vertices.shrink_to_fit();
        Ok(sizes)
    }

    /// Returns the size of an object; `None` if it has no vertices.
    pub(super) fn of(&self, object: u64) -> Option<ObjectSize> {
        if !self.has_objects {
            return Some(self.total).filter(|total| total.vertices > 0);
        }
        let known = i64::try_from(object).ok().map(|id| self.vertices.get(&id));
        let vertices = match known? {
            Some(vertices) => *vertices,
            None if self.is_partial => SMALL,
            None => return None,
        };
        let all = u128::from(self.total.vertices.max(1));
        let links = u128::from(self.total.links) * u128::from(vertices);
        let links = links.div_ceil(all).min(u128::from(self.total.links));
        Some(ObjectSize {
            vertices,
            links: u64::try_from(links).unwrap_or(u64::MAX),
        })
    }

    /// Returns whether the level has one object at most. It is read faster, and in less memory, without
    /// a selection of objects.
    pub(super) fn has_one_object(&self) -> bool {
        !self.has_objects || self.vertices.len() <= 1 && !self.is_partial
    }
}
