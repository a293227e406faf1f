//! Meshes of triangles from fragments.

use std::collections::HashMap;

use zvf::{Geometry, NumericColumn};

use super::{coordinates::ModelSpace, segments, source::PrecomputedSource};
use crate::{FileDescription, FileError, FileFault, names::AttributeNames, whole::WholeReader};

/// A vertex of a fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentVertex {
    pub(super) position: [f64; 3],
    /// The key by which vertices are joined: those with equal keys become one. `None` keeps a vertex
    /// separate.
    pub(super) shared: Option<[u64; 3]>,
}

/// Meshes while they are read.
#[derive(Debug)]
pub(super) struct SurfaceBuilder {
    space: ModelSpace,
    positions: NumericColumn,
    links: Vec<i64>,
    owners: Vec<i64>,
    objects: Vec<i64>,
    /// Row of each shared vertex of the object.
    shared: HashMap<[u64; 3], i64>,
}

impl SurfaceBuilder {
    pub(super) fn new(space: ModelSpace) -> Self {
        Self {
            positions: space.column(),
            space,
            links: Vec::new(),
            owners: Vec::new(),
            objects: Vec::new(),
            shared: HashMap::new(),
        }
    }

    /// Starts an object.
    pub(super) fn start(&mut self, object: i64) {
        self.objects.push(object);
        self.shared.clear();
    }

    /// Adds a fragment of the object. Triangles name its vertices.
    pub(super) fn push(
        &mut self,
        vertices: impl Iterator<Item = FragmentVertex>,
        triangles: &[[u32; 3]],
    ) -> Result<(), FileFault> {
        let object = self.objects.last().copied().unwrap_or(0);
        let mut rows: Vec<i64> = Vec::new();
        for vertex in vertices {
            let row = i64::try_from(self.owners.len()).unwrap_or(i64::MAX);
            // Draco doubles vertices at which surfaces touch, so that a fragment may have several of
            // one position, too.
            if let Some(key) = vertex.shared {
                let known = *self.shared.entry(key).or_insert(row);
                if known != row {
                    rows.push(known);
                    continue;
                }
            }
            self.space.push(vertex.position, &mut self.positions)?;
            self.owners.push(object);
            rows.push(row);
        }
        for triangle in triangles {
            let corner = |row: u32| {
                let row = usize::try_from(row).ok();
                row.and_then(|row| rows.get(row).copied()).unwrap_or(0)
            };
            let [a, b, c] = triangle.map(corner);
            if a != b && b != c && c != a {
                self.links.extend([a, b, c]);
            }
        }
        Ok(())
    }

    /// Returns the whole geometry with the properties of segments.
    pub(super) fn finish(
        self,
        source: &PrecomputedSource,
        own: Option<&str>,
        mut description: FileDescription,
    ) -> Result<WholeReader, FileError> {
        if self.owners.is_empty() {
            return Err(FileFault::Empty.of(&source.folder));
        }
        let mut geometry = Geometry::builder(self.positions)
            .links(3, self.links)
            .object_ids(self.owners);
        let mut names = AttributeNames::default();
        let objects = self.objects;
        geometry.object = segments::columns(source, own, &objects, &mut names, &mut description)?;
        geometry.objects = Some(objects);
        Ok(WholeReader::new(geometry, description))
    }
}
