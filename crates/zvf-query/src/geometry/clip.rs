//! The part of a segment or a face that is in a box.
//!
//! Something is left exactly when the geometry touches the box. Where rounding
//! cannot tell whether a crossing is still in the box, it is; where it would leave
//! nothing of a touch, the nearest point that was found is left.

use super::{Bbox, Position, Primitive, primitive::fan};

/// The part of a segment that is in a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedSegment {
    /// Where it starts, from 0 at the first end to 1 at the second. An
    /// attribute there is `(1 - t0) * first + t0 * second`.
    pub t0: f64,
    /// Where it ends, not before `t0`.
    pub t1: f64,
    /// The position at `t0`, in the box; the first end itself when it is 0.
    pub start: Position,
    /// The position at `t1`, in the box; the second end itself when it is 1.
    pub end: Position,
}

/// The part of a triangle that is in a box: a convex polygon.
#[derive(Clone, Debug, PartialEq)]
pub struct ClippedTriangle {
    /// Which corners of the face the triangle has; the weights of its vertices
    /// belong to these. 0, 1 and 2 when it is the whole face.
    pub corners: [usize; 3],
    /// The polygon's vertices, the same way round as the triangle: one when it
    /// is a point, two when it is a segment. Two in a row may be at one place
    /// when corners of the triangle are.
    pub vertices: Vec<ClippedVertex>,
}

/// One vertex of a clipped triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedVertex {
    /// Where it is, in the box.
    pub position: Position,
    /// What part each corner has in it: none is negative, and together they
    /// are 1 but for rounding. An attribute follows as the position does.
    pub weights: [f64; 3],
}

impl ClippedVertex {
    /// Whether it is the same point of the triangle.
    fn is_same(&self, other: &Self) -> bool {
        self.weights.map(f64::to_bits) == other.weights.map(f64::to_bits)
    }
}

impl Bbox {
    /// The part of a segment that is in the box; `None` when it does not
    /// touch.
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
            // Half the length: that of the longest segments is no f64.
            let half = b / 2.0 - a / 2.0;
            if half != 0.0 {
                t0 = t0.max((enter / 2.0 - a / 2.0) / half);
                t1 = t1.min((leave / 2.0 - a / 2.0) / half);
            }
        }
        // A touch in one point, which rounding has turned round.
        let (t0, t1) = if t0 <= t1 {
            (t0, t1)
        } else {
            let middle = f64::midpoint(t0, t1).clamp(0.0, 1.0);
            (middle, middle)
        };
        let at = |t: f64| self.place([(1.0 - t, a), (t, b)]);
        Some(ClippedSegment {
            t0,
            t1,
            start: at(t0),
            end: at(t1),
        })
    }

    /// The part of a triangle that is in the box; `None` when it does not
    /// touch.
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
            vertices = cut(
                &vertices,
                corners,
                Half {
                    axis,
                    up: true,
                    bound: *lo,
                },
            );
            vertices = cut(
                &vertices,
                corners,
                Half {
                    axis,
                    up: false,
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

    /// The parts in the box of a face's triangles, those of the fan around its
    /// first corner; none when it does not touch. Of one or two corners, the
    /// point or segment they are.
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
        // A corner that is no geometry spoils the face, not only its triangles.
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

    /// A weighted mean, brought into the box should rounding have moved it out.
    fn place(&self, ends: [(f64, &[f64]); 2]) -> Position {
        let [(one, a), (other, b)] = ends;
        let mean = a.iter().zip(b).map(|(a, b)| {
            // What has no weight must not add its rounding.
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

/// What rounding adds to the coordinate of a crossing, per size of the
/// coordinates it is a mean of: a few last bits, more when sides are cut at a
/// flat angle. A flat box, or a face along one side of a box, would lose what
/// lies on its boundary without it. Nothing leaves the box by it: positions are
/// brought into the box at the end.
const NOISE: f64 = 64.0 * f64::EPSILON;

/// One side of one bound of a box.
#[derive(Clone, Copy)]
struct Half {
    axis: usize,
    up: bool,
    bound: f64,
}

impl Half {
    /// How far a vertex is inside; negative outside. That of a vertex that is
    /// a crossing is 0 when it is so small that only rounding may have made it.
    fn depth(self, vertex: &ClippedVertex, corners: [&[f64]; 3]) -> f64 {
        let value = |position: &[f64]| position.get(self.axis).copied().unwrap_or_default();
        let depth = if self.up {
            value(&vertex.position) - self.bound
        } else {
            self.bound - value(&vertex.position)
        };
        let is_corner = vertex.weights.contains(&1.0);
        let sizes = corners.into_iter().map(|corner| value(corner).abs());
        let noise = NOISE * sizes.fold(0.0, f64::max);
        if !is_corner && depth.abs() <= noise {
            0.0
        } else {
            depth
        }
    }
}

/// One step of Sutherland and Hodgman: what is left of a convex polygon on one
/// side of a bound.
fn cut(vertices: &[ClippedVertex], corners: [&[f64]; 3], half: Half) -> Vec<ClippedVertex> {
    let mut left: Vec<ClippedVertex> = Vec::with_capacity(vertices.len() + 1);
    let mut keep = |vertex: ClippedVertex| {
        if left.last().is_none_or(|last| !last.is_same(&vertex)) {
            left.push(vertex);
        }
    };
    let next = vertices.iter().cycle().skip(1);
    for (vertex, next) in vertices.iter().zip(next) {
        let (here, there) = (half.depth(vertex, corners), half.depth(next, corners));
        if here >= 0.0 {
            keep(*vertex);
        }
        if here > 0.0 && there < 0.0 {
            keep(crossing((vertex, here), (next, there), corners, half));
        } else if here < 0.0 && there > 0.0 {
            keep(crossing((next, there), (vertex, here), corners, half));
        }
    }
    let ends = left.first().zip(left.last());
    if left.len() > 1 && ends.is_some_and(|(first, last)| first.is_same(last)) {
        left.pop();
    }
    if left.is_empty() {
        // The triangle touches, so only rounding can have put all outside.
        let nearest = vertices
            .iter()
            .max_by(|a, b| half.depth(a, corners).total_cmp(&half.depth(b, corners)));
        left.extend(nearest.copied());
    }
    left
}

/// Where the side from a vertex inside to one outside crosses the bound.
fn crossing(
    (inside, depth): (&ClippedVertex, f64),
    (outside, beyond): (&ClippedVertex, f64),
    corners: [&[f64]; 3],
    half: Half,
) -> ClippedVertex {
    let t = depth / (depth - beyond);
    let mut weights = [0.0; 3];
    let ends = inside.weights.iter().zip(outside.weights);
    for (slot, (inside, outside)) in weights.iter_mut().zip(ends) {
        *slot = (1.0 - t) * inside + t * outside;
    }
    // From the corners, not from the two vertices: errors then do not add up.
    let [wa, wb, wc] = weights;
    let [a, b, c] = corners;
    let means = a.iter().zip(b.iter().zip(c));
    let means = means.enumerate().map(|(axis, (a, (b, c)))| {
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
