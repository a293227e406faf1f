//! Clipping of segments and faces at the sides of a box.
//!
//! A part remains if and only if the geometry touches the box. A crossing counts as inside where
//! rounding cannot decide. If rounding would remove all of a geometry that touches the box, the
//! point closest to the inside remains.

use super::{Bbox, Position, Primitive, primitive::fan};

/// The part of a segment inside a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedSegment {
    /// Parameter of the start: 0 at the first end, 1 at the second. An attribute there has the
    /// value `(1 - t0) * first + t0 * second`.
    pub t0: f64,
    /// Parameter of the end, at least `t0`.
    pub t1: f64,
    /// Position at `t0`, inside the box; equal to the first end if `t0` is 0.
    pub start: Position,
    /// Position at `t1`, inside the box; equal to the second end if `t1` is 1.
    pub end: Position,
}

/// The part of a triangle inside a box: a convex polygon.
#[derive(Clone, Debug, PartialEq)]
pub struct ClippedTriangle {
    /// Indices of the triangle's corners among the corners of the face; 0, 1 and 2 for a face
    /// that is a triangle. [`ClippedVertex::weights`] refer to these corners.
    pub corners: [usize; 3],
    /// Vertices of the polygon, with the orientation of the triangle: one for a point, two for a
    /// segment. Consecutive vertices may coincide if corners of the triangle do.
    pub vertices: Vec<ClippedVertex>,
}

/// A vertex of a clipped triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedVertex {
    /// Position, inside the box.
    pub position: Position,
    /// Barycentric weights of the corners: non-negative, with a sum of 1 up to rounding.
    /// Attributes are interpolated with these weights.
    pub weights: [f64; 3],
}

impl ClippedVertex {
    /// Returns whether both vertices have identical weights.
    fn has_weights_of(&self, other: &Self) -> bool {
        self.weights.map(f64::to_bits) == other.weights.map(f64::to_bits)
    }
}

impl Bbox {
    /// Clips a segment at the box. Returns `None` if the segment does not touch the box.
    ///
    /// ```
    /// use zvf_query::geometry::Bbox;
    ///
    /// let bbox = Bbox::parse("0,0,1,1")?;
    /// let part = bbox.clip_segment([&[-1.0, 0.5], &[1.0, 0.5]]).ok_or("outside")?;
    /// assert_eq!((part.t0, part.t1), (0.5, 1.0));
    /// assert_eq!(*part.start, [0.0, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clip_segment(&self, ends: [&[f64]; 2]) -> Option<ClippedSegment> {
        if !self.touches(Primitive::Segment(ends)) {
            return None;
        }
        let [a, b] = ends;
        let (mut t0, mut t1) = (0.0_f64, 1.0_f64);
        for ((a, b), (lo, hi)) in a.iter().zip(b).zip(self.lo().iter().zip(self.hi())) {
            let (enter, leave) = if a < b { (lo, hi) } else { (hi, lo) };
            // Halves, because the length of the longest segments overflows f64.
            let half = b / 2.0 - a / 2.0;
            if half != 0.0 {
                t0 = t0.max((enter / 2.0 - a / 2.0) / half);
                t1 = t1.min((leave / 2.0 - a / 2.0) / half);
            }
        }
        // The segment touches in one point, and rounding has swapped the parameters.
        let (t0, t1) = if t0 <= t1 {
            (t0, t1)
        } else {
            let middle = f64::midpoint(t0, t1).clamp(0.0, 1.0);
            (middle, middle)
        };
        let at = |t: f64| self.interpolate([(1.0 - t, a), (t, b)]);
        Some(ClippedSegment {
            t0,
            t1,
            start: at(t0),
            end: at(t1),
        })
    }

    /// Clips a triangle at the box. Returns `None` if the triangle does not touch the box.
    ///
    /// ```
    /// use zvf_query::geometry::Bbox;
    ///
    /// let bbox = Bbox::parse("0,0,2,2")?;
    /// let corners: [&[f64]; 3] = [&[0.0, 0.0], &[4.0, 0.0], &[0.0, 4.0]];
    /// let part = bbox.clip_triangle(corners).ok_or("outside")?;
    /// let square: Vec<_> = part.vertices.iter().map(|v| v.position.to_vec()).collect();
    /// assert_eq!(square, [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]);
    /// assert_eq!(part.vertices[1].weights, [0.5, 0.5, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clip_triangle(&self, corners: [&[f64]; 3]) -> Option<ClippedTriangle> {
        if !self.touches(Primitive::Triangle(corners)) {
            return None;
        }
        let units = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let mut vertices: Vec<_> = corners
            .into_iter()
            .zip(units)
            .map(|(corner, weights)| ClippedVertex {
                position: Position::collect(corner.iter().copied()),
                weights,
            })
            .collect();
        for (axis, (lo, hi)) in self.lo().iter().zip(self.hi()).enumerate() {
            vertices = clip_at_bound(
                &vertices,
                corners,
                HalfSpace {
                    axis,
                    is_lower_bound: true,
                    bound: *lo,
                },
            );
            vertices = clip_at_bound(
                &vertices,
                corners,
                HalfSpace {
                    axis,
                    is_lower_bound: false,
                    bound: *hi,
                },
            );
        }
        for vertex in &mut vertices {
            vertex.position = self.clamped(vertex.position);
        }
        Some(ClippedTriangle {
            corners: [0, 1, 2],
            vertices,
        })
    }

    /// Clips each triangle of the fan around a face's first corner. Returns an empty vector if the
    /// face does not touch the box. A face of one or two corners is a point or a segment.
    ///
    /// ```
    /// use zvf_query::geometry::Bbox;
    ///
    /// let bbox = Bbox::parse("0,0,1,1")?;
    /// let face: [&[f64]; 4] = [&[0.0, 0.0], &[4.0, 0.0], &[4.0, 4.0], &[0.0, 4.0]];
    /// let parts = bbox.clip_polygon(&face);
    /// assert_eq!(parts[1].corners, [0, 2, 3]);
    /// # Ok::<(), zvf_query::geometry::BboxError>(())
    /// ```
    pub fn clip_polygon(&self, corners: &[&[f64]]) -> Vec<ClippedTriangle> {
        // A corner that is not finite invalidates the face, not only the triangles it belongs to.
        if !self.touches(Primitive::Polygon(corners)) {
            return Vec::new();
        }
        let parts = fan(corners.len()).filter_map(|numbers| {
            let triangle = numbers.map(|at| corners.get(at).copied().unwrap_or_default());
            let part = self.clip_triangle(triangle)?;
            Some(ClippedTriangle {
                corners: numbers,
                ..part
            })
        });
        parts.collect()
    }

    /// Returns the weighted mean of two positions, clamped to the box because rounding may have
    /// moved it outside.
    fn interpolate(&self, ends: [(f64, &[f64]); 2]) -> Position {
        let [(one, a), (other, b)] = ends;
        let mean = a.iter().zip(b).map(|(a, b)| {
            // A position of weight 0 must not add a rounding error.
            if other == 0.0 || a.to_bits() == b.to_bits() {
                *a
            } else if one == 0.0 {
                *b
            } else {
                one * a + other * b
            }
        });
        self.clamped(Position::collect(mean))
    }

    fn clamped(&self, mut position: Position) -> Position {
        let bounds = self.lo().iter().zip(self.hi());
        for (value, (lo, hi)) in position.iter_mut().zip(bounds) {
            *value = value.max(*lo).min(*hi);
        }
        position
    }
}

/// Rounding error of a crossing's coordinate, relative to the magnitude of the coordinates it is
/// interpolated from: a few of the last bits, more where a side is cut at a flat angle.
///
/// Without this tolerance, a flat box, or a face along one side of a box, would lose geometry on
/// its boundary. The tolerance moves nothing out of the box: positions are clamped at the end.
const ROUNDING_TOLERANCE: f64 = 64.0 * f64::EPSILON;

/// The half space on the inner side of one bound of a box.
#[derive(Clone, Copy)]
struct HalfSpace {
    axis: usize,
    is_lower_bound: bool,
    bound: f64,
}

impl HalfSpace {
    /// Returns the distance of a vertex from the bound, negative outside. The distance of a
    /// crossing is 0 if it is within the rounding tolerance.
    fn depth(self, vertex: &ClippedVertex, corners: [&[f64]; 3]) -> f64 {
        let value = |position: &[f64]| position.get(self.axis).copied().unwrap_or_default();
        let depth = if self.is_lower_bound {
            value(&vertex.position) - self.bound
        } else {
            self.bound - value(&vertex.position)
        };
        let is_corner = vertex.weights.contains(&1.0);
        let sizes = corners.into_iter().map(|corner| value(corner).abs());
        let noise = ROUNDING_TOLERANCE * sizes.fold(0.0, f64::max);
        if !is_corner && depth.abs() <= noise {
            0.0
        } else {
            depth
        }
    }
}

/// Clips a convex polygon at one bound: a step of the Sutherland–Hodgman algorithm.
fn clip_at_bound(
    vertices: &[ClippedVertex],
    corners: [&[f64]; 3],
    half: HalfSpace,
) -> Vec<ClippedVertex> {
    let mut left: Vec<ClippedVertex> = Vec::with_capacity(vertices.len() + 1);
    let mut keep = |vertex: ClippedVertex| {
        if left.last().is_none_or(|last| !last.has_weights_of(&vertex)) {
            left.push(vertex);
        }
    };
    let next = vertices.iter().cycle().skip(1);
    for (vertex, next) in vertices.iter().zip(next) {
        let (here, present) = (half.depth(vertex, corners), half.depth(next, corners));
        if here >= 0.0 {
            keep(*vertex);
        }
        if here > 0.0 && present < 0.0 {
            keep(crossing((vertex, here), (next, present), corners, half));
        } else if here < 0.0 && present > 0.0 {
            keep(crossing((next, present), (vertex, here), corners, half));
        }
    }
    let ends = left.first().zip(left.last());
    if left.len() > 1 && ends.is_some_and(|(first, last)| first.has_weights_of(last)) {
        left.pop();
    }
    if left.is_empty() {
        // The triangle touches the box, so only rounding can have moved every vertex outside.
        let nearest = vertices
            .iter()
            .max_by(|a, b| half.depth(a, corners).total_cmp(&half.depth(b, corners)));
        left.extend(nearest.copied());
    }
    left
}

/// Returns the point where a side from an inner to an outer vertex crosses the bound.
fn crossing(
    (inside, depth): (&ClippedVertex, f64),
    (outside, beyond): (&ClippedVertex, f64),
    corners: [&[f64]; 3],
    half: HalfSpace,
) -> ClippedVertex {
    let t = depth / (depth - beyond);
    let mut weights = [0.0; 3];
    let ends = inside.weights.iter().zip(outside.weights);
    for (slot, (inside, outside)) in weights.iter_mut().zip(ends) {
        *slot = (1.0 - t) * inside + t * outside;
    }
    // Interpolated from the corners rather than the two vertices, so that errors do not add up.
    let [wa, wb, wc] = weights;
    let [a, b, c] = corners;
    let means = a
        .iter()
        .zip(b.iter().zip(c))
        .enumerate()
        .map(|(axis, (a, (b, c)))| {
            if axis == half.axis {
                half.bound
            } else if a.to_bits() == b.to_bits() && a.to_bits() == c.to_bits() {
                *a
            } else {
                wa * a + wb * b + wc * c
            }
        });
    ClippedVertex {
        position: Position::collect(means),
        weights,
    }
}
