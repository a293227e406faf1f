//! Skeletons that do not fit into memory. Positions, edges and attributes are written to separate
//! temporary files, which are joined at the end.

use std::{
    fs::File,
    io::{self, BufWriter, Seek, Write},
    ops::ControlFlow,
};

use zvf::{Dataset, QueryResult};
use zvf_precomputed::{PrecomputedError, Skeleton};

use super::{
    live_skeletons::SegmentRead,
    object_rows::ObjectRows,
    pool::on_pool,
    stored_object::{ObjectWriter, StoredObject},
};
use crate::layers::{LayerError, check_undamaged, skeletons::SkeletonLayer, survey::paths};

/// Returns a skeleton as a file; `None` if it has no vertices, or a coordinate is not finite.
pub(super) async fn stored_skeleton(
    layer: &SkeletonLayer,
    dataset: &Dataset,
    read: &SegmentRead,
) -> Result<Option<StoredObject>, LayerError> {
    let mut parts = SkeletonParts::new(layer)?;
    let mut rows = ObjectRows::new(read.object());
    let mut is_finite = Ok(true);
    let read = dataset.batches(read.query(), |batch| {
        is_finite = if layer.is_path {
            parts.add_paths(layer, &batch)
        } else {
            parts.add_rows(layer, &batch, &mut rows)
        };
        match is_finite {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    check_undamaged(&read.await?.skipped)?;
    if !is_finite? || parts.vertices == 0 {
        return Ok(None);
    }
    on_pool(move || parts.join().map(Some).map_err(LayerError::Temporary)).await
}

/// The parts of the bytes of a skeleton.
struct SkeletonParts {
    vertices: u32,
    edges: u32,
    positions: BufWriter<File>,
    ends: BufWriter<File>,
    attributes: Vec<BufWriter<File>>,
    /// Rows that are written next.
    next: Skeleton,
}

impl SkeletonParts {
    fn new(layer: &SkeletonLayer) -> Result<Self, LayerError> {
        let next = layer.empty();
        let file = || tempfile::tempfile().map(|file| BufWriter::with_capacity(1 << 16, file));
        let attributes: io::Result<Vec<BufWriter<File>>> =
            next.attributes.iter().map(|_| file()).collect();
        Ok(Self {
            vertices: 0,
            edges: 0,
            positions: file().map_err(LayerError::Temporary)?,
            ends: file().map_err(LayerError::Temporary)?,
            attributes: attributes.map_err(LayerError::Temporary)?,
            next,
        })
    }

    /// Adds the paths of a batch whose coordinates are finite.
    fn add_paths(
        &mut self,
        layer: &SkeletonLayer,
        batch: &QueryResult,
    ) -> Result<bool, LayerError> {
        for path in paths(batch) {
            layer.push_path(batch, path.start..path.end, &mut self.next)?;
        }
        let first = self.vertices;
        let edges = core::mem::take(&mut self.next.edges);
        for edge in edges {
            self.add_edge(edge.map(|row| row.saturating_add(first)))?;
        }
        self.flush()?;
        Ok(true)
    }

    /// Adds the vertices and edges of an object. Returns whether its coordinates are finite.
    fn add_rows(
        &mut self,
        layer: &SkeletonLayer,
        batch: &QueryResult,
        rows: &mut ObjectRows,
    ) -> Result<bool, LayerError> {
        let own = rows.add(batch)?;
        if !layer.push_rows(batch, &own, &mut self.next) {
            return Ok(false);
        }
        self.flush()?;
        let mut added = Ok(());
        rows.links(batch, |ends| {
            if let Some(ends) = ends.first_chunk::<2>().filter(|_| added.is_ok()) {
                added = self.add_edge(*ends);
            }
        });
        added.map(|()| true)
    }

    fn add_edge(&mut self, ends: [u32; 2]) -> Result<(), LayerError> {
        let edges = self.edges.checked_add(1);
        self.edges = edges.ok_or(PrecomputedError::Count("edges"))?;
        let bytes = ends.map(u32::to_le_bytes);
        let written = self.ends.write_all(bytes.as_flattened());
        written.map_err(LayerError::Temporary)
    }

    /// Writes the rows of `next`.
    fn flush(&mut self) -> Result<(), LayerError> {
        let vertices = u32::try_from(self.next.positions.len()).ok();
        let vertices = vertices.and_then(|rows| self.vertices.checked_add(rows));
        self.vertices = vertices.ok_or(PrecomputedError::Count("vertices"))?;
        let mut write = || {
            for position in self.next.positions.drain(..) {
                let bytes = position.map(f32::to_le_bytes);
                self.positions.write_all(bytes.as_flattened())?;
            }
            for (rows, file) in self.next.attributes.iter_mut().zip(&mut self.attributes) {
                file.write_all(rows)?;
                rows.clear();
            }
            Ok::<_, io::Error>(())
        };
        write().map_err(LayerError::Temporary)
    }

    /// Joins the parts in the order of the format.
    fn join(self) -> io::Result<StoredObject> {
        let mut object = ObjectWriter::new()?;
        object.write_all(&self.vertices.to_le_bytes())?;
        object.write_all(&self.edges.to_le_bytes())?;
        for part in [self.positions, self.ends]
            .into_iter()
            .chain(self.attributes)
        {
            let mut file = part.into_inner()?;
            file.rewind()?;
            io::copy(&mut file, &mut object)?;
        }
        object.finish()
    }
}
