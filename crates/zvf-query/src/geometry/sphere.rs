//! A sphere: what is no further than a radius from a centre.

use super::{
    AxesError, Position, Primitive,
    distance::{self, Corner},
    primitive::fan,
};

/// A sphere, its surface included; a disc in two dimensions.
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
    /// The sphere around a centre. One with a NaN or a negative radius
    /// selects nothing.
    ///
    /// # Errors
    ///
    /// [`AxesError`] when the centre is no position.
    pub fn new(centre: &[f64], radius: f64) -> Result<Self, AxesError> {
        let centre = Position::new(centre)?;
        Ok(Self { centre, radius })
    }

    /// Its centre.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// Its radius.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Whether some of the geometry is in the sphere. Allocates nothing.
    pub fn touches(&self, primitive: Primitive<'_>) -> bool {
        if !self.may_hold(primitive) {
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

    /// Whether all of the geometry is in the sphere, which is when all corners
    /// are. Allocates nothing.
    pub fn contains(&self, primitive: Primitive<'_>) -> bool {
        self.may_hold(primitive) && primitive.all(|corner| self.has(corner))
    }

    fn may_hold(&self, primitive: Primitive<'_>) -> bool {
        self.radius >= 0.0
            && primitive.all(|corner| corner.len() == self.centre.len())
            && primitive.is_spanned()
    }

    fn has(&self, point: &[f64]) -> bool {
        distance::squared_distance_to_point(&self.centre, point) <= self.radius * self.radius
    }

    fn touches_segment(&self, ends: [&[f64]; 2]) -> bool {
        if ends.into_iter().any(|end| self.has(end)) {
            return true;
        }
        // The same order of ends whichever way round they come.
        let [a, b] = distance::ordered(ends);
        let (length, along) = (
            distance::squared_distance_to_point(a, b),
            Corner::at(a).dot(&self.centre, b),
        );
        let beside = along > 0.0 && along < length;
        // Pythagoras times the squared length.
        let from_a = distance::squared_distance_to_point(a, &self.centre);
        beside && (from_a - self.radius * self.radius) * length <= along * along
    }

    fn touches_triangle(&self, corners: [&[f64]; 3]) -> bool {
        let [a, b, c] = distance::ordered(corners);
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
