//! Polygons as links of one width.
//!
//! A store has links of one width. Polygons of 3 to 8 corners, all of one number, become links of this
//! width. Others become triangles around their first corner, with the link attribute `face`, the
//! number of the polygon.

use zvf::{Column, Geometry, NumericColumn};

use crate::FileFault;

/// The largest number of ends of a link of a mesh.
const WIDEST: usize = 8;

/// Polygons in the order of a file.
#[derive(Debug, Default)]
pub(crate) struct PolygonList {
    corners: Vec<u32>,
    /// The end of each polygon in `corners`.
    ends: Vec<usize>,
}

impl PolygonList {
    /// Adds a polygon. Its corners are checked when all vertices are known.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for fewer than 3 corners.
    pub(crate) fn push(&mut self, corners: impl IntoIterator<Item = u32>) -> Result<(), FileFault> {
        let start = self.corners.len();
        self.corners.extend(corners);
        let count = self.corners.len().saturating_sub(start);
        if count < 3 {
            let expected = "a polygon has 3 corners or more; remove it";
            return Err(FileFault::field("the number of corners", count, expected));
        }
        self.ends.push(self.corners.len());
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds the links to a geometry, and attributes of the polygons as attributes of links.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for a corner that is no vertex.
    pub(crate) fn add_to(
        self,
        geometry: &mut Geometry,
        attributes: Vec<Column>,
    ) -> Result<(), FileFault> {
        let vertices = geometry.vertices();
        let is_outside = |corner: &&u32| usize::try_from(**corner).is_ok_and(|at| at >= vertices);
        if let Some(corner) = self.corners.iter().find(is_outside) {
            let expected = "no vertex has this number; the file is damaged";
            return Err(FileFault::field(
                "the corner of a polygon",
                corner,
                expected,
            ));
        }
        let mut starts = std::iter::once(&0).chain(&self.ends);
        let mut widths = self
            .ends
            .iter()
            .map(|end| end.saturating_sub(*starts.next().unwrap_or(&0)));
        let width = widths.next().unwrap_or(3);
        if width <= WIDEST && widths.all(|other| other == width) {
            geometry.link_width = width;
            geometry.links = self.corners.into_iter().map(i64::from).collect();
            geometry.link.extend(attributes);
            return Ok(());
        }
        geometry.link_width = 3;
        let mut faces: Vec<u32> = Vec::new();
        let mut start = 0;
        for (face, end) in (0_u32..).zip(&self.ends) {
            let corners = self.corners.get(start..*end).unwrap_or_default();
            let first = corners.first().copied().unwrap_or(0);
            for pair in corners.get(1..).unwrap_or_default().windows(2) {
                let &[second, third] = pair else { continue };
                geometry.links.extend([first, second, third].map(i64::from));
                faces.push(face);
            }
            start = *end;
        }
        let rows = || {
            faces
                .iter()
                .map(|face| usize::try_from(*face).unwrap_or(usize::MAX))
        };
        let attributes = attributes.iter().map(|attribute| attribute.take(rows()));
        geometry.link.extend(attributes);
        geometry.link.push(Column::new(
            "face",
            faces.into_iter().collect::<NumericColumn>(),
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zvf::ColumnValues;

    use super::*;

    fn square() -> Geometry {
        Geometry::new(NumericColumn::float32(3, [0.0; 15]))
    }

    #[test]
    fn equal_polygons_keep_their_width() {
        let mut polygons = PolygonList::default();
        polygons.push([0, 1, 2, 3]).unwrap();
        polygons.push([4, 1, 2, 0]).unwrap();
        let mut geometry = square();
        polygons.add_to(&mut geometry, Vec::new()).unwrap();
        assert_eq!(
            (geometry.link_width, geometry.links),
            (4, vec![0, 1, 2, 3, 4, 1, 2, 0])
        );
        assert_eq!(geometry.link, []);
    }

    #[test]
    fn mixed_polygons_become_triangles_with_their_face() {
        let mut polygons = PolygonList::default();
        polygons.push([0, 1, 2, 3]).unwrap();
        polygons.push([4, 1, 2]).unwrap();
        let mut geometry = square();
        polygons.add_to(&mut geometry, Vec::new()).unwrap();
        assert_eq!(geometry.link_width, 3);
        assert_eq!(geometry.links, [0, 1, 2, 0, 2, 3, 4, 1, 2]);
        let faces = ColumnValues::Numeric([0_u32, 0, 1].into_iter().collect());
        assert_eq!(geometry.link[0].values, faces);
    }

    #[test]
    fn damaged_polygons_are_errors() {
        assert!(PolygonList::default().push([0, 1]).is_err());
        let mut polygons = PolygonList::default();
        polygons.push([0, 1, 5]).unwrap();
        assert!(polygons.add_to(&mut square(), Vec::new()).is_err());
    }
}
