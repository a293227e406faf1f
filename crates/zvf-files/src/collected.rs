//! Meshes that are written as a whole.

use zvf::QueryResult;

use crate::{
    FileFault,
    values::AxisOrder,
    writer::{has_object_ids, list_divided_faces, list_left_out, object_ids_left_out},
};

/// The mesh of a result, collected from its batches.
#[derive(Debug, Default)]
pub(crate) struct WholeMesh {
    pub(crate) positions: Vec<[f64; 3]>,
    /// Ends of links, in rows of `positions`.
    links: Vec<u64>,
    width: usize,
    pub(crate) left_out: Vec<String>,
    has_object_ids: bool,
}

impl WholeMesh {
    /// Adds a batch, whose attributes and object ids are listed as left out.
    pub(crate) fn add(
        &mut self,
        batch: &QueryResult,
        format: &'static str,
    ) -> Result<(), FileFault> {
        let coordinates = AxisOrder::of(batch, format)?;
        self.positions.extend(coordinates.rows(&batch.positions)?);
        list_left_out(&mut self.left_out, batch, format, |_, _| false);
        list_divided_faces(&mut self.left_out, batch, format);
        if !self.has_object_ids && has_object_ids(batch) {
            self.has_object_ids = true;
            self.left_out.push(object_ids_left_out(format));
        }
        if let Some(links) = &batch.links {
            self.width = usize::try_from(links.width).unwrap_or(usize::MAX);
            self.links.extend_from_slice(&links.ends);
        }
        Ok(())
    }

    /// Returns the triangles of the polygons, as fans around their first corner.
    ///
    /// # Errors
    ///
    /// [`FileFault::Broken`] if a link ends in no vertex.
    pub(crate) fn triangles(&self) -> Result<Vec<[usize; 3]>, FileFault> {
        let count = self.positions.len();
        let mut triangles = Vec::new();
        for corners in self.links.chunks_exact(self.width.max(1)) {
            let row = |corner: &u64| usize::try_from(*corner).ok().filter(|row| *row < count);
            let rows: Option<Vec<usize>> = corners.iter().map(row).collect();
            let rows = rows.ok_or(FileFault::Broken(
                "a link refers to a vertex that does not exist",
            ))?;
            let Some((first, rest)) = rows.split_first() else {
                continue;
            };
            for pair in rest.windows(2) {
                let &[second, third] = pair else { continue };
                triangles.push([*first, second, third]);
            }
        }
        Ok(triangles)
    }
}
