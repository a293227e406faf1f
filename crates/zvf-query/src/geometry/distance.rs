//! Squared distances from a point to points, segments, triangles and boxes.
//!
//! Both positions should have the same number of axes; surplus axes are ignored.

use super::Bbox;

/// Returns the squared distance of two points.
///
/// ```
/// use zvf_query::geometry::squared_distance_to_point;
///
/// assert_eq!(squared_distance_to_point(&[0.0, 0.0], &[3.0, 4.0]), 25.0);
/// ```
pub fn squared_distance_to_point(point: &[f64], other: &[f64]) -> f64 {
    let axes = point.iter().zip(other);
    axes.map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the squared distance from a point to a segment.
///
/// ```
/// use zvf_query::geometry::squared_distance_to_segment;
///
/// assert_eq!(squared_distance_to_segment(&[1.0, 2.0], [&[0.0, 0.0], &[4.0, 0.0]]), 4.0);
/// ```
pub fn squared_distance_to_segment(point: &[f64], ends: [&[f64]; 2]) -> f64 {
    let [a, b] = sorted(ends);
    let length = squared_distance_to_point(a, b);
    let along = Origin::at(a).dot(point, b);
    let nearest_end = squared_distance_to_point(point, a).min(squared_distance_to_point(point, b));
    if along > 0.0 && along < length {
        let t = along / length;
        let axes = point.iter().zip(a.iter().zip(b));
        let beside: f64 = axes.map(|(p, (a, b))| square(p - a - t * (b - a))).sum();
        return beside.min(nearest_end);
    }
    nearest_end
}

/// Returns the squared distance from a point to a triangle, in any number of dimensions.
///
/// ```
/// use zvf_query::geometry::squared_distance_to_triangle;
///
/// let corners: [&[f64]; 3] = [&[0.0, 0.0, 0.0], &[4.0, 0.0, 0.0], &[0.0, 4.0, 0.0]];
/// assert_eq!(squared_distance_to_triangle(&[1.0, 1.0, 3.0], corners), 9.0);
/// ```
pub fn squared_distance_to_triangle(point: &[f64], corners: [&[f64]; 3]) -> f64 {
    let [a, b, c] = sorted(corners);
    let sides = [[a, b], [b, c], [c, a]].map(|side| squared_distance_to_segment(point, side));
    let nearest_side = sides.into_iter().fold(f64::INFINITY, f64::min);
    let Some(foot) = foot(point, [a, b, c]) else {
        return nearest_side;
    };
    let (to_b, to_c) = (foot.to_b / foot.area, foot.to_c / foot.area);
    let axes = point.iter().zip(a).zip(b.iter().zip(c));
    let above: f64 = axes
        .map(|((p, a), (b, c))| square(p - a - to_b * (b - a) - to_c * (c - a)))
        .sum();
    above.min(nearest_side)
}

/// Returns the squared distance from a point to a box: 0 inside, and a lower bound of the distance
/// to any geometry in the box. The result is meaningless for an empty box.
///
/// ```
/// use zvf_query::geometry::{Bbox, squared_distance_to_bbox};
///
/// let bbox = Bbox::new(&[0.0, 0.0], &[1.0, 1.0])?;
/// assert_eq!(squared_distance_to_bbox(&[3.0, 0.5], &bbox), 4.0);
/// # Ok::<(), zvf_query::geometry::BboxError>(())
/// ```
pub fn squared_distance_to_bbox(point: &[f64], bbox: &Bbox) -> f64 {
    let bounds = bbox.lo().iter().zip(bbox.hi());
    let axes = point.iter().zip(bounds);
    axes.map(|(value, (lo, hi))| square((lo - value).max(value - hi).max(0.0)))
        .sum()
}

fn square(value: f64) -> f64 {
    value * value
}

/// Sorts positions, so that rounding does not depend on the order of the arguments.
pub(super) fn sorted<const N: usize>(mut positions: [&[f64]; N]) -> [&[f64]; N] {
    positions.sort_by(|a, b| {
        let mut axes = a.iter().zip(b.iter()).map(|(a, b)| a.total_cmp(b));
        let first = axes.find(|order| order.is_ne());
        first.unwrap_or(std::cmp::Ordering::Equal)
    });
    positions
}

/// The origin of a local coordinate system.
pub(super) struct Origin<'a>(&'a [f64]);

impl<'a> Origin<'a> {
    pub(super) fn at(position: &'a [f64]) -> Self {
        Self(position)
    }

    /// Returns the dot product of the vectors to two positions.
    pub(super) fn dot(&self, p: &[f64], q: &[f64]) -> f64 {
        let axes = self.0.iter().zip(p.iter().zip(q));
        axes.map(|(from, (p, q))| (p - from) * (q - from)).sum()
    }
}

/// The perpendicular foot of a point on a triangle's plane. All values are multiplied by `area`,
/// which avoids a division.
pub(super) struct Foot {
    /// Squared area of the parallelogram that the triangle spans, above 0.
    pub(super) area: f64,
    to_b: f64,
    to_c: f64,
    /// Squared distance from the first corner to the foot.
    pub(super) along: f64,
}

/// Returns the foot if it is in the triangle; `None` if it is outside or the corners are collinear.
pub(super) fn foot(point: &[f64], [a, b, c]: [&[f64]; 3]) -> Option<Foot> {
    let from = Origin::at(a);
    let (bb, bc, cc) = (from.dot(b, b), from.dot(b, c), from.dot(c, c));
    let (pb, pc) = (from.dot(point, b), from.dot(point, c));
    let area = bb * cc - bc * bc;
    let (to_b, to_c) = (cc * pb - bc * pc, bb * pc - bc * pb);
    let inside = area > 0.0 && to_b >= 0.0 && to_c >= 0.0 && to_b + to_c <= area;
    inside.then_some(Foot {
        area,
        to_b,
        to_c,
        along: pb * to_b + pc * to_c,
    })
}
