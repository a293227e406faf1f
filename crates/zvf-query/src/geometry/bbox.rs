//! Axis-aligned boxes and exact tests of points, segments and faces against them.
//!
//! The tests of segments and triangles are exact in any number of dimensions. They compare
//! products of coordinate differences by sign and never divide.

use std::cmp::Ordering;

use zvf_model::root::RootMetadata;

use super::{
    AxesError, Mode, Position, Primitive,
    exact::{Diff, sign_of_2, sign_of_3},
    primitive::fan,
};

/// An axis-aligned box with inclusive bounds.
///
/// Bounds may be infinite, and are never NaN. A box with a lower bound above the upper bound
/// [is empty](Self::is_empty) and selects nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbox {
    lo: Position,
    hi: Position,
}

impl Bbox {
    /// Creates a box from its lowest and highest corner.
    ///
    /// # Errors
    ///
    /// Returns [`BboxError`] if a bound is NaN, a corner is not a valid position or the numbers of
    /// axes differ.
    pub fn new(lo: &[f64], hi: &[f64]) -> Result<Self, BboxError> {
        if lo.len() != hi.len() {
            return Err(BboxError::AxesDiffer {
                lo: lo.len(),
                hi: hi.len(),
            });
        }
        if let Some(at) = lo.iter().chain(hi).position(|bound| bound.is_nan()) {
            return Err(BboxError::NotANumber(at));
        }
        Ok(Self {
            lo: Position::new(lo)?,
            hi: Position::new(hi)?,
        })
    }

    /// Parses comma-separated bounds: the lower bounds of all axes, then the upper bounds. `inf`
    /// and `-inf` are valid bounds.
    ///
    /// ```
    /// use zvf_query::geometry::{Bbox, BboxError};
    ///
    /// let slab = Bbox::parse("-inf, 0, inf, 2.5")?;
    /// assert_eq!(slab.hi()[1], 2.5);
    /// assert_eq!(Bbox::parse("0,1,2"), Err(BboxError::OddCount(3)));
    /// assert_eq!(Bbox::parse("0,x"), Err(BboxError::NotANumber(1)));
    /// # Ok::<(), BboxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`BboxError`] if a value is not a number or the number of values is odd, zero or
    /// too large.
    pub fn parse(text: &str) -> Result<Self, BboxError> {
        let numbers = text
            .split(',')
            .enumerate()
            .map(|(at, number)| {
                let number = number.trim().parse::<f64>().ok();
                let number = number.filter(|number| !number.is_nan());
                number.ok_or(BboxError::NotANumber(at))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if numbers.len() % 2 == 1 {
            return Err(BboxError::OddCount(numbers.len()));
        }
        let (lo, hi) = numbers.split_at(numbers.len() / 2);
        Self::new(lo, hi)
    }

    /// Returns the lowest corner.
    pub fn lo(&self) -> &[f64] {
        &self.lo
    }

    /// Returns the highest corner.
    pub fn hi(&self) -> &[f64] {
        &self.hi
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.lo.len()
    }

    /// Returns whether no position can be in the box: a lower bound exceeds the upper bound.
    pub fn is_empty(&self) -> bool {
        let mut bounds = self.lo.iter().zip(self.hi());
        !bounds.all(|(lo, hi)| lo <= hi)
    }

    /// Explains why no vertex of a store can be in the box: a lower bound exceeds the upper bound, or
    /// the box lies outside the bounds of the store.
    pub fn why_empty(&self, root: &RootMetadata) -> Option<String> {
        let own = self.lo.iter().zip(self.hi());
        let mut sides = root.axes.iter().zip(own.clone());
        if let Some((axis, (lo, hi))) = sides.find(|(_, (lo, hi))| lo > hi) {
            let name = &axis.name;
            return Some(format!(
                "the box is empty: its lower bound of {name}, {lo}, is above the upper one, {hi}"
            ));
        }
        let bounds = root.bounds.as_ref()?;
        let of_store = bounds.lower().iter().zip(bounds.upper());
        let mut axes = root.axes.iter().zip(of_store.zip(own));
        let (axis, ((lower, upper), _)) =
            axes.find(|(_, ((lower, upper), (lo, hi)))| hi < lower || lo > upper)?;
        let name = &axis.name;
        Some(format!(
            "the box lies outside the store, whose {name} ranges from {lower} to {upper}"
        ))
    }

    /// Returns whether any part of the geometry is in the box. Exact; allocates nothing.
    pub fn touches(&self, primitive: Primitive<'_>) -> bool {
        if !self.can_hold(primitive) {
            return false;
        }
        match primitive {
            Primitive::Point(point) => self.has(point),
            Primitive::Segment(ends) => touches_segment(self, ends),
            Primitive::Triangle(corners) => touches_triangle(self, corners),
            Primitive::Polygon(corners) => fan(corners.len()).any(|triangle| {
                let corners = triangle.map(|at| corners.get(at).copied().unwrap_or_default());
                touches_triangle(self, corners)
            }),
        }
    }

    /// Returns whether the whole geometry is in the box, that is, all of its corners are. Exact;
    /// allocates nothing.
    pub fn contains(&self, primitive: Primitive<'_>) -> bool {
        self.can_hold(primitive) && primitive.all(|corner| self.has(corner))
    }

    /// Returns whether `mode` selects any part of the geometry. Clipping selects a part of every
    /// geometry that touches the box.
    pub fn selects(&self, mode: Mode, primitive: Primitive<'_>) -> bool {
        match mode {
            Mode::Touch | Mode::Clip => self.touches(primitive),
            Mode::Within => self.contains(primitive),
        }
    }

    /// Returns whether the boxes share a point. Spatial indexes prune with this test.
    pub fn overlaps(&self, other: &Self) -> bool {
        let bounds = self.lo.iter().zip(self.hi());
        let others = other.lo.iter().zip(other.hi());
        self.axes() == other.axes()
            && !self.is_empty()
            && !other.is_empty()
            && bounds
                .zip(others)
                .all(|((lo, hi), (other_lo, other_hi))| lo <= other_hi && other_lo <= hi)
    }

    fn can_hold(&self, primitive: Primitive<'_>) -> bool {
        !self.is_empty()
            && primitive.all(|corner| corner.len() == self.axes())
            && primitive.has_geometry()
    }

    /// Returns whether a position with the box's number of axes is in the box.
    pub(super) fn has(&self, point: &[f64]) -> bool {
        let bounds = self.lo.iter().zip(self.hi());
        let mut axes = bounds.zip(point);
        axes.all(|((lo, hi), value)| lo <= value && value <= hi)
    }
}

/// Returns whether a segment enters the box.
///
/// Each axis restricts the segment's parameter t to an interval. Intervals share a point if and
/// only if every two of them do; two intervals are compared by cross multiplication, without
/// division. The box must not be empty, and the ends must be finite and have the box's axes.
fn touches_segment(bbox: &Bbox, [a, b]: [&[f64]; 2]) -> bool {
    if !bounds_meet(bbox, [a, b, b]) {
        return false;
    }
    if bbox.has(a) || bbox.has(b) {
        return true;
    }
    let starts = intervals(bbox, a, b).filter(|axis| axis.enter.rounded() > 0.0);
    let no_conflict = |start: AxisInterval| {
        intervals(bbox, a, b).all(|end| {
            let unlimited = end.leave.rounded() == f64::INFINITY;
            unlimited || sign_of_2(start.enter, end.length, end.leave, start.length).is_le()
        })
    };
    starts.into_iter().all(no_conflict)
}

/// Returns whether a triangle enters the box, under the preconditions of [`touches_segment`].
///
/// A triangle enters a box if one of its sides does or, when no side does, if the box cuts the
/// triangle's plane inside the triangle. The cut is a convex polygon; each of its corners has two
/// coordinates on bounds of the box.
fn touches_triangle(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    if !bounds_meet(bbox, corners) {
        return false;
    }
    if corners.into_iter().any(|corner| bbox.has(corner)) {
        return true;
    }
    let [a, b, c] = corners;
    let sides = [[a, b], [b, c], [c, a]];
    sides.into_iter().any(|side| touches_segment(bbox, side)) || touches_face(bbox, corners)
}

/// Returns whether the bounding box of the corners overlaps the box.
fn bounds_meet(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    slices(bbox, corners).all(|axis| axis.low() <= axis.hi && axis.lo <= axis.high())
}

/// One axis along which a segment is not constant, mirrored so that the segment ascends.
#[derive(Clone, Copy)]
struct AxisInterval {
    /// Distance from the segment's start to the box's lower bound.
    enter: Diff,
    /// Distance from the segment's start to the box's upper bound.
    leave: Diff,
    /// Distance from the segment's start to its end.
    length: Diff,
}

fn intervals<'a>(bbox: &'a Bbox, a: &'a [f64], b: &'a [f64]) -> impl Iterator<Item = AxisInterval> {
    slices(bbox, [a, b, b]).filter_map(|axis| {
        let [a, b, _] = axis.corners;
        let up = |lo, hi, a, b| AxisInterval {
            enter: Diff::new(lo, a),
            leave: Diff::new(hi, a),
            length: Diff::new(b, a),
        };
        match a.partial_cmp(&b)? {
            Ordering::Less => Some(up(axis.lo, axis.hi, a, b)),
            Ordering::Greater => Some(up(-axis.hi, -axis.lo, -a, -b)),
            Ordering::Equal => None,
        }
    })
}

/// The bounds of a box and the coordinates of three corners along one axis.
#[derive(Clone, Copy)]
struct AxisSlice {
    lo: f64,
    hi: f64,
    corners: [f64; 3],
}

impl AxisSlice {
    fn low(&self) -> f64 {
        let [a, b, c] = self.corners;
        a.min(b).min(c)
    }

    fn high(&self) -> f64 {
        let [a, b, c] = self.corners;
        a.max(b).max(c)
    }

    /// Returns the bounds of the box within the triangle's extent.
    fn reached(&self) -> impl Iterator<Item = f64> {
        let reach = self.low()..=self.high();
        [self.lo, self.hi]
            .into_iter()
            .filter(move |bound| reach.contains(bound))
    }

    /// Returns the corners relative to `origin`.
    fn from(&self, origin: f64) -> [Diff; 3] {
        self.corners.map(|corner| Diff::new(corner, origin))
    }
}

fn slices<'a>(
    bbox: &'a Bbox,
    [a, b, c]: [&'a [f64]; 3],
) -> impl Iterator<Item = AxisSlice> + use<'a> {
    let corners = a.iter().zip(b).zip(c);
    let bounds = bbox.lo().iter().zip(bbox.hi());
    corners
        .zip(bounds)
        .map(|(((a, b), c), (lo, hi))| AxisSlice {
            lo: *lo,
            hi: *hi,
            corners: [*a, *b, *c],
        })
}

/// Returns whether the box cuts the triangle's plane inside the triangle.
fn touches_face(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    let axes = || slices(bbox, corners).enumerate();
    axes().any(|(i, x)| {
        axes().skip(i + 1).any(|(j, y)| {
            let turn = orientation(x, y);
            let others = || axes().filter(move |(k, _)| ![i, j].contains(k));
            turn.is_ne()
                && x.reached().any(|on_x| {
                    y.reached().any(|on_y| {
                        let (from_x, from_y) = (x.from(on_x), y.from(on_y));
                        contains_origin(turn, from_x, from_y)
                            && others().all(|(_, z)| plane_is_between(turn, from_x, from_y, z))
                    })
                })
        })
    })
}

/// Returns the orientation of the corners in the projection onto two axes.
fn orientation(x: AxisSlice, y: AxisSlice) -> Ordering {
    let [[origin_x, ..], [origin_y, ..]] = [x.corners, y.corners];
    let [[_, bx, cx], [_, by, cy]] = [x.from(origin_x), y.from(origin_y)];
    sign_of_2(bx, cy, by, cx)
}

/// Returns whether the triangle's projection onto two axes contains the origin.
fn contains_origin(turn: Ordering, [ax, bx, cx]: [Diff; 3], [ay, by, cy]: [Diff; 3]) -> bool {
    let sides = [(ax, ay, bx, by), (bx, by, cx, cy), (cx, cy, ax, ay)];
    sides
        .into_iter()
        .all(|(px, py, qx, qy)| sign_of_2(px, qy, py, qx) != turn.reverse())
}

/// Returns whether the triangle's plane, above the origin of two axes, lies within the bounds of
/// a third axis.
fn plane_is_between(turn: Ordering, x: [Diff; 3], y: [Diff; 3], z: AxisSlice) -> bool {
    let side = |bound: f64| {
        let [[ax, bx, cx], [ay, by, cy], [az, bz, cz]] = [x, y, z.from(bound)];
        sign_of_3([[ax, ay, az], [bx, by, bz], [cx, cy, cz]])
    };
    let above = !z.lo.is_finite() || side(z.lo) != turn.reverse();
    above && (!z.hi.is_finite() || side(z.hi) != turn)
}

/// Error of [`Bbox::new`] and [`Bbox::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BboxError {
    /// The number of axes is zero or too large.
    #[error(transparent)]
    Axes(#[from] AxesError),
    /// The corners have different numbers of axes.
    #[error("the corners of a box have {lo} and {hi} axes; both need the same number")]
    AxesDiffer {
        /// Number of axes of the lowest corner.
        lo: usize,
        /// Number of axes of the highest corner.
        hi: usize,
    },
    /// The number of values is odd, so one axis lacks its upper bound.
    #[error("a box needs two bounds per axis, but {0} numbers were given")]
    OddCount(usize),
    /// The value at this index is not a number.
    #[error(
        "bound {} of the box is not a number; write a number, or inf or -inf for no bound",
        .0.saturating_add(1)
    )]
    NotANumber(usize),
}
