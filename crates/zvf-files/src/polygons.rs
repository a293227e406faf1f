//! Polygons as links of one width.
//!
//! A store has links of one width. Polygons of 3 to 8 corners, all of one number, become links of this
//! width. Others become triangles around their first corner, with the link attribute `face`, the
//! number of the polygon.

use zvf::{Column, GeometryBuilder, LinkEnds, NumericColumn};

use crate::FileFault;

/// The largest number of ends of a link of a mesh.
const MAX_CORNERS: usize = 8;

/// Polygons in the order of a file.
#[derive(Debug, Default)]
pub(crate) struct PolygonList {
    corners: Vec<i64>,
    count: usize,
    /// Number of corners of the first polygon.
    width: usize,
    /// The end of each polygon in `corners`; empty while all have `width` corners.
    ends: Vec<usize>,
    /// The greatest corner.
    last: u32,
}

impl PolygonList {
    /// Adds a polygon. Its corners are checked when all vertices are known.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for fewer than 3 corners.
    #[inline]
    pub(crate) fn push(&mut self, corners: impl IntoIterator<Item = u32>) -> Result<(), FileFault> {
        let start = self.corners.len();
        let mut last = self.last;
        self.corners.extend(corners.into_iter().map(|corner| {
            last = last.max(corner);
            i64::from(corner)
        }));
        self.last = last;
        let width = self.corners.len().saturating_sub(start);
        self.add_ends(width, 1)
    }

    /// Notes `count` polygons of `width` corners, which were added.
    fn add_ends(&mut self, width: usize, count: usize) -> Result<(), FileFault> {
        if width < 3 {
            let expected = "a polygon has 3 corners or more; remove it";
            return Err(FileFault::field("the number of corners", width, expected));
        }
        if self.count == 0 {
            self.width = width;
        } else if self.ends.is_empty() && width != self.width {
            let ends = (1..=self.count).map(|end| end.saturating_mul(self.width));
            self.ends.extend(ends);
        }
        if !self.ends.is_empty() {
            let before = self.ends.last().copied().unwrap_or(0);
            let ends = (1..=count).map(|end| before.saturating_add(end.saturating_mul(width)));
            self.ends.extend(ends);
        }
        self.count = self.count.saturating_add(count);
        Ok(())
    }

    /// Adds polygons of `N` corners each. Returns the greatest of all their corners.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for fewer than 3 corners.
    pub(crate) fn push_arrays<const N: usize>(
        &mut self,
        polygons: impl ExactSizeIterator<Item = [u32; N]>,
    ) -> Result<u32, FileFault> {
        let count = polygons.len();
        let start = self.corners.len();
        self.corners
            .resize(start.saturating_add(count.saturating_mul(N)), 0);
        let new = self.corners.get_mut(start..).unwrap_or_default();
        let (targets, _) = new.as_chunks_mut::<N>();
        let mut last = [0; N];
        for (target, polygon) in targets.iter_mut().zip(polygons) {
            for ((target, last), corner) in target.iter_mut().zip(&mut last).zip(polygon) {
                *target = i64::from(corner);
                *last = corner.max(*last);
            }
        }
        let last = last.into_iter().max().unwrap_or(0);
        self.last = self.last.max(last);
        self.add_ends(N, count)?;
        Ok(last)
    }

    /// Reserves memory for polygons that the file is known to have.
    pub(crate) fn reserve(&mut self, corners: usize) {
        self.corners.reserve_exact(corners);
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of corners that all polygons have, if links can have as many ends.
    pub(crate) fn common_corners(&self) -> Option<usize> {
        let is_common = self.ends.is_empty() && (3..=MAX_CORNERS).contains(&self.width);
        is_common.then_some(self.width)
    }

    /// Adds the links to a geometry, and attributes of the polygons as attributes of links.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for a corner that is not a vertex.
    pub(crate) fn add_to(
        self,
        geometry: &mut GeometryBuilder,
        attributes: Vec<Column>,
    ) -> Result<(), FileFault> {
        self.check(u64::try_from(geometry.vertices()).unwrap_or(u64::MAX))?;
        let corners = self.common_corners();
        self.add_links(corners, 0, geometry, attributes);
        Ok(())
    }

    /// Checks that all corners are among the first `vertices` vertices.
    ///
    /// # Errors
    ///
    /// [`FileFault::Field`] for a corner that is not a vertex.
    pub(crate) fn check(&self, vertices: u64) -> Result<(), FileFault> {
        if self.count > 0 && u64::from(self.last) >= vertices {
            let expected = "no vertex has this number; the file is damaged";
            let (what, last) = ("the corner of a polygon", self.last);
            return Err(FileFault::field(what, last, expected));
        }
        Ok(())
    }

    /// Adds the links of checked polygons: with `corners` ends if it is the number of corners of all
    /// polygons of the file, otherwise as triangles. The polygons of the file count from `first` here.
    pub(crate) fn add_links(
        self,
        corners: Option<usize>,
        first: u32,
        geometry: &mut GeometryBuilder,
        attributes: Vec<Column>,
    ) {
        if let Some(corners) = corners {
            geometry.links = LinkEnds {
                width: corners,
                ends: self.corners,
            };
            geometry.link.extend(attributes);
            return;
        }
        geometry.links.width = 3;
        let ends = if self.ends.is_empty() {
            (1..=self.count)
                .map(|end| end.saturating_mul(self.width))
                .collect()
        } else {
            self.ends
        };
        let mut faces: Vec<u32> = Vec::new();
        let mut start = 0;
        for (face, end) in (0_u32..).zip(ends) {
            let corners = self.corners.get(start..end).unwrap_or_default();
            let origin = corners.first().copied().unwrap_or(0);
            for pair in corners.get(1..).unwrap_or_default().windows(2) {
                let &[second, third] = pair else { continue };
                geometry.links.ends.extend([origin, second, third]);
                faces.push(face);
            }
            start = end;
        }
        let rows = || {
            faces
                .iter()
                .map(|face| usize::try_from(*face).unwrap_or(usize::MAX))
        };
        let attributes = attributes.iter().map(|attribute| attribute.take(rows()));
        geometry.link.extend(attributes);
        let numbers = faces.iter().map(|face| face.saturating_add(first));
        geometry
            .link
            .push(Column::new("face", numbers.collect::<NumericColumn>()));
    }
}

#[cfg(test)]
mod tests {
    use zvf::{ColumnValues, Geometry};

    use super::*;

    fn square() -> GeometryBuilder {
        Geometry::builder(NumericColumn::float32(3, [0.0; 15]))
    }

    #[test]
    fn equal_polygons_keep_their_width() {
        let mut polygons = PolygonList::default();
        polygons.push([0, 1, 2, 3]).unwrap();
        polygons.push([4, 1, 2, 0]).unwrap();
        let mut geometry = square();
        polygons.add_to(&mut geometry, Vec::new()).unwrap();
        assert_eq!(
            (geometry.links.width, geometry.links.ends),
            (4, vec![0, 1, 2, 3, 4, 1, 2, 0])
        );
        assert_eq!(geometry.link, []);
        let mut wide = PolygonList::default();
        wide.push(0..9).unwrap();
        wide.push(1..10).unwrap();
        let mut geometry = Geometry::builder(NumericColumn::float32(3, [0.0; 30]));
        wide.add_to(&mut geometry, Vec::new()).unwrap();
        assert_eq!((geometry.links.width, geometry.links.len()), (3, 14));
        assert_eq!(geometry.links.ends[21..24], [1, 2, 3]);
    }

    #[test]
    fn mixed_polygons_become_triangles_with_their_face() {
        let mut polygons = PolygonList::default();
        polygons.push([0, 1, 2, 3]).unwrap();
        polygons.push([4, 1, 2]).unwrap();
        let mut geometry = square();
        polygons.add_to(&mut geometry, Vec::new()).unwrap();
        assert_eq!(geometry.links.width, 3);
        assert_eq!(geometry.links.ends, [0, 1, 2, 0, 2, 3, 4, 1, 2]);
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
