//! Spheres and tests of points, segments and faces against them.

use super::{
    AxesError, Position, Primitive,
    distance::{self, Origin},
    primitive::fan,
};

/// A closed ball: all positions within a radius of a centre; a disc in two dimensions.
///
/// ```
/// use zvf_query::geometry::{Primitive, Sphere};
///
/// let sphere = Sphere::new(&[0.0, 0.0], 5.0)?;
/// assert!(sphere.contains(Primitive::Point(&[3.0, 4.0])));
/// // The ends are outside, the middle is on the surface.
/// assert!(sphere.touches(Primitive::Segment([&[-9.0, 5.0], &[9.0, 5.0]])));
/// # Ok::<(), zvf_query::geometry::AxesError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sphere {
    centre: Position,
    radius: f64,
}

impl Sphere {
    /// Creates a sphere. A sphere with a NaN or negative radius selects nothing.
    ///
    /// # Errors
    ///
    /// Returns [`AxesError`] if the centre has no axes or too many.
    pub fn new(centre: &[f64], radius: f64) -> Result<Self, AxesError> {
        let centre = Position::new(centre)?;
        Ok(Self { centre, radius })
    }

    /// Returns the centre.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// Returns the radius.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Returns whether any part of the geometry is in the sphere. Allocates nothing.
    pub fn touches(&self, primitive: Primitive<'_>) -> bool {
        if !self.can_hold(primitive) {
            return false;
        }
        match primitive {
            Primitive::Point(point) => self.has(point),
            Primitive::Segment(ends) => self.touches_segment(ends),
            Primitive::Triangle(corners) => self.touches_triangle(corners),
            Primitive::Polygon(corners) => fan(corners.len()).any(|triangle| {
                let corners = triangle.map(|at| corners.get(at).copied().unwrap_or_default());
                self.touches_triangle(corners)
            }),
        }
    }

    /// Returns whether the whole geometry is in the sphere, that is, all of its corners are.
    /// Allocates nothing.
    pub fn contains(&self, primitive: Primitive<'_>) -> bool {
        self.can_hold(primitive) && primitive.all(|corner| self.has(corner))
    }

    fn can_hold(&self, primitive: Primitive<'_>) -> bool {
        self.radius >= 0.0
            && primitive.all(|corner| corner.len() == self.centre.len())
            && primitive.has_geometry()
    }

    fn has(&self, point: &[f64]) -> bool {
        distance::squared_distance_to_point(&self.centre, point) <= self.radius * self.radius
    }

    fn touches_segment(&self, ends: [&[f64]; 2]) -> bool {
        if ends.into_iter().any(|end| self.has(end)) {
            return true;
        }
        // Sorted ends make the result independent of the segment's direction.
        let [a, b] = distance::sorted(ends);
        let (length, along) = (
            distance::squared_distance_to_point(a, b),
            Origin::at(a).dot(&self.centre, b),
        );
        let beside = along > 0.0 && along < length;
        // The theorem of Pythagoras, multiplied by the squared length to avoid a division.
        let from_a = distance::squared_distance_to_point(a, &self.centre);
        beside && (from_a - self.radius * self.radius) * length <= along * along
    }

    fn touches_triangle(&self, corners: [&[f64]; 3]) -> bool {
        let [a, b, c] = distance::sorted(corners);
        if [[a, b], [b, c], [c, a]]
            .into_iter()
            .any(|side| self.touches_segment(side))
        {
            return true;
        }
        let Some(foot) = distance::foot(&self.centre, [a, b, c]) else {
            return false;
        };
        let from_a = distance::squared_distance_to_point(a, &self.centre);
        (from_a - self.radius * self.radius) * foot.area <= foot.along
    }
}
