//! Points, segments, triangles and polygons: the shapes that regions are tested against.

/// A shape, given by the positions of its corners.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Primitive<'a> {
    /// A vertex.
    Point(&'a [f64]),
    /// A straight line between two vertices.
    Segment([&'a [f64]; 2]),
    /// A triangle with its interior.
    Triangle([&'a [f64]; 3]),
    /// A face: the fan of triangles around its first corner. One corner makes a point, two make a
    /// segment; a face without corners is empty.
    Polygon(&'a [&'a [f64]]),
}

impl Primitive<'_> {
    /// Returns whether there is at least one corner and `predicate` holds for every corner.
    pub(super) fn all(&self, predicate: impl FnMut(&&[f64]) -> bool) -> bool {
        let corners = self.corners();
        !corners.is_empty() && corners.iter().all(predicate)
    }

    /// Returns whether the shape has geometry: points always do, other shapes if all corners are
    /// finite.
    pub(super) fn has_geometry(&self) -> bool {
        match self {
            Self::Point(_) => true,
            _ => self.all(|corner| corner.iter().all(|value| value.is_finite())),
        }
    }

    fn corners(&self) -> &[&[f64]] {
        match self {
            Self::Point(point) => std::slice::from_ref(point),
            Self::Segment(ends) => ends,
            Self::Triangle(corners) => corners,
            Self::Polygon(corners) => corners,
        }
    }
}

/// Returns the triangles of a face as indices of corners. A face of one or two corners is one
/// triangle with repeated corners.
pub(super) fn fan(corners: usize) -> impl Iterator<Item = [usize; 3]> {
    let last = corners.saturating_sub(1);
    let triangles = match corners {
        0 => 0..0,
        1 => 0..1,
        _ => 1..last.max(2),
    };
    triangles.map(move |at| [0, at.min(last), (at + 1).min(last)])
}
